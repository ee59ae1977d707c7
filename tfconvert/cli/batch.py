"""The command `batch`: converts many models, on this machine or on a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfconvert.cli.batch_summary import AS_JSON, CACHE_DIR, JOBS, Results, print_summary, progress_bar, summary_status
from tfconvert.cli.failure import status_of
from tfconvert.cli.options import CONTEXT, Syntax, show
from tfconvert.schema.diagnostics import ConversionError, Diagnostic

if TYPE_CHECKING:
    from tfconvert.batch.engines import Trial
    from tfconvert.batch.entries import Entry
    from tfconvert.batch.task import Outcome

_EXAMPLES = """
\b
Examples:
  tfconvert batch 'models/*/saved_model' -o 'out/{name}.tflite'
  tfconvert batch --manifest models.yaml --state done.jsonl --json
  tfconvert batch --list models.txt -o 's3://bucket/{name}.tflite' --engine ray --address auto
  tfconvert batch a.pb b.pb -o out/ --set quantize=dynamic --set verify=true
  tfconvert batch a.pb b.pb -o out/ --set quantize=int8 --set quantize.samples=samples.npz

\b
A manifest:
  settings: {verify: true}
  output: out/{name}.tflite
  models:
    - models/first
    - model: models/second
      name: small
      settings: {quantize: dynamic, input_shapes: {x: [1, 224, 224, 3]}}
"""

# Keys of an entry that this command doesn't support.
_OF_BUILD = ("depfile", "model_explorer", "write_through_links", "input_stats", "server", "token_file")


def _setting(text: str) -> tuple[str, Any]:
    """Returns the name and the value of `NAME=VALUE`; the value is a string if the setting accepts it, else JSON."""
    import json

    from tfconvert.settings.data import NESTED, SETTINGS
    from tfconvert.settings.setting import is_valid, settings_of

    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError
    whole, _, part = name.partition(".")
    known = settings_of(NESTED[whole]) if part and whole in NESTED else SETTINGS
    row = known.get(part or name)
    if row is not None and is_valid(value, row.schema):
        return name, value  # Also one that looks like a number, as a release does.
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _merged(given: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the settings of `--set`; `quantize.mode` is a part of `quantize`."""
    found: dict[str, Any] = {}
    for name, value in given:
        whole, _, part = name.partition(".")
        if not part:
            found[whole] = value
            continue
        known = found.get(whole, {})
        # A mode alone may stand for the object.
        found[whole] = {**(known if isinstance(known, dict) else {"mode": known}), part: value}
    return found


