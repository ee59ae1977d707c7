"""Measures how long it takes until anything happens: `import tfconvert` and `tfconvert --help`.

    python -m benchmarks.startup --runs 20

Exit status 1 if one is over its budget, 0.15 s and 0.20 s. The bare interpreter is measured too, for comparison.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.litert import last_line
from benchmarks.measure import measure
from benchmarks.zoo import REPOSITORY


@dataclass(frozen=True, slots=True)
class Case:
    """Something that is started.

    Attributes:
        name: What it is.
        arguments: What the interpreter is told.
        budget: The seconds it may take; 0 for no budget.
    """

    name: str
    arguments: tuple[str, ...]
    budget: float = 0.0


_LOADED = """
from tfconvert.converter import conversion, options, targets
from tfconvert.converter.pipeline.runner import make_pass
from tfconvert.importers import saved_model
targets.LITERT.load()
for stage in targets.LITERT.stages:
    if {} or not stage.needs and not stage.only_with:
        make_pass(stage, options.Options())
"""

CASES = (
    Case("python", ("-c", "pass")),
    Case("import tfconvert", ("-c", "import tfconvert"), 0.15),
    Case("tfconvert --help", ("-m", "tfconvert", "--help"), 0.20),
    Case("what every conversion loads", ("-c", _LOADED.format("False"))),
    Case("what some conversions load", ("-c", _LOADED.format("True"))),
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=11, help="of each, default: %(default)s")
    options = parser.parse_args(arguments)
    over = False
    print("| start of | median | least | peak memory | budget |\n| --- | ---: | ---: | ---: | ---: |")
    for case in CASES:
        command = [sys.executable, *case.arguments]
        try:
            runs = [measure(command, REPOSITORY) for _ in range(options.runs + 1)][1:]
        except RuntimeError as problem:
            print(f"{case.name}: {last_line(str(problem))}", file=sys.stderr)
            return 1
        median = statistics.median(run.seconds for run in runs)
        peak = max(run.peak for run in runs)
        least = min(run.seconds for run in runs)
        budget = f"{case.budget:.2f} s" if case.budget else ""
        print(f"| {case.name} | {median:.3f} s | {least:.3f} s | {peak / 1e6:.0f} MB | {budget} |", flush=True)
        over |= bool(case.budget) and median > case.budget
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
