"""Converts a zoo of recurrent networks, runs the results in LiteRT, and reports on them; one line per network.

    python -m benchmarks.recurrent                         all of it
    python -m benchmarks.recurrent --only 'k3/gru/*'       those whose names fit
    python -m benchmarks.recurrent --official --json F     compare with the official converter's results
    python -m benchmarks.recurrent --recurrent unrolled    choose the form

Each file runs on several batches and times, resized between runs, and twice on each (the second
time on the interpreter's state). Exit status 1 if a network doesn't
convert to builtin operators, is further from TensorFlow than 1e-4 (1e-3 after 200 steps) of the largest number, or has
more operators than the official converter's file. An official file that is wrong on any of the runs is not a bar.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import tfconvert
from benchmarks.commands import parser_of
from benchmarks.litert import SIGNATURE, error_of, operators
from benchmarks.recurrent_models import build
from benchmarks.recurrent_table import Case, cases
from benchmarks.samples import Arrays, Sample
from benchmarks.zoo import QUIET_TENSORFLOW
from tfconvert.schema.tflite.tables import TFLITE
from tfconvert.settings.targets import RECURRENT

# The number of runs of each input.
RUNS = 2

Result = TypeVar("Result")


class Worker:
    """A process of its own for code that may crash; it is restarted after a crash."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def __call__(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Calls a function there.

        Raises:
            RuntimeError: The process died of it.
        """
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        try:
            return self._pool.submit(function, *arguments).result()
        except BrokenProcessPool:
            self._pool = None
            raise RuntimeError("the process died") from None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *problem: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


def errors_of(path: Path, samples: Sequence[Sequence[Sample]]) -> list[float]:
    """Returns a file's relative errors in LiteRT on samples of the same input, one after the other.

    The input is set before the first of them only: the others run on the interpreter's state.
    """
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(path), num_threads=1)
    # The signature only maps names to tensors: its runner sets inputs at each run.
    signature = interpreter.get_signature_runner(SIGNATURE)
    inputs, outputs = (
        {name: detail["index"] for name, detail in details.items()}
        for details in (signature.get_input_details(), signature.get_output_details())
    )
    del signature

    def run(**arrays: np.ndarray) -> Arrays:
        interpreter.invoke()
        return {name: interpreter.get_tensor(index) for name, index in outputs.items()}

    errors = []
    for runs in samples:
        for name, array in runs[0].inputs.items():
            interpreter.resize_tensor_input(inputs[name], list(array.shape))
        interpreter.allocate_tensors()
        for name, array in runs[0].inputs.items():
            interpreter.set_tensor(inputs[name], array)
        errors += [error_of(run, sample) for sample in runs]
    return errors


def convert_officially(model: Path, target: Path) -> str:
    """Converts by the official converter; returns the error, empty if there was none."""
    import tensorflow as tf
    from tensorflow.lite.python.convert_phase import ConverterError

    try:
        target.write_bytes(tf.lite.TFLiteConverter.from_saved_model(str(model)).convert())
    except (ConverterError, ValueError, RuntimeError) as problem:
        said = re.search(r"'tf\.\w+' op .*", str(problem)) or re.search(r"error: .*", str(problem))
        return said[0][:70] if said else type(problem).__name__
    return ""


@dataclass(slots=True)
class File:
    """One converter's file of a network."""

    problem: str = ""  # Why the file is missing or doesn't run; empty otherwise.
    operators: Counter[str] = field(default_factory=Counter)  # How often it has each operator, over all subgraphs.
    errors: list[float] = field(default_factory=list)  # Its relative error at each run.

    @property
    def count(self) -> int:
        """Its number of operators."""
        return self.operators.total()

    def judge(self, case: Case) -> None:
        """Records on which runs it is wrong, and which of its operators LiteRT lacks."""
        foreign = sorted(set(self.operators) - set(TFLITE.enums["BuiltinOperator"]))
        sizes = [f"{batch}x{time}" for batch, time in case.sizes() for _ in range(RUNS)]
        wrong = [size for size, error in zip(sizes, self.errors, strict=True) if not error <= case.tolerance]
        if foreign:
            self.problem = f"not builtin: {', '.join(foreign)}"
        elif wrong:
            self.problem = f"wrong at runs of {' '.join(wrong)}: {max(self.errors):.1e}"

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data."""
        return {"problem": self.problem, "operators": dict(sorted(self.operators.items())), "errors": self.errors}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of both converters on a network; `official` is `None` if it was not requested."""

    case: Case
    ours: File
    official: File | None

    @property
    def is_over(self) -> bool:
        """Whether our file has more operators than an official one that is right."""
        return self.official is not None and not self.official.problem and self.ours.count > self.official.count

    @property
    def is_good(self) -> bool:
        """Whether our file is as it should be."""
        return not self.ours.problem and not self.is_over

    @property
    def form(self) -> str:
        """The outcome of the network's conversion."""
        names = self.ours.operators
        if any("_SEQUENCE_" in name for name in names):
            return "part" if "WHILE" in names else "fused"
        return "loop" if "WHILE" in names else "plain" if names else ""

    def line(self) -> str:
        """Returns the network's line."""
        ours = self.ours.problem or f"{self.form:5} {self.ours.count:3d} operators  {max(self.ours.errors):7.1e}"
        parts = [f"{'ok' if self.is_good else 'FAIL':4} {self.case.name:38} {ours:32}"]
        if self.official is not None:
            parts.append(f"official {self.official.problem or self.official.count}")
        return "  ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data."""
        official = self.official and self.official.to_dict()
        return {"form": self.form, "good": self.is_good, "ours": self.ours.to_dict(), "official": official}


