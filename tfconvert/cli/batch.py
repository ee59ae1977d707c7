"""The verb `batch`: converts many models, on this machine or on a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tfconvert.cli.options import CONTEXT, show
from tfconvert.cli.streams import can_redraw, say
from tfconvert.report.report import size_text
from tfconvert.schema.diagnostics import ConversionError

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
  tfconvert batch a.pb b.pb -o '{name}.tflite' --set quantize=dynamic --set verify=true

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

Results = Sequence[tuple["Entry", "Outcome", bool]]


class SettingOption(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """`NAME=VALUE`: a setting; the value is a text where the setting takes one, else JSON."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        """Parses one value."""
        import json

        from tfconvert.settings.data import SETTINGS
        from tfconvert.settings.setting import is_valid

        name, equals, text = str(value).partition("=")
        if not equals or not name:
            self.fail(f"{value!r} is not NAME=VALUE, as in quantize=dynamic", param, ctx)
        if name in SETTINGS and is_valid(text, SETTINGS[name].schema):
            return name, text  # Also one that looks like a number, as a release does.
        try:
            return name, json.loads(text)
        except ValueError:
            return name, text


@click.command("batch", context_settings=CONTEXT, epilog=_EXAMPLES, no_args_is_help=True)
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option("--list", "lists", metavar="FILE", multiple=True, help="A file with a model on each line; repeatable.")
@click.option(
    "--manifest",
    "manifests",
    metavar="FILE",
    multiple=True,
    help="A file with models and their settings, YAML or JSON; repeatable.",
)
@click.option(
    "-o",
    "--output",
    "template",
    metavar="TEMPLATE",
    help="Where results go: a folder, or a path or URL with {name}, {parent} or {number}, whose ending "
    "chooses the target. Default: {name}.tflite, or the ending of the target that is set.",
)
@click.option(
    "--set",
    "settings",
    type=SettingOption(),
    multiple=True,
    help="A setting of all models, as tfconvert.convert takes it; repeatable.",
)
@click.option("--state", metavar="FILE", help="Skip what a run with the same FILE has done already.")
@click.option("--reports", is_flag=True, help="Write each report beside its result, as JSON.")
@click.option(
    "-j", "--jobs", metavar="N", type=click.IntRange(min=1), help="How many run at once. Default: one a core."
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    help="How long a conversion may take; 0 for any time.",
)
@click.option(
    "--memory",
    metavar="MB",
    type=click.IntRange(min=0),
    default=8192,
    show_default=True,
    help="How much memory a conversion may have; 0 for any.",
)
@click.option(
    "--retries",
    metavar="N",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="How often to try again after a lost worker or an unreachable place.",
)
@click.option(
    "--engine",
    type=click.Choice(("local", "ray")),
    default="local",
    show_default=True,
    help="Run in processes of this machine, or on a Ray cluster.",
)
@click.option("--address", metavar="ADDRESS", help="The Ray cluster; auto for this machine's. Default: start one.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
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

    MODEL is what tfconvert takes, a pattern (models/*), or a URL that fsspec knows (s3://, gs://). A model that fails
    concerns no other.

    Exit status: 0 if all results were written, 1 if a conversion failed, 2 if the command line or a manifest is wrong.
    """
    from tfconvert.batch import entries as listing
    from tfconvert.batch.state import State
    from tfconvert.settings.data import check_data

    if address is not None and engine != "ray":
        raise click.UsageError("--address is for --engine ray")
    try:
        check_data(dict(settings), "--set")
        named = [{"model": model} for model in models]
        named += [each for path in lists for each in listing.read_list(path)]
        named += [each for path in manifests for each in listing.read_manifest(path)]
        entries = listing.to_entries(named, template, dict(settings))
        known = State(state) if state is not None else None
        results = list(_run(entries, known, engine, address, quiet=quiet, **rest))
    except ConversionError as problem:
        show(problem.diagnostics)
        sys.exit(2)
    order = {entry.name: index for index, entry in enumerate(entries)}
    results.sort(key=lambda result: order[result[0].name])
    _print(results, as_json=as_json, quiet=quiet)
    sys.exit(int(any(ending.problem is not None for _, ending, _ in results)))


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
) -> Iterator[tuple[Entry, Outcome, bool]]:
    """Yields the entries with how they ended, and whether a former run had done them."""
    from tfconvert.batch.engines import Trial
    from tfconvert.batch.task import TaskLimits

    trial = Trial(TaskLimits(seconds=timeout, memory=memory << 20), retries, reports=reports)
    rest = []
    for entry in entries:
        found = None if state is None else state.find(entry)
        if found is None:
            rest.append(entry)
        else:
            yield entry, found, True
    if not rest:
        return
    with _bar(len(rest), quiet) as bar:
        for entry, ending in _engine(engine, rest, trial, jobs, address):
            if ending.problem is None and state is not None:
                state.add(entry, ending)
            bar.update(1, entry.name)
            yield entry, ending, False


def _engine(
    engine: str, entries: Sequence[Entry], trial: Trial, jobs: int | None, address: str | None
) -> Iterator[tuple[Entry, Outcome]]:
    if engine == "ray":
        from tfconvert.batch.engines import run_on_ray

        return run_on_ray(entries, trial, jobs, address)
    from tfconvert.batch.engines import cores, run_locally

    return run_locally(entries, trial, jobs or cores())


def _bar(length: int, quiet: bool) -> Any:
    hidden = quiet or not can_redraw(sys.stderr)
    return click.progressbar(
        length=length, file=sys.stderr, hidden=hidden, show_pos=True, item_show_func=lambda name: name or ""
    )


def _print(results: Results, *, as_json: bool, quiet: bool) -> None:
    failed = [(entry, ending) for entry, ending, _ in results if ending.problem is not None]
    if as_json:
        from tfconvert.cli.json_output import to_json

        say(to_json({"models": [_row(*result) for result in results], "failed": len(failed)}), sys.stdout)
        return
    if not quiet:
        width = max(len(entry.name) for entry, _, _ in results)
        for entry, ending, was_done in results:
            say(f"{entry.name:<{width}}  {_told(ending, was_done)}  {entry.output}".rstrip(), sys.stdout)
        done = len(results) - len(failed)
        say(f"{done} of {len(results)} converted" + (f", {len(failed)} failed" if failed else ""), sys.stdout)
    for entry, ending in failed:
        assert ending.problem is not None
        first = ending.problem["errors"][0]
        say(f"tfconvert: error: {entry.name}: {first['message']} [{first['code']}]", sys.stderr)
        if first.get("hint"):
            say(f"  hint: {first['hint']}", sys.stderr)


def _told(ending: Outcome, was_done: bool) -> str:
    if ending.problem is not None:
        return f"{'failed':<9} {ending.code:>24}"
    size = size_text(ending.summary["size"])
    low = "  low fidelity" if ending.summary.get("fidelity", {}).get("is_low") else ""
    return f"{'done before' if was_done else 'converted':<11} {size:>12} {ending.seconds:7.2f} s{low}"


def _row(entry: Entry, ending: Outcome, was_done: bool) -> Mapping[str, Any]:
    status = "failed" if ending.problem is not None else "skipped" if was_done else "converted"
    row = {
        "name": entry.name,
        "model": entry.model,
        "output": entry.output,
        "status": status,
        "seconds": round(ending.seconds, 3),
        "peak_memory": ending.peak,
    }
    return {**row, **ending.summary, **(ending.problem or {})}
