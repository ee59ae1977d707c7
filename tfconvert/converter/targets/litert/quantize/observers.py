"""Ranges of values: a histogram over a growing range, and an observer for each method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tfconvert.schema.dialects.boxes import Array

if TYPE_CHECKING:
    from tfconvert.converter.ir.extent import Extent

# Far beyond it are only the numbers that stand for infinity, such as the least float.
_LARGEST = 1e30


class Range(NamedTuple):
    """The minimum and maximum of numbers."""

    low: float
    high: float

    def joined(self, other: Range) -> Range:
        """Returns the union of two ranges."""
        return Range(min(self.low, other.low), max(self.high, other.high))

    @classmethod
    def of(cls, found: Extent) -> Range:
        """Returns the range of a constant from an extent with one slice."""
        return cls(float(found.low[0]), float(found.high[0]))

    @property
    def width(self) -> float:
        """The width of a range of integers, which contains 0."""
        return max(self.high, 0.0) - min(self.low, 0.0)

    @property
    def is_finite(self) -> bool:
        """Whether both ends are numbers."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def is_countable(self) -> bool:
        """Whether integers can represent it: kernels multiply scales as 32-bit floats, which overflow."""
        return self.is_finite and max(-self.low, self.high) <= _LARGEST


class ChannelRange(NamedTuple):
    """The least and the greatest numbers of a value's channels, and the mean of their squares."""

    low: Array
    high: Array
    power: Array

    def of_shape(self, shape: Sequence[int]) -> ChannelRange | None:
        """Returns the same in another shape, `None` if there are not as many channels, or some are infinite."""
        if self.low.size != math.prod(shape) or not np.isfinite(self).all():
            return None
        return ChannelRange(*(numbers.reshape(shape) for numbers in self))


BINS = 2048

CUT = 1e-4
"""The share of numbers that a percentile leaves out, half of it at each end."""

# The maximum number of samples whose squares count.
_MEANS = 32

# The number of ends to try on each side, from the full range down to the share `_MIN` of it.
_STEPS = 15

_MIN = 0.3

# Differences of numbers this far apart overflow 32-bit floats.
_HUGE = 1e38


