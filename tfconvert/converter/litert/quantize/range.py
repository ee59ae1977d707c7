"""The range of some numbers."""

from __future__ import annotations

import math
from typing import NamedTuple


class Range(NamedTuple):
    """The least and the greatest of some numbers."""

    low: float
    high: float

    def joined(self, other: Range) -> Range:
        """Returns the range of both."""
        return Range(min(self.low, other.low), max(self.high, other.high))

    @property
    def is_finite(self) -> bool:
        """Whether both ends are numbers."""
        return math.isfinite(self.low) and math.isfinite(self.high)
