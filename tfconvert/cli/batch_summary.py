"""The summary of several conversions, as a table or as JSON, and the progress bar before it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click

from tfconvert.cli.failure import status_of
from tfconvert.cli.json_output import to_json
from tfconvert.cli.options import json_option
from tfconvert.cli.streams import can_redraw, say
from tfconvert.schema.diagnostics import size_text

if TYPE_CHECKING:
    from tfconvert.batch.entries import Entry
    from tfconvert.batch.task import Outcome

Results = Sequence[tuple["Entry", "Outcome", bool]]
"""Entries with their outcomes, and whether an earlier run had converted them."""

JOBS = click.option(
    "-j",
    "--jobs",
    metavar="N",
    type=click.IntRange(min=1),
    help="The number of parallel conversions. Default: one for each core.",
)
CACHE_DIR = click.option(
    "--cache-dir",
    metavar="DIR",
    type=click.Path(),
    help="Cache results here by the contents of all inputs; cache_dir of an entry overrides it.",
)
AS_JSON = json_option("Print the summary as JSON.")


def progress_bar(length: int, *, is_hidden: bool) -> Any:
    """Returns a bar for the error stream."""
    return click.progressbar(
        length=length,
        file=sys.stderr,
        hidden=is_hidden or not can_redraw(sys.stderr),
        show_pos=True,
        item_show_func=lambda name: name or "",
    )


def summary_status(results: Results) -> int:
    """Returns the exit status: 0 if all were converted, else the highest of those that failed."""
    return max((status_of(outcome.code) for _, outcome, _ in results if outcome.problem is not None), default=0)


def print_summary(results: Results, *, as_json: bool, quiet: bool, stream: TextIO | None) -> None:
    """Prints a row for each entry that an earlier run hasn't converted, and their numbers.

    Args:
        results: The results.
        as_json: Whether to print JSON instead, also if `quiet`.
        quiet: Whether to print nothing.
        stream: The output.
    """
    failed = sum(outcome.problem is not None for _, outcome, _ in results)
    if as_json:
        say(to_json({"models": [_row(*result) for result in results], "failed": failed}), stream)
    elif not quiet:
        shown = [(entry, outcome) for entry, outcome, was_done in results if not was_done]
        width = max((len(entry.name) for entry, _ in shown), default=0)
        for entry, outcome in shown:
            say(f"{entry.name:<{width}}  {_status(outcome)}  {entry.output}".rstrip(), stream)
        done = len(results) - len(shown)
        counts = [f"{len(shown) - failed} of {len(results)} converted", *([f"{done} done before"] if done else [])]
        say(", ".join([*counts, *([f"{failed} failed"] if failed else [])]), stream)


def _status(outcome: Outcome) -> str:
    if outcome.problem is not None:
        return f"{'failed':<9} {outcome.code:>24}"
    status = "cached" if outcome.summary.get("cached") else "converted"
    low = "  low fidelity" if outcome.summary.get("fidelity", {}).get("is_low") else ""
    return f"{status:<9} {size_text(outcome.summary['size']):>12} {outcome.seconds:7.2f} s{low}"


def _row(entry: Entry, outcome: Outcome, was_done: bool) -> Mapping[str, Any]:
    status = "failed" if outcome.problem is not None else "skipped" if was_done else "converted"
    row = {
        "name": entry.name,
        "model": entry.model,
        "output": entry.output,
        "status": status,
        "seconds": round(outcome.seconds, 3),
        "peak_memory": outcome.peak,
    }
    return {**row, **outcome.summary, **(outcome.problem or {})}
