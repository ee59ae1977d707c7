"""What is remembered of the numbers that a tensor has had, and the range that follows from it, by method."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tfconvert.converter.litert.quantize.histogram import Histogram
from tfconvert.converter.litert.quantize.range import Range
from tfconvert.schema.dialects.boxes import Array


class Observer(Protocol):
    """Remembers something of numbers."""

    def add(self, values: Array) -> None:
        """Observes numbers, of which there are some."""

    def range(self) -> Range:
        """Returns the range of what was observed; it ends before it begins if nothing was."""


class Extremes:
    """The least and the greatest number."""

    def __init__(self) -> None:
        self._low, self._high = np.float32(np.inf), np.float32(-np.inf)

    def add(self, values: Array) -> None:
        """Observes numbers."""
        # Unlike Python's, these keep what is no number.
        self._low, self._high = np.minimum(self._low, values.min()), np.maximum(self._high, values.max())

    def range(self) -> Range:
        """Returns their range."""
        return Range(float(self._low), float(self._high))


class Counts:
    """How many numbers of which size there were.

    Args:
        method: How the range follows from them: `mse` or `percentile`.
        levels: How many integers there are to be.
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
    """Returns an observer for a method: `minmax`, `mse` or `percentile`; for so many integers."""
    return Extremes() if method == "minmax" else Counts(method, levels)