@click.command("batch", context_settings=CONTEXT, epilog=_EXAMPLES, no_args_is_help=True)
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option("--list", "lists", metavar="FILE", multiple=True, help="A file with a model on each line; repeatable.")
@click.option(
    "--manifest",
    "manifests",
    metavar="FILE",
    multiple=True,
    help="A file with models and their settings, YAML, TOML or JSON, as tfconvert build reads it; repeatable.",
)
@click.option(
    "-o",
    "--output",
    "template",
    metavar="TEMPLATE",
    help="A directory for the results, or their path or URL with {name}, {parent} or {number}. The extension "
    "selects the target. Default: {name}.tflite, or with the extension of the target that is set.",
)
@click.option(
    "--set",
    "settings",
    type=Syntax("NAME=VALUE", "quantize=dynamic", _setting),
    multiple=True,
    help="A setting of all models, an argument of tfconvert.convert, or a part of one: quantize.samples=x.npz. "
    "Repeatable.",
)
@click.option("--state", metavar="FILE", help="Record results in FILE, and skip those that it has.")
@click.option("--reports", is_flag=True, help="Write each report beside its result, as JSON.")
@JOBS
@CACHE_DIR
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    help="The timeout of a conversion; 0 for none.",
)
@click.option(
    "--memory",
    metavar="MB",
    type=click.IntRange(min=0),
    default=8192,
    show_default=True,
    help="The maximum memory of a conversion; 0 for no limit.",
)
@click.option(
    "--retries",
    metavar="N",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="The maximum number of retries after a lost worker or an unreachable URL.",
)
@click.option(
    "--engine",
    type=click.Choice(("local", "ray")),
    default="local",
    show_default=True,
    help="Run in processes of this machine, or on a Ray cluster.",
)
@click.option("--address", metavar="ADDRESS", help="The Ray cluster; auto for this machine's. Default: start one.")
@AS_JSON
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but failures.")
def batch(
    models: tuple[str, ...],
    lists: tuple[str, ...],
    manifests: tuple[str, ...],
    template: str | None,
    settings: tuple[tuple[str, Any], ...],
    state: str | None,
    engine: str,
    address: str | None,
    as_json: bool,
    quiet: bool,
    **rest: Any,
) -> None:
    """Convert many models, each in a process of its own within limits.

    MODEL is a model that tfconvert accepts, a pattern (models/*), or a URL that fsspec supports (s3://, gs://). A model
    that fails doesn't affect the others.

    Exit status: 0 if all results were written, 1 if a conversion failed, 2 if the command line or a manifest is wrong,
    or a model can't be opened or is another kind of file.
    """
    from tfconvert.batch import entries as listing
    from tfconvert.batch.models_file import read_list, read_models, with_lists
    from tfconvert.batch.state import State
    from tfconvert.settings.data import check_data

    if address is not None and engine != "ray":
        raise click.UsageError("--address is for --engine ray")
    try:
        common = with_lists(_merged(settings))
        check_data(common, "--set")
        named = [{"model": model} for model in models]
        named += [each for path in lists for each in read_list(path)]
        named += [each for path in manifests for each in read_models(path)]
        entries = listing.to_entries(named, template, common)
        for entry in entries:
            if problem := entry.refused(_OF_BUILD, "is for tfconvert build"):
                raise problem
        known = State(state) if state is not None else None
        results = list(_run(entries, known, engine, address, quiet=quiet, **rest))
    except ConversionError as problem:
        show(problem.diagnostics)
        sys.exit(status_of(problem.code))
    order = {entry.name: index for index, entry in enumerate(entries)}
    results.sort(key=lambda result: order[result[0].name])
    print_summary(results, as_json=as_json, quiet=quiet, stream=sys.stdout)
    if not as_json:
        _print_failed(results)
    sys.exit(summary_status(results))


def _print_failed(results: Results) -> None:
    for entry, outcome, _ in results:
        if outcome.problem is not None:
            first, *rest = (Diagnostic(**each) for each in outcome.problem["errors"])
            more = f" (and {len(rest)} more; --json has all)" if rest else ""
            show([first._replace(message=f"{entry.where or entry.name}: {first.message}{more}")])


def _run(
    entries: Sequence[Entry],
    state: Any,
    engine: str,
    address: str | None,
    *,
    quiet: bool,
    jobs: int | None,
    timeout: float,
    memory: int,
    retries: int,
    reports: bool,
    cache_dir: str | None,
) -> Iterator[tuple[Entry, Outcome, bool]]:
    """Yields the entries with their outcomes, and whether an earlier run had converted them."""
    from tfconvert.batch.engines import Trial
    from tfconvert.batch.task import TaskLimits

    cache = str(Path(cache_dir).absolute()) if cache_dir is not None else ""
    trial = Trial(TaskLimits(seconds=timeout, memory=memory << 20), retries, reports=reports, cache_dir=cache)
    rest = []
    for entry in entries:
        found = None if state is None else state.find(entry)
        if found is None:
            rest.append(entry)
        else:
            yield entry, found, True
    if not rest:
        return
    with progress_bar(len(rest), is_hidden=quiet) as bar:
        for entry, outcome in _engine(engine, rest, trial, jobs, address):
            if outcome.problem is None and state is not None:
                state.add(entry, outcome)
            bar.update(1, entry.name)
            yield entry, outcome, False


def _engine(
    engine: str, entries: Sequence[Entry], trial: Trial, jobs: int | None, address: str | None
) -> Iterator[tuple[Entry, Outcome]]:
    if engine == "ray":
        from tfconvert.batch.engines import run_on_ray

        return run_on_ray(entries, trial, jobs, address)
    from tfconvert.batch.engines import cores, run_locally

    return run_locally(entries, trial, jobs or cores())
