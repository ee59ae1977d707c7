"""The command `explain`: explains the code of an error."""

from __future__ import annotations

import sys

import click

from tfconvert.cli.options import CONTEXT

_EXAMPLES = """
\b
Examples:
  tfconvert explain                    all codes, a line each
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
        width = max(map(len, codes))
        for name, entry in codes.items():
            click.echo(f"{name:<{width}}  {entry.means}")
        return
    found = codes.get(code.strip("[]"))
    if found is None:
        from difflib import get_close_matches

        close = get_close_matches(code, codes, 3)
        meant = f"; did you mean {', '.join(close)}?" if close else "; tfconvert explain lists all codes"
        click.echo(f"tfconvert: error: there is no code {code!r}{meant}", err=True)
        sys.exit(2)
    click.echo(found.to_text())
