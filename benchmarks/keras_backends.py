"""Compares what the same network becomes from Keras on JAX and from Keras on TensorFlow.

    python -m benchmarks.keras_backends                          the networks of `NETWORKS`
    python -m benchmarks.keras_backends --only MobileNetV2,lstm
    python -m benchmarks.keras_backends --only conformer --operators

Both are exported with the same weights and a dynamic batch, once, into a cache folder. Their conversions run in turns,
each a whole process, and Valgrind counts the instructions of one of each, which don't depend on what else the machine
does. The files run in turns, as in `latency.py`. Exit status 1 if one of `LIMITS` is exceeded.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import shutil
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import instructions
from benchmarks.architectures import ARCHITECTURES
from benchmarks.commands import REPOSITORY, parser_of
from benchmarks.compare import read_through
from benchmarks.comparison import table
from benchmarks.latency import PROCESSES, SECONDS, least_times
from benchmarks.latency_models import MODELS
from benchmarks.litert import differing, load, operators
from benchmarks.measure import Run, measure
from benchmarks.samples import relative_error
from benchmarks.zoo import default_cache, run_module

# The version of `keras_export`'s models, incremented so that old ones are created again.
RECIPE = 2

BACKENDS = ("jax", "tensorflow")

NETWORKS = (
    "MobileNetV2",
    "ResNet50",
    "EfficientNetB0",
    "MobileNetV3Large",
    "DenseNet121",
    "keras_bert",
    "keras_vit",
    "lstm",
    "gru",
    "temporal",
)
"""Five of keras.applications, two transformers, two recurrent networks, and one of convolutions in one dimension."""

MAX_MORE_OPERATORS = 1
MORE_OPERATORS = {"keras_bert": 4}
"""Where more are due: JAX's result of a token outside of an embedding is NaN."""
LIMITS = {"bytes": 1.01, "inference": 1.05, "time": 1.5, "memory": 1.2}
"""The largest ratios of the figures of JAX to those of TensorFlow."""

