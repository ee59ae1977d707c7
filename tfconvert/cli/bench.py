"""The command `bench`: measures a .tflite file in LiteRT."""

from __future__ import annotations

import sys

import click

from tfconvert.cli.failure import status_of
from tfconvert.cli.options import CONTEXT, SHAPE, json_option, show
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.json_text import json_text

_EXAMPLES = """
\b
Examples:
  tfconvert bench model.tflite
  tfconvert bench model.tflite --threads 4 --runs 200
  tfconvert bench model.tflite --input-shape image=8,224,224,3 --json
"""


@click.command("bench", context_settings=CONTEXT, epilog=_EXAMPLES, no_args_is_help=True)
@click.argument("file", metavar="FILE")
@click.option(
    "--runs",
    metavar="N",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="The number of measured runs, after three that are not measured.",
)
@click.option(
    "--threads",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="The number of threads of LiteRT.",
)
@click.option(
    "--input-shape",
    "shapes",
    type=SHAPE,
    multiple=True,
    help="The shape of an input; repeatable. Default: the file's, with 1 for a dynamic batch and 32 for others.",
)
@click.option("--whole", is_flag=True, help="Measure the file as a whole only, not each operator.")
@json_option("Print everything as JSON.")
def bench(
    file: str, runs: int, threads: int, shapes: tuple[tuple[str, list[int]], ...], whole: bool, as_json: bool
) -> None:
    """Measure a .tflite FILE in LiteRT: latency, memory, and the time of each operator.

    The first subgraph runs in a process of its own, on random numbers; integers are 0. An operator's time is that of
    a model of this operator alone, on the values that it gets in the file: calls cost a few microseconds each, and a
    delegate that takes several operators at once gains nothing, so the sum is not the time of the whole.

    Exit status: 0 if it was measured, 1 if the file is damaged or LiteRT can't run it, 2 if the command line is wrong
    or FILE can't be opened or is another kind of file.
    """
    from tfconvert.tools.bench import measure

    try:
        found = measure(file, runs=runs, threads=threads, shapes=dict(shapes), by_operator=not whole)
    except ConversionError as problem:
        show(problem.diagnostics)
        sys.exit(status_of(problem.code))
    if as_json:
        click.echo(json_text({"file": file, **found.to_dict()}, indent=2))
    else:
        click.echo(found.to_text())
