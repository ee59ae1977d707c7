"""Converts the models of the zoo, runs the results in LiteRT, and reports on them; one line per model.

    python -m benchmarks.check                            all that has been exported
    python -m benchmarks.check --only MobileNetV2 --diff  and which operators differ from the official result
    python -m benchmarks.check --set bench --official     create missing official results first

Exit status 1 if a model doesn't convert, doesn't run, is further than `--tolerance` from TensorFlow, or has more
operators or bytes than the official converter's result.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.commands import REPOSITORY, last_line, parser_of
from benchmarks.litert import Measured, differing, measure_results, operators
from benchmarks.measure import child_environment
from benchmarks.zoo import Entry, add_selection, make_official, selected

TOLERANCE = 1e-4


@dataclass(slots=True)
class Outcome:
    """The results of a model."""

    entry: Entry  # The model.
    seconds: float = 0.0  # Wall time of the conversion.
    problems: list[str] = field(default_factory=list)  # The problems.
    ours: Measured | None = None  # The figures of our result, or `None` if none runs.
    # The official result's operators, `None` if there is no such result.
    official_operators: Counter[str] | None = None
    official_size: int = 0  # Its bytes.
    official_error: float = 0.0  # Its relative error; 0 if not measured.
    details: list[str] = field(default_factory=list)  # More to print below the line.

    def compare(self, tolerance: float) -> None:
        """Records what is worse than it has to be."""
        if self.ours is None:
            return
        if not self.ours.error <= tolerance:
            batches = [str(batch) for batch, error in sorted(self.ours.errors.items()) if not error <= tolerance]
            self.problems.append(f"wrong at batch {' and '.join(batches)}")
        if self.official_operators is None:
            return
        if self.ours.count > self.official_operators.total():
            self.problems.append("more operators")
        if self.ours.size > self.official_size:
            self.problems.append("more bytes")

    def line(self) -> str:
        """Returns the model's line."""
        parts = [f"{'FAIL' if self.problems else 'ok':4} {self.entry.label:22} {self.seconds:5.2f} s"]
        if self.ours is not None:
            error = f" (official {self.official_error:7.1e})" if self.official_error else ""
            parts.append(f"error {self.ours.error:7.1e}{error}")
            official = self.official_operators
            parts.append(
                f"operators {self.ours.count:5d}" + (f"{self.ours.count - official.total():+5d}" if official else "")
            )
            size = f"bytes {self.ours.size:10d}"
            parts.append(size + (f"{self.ours.size - self.official_size:+9d}" if official else ""))
        if self.problems:
            parts.append("; ".join(self.problems))
        return "  ".join(parts)

    def differences(self) -> list[str]:
        """Returns the operators of which there are more or fewer than in the official result."""
        if self.ours is None or self.official_operators is None:
            return []
        found = differing(self.ours.operators, self.official_operators)
        return [f"       {name:24} {ours:5d} {official:5d} {ours - official:+5d}" for name, ours, official in found]


def check(entry: Entry, folder: Path, tolerance: float, with_official: bool) -> Outcome:
    """Converts a model and checks the result."""
    outcome = Outcome(entry)
    result = folder / f"{entry.flavour}-{entry.architecture.name}.tflite"
    command = [sys.executable, "-m", "tfconvert", str(entry.saved_model), "-o", str(result), "--quiet"]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=REPOSITORY, env=child_environment(), capture_output=True, text=True, check=False)
    outcome.seconds = time.perf_counter() - start
    if done.returncode:
        outcome.problems.append(f"exit status {done.returncode}: {last_line(done.stderr)[:200]}")
        outcome.details = [f"       {line}" for line in done.stderr.splitlines()[:-1]]
        return outcome
    try:
        if with_official:
            make_official(entry)
            outcome.official_error = measure_results(entry.io, [entry.official])[0].error
        (outcome.ours,) = measure_results(entry.io, [result])
    except RuntimeError as problem:
        outcome.problems.append(str(problem)[:300])
        return outcome
    if entry.official.exists():
        outcome.official_operators = operators(entry.official)
        outcome.official_size = entry.official.stat().st_size
    outcome.compare(tolerance)
    return outcome


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("check", __doc__)
    add_selection(parser)
    parser.add_argument("--official", action="store_true", help="create missing official results, run them too")
    parser.add_argument("--diff", action="store_true", help="list operators that differ from the official result's")
    parser.add_argument("-v", "--verbose", action="store_true", help="show all that a failed conversion wrote")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help="relative, default: %(default)s")
    parser.add_argument("--jobs", type=int, default=1, help="models at a time, default: %(default)s")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the results in this folder")
    options = parser.parse_args(arguments)
    chosen = selected(parser, options)
    entries = [entry for entry in chosen if entry.exists()]
    failed = 0
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(options.jobs) as pool:
        folder: Path = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for outcome in pool.map(lambda entry: check(entry, folder, options.tolerance, options.official), entries):
            failed += bool(outcome.problems)
            more = [*(outcome.details if options.verbose else ()), *(outcome.differences() if options.diff else ())]
            print("\n".join([outcome.line(), *more]), flush=True)
    missing = len(chosen) - len(entries)
    print(
        f"{len(entries) - failed} of {len(entries)} are as they should be"
        + (f"; {missing} are not exported" if missing else "")
    )
    return 1 if failed or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
