"""The `tfconvert` command: a thin caller of `convert`, and the group of the other commands."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from tfconvert.cli.completion import complete_model
from tfconvert.cli.failure import (
    DEBUG,
    FAILED,
    INTERRUPTED,
    WRONG,
    ErrorGuard,
    JsonErrors,
    UsageErrors,
    show_failure,
    status_of,
)
from tfconvert.cli.help_page import COMMANDS, SUMMARY, format_help
from tfconvert.cli.keras_files import imports_option, prepare_for_keras
from tfconvert.cli.options import CONTEXT, STATS, flag, json_option, setting_options, show, to_settings
from tfconvert.cli.output_options import (
    OUTPUT_SETTINGS,
    SERVER_SETTINGS,
    Output,
    ServerAddress,
    output_options,
    server_options,
    to_output,
    to_server,
)
from tfconvert.cli.progress import Progress, with_progress
from tfconvert.cli.streams import can_redraw, emphasized, is_beside_errors, say
from tfconvert.converter.targets.output_form import Form, form_of
from tfconvert.importers.containment import SAVED_MODEL_FILES
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.files import is_missing
from tfconvert.settings.data import from_data
from tfconvert.settings.options import Options
from tfconvert.settings.verify_options import WITNESS, Runtime

if TYPE_CHECKING:
    from tfconvert.batch.result_cache import CachedReport
    from tfconvert.cli.convert_job import ConvertCommand
    from tfconvert.report.report import Report
    from tfconvert.settings.quantization import Quantize

_EXAMPLES = """
\b
Examples:
  tfconvert saved_model/ -o model.tflite
  tfconvert saved_model/ -o model.tflite --signature serving_default --verify
  tfconvert saved_model/ -o model.tflite --verify-data inputs.npz
  tfconvert saved_model/ -o model.tflite --batch 1 --accelerator gpu --verify gpu
  tfconvert saved_model/ -o model.tflite --input-shape image=1,224,224,3
  tfconvert frozen.pb -o model.tflite --input x --output scores:0
  tfconvert model.ckpt-100.meta -o model.tflite --output scores
  tfconvert saved_model/ -o model.tflite --quantize dynamic
  tfconvert saved_model/ -o model.tflite --quantize int8 --samples samples.npz
  tfconvert saved_model/ -o model.tflite --json > report.json
  tfconvert saved_model/ -o model.tflite --report report.html
  tfconvert saved_model/ -o model.tflite --server http://localhost:8750
  tfconvert saved_model/ -o model.mlir
  tfconvert saved_model/ -o model.vmfb --verify
  tfconvert build tfconvert.toml
  tfconvert inspect saved_model/
  tfconvert ops "Resize*"
  tfconvert opt saved_model/ --pipeline tf-standard
  tfconvert explain unsupported-op

