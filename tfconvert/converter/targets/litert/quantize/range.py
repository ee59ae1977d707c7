"""The range of some numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tfconvert.converter.ir.extent import Extent


class Range(NamedTuple):
    """The least and the greatest of some numbers."""

    low: float
    high: float

    def joined(self, other: Range) -> Range:
        """Returns the range of both."""
        return Range(min(self.low, other.low), max(self.high, other.high))

    @classmethod
    def of(cls, found: Extent) -> Range:
        """Returns the range of a constant whose extent has one slice."""
        return cls(float(found.low[0]), float(found.high[0]))

    @property
    def is_finite(self) -> bool:
        """Whether both ends are numbers."""
        return math.isfinite(self.low) and math.isfinite(self.high)
