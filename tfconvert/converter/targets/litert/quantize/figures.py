"""Sums over runs that compare a quantized model's tensors with those of the float model.

Values are compared channel by channel, along the last axis: over the whole tensor, one channel that is far larger than
the others would hide their loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.fidelity import LayerFidelity, OutputFidelity, decibels


class Measured(NamedTuple):
    """The findings about one tensor, after all runs.

    Attributes:
        snr: The signal-to-noise ratio of the whole tensor, in dB.
        channel_snr: That of the worst channel that has nonzero values.
        low: The minimum.
        high: The maximum.
        span: The range that the typical channel uses.
        lost: The share of the channels' signal that is lost in noise.
        noise: The sum of the squares of the differences.
    """

    snr: float
    channel_snr: float
    low: float
    high: float
    span: float
    lost: float
    noise: float


class Figures:
    """The sums about one tensor, channel by channel."""

    def __init__(self) -> None:
        self._signal = self._noise = np.zeros(0)
        self._low = self._high = np.zeros(0)

    def add(self, expected: Array, got: Array) -> None:
        channels = expected.shape[-1] if expected.ndim > 1 else 1
        if self._signal.size and self._signal.size != channels:
            self._merge()
            channels = 1
        if not expected.size:
            return
        wanted, had = expected.reshape(-1, channels), got.reshape(-1, channels)
        exact = wanted.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            error = exact - had
            sums = _squares(exact), _squares(error), wanted.min(0), wanted.max(0)
        if not all(np.isfinite(each).all() for each in sums):
            # Equal infinities and NaNs are no difference.
            error[(wanted == had) | (np.isnan(wanted) & np.isnan(had))] = 0
            finite = np.where(np.isfinite(exact), exact, 0)
            sums = _squares(finite), _squares(error), finite.min(0), finite.max(0)
        if self._signal.size:
            self._signal, self._noise = self._signal + sums[0], self._noise + sums[1]
            self._low, self._high = np.minimum(self._low, sums[2]), np.maximum(self._high, sums[3])
        else:
            self._signal, self._noise, self._low, self._high = sums

    def _merge(self) -> None:
        """Merges all channels, since their number varies."""
        self._signal, self._noise = self._signal.sum(keepdims=True), self._noise.sum(keepdims=True)
        self._low, self._high = self._low.min(keepdims=True), self._high.max(keepdims=True)

    def measured(self) -> Measured | None:
        """Returns the findings, `None` if there was no run."""
        if not self._signal.size:
            return None
        noise = np.where(np.isfinite(self._noise), self._noise, np.inf)
        heard = self._signal > 0
        ratios = noise[heard] / self._signal[heard]
        spans = (self._high - self._low)[self._high > self._low]
        total, error = float(self._signal.sum()), float(noise.sum())
        return Measured(
            decibels(total, error),
            decibels(1.0, float(ratios.max())) if ratios.size else decibels(total, error),
            float(self._low.min()),
            float(self._high.max()),
            float(np.median(spans)) if spans.size else 0.0,
            float(np.minimum(ratios, 1).mean()) if ratios.size else float(error > 0),
            error,
        )


class OutputFigures:
    """The sums about one output of a model."""

    def __init__(self) -> None:
        self._figures = Figures()
        self._is_float = True
        self._agreed = self._rows = 0

    def add(self, expected: Array, got: Array) -> None:
        self._is_float = expected.dtype.kind == "f"
        if not self._is_float:
            self._agreed, self._rows = self._agreed + int((expected == got).sum()), self._rows + expected.size
            return
        self._figures.add(expected, got)
        if expected.ndim > 1 and expected.shape[-1] > 1 and expected.size:
            # Among elements that are equal in the float model, any may be the largest.
            best = np.take_along_axis(expected, got.argmax(-1)[..., None], -1)[..., 0]
            self._agreed += int((best == expected.max(-1)).sum())
            self._rows += best.size

    def fidelity(self, name: str, signature: str = "") -> OutputFidelity | None:
        """Returns the findings, `None` if there was nothing to compare."""
        found = self._figures.measured()
        if found is None and not self._rows:
            return None
        agreement = self._agreed / self._rows if self._rows else float("nan")
        return OutputFidelity(name, float("nan") if found is None else found.snr, agreement, signature)


def _squares(values: Array) -> Array:
    sums: Array = np.einsum("ij,ij->j", values, values)
    return sums


class Step(NamedTuple):
    """An operator with its input and output tensors."""

    node: str
    op: str
    inputs: Sequence[int]
    results: Sequence[int]


# Operators whose small results matter little, so that their channels have less weight.
_PROBABILITIES = ("LOGISTIC", "SOFTMAX")


def layers(
    steps: Iterable[Step], found: Mapping[int, Measured], ranges: Mapping[int, tuple[float, float]]
) -> tuple[LayerFidelity, ...]:
    """Returns the measured layers, those with the largest loss first.

    Args:
        steps: All operators, in the order in which they run.
        found: The findings by tensor.
        ranges: The minimum and maximum that integer tensors can represent.
    """
    lost: dict[int, float] = {}
    rows = []
    for step in steps:
        before = max((lost.get(index, 0.0) for index in step.inputs), default=0.0)
        for index in step.results:
            each = found.get(index)
            if each is None:
                lost[index] = before
                continue
            lost[index] = _whole(each) if step.op in _PROBABILITIES else each.lost
            low, high = ranges.get(index, (each.low, each.high))
            used, filled = (span / (high - low) if high > low else 1.0 for span in (each.span, each.high - each.low))
            here = max(0.0, lost[index] - before)
            rows.append(LayerFidelity(step.node, step.op, each.snr, each.channel_snr, low, high, used, here, filled))
    return tuple(sorted(rows, key=lambda row: (-row.lost, row.channel_snr)))


def _whole(found: Measured) -> float:
    return float(min(1.0, 10 ** (-found.snr / 10)))


def stored_range(details: Mapping[str, Any]) -> tuple[float, float] | None:
    """Returns the range that a tensor's integers represent, `None` if they have no scale.

    Args:
        details: The tensor's details from LiteRT's interpreter.
    """
    scale, zero_point = details["quantization"]
    if not scale or np.dtype(details["dtype"]).kind not in "iu":
        return None
    limits = np.iinfo(details["dtype"])
    return float((int(limits.min) - zero_point) * scale), float((int(limits.max) - zero_point) * scale)
