"""Shows how our time and memory grow with the number of nodes, and the official converter's beside them.

    python -m benchmarks.scaling
    python -m benchmarks.scaling --official --nodes 10000,100000 --shape deep --runs 1
    python -m benchmarks.scaling --nodes 1000,10000 --shape wide --stages

The budget: ten times the nodes take at most eleven times the time. Exit status 1 if a step is over it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.commands import REPOSITORY, last_line, parser_of, run
from benchmarks.measure import Run, child_environment, measure
from benchmarks.synthetic import INPUT, OUTPUT, SHAPES, write

NODES = "1000,10000,100000"
# The limit of the growth of time relative to nodes.
SLACK = 1.1


@dataclass(frozen=True, slots=True)
class Point:
    """The cost of a graph of some size."""

    shape: str  # The kind of graph.
    nodes: int  # Its size.
    seconds: float  # Median wall time of the whole process.
    processor: float  # Median time of all processors together, which depends less on what else the machine does.
    peak: float  # Median peak memory in bytes.
    stages: dict[str, float]  # Seconds of each stage, empty if not requested.
    # Median wall and processor time of the official converter's process, run in turn with ours; `None` if not
    # requested.
    official: tuple[float, float] | None = None

    def row(self, before: Point | None) -> str:
        """Returns a row of the table, with the growth since the next smaller size."""
        growth = ""
        if before is not None:
            growth = f"{self.nodes / before.nodes:.1f}x nodes, {self.seconds / before.seconds:.1f}x time"
        each = f"{self.seconds / self.nodes * 1e6:.0f} us"
        beside = " | | | "
        if self.official is not None:
            pairs = zip(self.official, (self.seconds, self.processor), strict=True)
            beside = " | ".join(f"{theirs:.2f} s | {theirs / ours:.1f}x" for theirs, ours in pairs)
        return (
            f"| {self.shape} | {self.nodes} | {self.seconds:.2f} s | {self.processor:.2f} s | {beside} | {each} | "
            f"{self.peak / 1e6:.0f} MB | {growth} |"
        )

    def too_slow(self, before: Point | None) -> bool:
        """Whether time has grown faster than nodes since the next smaller size."""
        return before is not None and self.seconds / before.seconds > SLACK * self.nodes / before.nodes


def stage_seconds(command: list[str]) -> dict[str, float]:
    """Runs a conversion and returns its report's time of each stage.

    Raises:
        RuntimeError: It failed.
    """
    done = run([*command, "--json"], child_environment())
    return {stage["name"]: stage["seconds"] for stage in json.loads(done.stdout)["stages"]}


def point(shape: str, nodes: int, folder: Path, options: argparse.Namespace) -> Point:
    """Measures one size; the two converters take turns, so that both run under the same conditions.

    Raises:
        RuntimeError: The conversion failed.
    """
    source, result = folder / f"{shape}.pb", folder / f"{shape}.tflite"
    count = write(shape, nodes, source)
    command = [sys.executable, "-m", "tfconvert", str(source), "-o", str(result), "--input", INPUT, "--output", OUTPUT]
    other = [sys.executable, "-m", "benchmarks.official", str(source), str(result), INPUT, OUTPUT]
    taken: list[Run] = []
    beside: list[Run] = []
    for _ in range(options.runs):
        taken.append(measure([*command, "--quiet"], REPOSITORY))
        if options.official:
            beside.append(measure(other, REPOSITORY))
    return Point(
        shape,
        count,
        *_times(taken),
        statistics.median(run.peak for run in taken),
        stage_seconds(command) if options.stages else {},
        _times(beside) if beside else None,
    )


def _times(runs: Sequence[Run]) -> tuple[float, float]:
    """Returns the median wall and processor time."""
    return statistics.median(run.seconds for run in runs), statistics.median(run.processor for run in runs)


def stage_table(points: Sequence[Point]) -> list[str]:
    """Returns the seconds of each stage, a column a size."""
    names = list(dict.fromkeys(name for each in points for name in each.stages))
    lines = [f"| stage | {' | '.join(f'{each.shape} {each.nodes}' for each in points)} |"]
    lines.append(f"| --- |{' ---: |' * len(points)}")
    rows = ([f"{each.stages.get(name, 0.0):.3f}" for each in points] for name in names)
    return [*lines, *(f"| {name} | {' | '.join(row)} |" for name, row in zip(names, rows, strict=True))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("scaling", __doc__)
    parser.add_argument("--nodes", default=NODES, metavar="N,...", help="ascending, default: %(default)s")
    parser.add_argument("--shape", choices=(*SHAPES, "all"), default="all", help="default: %(default)s")
    parser.add_argument("--runs", type=int, default=3, help="of each size, default: %(default)s")
    parser.add_argument("--official", action="store_true", help="measure the official converter too")
    parser.add_argument("--stages", action="store_true", help="show the time of each stage too")
    options = parser.parse_args(arguments)
    sizes = [int(size) for size in options.nodes.split(",")]
    points: list[Point] = []
    slow = False
    print(
        "| graph | nodes | time | CPU time | official | faster | CPU time | less | a node | peak memory | growth |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as temporary:
        for shape in SHAPES if options.shape == "all" else (options.shape,):
            before: Point | None = None
            for size in sizes:
                try:
                    now = point(shape, size, Path(temporary), options)
                except RuntimeError as problem:
                    print(f"{shape} of {size} nodes: {last_line(str(problem))}", file=sys.stderr)
                    return 1
                print(now.row(before), flush=True)
                slow |= now.too_slow(before)
                points.append(now)
                before = now
    if options.stages:
        print("\n".join(["", *stage_table(points)]))
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
