"""Sums over runs that compare a quantized model's tensors with those of the float model.

Values are compared channel by channel, along the last axis: over the whole tensor, one channel that is far larger than
the others would hide their loss. Channels of inner tensors may have been divided by a number (see `equalization.py`):
if one has all but little of its signal, times a factor, that factor is no error.
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


DIVISORS = 1024
"""Channels are divided by powers of the root of 2 of this degree."""

# A channel is divided if it has so many numbers, and the divisor that fits best leaves smaller shares than these of its
# signal and of its noise.
_NUMBERS = 4
_SIGNAL, _NOISE = 0.1, 0.5


class Figures:
    """The sums about one tensor, channel by channel.

    Args:
        is_inner: Whether channels may have been divided.
    """

    def __init__(self, *, is_inner: bool = True) -> None:
        self._is_inner = is_inner
        # Signal, noise, products, squares of what was got, counts; of each head, since divisors vary along them too.
        self._sums = np.zeros((5, 0, 0))
        self._low = self._high = np.zeros((0, 0))

    def add(self, expected: Array, got: Array) -> None:
        if not expected.size:
            return
        channels = expected.shape[-1] if expected.ndim > 1 else 1
        heads = expected.shape[-3] if expected.ndim > 2 and self._is_inner else 1
        if self._sums.size and self._sums.shape[1:] != (heads, channels):
            self._merge(0 if self._sums.shape[2] == channels else (0, 1))
            _, heads, channels = self._sums.shape
        shape = (-1, heads, expected.shape[-2] if heads > 1 else 1, channels)
        wanted, had = expected.reshape(shape), got.reshape(shape)
        exact, other = wanted.astype(np.float64), had.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            error = exact - other
            sums, ends = _sums(exact, error, other), (wanted.min((0, 2)), wanted.max((0, 2)))
        if not all(np.isfinite(each).all() for each in (sums, *ends)):
            # Equal infinities and NaNs are no difference.
            error[(wanted == had) | (np.isnan(wanted) & np.isnan(had))] = 0
            finite, other = (np.where(np.isfinite(each), each, 0) for each in (exact, other))
            with np.errstate(invalid="ignore", over="ignore"):
                sums, ends = _sums(finite, error, other), (finite.min((0, 2)), finite.max((0, 2)))
        if self._sums.size:
            self._sums = self._sums + sums
            self._low, self._high = np.minimum(self._low, ends[0]), np.maximum(self._high, ends[1])
        else:
            self._sums, (self._low, self._high) = sums, ends

    def _merge(self, axes: int | tuple[int, int]) -> None:
        """Merges heads, or all channels, since their number varies."""
        self._low, self._high = self._low.min(axes, keepdims=True), self._high.max(axes, keepdims=True)
        self._sums = self._sums.sum((1, 2) if axes else 1, keepdims=True)

    def measured(self) -> Measured | None:
        """Returns the findings, `None` if there was no run."""
        if not self._sums.size:
            return None
        factor, noise = self._factors()
        low, high = (self._low / factor).min(0), (self._high / factor).max(0)
        signal, noise = self._sums[0].sum(0), noise.sum(0)
        heard = signal > 0
        ratios = noise[heard] / signal[heard]
        spans = (high - low)[high > low]
        total, error = float(signal.sum()), float(noise.sum())
        return Measured(
            decibels(total, error),
            decibels(1.0, float(ratios.max())) if ratios.size else decibels(total, error),
            float(low.min()),
            float(high.max()),
            float(np.median(spans)) if spans.size else 0.0,
            float(np.minimum(ratios, 1).mean()) if ratios.size else float(error > 0),
            error,
        )

    def _factors(self) -> tuple[Array, Array]:
        """Returns what channels were divided by, and their noise."""
        signal, noise, products, squares, counts = self._sums
        noise = np.where(np.isfinite(noise), noise, np.inf)
        factor = np.divide(products, squares, out=np.ones_like(products), where=(squares > 0) & (products > 0))
        factor = np.exp2(np.round(np.log2(factor) * DIVISORS) / DIVISORS)
        left = np.maximum(signal - 2 * factor * products + factor**2 * squares, 0)
        is_divided = self._is_inner & (counts >= _NUMBERS) & (left < np.minimum(_SIGNAL * signal, _NOISE * noise))
        return np.where(is_divided, factor, 1.0), np.where(is_divided, left, noise)


class OutputFigures:
    """The sums about one output of a model."""

    def __init__(self) -> None:
        self._figures = Figures(is_inner=False)
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


def _sums(exact: Array, error: Array, got: Array) -> Array:
    pairs = (exact, exact), (error, error), (exact, got), (got, got)
    sums = [np.einsum("ijkl,ijkl->jl", *pair) for pair in pairs]
    return np.stack([*sums, np.full_like(sums[0], exact.size / sums[0].size)])


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
