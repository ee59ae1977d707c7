"""The `tfconvert` command: a thin caller of `convert`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from schema.diagnostics import ConversionError, Diagnostic

if TYPE_CHECKING:
    from converter.options import Options
    from converter.report import Report

_EXAMPLES = """
\b
Examples:
  tfconvert saved_model/ -o model.tflite
  tfconvert saved_model/ -o model.tflite --signature serving_default --verify
  tfconvert saved_model/ -o model.tflite --input-shape image=1,224,224,3
  tfconvert frozen.pb -o model.tflite --input x --output scores:0
  tfconvert saved_model/ -o model.tflite --json > report.json
"""


class ShapeOption(click.ParamType[tuple[str, list[int]]]):
    """`NAME=1,224,224,3`: an input's shape; `NAME=` is a scalar, -1 leaves a dimension as it is."""

    name = "NAME=DIMS"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, list[int]]:
        """Parses one value."""
        name, equals, dims = str(value).rpartition("=")
        try:
            shape = [int(dim) for dim in dims.split(",")] if dims.strip() else []
        except ValueError:
            shape, equals = [], ""
        if not equals or not name or any(dim < -1 for dim in shape):
            self.fail(f"{value!r} is not NAME=DIMS, as in image=1,224,224,3", param, ctx)
        return name, shape


@click.command(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_EXAMPLES,
    no_args_is_help=True,
)
@click.argument("model")
@click.option("-o", "--output-file", metavar="FILE", required=True, help="The .tflite file to write.")
@click.option("--signature", "signatures", metavar="KEY", multiple=True,
              help="A signature to convert; repeatable. Default: every one.")  # fmt: skip
@click.option("--tags", metavar="TAG", multiple=True,
              help="A tag of the SavedModel's graph; repeatable, or several with commas. Default: serve.")  # fmt: skip
@click.option("--input", "inputs", metavar="NAME", multiple=True,
              help="GraphDefs: a tensor to feed; repeatable, order kept. Default: the placeholders.")  # fmt: skip
@click.option("--output", "outputs", metavar="NAME", multiple=True,
              help="GraphDefs: a tensor to fetch; repeatable, order kept. Default: what nothing uses.")  # fmt: skip
@click.option("--input-shape", "input_shapes", type=ShapeOption(), multiple=True,
              help="Pin unknown dimensions of an input; repeatable.")  # fmt: skip
@click.option("--allow-custom-ops", is_flag=True, help="Turn ops that LiteRT doesn't have into custom ops.")
@click.option("--verify", is_flag=True, help="Run the result in LiteRT and compare it with the reference executor.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("-v", "--verbose", is_flag=True, help="Print the whole report.")
@click.version_option(package_name="tfconvert", message="%(prog)s %(version)s")
def main(
    model: str,
    output_file: str,
    signatures: tuple[str, ...],
    tags: tuple[str, ...],
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    input_shapes: tuple[tuple[str, list[int]], ...],
    allow_custom_ops: bool,
    verify: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Convert a TensorFlow MODEL (a SavedModel folder or a frozen graph) to a LiteRT file.

    Exit status: 0 if the file was written, 1 if the conversion failed, 2 if the command line is wrong.
    """
    from converter.options import Options

    options = Options(
        inputs=inputs or None,
        outputs=outputs or None,
        input_shapes=dict(input_shapes) or None,
        signatures=signatures or None,
        tags=",".join(tags).split(",") if tags else None,
        allow_custom_ops=allow_custom_ops,
        verify=verify,
    )
    try:
        report = _convert(model, output_file, options)
    except ConversionError as problem:
        _print_error(problem, as_json)
        sys.exit(1)
    _print_report(report, output_file, as_json, quiet, verbose)


def _convert(model: str, output_file: str, options: Options) -> Report:
    from converter.api import convert_with

    converted = convert_with(model, options)
    converted.save(output_file)
    return converted.report


def _print_error(problem: ConversionError, as_json: bool) -> None:
    if as_json:
        import json

        click.echo(json.dumps(problem.to_dict(), indent=2))
    for diagnostic in problem.diagnostics:
        click.echo(_styled(diagnostic), err=True)


def _styled(diagnostic: Diagnostic) -> str:
    return f"{click.style('tfconvert: error:', fg='red', bold=True)} {diagnostic} [{diagnostic.code}]"


def _print_report(report: Report, output_file: str, as_json: bool, quiet: bool, verbose: bool) -> None:
    if as_json:
        import json

        click.echo(json.dumps(report.to_dict(), indent=2))
    elif not quiet:
        click.echo(report.to_text(output_file, verbose=verbose))
