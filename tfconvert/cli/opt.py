"""The command `opt`: prints a model as MLIR, before and after passes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tfconvert.cli.completion import complete_passes
from tfconvert.cli.failure import FAILED, show_failure, status_of, tell_more
from tfconvert.cli.keras_files import imports_option
from tfconvert.cli.options import CONTEXT, options_of, show, to_source, utf8
from tfconvert.schema.diagnostics import ERROR, ConversionError, error
from tfconvert.settings.options import Options
from tfconvert.settings.selection import Selection
from tfconvert.settings.targets import LiteRT

if TYPE_CHECKING:
    from tfconvert.cli.opt_job import OptCommand, OptOutcome

_TERMINAL_ELISION = 16

_EXAMPLES = """
\b
Examples:
  tfconvert opt saved_model/                                    the imported module
  tfconvert opt saved_model/ --until shape-inference            the module after this pass of the conversion
  tfconvert opt saved_model/ -p executor-to-functional,inline,freeze-variables -o frozen.mlir
  tfconvert opt frozen.mlir -p "canonicalize,shape-inference,legalize{allow_custom_ops=true}" --time-passes
  tfconvert opt frozen.mlir -p canonicalize --patterns rules.py
  tfconvert opt tests.mlir -p canonicalize --split-input-file --verify-diagnostics
"""


@click.command("opt", context_settings=CONTEXT, epilog=_EXAMPLES, no_args_is_help=True)
@click.argument("model", metavar="INPUT", required=False, type=click.Path())
@click.option(
    "-p",
    "--passes",
    metavar="PASSES",
    shell_complete=complete_passes,
    help='The passes to run, as "pass{option=value option2=value},pass2".',
)
@click.option(
    "--pipeline",
    metavar="NAME",
    help="Run a pipeline by name: tflite, the conversion's, or tf-standard, the part before TFLite's ops.",
)
@click.option(
    "--until",
    metavar="PASS",
    shell_complete=complete_passes,
    help="Stop the pipeline (default: tflite) after this pass.",
)
@click.option(
    "-o", "--output-file", metavar="FILE", type=click.Path(), help="The file to write. Default, or -: standard output."
)
@click.option("--list-passes", is_flag=True, help="List the passes with their options, and the pipelines.")
@click.option(
    "--elide",
    metavar="N",
    type=click.IntRange(min=0),
    help="Leave out constants of more than N elements. Default: 16 on a terminal, else none.",
)
@click.option("--locations", is_flag=True, help="Print where ops come from.")
@click.option("--verify-each", is_flag=True, help="Verify the IR after each pass.")
@click.option(
    "--print-ir-before",
    metavar="PASS",
    multiple=True,
    shell_complete=complete_passes,
    help="Print the IR before a pass; repeatable.",
)
@click.option(
    "--print-ir-after",
    metavar="PASS",
    multiple=True,
    shell_complete=complete_passes,
    help="Print the IR after a pass; repeatable.",
)
@click.option("--print-ir-after-all", is_flag=True, help="Print the IR after each pass.")
@click.option("--time-passes", is_flag=True, help="Report how long each pass took.")
@click.option("--split-input-file", is_flag=True, help="MLIR: take the parts between lines `// -----` one by one.")
@click.option(
    "--verify-diagnostics",
    is_flag=True,
    help="MLIR: expect the diagnostics that comments announce (// expected-error@+1 {{...}}), and no other.",
)
@imports_option
@options_of(Selection)
@options_of(LiteRT, "allow_custom_ops", "recurrent", "composites")
@options_of(Options, "patterns", "check_passes", "limits")
def opt(model: str | None, output_file: str | None, list_passes: bool, **settings: Any) -> None:
    """Print a model as MLIR, after the requested passes.

    INPUT is MLIR text (.mlir, or - for standard input), a SavedModel directory, a GraphDef, a MetaGraph, a StableHLO
    artifact, a file of jax.export or a .tflite file. The output of --print-ir-... and --time-passes goes to the error
    stream.

    Exit status: 0 if all went well, 1 if something failed, 2 if the command line is wrong, or INPUT can't be opened
    or is another kind of file, 3 after an internal error.
    """
    if list_passes:
        _list_passes()
        return
    if model is None:
        raise click.MissingParameter(param_hint="INPUT", param_type="argument")
    if output_file == "-":
        output_file = None
    with _exiting():
        if output_file is None and sys.stdout is None:
            raise error("output-not-writable", "standard output is closed", hint="name a file with -o")
        if settings["elide"] is None and output_file is None and sys.stdout.isatty():
            settings["elide"] = _TERMINAL_ELISION
        job = _job(model, settings)
        outcome = job.run()
        if output_file is not None:
            job.save(outcome, output_file)
        else:
            job.write(outcome, utf8(sys.stdout))
    _finish(outcome, job)


def _job(model: str, settings: dict[str, Any]) -> OptCommand:
    from tfconvert.cli.opt_job import OptCommand, Request
    from tfconvert.conversion import checked

    own = {name: settings.pop(name) for name in Request.OPTIONS}
    verify_each = settings.pop("verify_each")
    source, options = to_source(model, settings)
    return OptCommand(Request(source, checked(replace(options, verify_each=verify_each)), **own), utf8(sys.stderr))


def _list_passes() -> None:
    from tfconvert.cli.opt_job import described_passes

    click.echo(described_passes())


@contextmanager
def _exiting() -> Iterator[None]:
    """Ends the process with an exit status if the body fails."""
    try:
        yield
    except ConversionError as problem:
        show_failure(problem)
        sys.exit(status_of(problem.code))


def _finish(outcome: OptOutcome, job: OptCommand) -> None:
    show(outcome.diagnostics)
    if job.timing is not None:
        click.echo(job.timing.table(), err=True)
    if outcome.failed:
        tell_more(next(each.code for each in outcome.diagnostics if each.severity == ERROR))
        sys.exit(FAILED)