A model whose name is a command's is passed with its directory: ./opt
"""


class Commands(MutableMapping[str, click.Command]):
    """The commands of the group by name, each loaded when it is called.

    The command `bench` is the object of that name in the module of that name beside this one.
    """

    def __init__(self) -> None:
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded and name in COMMANDS:
            found = getattr(import_module(f"{__package__}.{name}"), name)
            assert isinstance(found, click.Command)
            self._loaded[name] = found
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        raise TypeError("commands are not removed")

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*COMMANDS, *self._loaded}))

    def __len__(self) -> int:
        return len({*COMMANDS, *self._loaded})


VERIFY = "--verify"


# What may follow the flag.
_WORDS = (*get_args(Runtime), WITNESS)


def _flag_of(word: str) -> str:
    return "--verify-witness" if word == WITNESS else "--verify-on"


def with_runtimes(args: Sequence[str]) -> list[str]:
    """Returns arguments with a flag of their own for runtimes and the witness: `--verify gpu`, `--verify=gpu,micro`.

    Args:
        args: The arguments as they are given.
    """
    found: list[str] = []
    for index, each in enumerate(args):
        flag, is_joined, names = each.partition("=")
        if flag == VERIFY and is_joined:
            found += [part for name in names.split(",") for part in (_flag_of(name), name)]
        elif each in _WORDS and index and args[index - 1] == VERIFY:
            found += [_flag_of(each), each]
        else:
            found.append(each)
    return found


def _check_runtimes(args: Sequence[str]) -> None:
    """Checks that a word after the flag is a runtime, or what it can be beside: the model, or a file to write.

    Raises:
        UsageError: It is neither.
    """
    for option, word in pairwise(args):
        if option == VERIFY and word.isalpha() and word not in _WORDS and is_missing(word):
            choices = ", ".join(get_args(Runtime))
            message = f"{word!r} is neither a runtime for {VERIFY} ({choices}) nor a path, nor the witness {WITNESS}"
            raise click.UsageError(message)


# The extensions of models that the name of a result does not keep.
_MODEL_EXTENSIONS = (".keras", ".h5", ".hdf5", ".pb", ".pbtxt", ".meta", ".mlir", ".mlirbc", ".bin", ".tflite")

# How much a word has to be like a command to be taken for one with a typing error.
_LIKENESS = 0.7

# Verbs of the main job itself, with the options that they stand for.
_OWN_VERBS = {"convert": (), "help": ("--help",)}

# The beginning of a flag of `tflite_convert`; own ones have no underscores.
_LIKE_OFFICIAL = re.compile("--[a-z0-9]+_")


class MainCommand(click.Group):
    """A command that converts, unless its first argument is the name of another command."""

    # Whether errors are documents, too, known before the command line is parsed.
    _as_json = False

    def main(self, args: Sequence[str] | None = None, *positional: Any, **extra: Any) -> Any:
        """Runs the command line; nothing unexpected is seen as a traceback, unless that is asked for."""
        given = list(sys.argv[1:] if args is None else args)
        rest = [argument for argument in given if argument != DEBUG]
        self._as_json = "--json" in rest
        # To the caller of these, 1 means that the files differ.
        out_of_resources = WRONG if rest[:1] in (["diff"], ["verify"]) else FAILED
        with ErrorGuard(debug=rest != given, out_of_resources=out_of_resources):
            return super().main(rest, *positional, **extra)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Returns the context of the command that is called."""
        if args and args[0] in _OWN_VERBS and not Path(args[0]).exists():
            args = [*args[1:], *_OWN_VERBS[args[0]]]
        command = self.commands.get(args[0]) if args else None
        with UsageErrors(as_json=self._as_json):
            if command is not None:
                return command.make_context(f"{info_name} {command.name}", args[1:], parent, **extra)
            return super().make_context(info_name, args, parent, **extra)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses the main job's arguments; options may follow the model, or be those of `tflite_convert`."""
        if not args and not ctx.resilient_parsing:
            click.echo(SUMMARY.format(commands=", ".join(COMMANDS)), nl=False)
            ctx.exit(2)
        ctx.allow_interspersed_args = True
        if any(_LIKE_OFFICIAL.match(each) for each in args):
            from tfconvert.cli import tflite_convert

            if tflite_convert.is_meant(args):
                args = tflite_convert.rewritten(args)
        if not ctx.resilient_parsing:
            _check_runtimes(args)
        extra = click.Command.parse_args(self, ctx, with_runtimes(args))
        if extra and not ctx.resilient_parsing:
            ctx.fail(f"unexpected: {' '.join(extra)}")
        return extra

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; an interrupt ends the process with the status that shells give it."""
        try:
            with UsageErrors(as_json=self._as_json):
                return ctx.command.invoke(ctx) if ctx.command is not self else click.Command.invoke(self, ctx)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)

    def get_help(self, ctx: click.Context) -> str:
        """Returns the help with the usual options."""
        return format_help(self, ctx, shows_all=False)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Returns the main job's arguments; the other commands have a section of their own."""
        return click.Command.collect_usage_pieces(self, ctx)


