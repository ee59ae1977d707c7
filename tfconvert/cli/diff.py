"""The command `diff`: compares two .tflite files."""

from __future__ import annotations

import sys

import click

from tfconvert.cli.failure import FAILED, WRONG
from tfconvert.cli.options import CONTEXT, json_option, show
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.json_text import json_text

_EXAMPLES = """
\b
Examples:
  tfconvert diff before.tflite after.tflite
  tfconvert diff before.tflite after.tflite --data inputs.npz
  tfconvert diff before.tflite after.tflite --latency --json
"""


@click.command("diff", context_settings=CONTEXT, epilog=_EXAMPLES, no_args_is_help=True)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--data",
    metavar="PATH",
    multiple=True,
    help="Inputs in files (.npz, .npy) or directories of them; repeatable. Default: random ones, with 2 for a "
    "dynamic batch and 32 for other dynamic sizes.",
)
@click.option("--latency", is_flag=True, help="Measure both in LiteRT, in turns.")
@json_option("Print the differences as JSON.")
def diff(first: str, second: str, data: tuple[str, ...], latency: bool, as_json: bool) -> None:
    """Compare the .tflite files A and B.

    Compared are operators and their attributes, signatures, versions and metadata; constants, by name or else by
    order, integers as the numbers that they stand for; and what both compute in LiteRT on the same inputs.

    Exit status: 0 if they are the same, 1 if they differ, 2 if one can't be opened or is damaged, or the command line
    is wrong.
    """
    from tfconvert.tools import diff as job

    try:
        found = job.diff(first, second, list(data) or None, latency=latency)
    except ConversionError as problem:
        show(problem.diagnostics)
        sys.exit(WRONG)
    if as_json:
        click.echo(json_text({"files": [first, second], **found.to_dict()}, indent=2))
    else:
        click.echo(found.to_text())
    sys.exit(0 if found.is_same else FAILED)
