"""The command `verify`: compares any .tflite file with the model that it was converted from."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, get_args

import click

from tfconvert.cli.failure import FAILED, WRONG
from tfconvert.cli.keras_files import imports_option
from tfconvert.cli.options import CONTEXT, json_option, options_of, show, to_source
from tfconvert.schema.diagnostics import ERROR, ConversionError
from tfconvert.schema.json_text import json_text
from tfconvert.schema.limits import limited
from tfconvert.settings.options import Options
from tfconvert.settings.selection import Selection
from tfconvert.settings.verify_options import Runtime, Verify

_EXAMPLES = """
\b
Examples:
  tfconvert verify model.tflite --against saved_model/
  tfconvert verify model.tflite --against saved_model/ --data inputs.npz
  tfconvert verify model.tflite --against saved_model/ --compare-layers
  tfconvert verify model.tflite --against frozen.pb --output scores --json
  tfconvert verify model.tflite --on gpu
"""


@click.command("verify", context_settings=CONTEXT, epilog=_EXAMPLES, no_args_is_help=True)
@click.argument("file", metavar="FILE")
@click.option(
    "--against",
    "model",
    metavar="MODEL",
    help="The TensorFlow model: a SavedModel directory or anything else that can be converted.",
)
@click.option(
    "--on",
    type=click.Choice(get_args(Runtime)),
    multiple=True,
    help="Run FILE there and compare with the CPU (repeatable); then --against may be left out.",
)
@click.option(
    "--data",
    metavar="PATH",
    multiple=True,
    help="Inputs in files (.npz, .npy) or directories of them; repeatable. Default: random ones that suit it.",
)
@options_of(Verify, "min_snr", "min_agreement", "witness", "seconds")
@click.option(
    "--compare-layers", is_flag=True, help="Find the first operator whose result differs; quantized: list the layers."
)
@json_option("Print the outcome as JSON.")
@imports_option
@options_of(Selection)
@options_of(Options, "limits")
def verify(
    file: str,
    model: str | None,
    on: tuple[str, ...],
    data: tuple[str, ...],
    compare_layers: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Compare a .tflite FILE with the TensorFlow model that it was converted from.

    The file runs in LiteRT; its results are compared with those of the most independent witness at hand, which the
    output names: a Keras model itself, LiteRT on a .tflite model, else this package's reference executor, or TensorFlow
    if --verify-witness asks for it. Signatures, inputs and outputs are matched by their names, else by their order. A
    quantized file is fed and read by its scales, and judged by its accuracy.

    Exit status: 0 if the results agree, 1 if they differ or LiteRT can't run the file, 2 if nothing could be
    compared: the command line or the data is wrong, or a file can't be opened or is damaged.
    """
    from tfconvert.tools.against import check

    if model is None and not on:
        raise click.UsageError("Missing option '--against', or '--on'.")
    if on:
        _run_on(file, on, as_json=as_json and model is None)
    if model is None:
        return
    try:
        source, options = to_source(model, settings)
        wanted = replace(options.verify or Verify(), data=list(data) or None, compare_layers=compare_layers)
        with limited(options.limits):
            found = check(source, file, wanted)
    except ConversionError as problem:
        _show_failure(problem, as_json=as_json)
        sys.exit(FAILED if problem.code in ("runtime-error", "litert-timeout", "run-timeout") else WRONG)
    if as_json:
        _print_json(found.to_dict())
    elif text := found.to_text():
        click.echo(text)
    show((*found.notes, *found.problems))
    sys.exit(FAILED if found.problems else 0 if found.agrees else WRONG)


def _run_on(file: str, kinds: tuple[str, ...], *, as_json: bool) -> None:
    """Runs a file in other runtimes; ends with 1 if one does not run it, or has other results."""
    from tfconvert.converter.validation.runtimes_check import notes_of, outcomes
    from tfconvert.importers.tflite.outline import outline, read_file

    try:
        content = read_file(file)
        outline(content)
    except ConversionError as problem:
        _show_failure(problem, as_json=as_json)
        sys.exit(WRONG)
    found = list(notes_of(list(outcomes(content, kinds))))
    if as_json:
        _print_json({"runtimes": [each.to_dict() for each in found]})
    show(found)
    if any(each.severity == ERROR for each in found):
        sys.exit(FAILED)


def _show_failure(problem: ConversionError, *, as_json: bool) -> None:
    if as_json:
        _print_json(problem.to_dict())
    show(problem.diagnostics)


def _print_json(data: Any) -> None:
    click.echo(json_text(data, indent=2))