def check(
    case: Case, folder: Path, runtime: Worker, official: Worker | None = None, recurrent: Any = RECURRENT[0]
) -> Outcome:
    """Builds a network, converts and runs it.

    Args:
        case: The network.
        folder: Where the models go.
        runtime: Runs files.
        official: Runs the official converter; `None` if it was not requested.
        recurrent: What recurrent layers become.
    """
    saved = folder / case.name
    network = build(case)
    network.save(saved)
    samples = [[Sample(inputs, network.run(inputs)) for _ in range(RUNS)] for inputs in case.inputs()]
    ours = File(_convert(saved, saved / "ours.tflite", recurrent))
    _run(ours, case, saved / "ours.tflite", samples, runtime)
    if official is None:
        return Outcome(case, ours, None)
    theirs = File(_convert_in(official, saved, saved / "official.tflite"))
    _run(theirs, case, saved / "official.tflite", samples, runtime)
    return Outcome(case, ours, theirs)


def _convert(saved: Path, target: Path, recurrent: Any) -> str:
    try:
        tfconvert.convert(saved, target=tfconvert.LiteRT(recurrent=recurrent)).save(target)
    except tfconvert.ConversionError as problem:
        return str(problem)
    return ""


def _convert_in(worker: Worker, saved: Path, target: Path) -> str:
    try:
        return worker(convert_officially, saved, target)
    except RuntimeError as problem:
        return str(problem)


def _run(file: File, case: Case, path: Path, samples: Sequence[Sequence[Sample]], runtime: Worker) -> None:
    """Runs a file, if there is one, and records the results."""
    if file.problem:
        return
    file.operators = operators(path)
    try:
        file.errors = runtime(errors_of, path, samples)
    except (RuntimeError, ValueError) as problem:  # LiteRT's errors for a file or an input that it rejects.
        file.problem = f"LiteRT: {str(problem).splitlines()[0]}"
    else:
        file.judge(case)


def summary(outcomes: Sequence[Outcome]) -> str:
    """Returns a table of how many networks of each cell fared how."""
    questions: dict[str, Callable[[Outcome], bool]] = {
        "networks": lambda outcome: True,
        "right": lambda outcome: not outcome.ours.problem,
        "fused": lambda outcome: outcome.form == "fused",
        "loop": lambda outcome: outcome.form in ("loop", "part"),
    }
    if any(outcome.official for outcome in outcomes):
        questions |= {
            "official converts": lambda outcome: bool(outcome.official and outcome.official.errors),
            "is right": lambda outcome: bool(outcome.official and not outcome.official.problem),
            "ours fewer": lambda outcome: _difference(outcome) < 0,
            "equal": lambda outcome: _difference(outcome) == 0,
            "more": lambda outcome: outcome.is_over,
        }
    kinds = sorted({f"{outcome.case.library}/{outcome.case.cell}" for outcome in outcomes})
    lines = [f"{'':16}" + "".join(f"{question:>{len(question) + 2}}" for question in questions)]
    for kind in [*kinds, ""]:
        of_kind = [each for each in outcomes if each.case.name.startswith(f"{kind}/" if kind else "")]
        counts = [sum(map(holds, of_kind)) for holds in questions.values()]
        cells = (f"{count:{len(question) + 2}d}" for question, count in zip(questions, counts, strict=True))
        lines.append(f"{kind or 'all':16}" + "".join(cells))
    return "\n".join(lines)


def _difference(outcome: Outcome) -> float:
    """Returns how many more operators we have than a correct file; NaN without one."""
    official = outcome.official
    return float("nan") if official is None or official.problem else outcome.ours.count - official.count


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("recurrent", __doc__)
    parser.add_argument("--only", default="*", metavar="PATTERN", help="networks whose names fit, as k3/gru/*")
    parser.add_argument("--recurrent", default=RECURRENT[0], choices=RECURRENT, help="what recurrent layers become")
    parser.add_argument("--official", action="store_true", help="convert by the official converter, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the models in this folder")
    options = parser.parse_args(arguments)
    os.environ.update(QUIET_TENSORFLOW)
    chosen = [case for case in cases() if fnmatch(case.name, options.only)]
    outcomes = []
    runtime, official = Worker(), Worker() if options.official else None
    with tempfile.TemporaryDirectory() as temporary, runtime, official or nullcontext():
        for case in chosen:
            outcomes.append(check(case, options.keep or Path(temporary), runtime, official, options.recurrent))
            print(outcomes[-1].line(), flush=True)
    print(f"\n{summary(outcomes)}")
    if options.json:
        options.json.write_text(json.dumps({each.case.name: each.to_dict() for each in outcomes}, indent=1) + "\n")
    return 0 if outcomes and all(outcome.is_good for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
