"""Figures of quantized files, ours and the official converter's; the official's are kept, since they take long."""

from __future__ import annotations

import importlib.metadata
import json
import math
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.commands import REPOSITORY, last_line
from benchmarks.litert import operators
from benchmarks.measure import Run, measure
from benchmarks.quantization.convert import MIXED, Mode
from benchmarks.quantization.models import Reference
from benchmarks.quantization.run import KERNELS, Kernels, answers, operators_on_constants, reduced_tensors, times

# The version of the figures, incremented so that kept ones are measured again.
RECIPE: Final = 1

# The ratio that answers without any error are said to have, in dB.
MAX_SNR: Final = 200.0


def signal_to_noise(answer: np.ndarray, expected: np.ndarray) -> float:
    """Returns the ratio of the expected numbers' energy to the errors' energy, in dB.

    It is as low as can be where shapes differ or a number is not finite.
    """
    if answer.shape != expected.shape or not np.isfinite(answer).all():
        return -MAX_SNR
    wanted = expected.astype(np.float64)
    signal, noise = float(np.sum(wanted**2)), float(np.sum((answer - wanted) ** 2))
    if not noise:
        return MAX_SNR
    return min(MAX_SNR, 10 * math.log10(signal / noise)) if signal else -MAX_SNR


def agreement(answer: np.ndarray, expected: np.ndarray) -> float:
    """Returns how often both have the same first choice: the greatest of several classes, or yes or no."""
    if answer.shape != expected.shape:
        return 0.0
    if answer.shape[-1] > 1:
        return float(np.mean(answer.argmax(-1) == expected.argmax(-1)))
    return float(np.mean((answer > 0.5) == (expected > 0.5)))


@dataclass(slots=True)
class Figures:
    """One converter's result for a model and a mode."""

    problem: str = ""  # Why there is no file; empty if there is one.
    is_mixed: bool = False  # Whether the official converter had to be allowed operators on floats.
    size: int = 0  # The file's bytes.
    operators: int = 0  # How many it has, over all subgraphs.
    folded: int = 0  # How many of them are DEQUANTIZEs of constants.
    conversions: int = 0  # How many of them convert between floats and integers, or between integers.
    reduced: int = 0  # How many tensors have quantized elements, or floats of 16 bits.
    cost: Run = field(default_factory=lambda: Run(0.0, 0))  # The conversion as a whole process.
    failures: dict[str, str] = field(default_factory=dict)  # Why kernels don't run it, by their names.
    # Signal-to-noise ratio in dB against the official converter's float file, by kernels.
    snr: dict[str, float] = field(default_factory=dict)
    agreement: float = 0.0  # How often its first choice is the float file's.
    latency: float = 0.0  # Median seconds of an inference.

    @property
    def runs(self) -> bool:
        """Whether there is a file that any kernels run."""
        return not self.problem and bool(self.snr)

    @property
    def fault(self) -> str:
        """Why there is no file, or why it doesn't run; empty if all is well."""
        return self.problem or "; ".join(f"{kernels}: {reason}" for kernels, reason in self.failures.items())

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Figures:
        """Inverse of `dataclasses.asdict`."""
        return Figures(**{**values, "cost": Run(**values["cost"])})


def command(who: str, reference: Reference, mode: Mode, target: Path, *options: str) -> list[str]:
    """Returns the command of a conversion; `who` is `ours` or `official`."""
    files = (str(reference.saved_model), str(reference.calibration), mode.name, str(target))
    return [sys.executable, "-m", "benchmarks.quantization.convert", who, *files, *options]


def look(figures: Figures, model: Path, reference: Reference, expected: np.ndarray | None, folder: Path) -> np.ndarray:
    """Runs a file, fills in everything but cost and latency, and returns its first kernels' answers.

    Args:
        figures: What to fill in.
        model: The file.
        reference: The model it was made from.
        expected: The float file's answers; `None` for the float file itself.
        folder: Where to leave the answers for a moment.
    """
    figures.size = model.stat().st_size
    figures.operators = operators(model).total()
    figures.folded = operators_on_constants(model, "DEQUANTIZE")
    figures.reduced = reduced_tensors(model)
    first: np.ndarray | None = None
    for kernels in KERNELS:
        try:
            answer = _answers(model, reference, kernels, folder)
        except RuntimeError as problem:
            figures.failures[kernels] = str(problem)
            continue
        first = answer if first is None else first
        wanted = first if expected is None else expected
        figures.snr[kernels] = signal_to_noise(answer, wanted)
        if kernels == KERNELS[0] or KERNELS[0] in figures.failures:
            figures.agreement = agreement(answer, wanted)
    return np.empty(0) if first is None else first


