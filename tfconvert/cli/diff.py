"""The command `diff`: compares two .tflite files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from tfconvert.cli.options import CONTEXT, json_option, show
from tfconvert.schema.diagnostics import ConversionError

if TYPE_CHECKING:
    from tfconvert.tools.diff import Diff, WeightChange

_MAX = 20

_EXAMPLES = """
\b
Examples:
  tfconvert diff before.tflite after.tflite
  tfconvert diff before.tflite after.tflite --data inputs.npz
  tfconvert diff before.tflite after.tflite --latency --json
"""


@click.command("diff", context_settings=CONTEXT, epilog=_EXAMPLES, no_args_is_help=True)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--data",
    metavar="PATH",
    multiple=True,
    help="Inputs in files (.npz, .npy) or directories of them; repeatable. Default: random ones, with 2 for a "
    "dynamic batch and 32 for other dynamic sizes.",
)
@click.option("--latency", is_flag=True, help="Measure both in LiteRT, in turns.")
@json_option("Print the differences as JSON.")
def diff(first: str, second: str, data: tuple[str, ...], latency: bool, as_json: bool) -> None:
    """Compare the .tflite files A and B.

    Compared are operators and their attributes, signatures, versions and metadata; constants, by name or else by
    order, integers as the numbers that they stand for; and what both compute in LiteRT on the same inputs.

    Exit status: 0 if they are the same, 1 if they differ, 2 if one can't be read or the command line is wrong.
    """
    from tfconvert.tools import diff as job

    try:
        found = job.diff(first, second, list(data) or None, latency=latency)
    except ConversionError as problem:
        show(problem.diagnostics)
        sys.exit(2)
    if as_json:
        import json

        click.echo(json.dumps({"files": [first, second], **found.to_dict()}, indent=2))
    else:
        click.echo("\n".join(_lines(first, second, found)))
    sys.exit(0 if found.is_same else 1)


def _lines(first: str, second: str, found: Diff) -> Iterator[str]:
    yield f"{first}: {found.sizes[0]} bytes; {second}: {found.sizes[1]} bytes"
    if found.outputs:
        yield "  outputs:"
        yield from _few(
            [
                f"{each.signature}/{each.output} {each.what or 'agrees'} (largest error {each.max_absolute:.2e}, "
                f"{each.max_relative:.1e} of the largest value)"
                for each in found.outputs
            ]
        )
    for section in dict.fromkeys(change.section for change in found.structure):
        yield f"  {section}:"
        own = [change for change in found.structure if change.section == section]
        yield from _few([f"{each.what}: {each.first or 'none'} -> {each.second or 'none'}" for each in own])
    if found.weights:
        yield "  weights:"
        yield from _few(
            [
                f"{each.name} {list(each.shape)}: {each.first or 'none'} -> {each.second or 'none'}"
                + (f", {each.numbers} numbers differ, by up to {each.absolute:.3g}" if each.numbers else "")
                for each in found.weights
                if not each.is_rounding
            ]
        )
        yield from _rounded([each for each in found.weights if each.is_rounding])
    yield from (f"  note: {note}" for note in found.notes)
    if found.latency is not None:
        one, other = found.latency
        yield f"  latency: {one:.3f} ms -> {other:.3f} ms, {other / one:.2f} times" if one else "  latency: none"
    yield "  the same" if found.is_same else "  different"


def _rounded(weights: Sequence[WeightChange]) -> Iterator[str]:
    """Yields a line for each pair of types of the weights that differ by less than a step."""
    groups: dict[str, list[WeightChange]] = {}
    for each in weights:
        first, second = (kind.partition(" (")[0] for kind in (each.first, each.second))
        groups.setdefault(f"{first} -> {second}", []).append(each)
    for kinds, group in groups.items():
        largest = max(each.absolute for each in group)
        what = f"{len(group)} weight{'s'[: len(group) > 1]}, {kinds}"
        yield f"    {what}: differ by rounding only, by up to {largest:.3g} (--json lists them)"


def _few(lines: list[str]) -> list[str]:
    more = [f"    ... and {len(lines) - _MAX} more (--json has all)"] if len(lines) > _MAX else []
    return [f"    {line}" for line in lines[:_MAX]] + more
