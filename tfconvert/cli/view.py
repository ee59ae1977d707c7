"""The command `view`: shows a model, or two side by side, in the browser."""

from __future__ import annotations

import sys
from typing import Any

import click

from tfconvert.cli.failure import status_of
from tfconvert.cli.options import CONTEXT, options_of, show, to_source
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.settings.selection import Selection
from tfconvert.settings.targets import LiteRT

_EXAMPLES = """
\b
Examples:
  tfconvert view model.tflite
  tfconvert view saved_model/
  tfconvert view before.tflite after.tflite
  tfconvert view model.tflite --bench
  tfconvert view model.tflite -o model.html --no-open
"""


@click.command("view", context_settings=CONTEXT, epilog=_EXAMPLES, no_args_is_help=True)
@click.argument("model", type=click.Path())
@click.argument("other", required=False, type=click.Path())
@click.option(
    "-o",
    "--output-file",
    "page",
    metavar="FILE",
    type=click.Path(),
    help="Where to write the page. Default: a file in the directory for temporary files.",
)
@click.option("--no-open", is_flag=True, help="Don't open the browser.")
@click.option("--bench", is_flag=True, help="Measure each operator in LiteRT, to colour the graph by latency.")
@options_of(Selection)
@options_of(LiteRT, "allow_flex", "allow_custom_ops", "recurrent")
def view(model: str, other: str | None, page: str | None, no_open: bool, bench: bool, **settings: Any) -> None:
    """Show MODEL in the browser: its graph, tensors and weights, and what accelerators take of it.

    MODEL is a .tflite file of any origin, or anything that can be converted: then the page shows the graph before and
    after the conversion, or, if that fails, what it fails on. With OTHER it shows both side by side, with the
    differences marked. The page is a single file that loads nothing.

    Exit status: 0 if the page was written, also if the model can't be converted; 1 if there is nothing to show, 2 if
    the command line is wrong, or MODEL can't be opened or is another kind of file.
    """
    from tfconvert.cli.browser import open_page, temporary_page
    from tfconvert.report.report import write_page
    from tfconvert.tools.view import view as look

    if other is not None and bench:
        raise click.UsageError("--bench goes with one model")
    try:
        source, options = to_source(model, {**settings, "target": None})
        found = look(source, other, options=options, bench=bench)
        if found.failure is not None and found.graphs is None:
            raise found.failure
        path = page or temporary_page(model)
        write_page(path, found.to_html())
    except ConversionError as problem:
        show(problem.diagnostics)
        sys.exit(status_of(problem.code))
    if found.failure is not None:
        show(found.failure.diagnostics)
    click.echo(path)
    if not no_open:
        open_page(path, is_known=True)