# How often files are timed if their ratio exceeds the limit: on a busy machine a minimum needs many runs.
ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a network from one backend."""

    operators: Counter[str]  # How often the file has each operator.
    size: int  # Its bytes.
    latency: float  # The minimum seconds of an inference.
    runs: Sequence[Run]  # The conversions, each a whole process.
    instructions: int  # Those of the processor for a conversion; 0 if they are not counted.

    @property
    def seconds(self) -> float:
        """Minimum processor time of a conversion: the wall time depends on what else the machine does."""
        return min(run.processor for run in self.runs)

    @property
    def peak(self) -> float:
        """Median peak memory of a conversion, in bytes."""
        return statistics.median(run.peak for run in self.runs)


@dataclass(frozen=True, slots=True)
class Row:
    """A network from both backends."""

    name: str  # The network.
    jax: Figures  # Its figures from Keras on JAX.
    tensorflow: Figures  # Those from Keras on TensorFlow.
    difference: float  # The largest difference between the outputs of both, relative to the largest number.

    @property
    def ratios(self) -> dict[str, float]:
        """The figures of JAX in relation to those of TensorFlow."""
        return {
            "bytes": self.jax.size / self.tensorflow.size,
            "inference": self.jax.latency / self.tensorflow.latency,
            "time": self.jax.seconds / self.tensorflow.seconds,
            "memory": self.jax.peak / self.tensorflow.peak,
        }

    def exceeded(self) -> list[str]:
        """Returns the limits that are exceeded, each as a reader needs it."""
        more = self.jax.operators.total() - self.tensorflow.operators.total()
        found = [f"{more} more operators"] if more > MORE_OPERATORS.get(self.name, MAX_MORE_OPERATORS) else []
        ratios = self.ratios
        return found + [f"{name} {ratios[name]:.3f}" for name, limit in LIMITS.items() if ratios[name] > limit]

    def conversion(self) -> list[str]:
        """Returns the cells about the conversion."""
        both = (self.jax, self.tensorflow)
        is_counted = all(each.instructions for each in both)
        ratio = f"**{self.jax.instructions / self.tensorflow.instructions:.2f}**" if is_counted else ""
        return [
            self.name,
            *(f"{each.seconds:.2f} s" for each in both),
            f"**{self.ratios['time']:.2f}**",
            *(f"{each.instructions / 1e6:.0f} M" if is_counted else "" for each in both),
            ratio,
            *(f"{each.peak / 1e6:.0f} MB" for each in both),
            f"**{self.ratios['memory']:.2f}**",
        ]

    def file(self) -> list[str]:
        """Returns the cells about the file."""
        both = (self.jax, self.tensorflow)
        return [
            self.name,
            *(str(each.operators.total()) for each in both),
            *(f"{each.size:,}" for each in both),
            f"**{self.ratios['bytes']:.3f}**",
            *(f"{each.latency * 1e3:.3f} ms" for each in both),
            f"**{self.ratios['inference']:.2f}**",
            f"{self.difference:.0e}",
        ]

    def operator_lines(self) -> Iterator[str]:
        """Yields the operators that the files have in different numbers."""
        for name, jax, tensorflow in differing(self.jax.operators, self.tensorflow.operators):
            yield f"    {name:30} {jax:4} {tensorflow:4}"


def _recipe(name: str) -> str:
    versions = [importlib.metadata.version(package) for package in ("keras", "tensorflow", "jax")]
    return json.dumps([RECIPE, name, versions])


def make(name: str, folder: Path) -> None:
    """Exports a network from both backends, unless it is there.

    Raises:
        RuntimeError: Keras can't build or export it.
    """
    manifest = folder / "manifest.json"
    if manifest.exists() and manifest.read_text() == _recipe(name):
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for backend in reversed(BACKENDS):
        run_module("benchmarks.keras_export", name, str(folder), KERAS_BACKEND=backend)
    manifest.write_text(_recipe(name))


def _difference(files: Sequence[Path], samples: Path) -> float:
    """Returns the largest relative difference between the outputs of two files."""
    with np.load(samples) as stored:
        values = [stored[key] for key in stored.files]
    outputs = []
    for file in files:
        runner: Any = load(file)
        outputs.append(runner(**dict(zip(sorted(runner.get_input_details()), values, strict=True))))
    jax, tensorflow = outputs
    return max(relative_error(jax[name], expected) for name, expected in tensorflow.items())


def _latencies(files: Sequence[Path], options: argparse.Namespace) -> list[float]:
    """Returns the minimum seconds of an inference of each file, of more processes where few leave a doubt."""
    minima = [float("inf")] * len(files)
    for _ in range(ATTEMPTS):
        found, _ = least_times(files, 1, options.seconds, options.processes)
        minima = list(map(min, minima, found))
        if minima[0] <= LIMITS["inference"] * minima[1]:
            break
    return minima


def compare(name: str, folder: Path, temporary: Path, options: argparse.Namespace) -> Row:
    """Measures a network.

    Raises:
        RuntimeError: It can't be exported, or a conversion failed.
    """
    make(name, folder)
    sources = [folder / backend / "saved_model" for backend in BACKENDS]
    files = [temporary / f"{name}_{backend}.tflite" for backend in BACKENDS]
    commands = [
        [sys.executable, "-m", "tfconvert", str(source), "-o", str(file), "--quiet"]
        for source, file in zip(sources, files, strict=True)
    ]
    for source, command in zip(sources, commands, strict=True):
        read_through(source)
        measure(command, REPOSITORY)
    taken: tuple[list[Run], list[Run]] = ([], [])
    for turn in range(options.runs):
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            taken[side].append(measure(commands[side], REPOSITORY))
    minima = _latencies(files, options)
    with tempfile.TemporaryDirectory() as compiled:
        counted = [
            instructions.count(REPOSITORY, [str(source)], Path(compiled)) if options.instructions else 0
            for source in sources
        ]
    jax, tensorflow = (
        Figures(operators(file), file.stat().st_size, minimum, runs, number)
        for file, minimum, runs, number in zip(files, minima, taken, counted, strict=True)
    )
    return Row(name, jax, tensorflow, _difference(files, folder / "inputs.npz"))


def markdown(rows: Sequence[Row]) -> str:
    """Returns the tables."""
    mean = {name: statistics.geometric_mean(row.ratios[name] for row in rows) for name in LIMITS}
    lines = [
        "Conversions, whole processes, in seconds of processor time:",
        "",
        *table(
            "network | JAX | TensorFlow | time | JAX | TensorFlow | instructions | JAX | TensorFlow | peak memory",
            [row.conversion() for row in rows],
        ),
        "",
        "Files, in LiteRT with one thread:",
        "",
        *table(
            "network | operators, JAX | TensorFlow | bytes, JAX | TensorFlow | ratio"
            " | inference, JAX | TensorFlow | ratio | difference",
            [row.file() for row in rows],
        ),
        "",
        "Geometric means of the ratios: " + ", ".join(f"{name} {value:.3f}" for name, value in mean.items()) + ".",
    ]
    return "\n".join(lines)


def selected(parser: argparse.ArgumentParser, only: str) -> Sequence[str]:
    """Returns the networks with some names; a wrong name ends the program."""
    names = [name.strip() for name in only.split(",") if name.strip()]
    known = {*ARCHITECTURES, *(model.name for model in MODELS if not model.inputs)}
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no such networks: {', '.join(unknown)}")
    return names or NETWORKS


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("keras_backends", __doc__)
    parser.add_argument("--only", default="", metavar="NAME,...", help="these: of keras.applications, or latency.py's")
    parser.add_argument("--runs", type=int, default=5, help="conversions from each backend (%(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="how long a pair runs in a process (%(default)s)"
    )
    parser.add_argument("--processes", type=int, default=PROCESSES, help="how many processes run a pair (%(default)s)")
    parser.add_argument("--no-instructions", dest="instructions", action="store_false", help="count no instructions")
    parser.add_argument("--operators", action="store_true", help="print the operators that differ in number")
    parser.add_argument("--make", action="store_true", help="only export the networks")
    parser.add_argument(
        "--cache", type=Path, default=default_cache().parent / "keras_backends", help="default: %(default)s"
    )
    options = parser.parse_args(arguments)
    if options.instructions and not options.make and shutil.which("valgrind") is None:
        parser.error("valgrind is not installed: use --no-instructions")
    rows: list[Row] = []
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        for name in selected(parser, options.only):
            try:
                if options.make:
                    make(name, options.cache / name)
                    continue
                row = compare(name, options.cache / name, Path(temporary), options)
            except RuntimeError as problem:
                failed = True
                print(f"{name}: {problem}", file=sys.stderr, flush=True)
                continue
            rows.append(row)
            exceeded = row.exceeded()
            failed |= bool(exceeded)
            print(f"{name}: {', '.join(exceeded) or 'within all limits'}", file=sys.stderr, flush=True)
            if options.operators:
                print(*row.operator_lines(), sep="\n", file=sys.stderr)
    if rows:
        print(markdown(rows))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
