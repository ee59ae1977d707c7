"""Observers of a tensor's values, and the ranges that follow from them, one a method."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tfconvert.converter.targets.litert.quantize.histogram import Histogram
from tfconvert.converter.targets.litert.quantize.range import Range
from tfconvert.schema.dialects.boxes import Array


class Observer(Protocol):
    """Accumulates statistics of a tensor's values."""

    def add(self, values: Array) -> None:
        """Observes values; there is at least one."""

    def range(self) -> Range:
        """Returns the range of what was observed; it ends before it begins if nothing was."""


class Extremes:
    """The least and the greatest number."""

    def __init__(self) -> None:
        self._low, self._high = np.float32(np.inf), np.float32(-np.inf)

    def add(self, values: Array) -> None:
        """Observes numbers."""
        # Unlike Python's, these propagate NaNs.
        self._low, self._high = np.minimum(self._low, values.min()), np.maximum(self._high, values.max())

    def range(self) -> Range:
        """Returns their range."""
        return Range(float(self._low), float(self._high))


class Counts:
    """A histogram of the values.

    Args:
        method: How the range follows from them: `mse` or `percentile`.
        levels: How many integers a range will be divided into.
    """

    def __init__(self, method: str, levels: int) -> None:
        self._histogram, self._method, self._levels = Histogram(), method, levels

    def add(self, values: Array) -> None:
        """Observes numbers."""
        self._histogram.add(values)

    def range(self) -> Range:
        """Returns the range without outliers, or the one in which integers represent the numbers best."""
        if self._method == "percentile":
            return self._histogram.percentile()
        return self._histogram.least_squares(self._levels)


def observer(method: str, levels: int) -> Observer:
    """Returns an observer for a method (`minmax`, `mse` or `percentile`) and a number of integers."""
    return Extremes() if method == "minmax" else Counts(method, levels)
