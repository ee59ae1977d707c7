"""The command `inspect`: describes a model, and whether and to what it will convert."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tfconvert.cli.failure import JsonErrors, status_of
from tfconvert.cli.keras_files import imports_option
from tfconvert.cli.options import CONTEXT, MEMORY, json_option, options_of, show, to_source, utf8
from tfconvert.cli.standard_input import NAME, model_file
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.settings.options import Options
from tfconvert.settings.selection import Selection
from tfconvert.settings.targets import LiteRT, StableHLO

if TYPE_CHECKING:
    from tfconvert.importers.source import Source

_EXAMPLES = """
\b
Examples:
  tfconvert inspect saved_model/
  tfconvert inspect frozen.pb --output scores -v
  tfconvert inspect model.tflite --json
  curl -s https://example.com/model.tflite | tfconvert inspect -
  tfconvert inspect saved_model/ --memory
  tfconvert inspect model.tflite --accelerator gpu
"""


def _refuse_report(context: click.Context, parameter: click.Parameter, path: str | None) -> None:
    if path is not None and not context.resilient_parsing:
        raise click.UsageError(f"inspect prints text. For a page: tfconvert view MODEL -o {path}")


@click.command("inspect", context_settings=CONTEXT, epilog=_EXAMPLES, no_args_is_help=True)
@click.argument("model", type=click.Path(allow_dash=True))
@imports_option
@options_of(Selection)
@options_of(LiteRT, "allow_custom_ops", "recurrent", "accelerator")
@click.option(
    "--memory",
    type=MEMORY,
    multiple=True,
    is_flag=False,
    flag_value="",
    help="Print the memory, operations, products and convolutions of a run instead, for inputs of these shapes "
    "(repeatable), or as formulas of dynamic sizes.",
)
@json_option()
@click.option("-v", "--verbose", is_flag=True, help="List all ops.")
@click.option("--report", hidden=True, expose_value=False, callback=_refuse_report)
def inspect(model: str, memory: Sequence[tuple[str, list[int]]], as_json: bool, verbose: bool, **settings: Any) -> None:
    """Describe MODEL, whether it will convert, and the result.

    MODEL is anything that can be converted, a .tflite file, or - for a file on standard input. The command runs a
    conversion without reading and writing the weights, so the sizes and operators of the result are exact.
    `tfconvert view MODEL` shows a model as a page.

    Exit status: 0 if the model will convert (or is a .tflite file), 1 if it won't or is damaged, 2 if the command line
    is wrong, or MODEL can't be opened or is another kind of file.
    """
    from tfconvert.cli.json_output import print_json
    from tfconvert.tools.inspection import inspect as look
    from tfconvert.tools.inspection import to_text

    try:
        with JsonErrors(as_json, sys.stdout), model_file(model) as path:
            source, options = to_source(path, {**settings, "target": StableHLO.name if memory else None})
            name = NAME if model == "-" else source.name
            if memory:
                _memory(source, name, options, dict(memory), as_json=as_json, verbose=verbose)
                return
            found = look(source, options)._replace(source=name)
    except ConversionError as problem:
        if as_json:
            print_json(problem.to_dict())
        show(problem.diagnostics)
        sys.exit(status_of(problem.code))
    if as_json:
        print_json(found.to_dict())
    else:
        click.echo(to_text(found, verbose=verbose), file=utf8(sys.stdout))
    if found.converts is False:
        sys.exit(1)


def _memory(
    source: Source, name: str, options: Options, shapes: Mapping[str, Sequence[int]], *, as_json: bool, verbose: bool
) -> None:
    """Prints the memory and operations of a run."""
    from tfconvert.cli.json_output import print_json
    from tfconvert.tools.memory import memory_of, to_text

    found = memory_of(source, options, {name: shape for name, shape in shapes.items() if name})
    if as_json:
        print_json({"functions": [each.to_dict() for each in found]})
    else:
        click.echo(to_text(name, found, verbose=verbose), file=utf8(sys.stdout))
