"""Ops that stay floats because the user excluded them."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from tfconvert.schema.diagnostics import NOTE, Diagnostic
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.locations import nodes_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation


class Exclusion:
    """Ops that patterns match: by the node that they came from, or by their operator.

    Args:
        patterns: Shell patterns: `*/logits`, `SOFTMAX`.
    """

    __slots__ = ("_patterns",)

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = tuple(patterns)

    def excludes(self, op: Operation) -> bool:
        """Returns whether an op is one of those that stay floats."""
        if not self._patterns:
            return False
        names = _names_of(op)
        return any(fnmatchcase(name, pattern) for pattern in self._patterns for name in names)

    def unmatched(self, module: ModuleOp) -> list[Diagnostic]:
        """Returns a note for each pattern that matches no op of a module."""
        if not self._patterns:
            return []
        names = {name for op in module.walk() if isinstance(op, tfl.TFLOp) for name in _names_of(op)}
        return [
            Diagnostic(
                "nothing-excluded",
                f"no node or operator has a name like {pattern!r}",
                hint="names are those of the model's nodes, or of operators in capitals",
                severity=NOTE,
            )
            for pattern in self._patterns
            if not any(fnmatchcase(name, pattern) for name in names)
        ]


def _names_of(op: Operation) -> set[str]:
    """Returns the names of an op that patterns are matched against; constants have none."""
    if not isinstance(op, tfl.TFLOp) or op.op_name in tfl.BESIDE:
        return set()
    return {op.op_name.upper(), *nodes_of(op.location)}
