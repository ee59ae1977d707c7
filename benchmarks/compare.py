"""Measures us against the official converter, model by model.

    python -m benchmarks.compare --output out/benchmark.md
    python -m benchmarks.compare --only MobileNetV2,ResNet50 --runs 5

Both convert the same SavedModel in processes of their own, in turns, and their results are run side by side. With
`--output` the tables go into that file, the raw figures into a .json and a picture into a .png beside it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.commands import REPOSITORY, last_line, parser_of
from benchmarks.comparison import Comparison, Side, as_dict, conditions, draw, markdown
from benchmarks.litert import measure_results
from benchmarks.measure import Run, measure
from benchmarks.zoo import Entry, add_selection, selected

BLOCK = 1 << 20


def our_command(entry: Entry, result: Path) -> list[str]:
    """Returns the command that converts a model by us."""
    return [sys.executable, "-m", "tfconvert", str(entry.saved_model), "-o", str(result), "--quiet"]


def official_command(entry: Entry, result: Path) -> list[str]:
    """Returns the command that converts a model by the official converter."""
    return [sys.executable, "-m", "benchmarks.official", str(entry.saved_model), str(result)]


def read_through(folder: Path) -> None:
    """Reads all files, so that the first one doesn't pay for the disk."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                while file.read(BLOCK):
                    pass


def compare(entry: Entry, folder: Path, runs: int, seconds: float) -> Comparison:
    """Measures both converters on a model.

    Raises:
        RuntimeError: One of them failed, or LiteRT refuses a result.
    """
    read_through(entry.saved_model)
    results = (folder / "ours.tflite", folder / "official.tflite")
    commands = (our_command(entry, results[0]), official_command(entry, results[1]))
    taken: tuple[list[Run], list[Run]] = ([], [])
    for turn in range(runs):
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            taken[side].append(measure(commands[side], REPOSITORY))
    ours, official = measure_results(entry.io, results, seconds)
    return Comparison(entry.label, Side(taken[0], ours), Side(taken[1], official))


def _warm_up(entry: Entry, folder: Path) -> None:
    """Runs both converters once, so that their Python is compiled and their libraries are in the page cache."""
    for command in (our_command(entry, folder / "warm.tflite"), official_command(entry, folder / "warm.tflite")):
        measure(command, REPOSITORY)


def compare_all(
    entries: Sequence[Entry], folder: Path, runs: int, seconds: float
) -> tuple[list[Comparison], dict[str, str]]:
    """Returns the figures of each model that both can convert, and why the others failed."""
    rows: list[Comparison] = []
    failures: dict[str, str] = {}
    for number, entry in enumerate(entries):
        try:
            if number == 0:
                _warm_up(entry, folder)
            row = compare(entry, folder, runs, seconds)
        except RuntimeError as problem:
            failures[entry.label] = last_line(str(problem))
            print(f"{entry.label:24} {failures[entry.label]}", file=sys.stderr, flush=True)
            continue
        rows.append(row)
        print(
            f"{entry.label:24} {row.ours.seconds:6.2f} s, {row.faster:5.1f} times faster;"
            f" {row.ours.peak / 1e6:5.0f} MB, {row.lighter:4.1f} times lighter;"
            f" inference {row.inference:.2f}",
            file=sys.stderr,
            flush=True,
        )
    return rows, failures


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("compare", __doc__)
    add_selection(parser, which="bench", flavour="k3")
    parser.add_argument("--runs", type=int, default=3, help="runs of each converter, default: %(default)s")
    parser.add_argument("--seconds", type=float, default=4.0, help="of timing inferences a model, default: %(default)s")
    parser.add_argument("--output", type=Path, metavar="FILE.md", help="write tables, raw figures and a picture")
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error("--runs must be at least 1")
    chosen = selected(parser, options)
    entries = [entry for entry in chosen if entry.exists()]
    missing = {entry.label: "not exported: run benchmarks.zoo first" for entry in chosen if not entry.exists()}
    with tempfile.TemporaryDirectory() as temporary:
        rows, failures = compare_all(entries, Path(temporary), options.runs, options.seconds)
    failures |= missing
    setup = conditions(options.runs)
    text = markdown(rows, setup, failures)
    print(text)
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(text)
        raw = json.dumps(as_dict(rows, setup, failures), indent=2) + "\n"
        options.output.with_suffix(".json").write_text(raw)
        if rows:
            draw(rows, options.output.with_suffix(".png"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
