"""The command `ops`: the table of support."""

from __future__ import annotations

import difflib
import sys

import click

from tfconvert.cli.options import CONTEXT, json_option, show
from tfconvert.schema.diagnostics import ERROR, Diagnostic
from tfconvert.settings.targets import TARGETS

# How ops are converted that are listed only where one asks for them.
_LEFT_OUT = ("flex", "custom", "refused", "unknown")

_EXAMPLES = """
\b
Examples:
  tfconvert ops
  tfconvert ops Conv2D
  tfconvert ops "*Resize*" --json
  tfconvert ops --target iree Unique
"""


@click.command("ops", context_settings=CONTEXT, epilog=_EXAMPLES)
@click.argument("pattern", required=False)
@click.option("--target", type=click.Choice(TARGETS), default=TARGETS[0], show_default=True, help="What ops become.")
@json_option()
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the page of the docs.")
def ops(pattern: str | None, target: str, as_json: bool, as_markdown: bool) -> None:
    """List TensorFlow's ops with what becomes of each.

    PATTERN is a part of an op's name, or a pattern with * and ?. Without one, ops are listed that are converted to
    other than custom operators, or to ops of StableHLO.

    Exit status: 0 if there are such ops, 1 if TensorFlow has none, 2 if the command line is wrong.
    """
    from tfconvert.cli.json_output import print_json
    from tfconvert.tools import op_support

    functions = op_support.supported_functions() if target == "litert" else ()
    meanings = op_support.MEANINGS
    if target == "litert":
        everything = op_support.supported_ops()
    else:
        from tfconvert.tools import stablehlo_support

        everything, meanings = stablehlo_support.supported_ops(target), stablehlo_support.MEANINGS
    chosen = everything if pattern is None else tuple(op_support.matching(pattern, everything))
    if as_markdown:
        if target == "litert":
            page = op_support.markdown(chosen, functions)
        else:
            page = op_support.stablehlo_markdown(chosen, meanings)
        click.echo(page, nl=False)
        return
    if pattern is None and not as_json:
        chosen = tuple(each for each in chosen if each.how not in _LEFT_OUT)
    if as_json:
        print_json({"ops": [each.to_dict() for each in chosen], "functions": [each._asdict() for each in functions]})
    elif chosen:
        click.echo("\n".join(op_support.op_lines(chosen, meanings)))
    if pattern is not None and not chosen:
        close = difflib.get_close_matches(pattern, [each.op for each in everything], 3)
        hint = f"did you mean {', '.join(close)}?" if close else ""
        show([Diagnostic("unknown-op", f"TensorFlow has no op like {pattern!r}", hint=hint, severity=ERROR)])
        sys.exit(1)