def _print_all(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        command = context.command
        assert isinstance(command, click.Group)
        click.echo(format_help(command, context, shows_all=True))
        context.exit()


def _print_versions(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from tfconvert.schema.versions import own_version, versions

        named = {"tfconvert": own_version(), **versions()}
        lines = [f"{name} {version}" for name, version in named.items()]
        click.echo("\n".join(lines))
        context.exit()


@click.group(cls=MainCommand, context_settings=CONTEXT, epilog=_EXAMPLES, commands=Commands())
@click.argument("model", shell_complete=complete_model)
@click.argument("result", metavar="[OUTPUT]", required=False, type=click.Path())
@output_options
@setting_options
@imports_option
@flag(
    "--input-stats",
    section="Inputs, outputs and shapes",
    type=STATS,
    multiple=True,
    help="Frozen graphs trained for integers: an input's mean and standard deviation; repeatable.",
)
@server_options
@json_option("Print the report as JSON.")
@click.option(
    "-q", "--quiet", is_flag=True, help="Print only errors, and a warning if a quantized model differs too much."
)
@click.option("-v", "--verbose", is_flag=True, help="Print the whole report, and TensorFlow's log for Keras files.")
@flag(DEBUG, is_flag=True, expose_value=False, help="Print the traceback of an internal error.")
@click.option(
    "--help-all",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_all,
    help="Show every option and exit.",
)
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_versions,
    help="Show the versions of tfconvert and of what it runs on, and exit.",
)
def main(model: str, result: str | None, as_json: bool, quiet: bool, verbose: bool, **settings: Any) -> None:
    """Convert a TensorFlow or JAX MODEL to a LiteRT file, OUTPUT or that of -o.

    MODEL is a SavedModel directory, a frozen graph (.pb, .pbtxt), a MetaGraph beside its checkpoint (.meta), a Keras
    file (.keras, .h5; needs the tensorflow extra), a file of jax.export, a StableHLO artifact (.mlirbc), MLIR text
    (.mlir) or a .tflite file.

    With -o - or -o /dev/stdout the report goes to the error stream.

    Exit status: 0 if the file was written, 1 if the conversion failed, 2 if the command line is wrong or names an
    input that can't be opened or is another kind of file, 3 after an internal error.
    """
    if quiet and verbose:
        raise click.UsageError("-q and -v contradict each other")
    _check_verb(model)
    data = to_settings(settings)
    settings["output_file"] = _output_file(model, result, settings["output_file"], data)
    written = to_output({name: settings[name] for name in OUTPUT_SETTINGS})
    server = to_server({name: settings[name] for name in SERVER_SETTINGS}, written)
    try:
        source, options = _split(model, settings["output_file"], data)
        if settings["imports"] and (server or written.cache_dir):
            raise click.UsageError("--import goes neither with --server nor with --cache-dir")
        prepare_for_keras(model, settings["imports"], shows_log=verbose)
    except ConversionError as problem:
        _print_error(problem, written, as_json)
        sys.exit(status_of(problem.code))
    options = replace(with_progress(options, quiet=quiet), keep_graphs=written.needs_graphs)
    try:
        if settings["input_stats"]:
            source = with_stats(source, dict(settings["input_stats"]), options.quantize)
        with JsonErrors(as_json, written.report_stream), Progress(verbose=verbose, quiet=quiet) as progress:
            job = _job(source, written, progress, options, server)
            report = job._replace(imports=settings["imports"], began=click.get_current_context().obj).run()
    except ConversionError as problem:
        _print_error(problem, written, as_json)
        sys.exit(status_of(problem.code))
    # The report has it, too.
    is_seen = not quiet and not as_json and is_beside_errors(written.report_stream)
    if options.verify is not None and options.quantize is not None and not is_seen:
        show(low_fidelity(report))
    if as_json or not quiet:
        say(_text(report, written, as_json, verbose), written.report_stream)
    if not as_json and not quiet:
        _say_next(report, written, options)


def _say_next(report: Report | CachedReport, output: Output, options: Options) -> None:
    from tfconvert.cli.next_step import next_step, run_command
    from tfconvert.report.report import Report
    from tfconvert.settings.targets import Iree

    text = ""
    if isinstance(options.target, Iree) and isinstance(report, Report):
        text = run_command(output, options.target, report)
    elif can_redraw(output.report_stream):
        text = next_step(output, options)
    if text:
        say(text, output.report_stream)


def _check_verb(model: str) -> None:
    """Checks that what should be a model is not a verb with a typing error.

    Raises:
        UsageError: There is no such path, and its name is nearly a verb's.
    """
    if not model.isalpha() or not is_missing(model):
        return
    import difflib

    near = difflib.get_close_matches(model.lower(), [*COMMANDS, *_OWN_VERBS], 1, _LIKENESS)
    if near:
        raise click.UsageError(f"{model!r} is neither a command nor a path. Did you mean {near[0]}?")


def _output_file(model: str, result: str | None, file: str | None, data: Mapping[str, Any]) -> str:
    """Returns the file to write: as it was given, or in this directory, with the model's name."""
    if result is not None and file is not None:
        raise click.UsageError("the output is given twice: by its place after the model, and by -o")
    if result is not None or file is not None:
        return result or file or ""
    name = Path(model).absolute().name
    if name in SAVED_MODEL_FILES:
        name = Path(model).absolute().parent.name
    is_named = name.lower().endswith(_MODEL_EXTENSIONS)
    return (Path(name).stem if is_named else name) + Form(data.get("target", Form().target)).ending


def _split(model: str, file: str, data: Mapping[str, Any]) -> tuple[Source, Options]:
    """Returns the model and the settings, after those that follow from the output's name were added."""
    try:
        form = form_of(file, data)
    except ConversionError:
        Source(model).check_output(file)  # A file that is read has an extension of no result, and that is worse.
        raise
    selection, options = from_data({**data, **form.settings})
    return Source(model, **selection), options


def low_fidelity(report: Report | CachedReport) -> list[Diagnostic]:
    """Returns the warning that a quantized model differs too much from the float model, for the error stream."""
    from tfconvert.schema.fidelity import LOW

    return [Diagnostic(**note) for note in report.to_dict()["notes"] if note["code"] == LOW]


def with_stats(source: Source, stats: Mapping[str, tuple[float, float]], quantize: Quantize | None) -> Source:
    """Returns the source of a frozen graph with ranges of its inputs (`--input-stats`).

    Raises:
        UsageError: The model doesn't become one with integer inputs.
    """
    from tfconvert.compat.input_stats import ranged

    if quantize is None or not quantize.has_integer_ends:
        raise click.UsageError("--input-stats goes with --quantize int8 --io int8, or uint8")
    return ranged(source, stats, next(end for end in quantize.ends if end != "float32"))


def _job(
    source: Source, output: Output, progress: Progress, options: Options, server: ServerAddress | None
) -> ConvertCommand:
    from tfconvert.cli.convert_job import ConvertCommand

    return ConvertCommand(source, output, options, progress, server)


def _print_error(problem: ConversionError, output: Output, as_json: bool) -> None:
    if as_json:
        from tfconvert.cli.json_output import to_json

        say(to_json(problem.to_dict()), output.report_stream)
    show_failure(problem)


def _text(report: Report | CachedReport, output: Output, as_json: bool, verbose: bool) -> str:
    if not as_json:
        return emphasized(report.to_text(output.name, verbose=verbose))
    from tfconvert.cli.json_output import to_json

    return to_json({"output_file": output.name, **report.to_dict()})