class Histogram:
    """A histogram of a tensor's values.

    Attributes:
        low: Their minimum.
        high: Their maximum.
    """

    def __init__(self) -> None:
        self.low, self.high = math.inf, -math.inf
        self._start, self._width = 0.0, 0.0
        self._counts = np.zeros(BINS, np.int64)

    def add(self, values: Array) -> None:
        low, high = float(values.min()), float(values.max())
        # Unlike Python's, these propagate NaNs. A range with an infinite end is all that is known of masked numbers.
        self.low, self.high = float(np.minimum(self.low, low)), float(np.maximum(self.high, high))
        if not Range(self.low, self.high).is_finite:
            return
        self._reach(low, high)
        if self._width > _HUGE:
            values = values.astype(np.float64)
        places = ((values.reshape(-1) - self._start) * (BINS / self._width)).astype(np.int64)
        self._counts += np.bincount(np.clip(places, 0, BINS - 1), minlength=BINS)

    def _reach(self, low: float, high: float) -> None:
        """Doubles the histogram's range until it contains another range."""
        if not self._width:
            self._start, self._width = low, max(high - low, abs(low) * 1e-6, 1e-30)
        while low < self._start or high > self._start + self._width:
            halved = self._counts.reshape(-1, 2).sum(1)
            self._counts = np.zeros(BINS, np.int64)
            if low < self._start:
                self._start -= self._width
                self._counts[BINS // 2 :] = halved
            else:
                self._counts[: BINS // 2] = halved
            self._width *= 2

    def percentile(self) -> Range:
        """Returns the range of all numbers except the outermost ones."""
        total, whole = self._counts.sum(), Range(self.low, self.high)
        if not whole.is_finite:
            return whole
        below = np.cumsum(self._counts)
        first = int(np.searchsorted(below, total * CUT / 2, side="right"))
        last = int(np.searchsorted(below, total * (1 - CUT / 2), side="left"))
        edges = self._start + self._width / BINS * np.arange(BINS + 1)
        return Range(max(self.low, float(edges[first])), min(self.high, float(edges[last + 1])))

    def least_squares(self, levels: int) -> Range:
        """Returns the range in which `levels` integers represent the numbers with the least squared error."""
        whole = Range(self.low, self.high)
        if not whole.is_finite:
            return whole
        middles = self._start + self._width / BINS * (np.arange(BINS) + 0.5)
        used = np.flatnonzero(self._counts)
        middles, counts = middles[used], self._counts[used]
        best, minimum = whole, math.inf
        shares = np.linspace(1, _MIN, _STEPS)
        for low in dict.fromkeys(min(self.low, 0.0) * shares):
            for high in dict.fromkeys(max(self.high, 0.0) * shares):
                step = (high - low) / (levels - 1)
                outside = np.maximum(low - middles, 0) + np.maximum(middles - high, 0)
                cost = float((counts * np.where(outside > 0, outside**2, step**2 / 12)).sum())
                if cost < minimum:
                    best, minimum = Range(float(low), float(high)), cost
        return best


class Observer(Protocol):
    """Accumulates statistics of a tensor's values."""

    def add(self, values: Array) -> None:
        """Observes values, at least one."""

    def range(self) -> Range:
        """Returns the observed range; minimum > maximum if nothing was observed."""


class Extremes:
    """Observes the minimum and maximum."""

    def __init__(self) -> None:
        self._low, self._high = np.float32(np.inf), np.float32(-np.inf)

    def add(self, values: Array) -> None:
        # Unlike Python's, these propagate NaNs.
        self._low, self._high = np.minimum(self._low, values.min()), np.maximum(self._high, values.max())

    def range(self) -> Range:
        return Range(float(self._low), float(self._high))


class Counts:
    """Observes a histogram.

    Args:
        method: How the range is computed: `mse` or `percentile`.
        levels: The number of integers that a range will be divided into.
    """

    def __init__(self, method: str, levels: int) -> None:
        self._histogram, self._method, self._levels = Histogram(), method, levels

    def add(self, values: Array) -> None:
        self._histogram.add(values)

    def range(self) -> Range:
        if self._method == "percentile":
            return self._histogram.percentile()
        return self._histogram.least_squares(self._levels)


class Apart:
    """Observes the minimum and maximum of each channel beside the range of all.

    Args:
        axes: The axes along which the channels are.
        whole: The observer of all numbers; `None` for their minimum and maximum.
    """

    def __init__(self, axes: Sequence[int], whole: Observer | None) -> None:
        self._axes, self._whole = frozenset(axes), whole
        self._seen: ChannelRange | None = None
        self._count = 0

    def add(self, values: Array) -> None:
        rows = self._rows(values)
        low, high = (end.reduce(end.reduce(rows)) for end in (np.minimum, np.maximum))
        power = np.zeros_like(low)
        if self._seen is not None:
            low, high, power = np.minimum(self._seen.low, low), np.maximum(self._seen.high, high), self._seen.power
        if self._count < _MEANS:
            with np.errstate(over="ignore", invalid="ignore"):  # Channels of infinities aren't divided.
                mean = np.einsum("ijk,ijk->jk", rows, rows).sum(0) / (values.size // low.size)
                power, self._count = power + (mean - power) / (self._count + 1), self._count + 1
        self._seen = ChannelRange(low, high, power)
        if self._whole is not None:
            self._whole.add(values)

    def range(self) -> Range:
        if self._whole is not None:
            return self._whole.range()
        if self._seen is None:
            return Range(math.inf, -math.inf)
        return Range(float(self._seen.low.min()), float(self._seen.high.max()))

    def _rows(self, values: Array) -> Array:
        """Returns values with channels last, and several of each beside each other, which numpy reduces faster."""
        axes = [axis for axis in range(values.ndim) if axis in self._axes]
        count = math.prod(values.shape[axis] for axis in axes)
        if axes != list(range(values.ndim - len(axes), values.ndim)):
            values = np.moveaxis(values, axes, range(-len(axes), 0))
        together = math.gcd(values.size // count, 1 << max(10 - count.bit_length(), 0))
        return values.reshape(-1, together, count)

    def channels(self) -> ChannelRange | None:
        """Returns the ranges of the channels, `None` if nothing was observed."""
        return self._seen


def observer(method: str, levels: int, apart: Sequence[int] | None = None) -> Observer:
    """Returns an observer.

    Args:
        method: How the range is computed: `minmax`, `mse` or `percentile`.
        levels: The number of integers that it will be divided into.
        apart: The axes along which there are channels to observe, `None` without channels.
    """
    if apart is None:
        return Extremes() if method == "minmax" else Counts(method, levels)
    return Apart(apart, None if method == "minmax" else Counts(method, levels))
