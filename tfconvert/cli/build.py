"""The command `build`: converts the models of a project that a file lists."""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tfconvert.cli.batch_summary import AS_JSON, CACHE_DIR, JOBS, print_summary, progress_bar, summary_status
from tfconvert.cli.failure import show_failure, status_of
from tfconvert.cli.options import CONTEXT, show
from tfconvert.cli.output_options import to_output, to_server
from tfconvert.cli.progress import Progress, with_progress
from tfconvert.cli.streams import emphasized, say
from tfconvert.schema.diagnostics import ConversionError, Diagnostic, error

if TYPE_CHECKING:
    from tfconvert.batch.entries import Entry
    from tfconvert.batch.task import Outcome
    from tfconvert.cli.convert_job import ConvertCommand

_EXAMPLES = """
\b
Example of a tfconvert.toml:
  settings.verify = true

\b
  [[models]]
  model = "saved_model"
  output = "model.tflite"
  settings.input_shapes = {image = [1, 224, 224, 3]}

\b
  [[models]]
  model = "frozen.pb"
  output = "frozen.cc"
  settings.outputs = ["scores:0", "boxes:0"]

The settings have the names of tfconvert.convert's arguments. Paths are relative to FILE's directory.
"""


class _Done(NamedTuple):
    """A finished conversion, as a worker returns it."""

    outcome: Outcome  # The outcome.
    text: str = ""  # The report.
    findings: Sequence[Diagnostic] = ()  # The errors of a failed conversion, or warnings.
    advice: Sequence[str] = ()  # What the user can do about several errors.


@click.command("build", context_settings=CONTEXT, epilog=_EXAMPLES)
@click.argument("config", default="tfconvert.toml", metavar="[FILE]")
@JOBS
@CACHE_DIR
@AS_JSON
@click.option("-q", "--quiet", is_flag=True, help="Print only errors.")
@click.option("-v", "--verbose", is_flag=True, help="Print the complete reports.")
def build(config: str, jobs: int | None, cache_dir: str | None, as_json: bool, quiet: bool, verbose: bool) -> None:
    """Convert the models that FILE lists; tfconvert.toml by default.

    FILE is TOML, YAML or JSON, by its extension; tfconvert batch reads the same files. A model that fails doesn't
    affect the others.

    Exit status: 0 if all files were written, 1 if a conversion failed, 2 if FILE is wrong or names
    a model that can't be opened or is another kind of file.
    """
    from tfconvert.batch.models_file import read_models

    if quiet and verbose:
        raise click.UsageError("-q and -v contradict each other")
    cache = str(Path(cache_dir).absolute()) if cache_dir is not None else None
    try:
        models = read_models(config, directory="")
        with contextlib.chdir(Path(config).parent):
            entries = _entries(models, cache)
            stream = sys.stderr if any(_output(entry).report_stream is sys.stderr for entry in entries) else sys.stdout
            results = []
            for entry, done in _run(entries, jobs, hide=quiet or as_json, verbose=verbose):
                _print(entry, done, stream=None if quiet or as_json else stream)
                results.append((entry, done.outcome, False))
    except ConversionError as problem:
        show(problem.diagnostics)
        sys.exit(status_of(problem.code))
    order = {entry.name: index for index, entry in enumerate(entries)}
    results.sort(key=lambda result: order[result[0].name])
    print_summary(results, as_json=as_json, quiet=quiet, stream=stream)
    sys.exit(summary_status(results))


def _entries(models: Sequence[dict[str, Any]], cache_dir: str | None) -> list[Entry]:
    """Returns the entries, all of which were checked."""
    from tfconvert.batch.entries import to_entries
    from tfconvert.batch.places import is_url

    if cache_dir is not None:
        models = [{"cache_dir": cache_dir, **model} for model in models]
    entries = to_entries(models, None, {})
    for entry in entries:
        if is_url(entry.model) or is_url(entry.output):
            raise error("bad-config", f"{entry.where}: URLs are for tfconvert batch")
        try:
            _command(entry, lambda stage: None, quiet=True)
        except click.UsageError as problem:
            raise error("bad-config", f"{entry.where}: {problem.format_message()}") from None
        except ConversionError as problem:
            first, *rest = problem.diagnostics
            raise ConversionError([first._replace(message=f"{entry.where}: {first.message}"), *rest]) from None
    return entries


def _output(entry: Entry) -> Any:
    extras = entry.extras
    return to_output(
        {
            "output_file": entry.output,
            "array_name": extras.get("array_name"),
            "depfile": extras.get("depfile"),
            "cache_dir": extras.get("cache_dir"),
            "page": extras.get("report"),
            "explorer": extras.get("model_explorer"),
            "through_links": extras.get("write_through_links", False),
        }
    )


