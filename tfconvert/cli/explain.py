"""The command `explain`: explains the code of an error."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from tfconvert.cli.options import CONTEXT

if TYPE_CHECKING:
    from tfconvert.schema.error_codes import ErrorCode

COMMON = (
    "unsupported-op",
    "not-a-saved-model",
    "foreign-format",
    "unknown-format",
    "load-failed",
    "no-tensorflow",
    "wrong-option",
    "unknown-tensor",
    "unknown-signature",
    "no-signature",
    "shape-mismatch",
    "open-sizes",
    "same-signature",
    "custom-operators",
    "no-samples",
    "wrong-sample",
    "low-fidelity",
    "nothing-quantized",
    "verification-failed",
    "runtime-error",
    "newer-runtime",
    "litert-missing",
    "iree-missing",
    "output-not-writable",
    "internal-error",
)
"""The codes that people encounter first, roughly the most frequent first."""

_EXAMPLES = """
\b
Examples:
  tfconvert explain                    all codes, a line each, the most frequent first
  tfconvert explain unsupported-op     what it means, why it happens, what to do, an example
"""


@click.command("explain", context_settings=CONTEXT, epilog=_EXAMPLES)
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Explain the CODE of an error: its meaning, its cause and what to do.

    Exit status: 0, or 2 if there is no such code.
    """
    from tfconvert.schema import error_codes

    codes = error_codes.all_codes()
    if code is None:
        _list(codes)
        return
    found = codes.get(code.strip("[]"))
    if found is None:
        from difflib import get_close_matches

        close = get_close_matches(code, codes, 3)
        meant = f"; did you mean {', '.join(close)}?" if close else "; tfconvert explain lists all codes"
        click.echo(f"tfconvert: error: there is no code {code!r}{meant}", err=True)
        sys.exit(2)
    click.echo(found.to_text())


def _list(codes: Mapping[str, ErrorCode]) -> None:
    width = max(map(len, codes))
    for title, names in (
        ("The most frequent codes:", COMMON),
        ("All others:", [name for name in codes if name not in COMMON]),
    ):
        click.echo(title)
        for name in names:
            click.echo(f"  {name:<{width}}  {codes[name].means}")
