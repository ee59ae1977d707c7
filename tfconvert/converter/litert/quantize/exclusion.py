"""What the user wants to stay float: patterns of names."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.ir.operation import Operation


class Exclusion:
    """Patterns (`*/logits`, `SOFTMAX`) of the names of nodes and operators."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._patterns = tuple(patterns)

    def excludes(self, op: Operation) -> bool:
        """Returns whether an op is to stay as it is."""
        if not self._patterns:
            return False
        names = (node_of(op.location), op.name.removeprefix(tfl.PREFIX).upper())
        return any(fnmatchcase(name, pattern) for pattern in self._patterns for name in names)
