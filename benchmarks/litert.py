"""Runs .tflite files in LiteRT: errors against TensorFlow's answers, operators, and how long an inference takes.

    python -m benchmarks.litert IO.npz MODEL.tflite... [--seconds 3]

prints one JSON list with an object for each model. `measure_results` does that in a process of its own, so that a file
that crashes the runtime is a failure of that file alone. Several models are timed in turns, so that whatever else the
machine does slows them all alike.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.commands import parser_of, run
from benchmarks.samples import Arrays, Sample, load_samples, relative_error
from tfconvert.schema.tflite.reader import read_model

SIGNATURE = "serving_default"
WARM_UP = 2
FEWEST_RUNS = 7
MAX_RUNS = 200

Runner = Callable[..., Arrays]


@dataclass(frozen=True, slots=True)
class Measured:
    """The results of running a .tflite file."""

    size: int  # Its bytes.
    operators: Counter[str]  # How often it has each operator, over all subgraphs.
    errors: dict[int, float]  # Largest relative error of any output, by batch size.
    latency: float  # Median seconds of an inference at batch 1 in one thread; 0 if not measured.

    @property
    def count(self) -> int:
        """The number of operators."""
        return self.operators.total()

    @property
    def error(self) -> float:
        """The largest relative error."""
        return max(self.errors.values())

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data."""
        return {
            "size": self.size,
            "operators": dict(sorted(self.operators.items())),
            "errors": {str(batch): error for batch, error in self.errors.items()},
            "latency": self.latency,
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Measured:
        """Inverse of `to_dict`."""
        errors = {int(batch): float(error) for batch, error in values["errors"].items()}
        return Measured(values["size"], Counter(values["operators"]), errors, values["latency"])


def operators(path: Path) -> Counter[str]:
    """Returns how often a .tflite file has each operator; a custom one is called by its own name."""
    return operators_of(path.read_bytes())


def operators_of(content: bytes) -> Counter[str]:
    """Returns the same from the contents of a file."""
    model = read_model(content)
    codes = [
        (code["custom_code"] or code.name("builtin_code") or str(code["builtin_code"]))
        for code in model["operator_codes"] or ()
    ]
    return Counter(
        codes[operator["opcode_index"]] for subgraph in model["subgraphs"] for operator in subgraph["operators"] or ()
    )


def differing(ours: Counter[str], theirs: Counter[str]) -> list[tuple[str, int, int]]:
    """Returns the operators that two files have in different numbers, with these."""
    return [(name, ours[name], theirs[name]) for name in sorted(ours | theirs) if ours[name] != theirs[name]]


def load(path: Path) -> Runner:
    """Returns the serving signature of a .tflite file as a function of named arrays, in one thread."""
    from ai_edge_litert.interpreter import Interpreter

    # The runner keeps its interpreter alive.
    runner: Runner = Interpreter(model_path=str(path), num_threads=1).get_signature_runner(SIGNATURE)
    return runner


def error_of(runner: Runner, sample: Sample) -> float:
    """Returns the largest relative error of any output; an output that is missing is an infinite error."""
    answers = runner(**sample.inputs)
    return max(
        relative_error(answers[name], expected) if name in answers else float("inf")
        for name, expected in sample.outputs.items()
    )


def latencies(runners: Sequence[Runner], inputs: Arrays, seconds: float) -> list[float]:
    """Returns the median seconds of an inference of each, measured in turns for about so many seconds in all."""
    for _ in range(WARM_UP):
        for runner in runners:
            runner(**inputs)
    times: list[list[float]] = [[] for _ in runners]
    end = time.perf_counter() + seconds
    for turn in range(MAX_RUNS):
        if turn >= FEWEST_RUNS and time.perf_counter() > end:
            break
        order = list(range(len(runners)))
        for index in order if turn % 2 else reversed(order):
            start = time.perf_counter()
            runners[index](**inputs)
            times[index].append(time.perf_counter() - start)
    return [statistics.median(each) for each in times]


def measure_here(io: Path, models: Sequence[Path], seconds: float) -> list[Measured]:
    """Measures models in this process."""
    samples = load_samples(io)
    runners = [load(model) for model in models]
    # Batch 1 comes last: the timed shape is the model's current one.
    errors = [
        {batch: error_of(runner, samples[batch]) for batch in sorted(samples, reverse=True)} for runner in runners
    ]
    times = latencies(runners, samples[1].inputs, seconds) if seconds else [0.0] * len(runners)
    return [
        Measured(model.stat().st_size, operators(model), error, latency)
        for model, error, latency in zip(models, errors, times, strict=True)
    ]


def measure_results(io: Path, models: Sequence[Path], seconds: float = 0.0) -> list[Measured]:
    """Measures models in a process of its own.

    Raises:
        RuntimeError: LiteRT refused a model or crashed on it.
    """
    command = [sys.executable, "-m", "benchmarks.litert", str(io), *map(str, models), "--seconds", str(seconds)]
    try:
        done = run(command)
    except RuntimeError as problem:
        raise RuntimeError(f"LiteRT: {problem}") from None
    return [Measured.from_dict(values) for values in json.loads(done.stdout.splitlines()[-1])]


def main() -> None:
    """Runs the command line."""
    parser = parser_of("litert", __doc__)
    parser.add_argument("io", type=Path, help="inputs and answers, from the zoo")
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--seconds", type=float, default=0.0, help="time inferences for so long (default: do not)")
    options = parser.parse_args()
    measured = measure_here(options.io, options.models, options.seconds)
    print(json.dumps([each.to_dict() for each in measured]))


if __name__ == "__main__":
    main()
