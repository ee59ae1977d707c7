"""Measures the start-up time: `import tfconvert` and `tfconvert --help`.

    python -m benchmarks.startup --runs 20
    python -m benchmarks.startup --modules SAVED_MODEL   what converting a model loads, and how long that takes

Exit status 1 if one is over its budget, 0.15 s and 0.20 s. The bare interpreter is measured too, for comparison.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.commands import REPOSITORY, last_line, parser_of, run
from benchmarks.measure import child_environment, measure


@dataclass(frozen=True, slots=True)
class Case:
    """Something that is started."""

    name: str  # Its name.
    arguments: tuple[str, ...]  # The interpreter's arguments.
    budget: float = 0.0  # The seconds it may take; 0 for no budget.


_LOADED = """
from tfconvert import conversion
from tfconvert.settings import options
from tfconvert.converter.pipeline.runner import make_pass
from tfconvert.converter.targets.litert import target
from tfconvert.importers import saved_model
for stage in target.STAGES:
    if {} or not (stage.needs or stage.left or stage.only_with):
        make_pass(stage, options.Options())
"""

CASES = (
    Case("python", ("-c", "pass")),
    Case("import tfconvert", ("-c", "import tfconvert"), 0.15),
    Case("tfconvert --help", ("-m", "tfconvert", "--help"), 0.20),
    Case("modules that every conversion loads", ("-c", _LOADED.format("False"))),
    Case("modules that some conversions load", ("-c", _LOADED.format("True"))),
)


_IMPORT_TIME = re.compile(r"import time: +(\d+) \| +\d+ \| +(\S+)")


def module_times(model: str, runs: int) -> Mapping[str, int]:
    """Returns what converting a model loads, with the least of some runs' microseconds of each module by itself.

    Raises:
        RuntimeError: The conversion failed.
    """
    script = "import sys, tfconvert; tfconvert.convert(sys.argv[1])"
    command = [sys.executable, "-X", "importtime", "-c", script, str(Path(model).resolve())]
    minimum: dict[str, int] = {}
    for _ in range(runs):
        done = run(command, child_environment())
        for taken, name in _IMPORT_TIME.findall(done.stderr):
            minimum[name] = min(int(taken), minimum.get(name, int(taken)))
    return minimum


def module_table(times: Mapping[str, int]) -> list[str]:
    """Returns a table of packages, ours by subpackage, with their modules, milliseconds and slowest modules."""
    groups: dict[str, list[tuple[int, str]]] = {}
    for name, taken in times.items():
        top, *inner = name.split(".")
        part = ".".join([top, *inner[:2]]) if top == "tfconvert" and len(inner) > 2 else ".".join([top, *inner[:1]])
        groups.setdefault(part if top == "tfconvert" else top, []).append((taken, name))
    total = {group: sum(taken for taken, _ in members) for group, members in groups.items()}
    lines = ["| what | modules | time | the slowest |", "| --- | ---: | ---: | --- |"]
    shown = [group for group in sorted(total, key=lambda group: -total[group]) if total[group] >= _SHOWN]
    for group in shown:
        slowest = [f"`{name.rpartition('.')[2]}` {taken / 1e3:.1f}" for taken, name in sorted(groups[group])[-1:-4:-1]]
        lines.append(f"| {group} | {len(groups[group])} | {total[group] / 1e3:.1f} ms | {', '.join(slowest)} |")
    rest = [group for group in total if group not in shown]
    lines.append(
        f"| {len(rest)} others | {sum(len(groups[group]) for group in rest)} | "
        f"{sum(total[group] for group in rest) / 1e3:.1f} ms | |"
    )
    lines.append(f"| all | {len(times)} | {sum(total.values()) / 1e3:.1f} ms | |")
    return lines


# Packages that take at least this many microseconds have a line of their own.
_SHOWN = 1000


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("startup", __doc__)
    parser.add_argument("--runs", type=int, default=11, help="of each, default: %(default)s")
    parser.add_argument("--modules", metavar="SAVED_MODEL", help="show what converting a model loads instead")
    options = parser.parse_args(arguments)
    if options.modules:
        print("\n".join(module_table(module_times(options.modules, options.runs))))
        return 0
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
        minimum = min(run.seconds for run in runs)
        budget = f"{case.budget:.2f} s" if case.budget else ""
        print(f"| {case.name} | {median:.3f} s | {minimum:.3f} s | {peak / 1e6:.0f} MB | {budget} |", flush=True)
        over |= bool(case.budget) and median > case.budget
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