def _answers(model: Path, reference: Reference, kernels: Kernels, folder: Path) -> np.ndarray:
    target = folder / f"{kernels}.npy"
    try:
        return answers(model, reference.test, kernels, not reference.recipe.is_trained, target)
    finally:
        target.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Officials:
    """The official converter's files of a model, with their figures; they are kept in a folder.

    digits.int8.tflite   the file
    digits.int8.json     its figures
    digits.answers.npy   the float file's answers
    """

    reference: Reference  # The model.
    folder: Path  # Where they are.

    def path(self, mode: Mode) -> Path:
        """Returns the place of a mode's file."""
        return self.folder / f"{self.reference.recipe.name}.{mode.name}.tflite"

    @property
    def _answers(self) -> Path:
        return self.folder / f"{self.reference.recipe.name}.answers.npy"

    def _settings(self) -> str:
        versions = [f"{name} {importlib.metadata.version(name)}" for name in ("tensorflow", "ai-edge-litert")]
        return ", ".join([str(RECIPE), self.reference.settings(), *versions])

    def kept(self, mode: Mode) -> Figures | None:
        """Returns a mode's figures if they are there and fit the model."""
        try:
            values = json.loads(self.path(mode).with_suffix(".json").read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return Figures.from_dict(values["figures"]) if values.get("settings") == self._settings() else None

    def figures(self, mode: Mode, seconds: float) -> Figures:
        """Returns a mode's figures, which take a conversion if they are not there.

        Args:
            mode: How to quantize.
            seconds: How long to time inferences.
        """
        figures = self.kept(mode)
        if figures is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            figures = self._convert(mode)
            if not figures.problem:
                self._look(figures, mode)
                if figures.runs and not figures.failures:
                    (figures.latency,) = times([self.path(mode)], self.reference.test, seconds)
            record = {"settings": self._settings(), "figures": asdict(figures)}
            self.path(mode).with_suffix(".json").write_text(json.dumps(record, indent=2) + "\n")
        return figures

    def _convert(self, mode: Mode) -> Figures:
        """Converts to integers alone, or else to integers and floats."""
        problems = []
        for options in ((), (MIXED,)) if mode.is_calibrated else ((),):
            try:
                cost = measure(command("official", self.reference, mode, self.path(mode), *options), REPOSITORY)
            except RuntimeError as problem:
                problems.append(last_line(str(problem)))
                continue
            return Figures(is_mixed=bool(options), cost=cost)
        self.path(mode).unlink(missing_ok=True)
        return Figures(problems[0])

    def _look(self, figures: Figures, mode: Mode) -> None:
        expected = self.expected() if mode.quantize else None
        answer = look(figures, self.path(mode), self.reference, expected, self.folder)
        if not mode.quantize and figures.runs:
            np.save(self._answers, answer)

    def expected(self) -> np.ndarray:
        """Returns the answers of the official float file, whose figures have to be there."""
        result: np.ndarray = np.load(self._answers)
        return result


def our_figures(reference: Reference, mode: Mode, target: Path, expected: np.ndarray) -> Figures:
    """Converts a model by us, and looks at the result.

    Args:
        reference: The model.
        mode: How to quantize.
        target: Where to write the file.
        expected: The answers of the official float file.
    """
    try:
        figures = Figures(cost=measure(command("ours", reference, mode, target), REPOSITORY))
    except RuntimeError as problem:
        return Figures(said(str(problem)))
    look(figures, target, reference, expected, target.parent)
    return figures


def said(output: str) -> str:
    """Returns the line of a Python process's output that names its error, and not a hint that follows it."""
    lines = [line.strip() for line in output.splitlines() if "Error: " in line]
    return lines[-1] if lines else last_line(output)