def _command(entry: Entry, on_stage: Callable[[str], None], *, quiet: bool) -> ConvertCommand:
    from tfconvert.cli.convert_job import ConvertCommand
    from tfconvert.importers.source import Source
    from tfconvert.settings.data import from_data

    output = _output(entry)
    server = to_server({name: entry.extras.get(name) for name in ("server", "token_file")}, output)
    selection, options = from_data(entry.settings)
    options = replace(with_progress(options, quiet=quiet), keep_graphs=output.needs_graphs)
    return ConvertCommand(Source(entry.model, **selection), output, options, on_stage, server)


def _run(entries: Sequence[Entry], jobs: int | None, *, hide: bool, verbose: bool) -> Iterator[tuple[Entry, _Done]]:
    """Converts all entries; yields each as it ends.

    Args:
        entries: The entries.
        jobs: The number of parallel conversions; `None` for one on each core.
        hide: Whether no progress is shown.
        verbose: Whether reports are complete.
    """
    from tfconvert.batch.engines import cores

    workers = min(jobs or cores(), len(entries))
    if workers == 1:
        for entry in entries:
            with Progress(verbose=verbose, quiet=hide) as progress:
                done = _convert(entry, progress, verbose=verbose, quiet=hide)
            yield entry, done
        return
    with progress_bar(len(entries), is_hidden=hide) as bar:
        for entry, done in _run_in_processes(entries, workers, verbose):
            bar.update(1, entry.name)
            yield entry, done


def _run_in_processes(entries: Sequence[Entry], workers: int, verbose: bool) -> Iterator[tuple[Entry, _Done]]:
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # Forked processes would lack the threads of this one.
    with ProcessPoolExecutor(workers, get_context("spawn"), _end_on_interrupt) as pool:
        tasks = {pool.submit(_convert_quietly, entry, verbose): entry for entry in entries}
        try:
            for task in as_completed(tasks):
                try:
                    done = task.result()
                except BrokenProcessPool:
                    hint = "the machine may be short of memory: convert fewer models at once, as with -j 1"
                    done = _failed(error("worker-lost", "its process ended by itself", hint=hint), tasks[task], 0.0)
                yield tasks[task], done
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _end_on_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _convert_quietly(entry: Entry, verbose: bool) -> _Done:
    """Converts a model in a worker."""
    return _convert(entry, lambda stage: None, verbose=verbose, quiet=True)


def _convert(entry: Entry, on_stage: Callable[[str], None], *, verbose: bool, quiet: bool) -> _Done:
    from tfconvert.batch.run_task import make_directory_of, summary_of
    from tfconvert.batch.task import Outcome
    from tfconvert.cli.main import low_fidelity, with_stats
    from tfconvert.exporters.output_file import descriptor_of

    begin = time.monotonic()
    try:
        command = _command(entry, on_stage, quiet=quiet)
        if "input_stats" in entry.extras:
            stats = {name: (mean, std) for name, (mean, std) in entry.extras["input_stats"].items()}
            command = command._replace(source=with_stats(command.source, stats, command.options.quantize))
        output = command.output
        for path in filter(None, (output.file, output.depfile, output.page, output.explorer)):
            if descriptor_of(path) is None:
                make_directory_of(path)
        report = command.run()
    except click.UsageError as problem:
        return _failed(error("bad-config", problem.format_message()), entry, time.monotonic() - begin)
    except ConversionError as problem:
        return _failed(problem, entry, time.monotonic() - begin)
    finally:
        # A conversion doesn't collect garbage, and the next model needs the memory.
        gc.collect()
    outcome = Outcome(None, summary_of(report), time.monotonic() - begin)
    is_judged = command.options.verify is not None and command.options.quantize is not None
    return _Done(outcome, report.to_text(output.name, verbose=verbose), low_fidelity(report) if is_judged else ())


def _failed(problem: ConversionError, entry: Entry, seconds: float) -> _Done:
    from tfconvert.batch.task import Outcome

    first, *rest = problem.diagnostics
    findings = [first._replace(message=f"{entry.where}: {first.message}"), *rest]
    return _Done(Outcome(problem.to_dict(), seconds=seconds), "", findings, problem.advice)


def _print(entry: Entry, done: _Done, stream: Any) -> None:
    """Prints the report to a stream, if any, and errors and warnings to the error stream."""
    if done.outcome.problem is not None:
        show_failure(ConversionError(done.findings, done.advice))
        return
    show(each._replace(message=f"{entry.where}: {each.message}") for each in done.findings)
    if stream is not None:
        say(emphasized(done.text), stream)
