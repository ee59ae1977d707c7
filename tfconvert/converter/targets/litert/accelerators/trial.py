"""A rewriter whose changes to what was there wait until they are accepted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tfconvert.converter.rewrite.rewriter import Rewriter, is_unused
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class Trial(Rewriter):
    """A rewriter that keeps the changes to what was there until they are accepted."""

    __slots__ = ("_changes", "_results")

    def __init__(self, root: Operation) -> None:
        super().__init__()
        self.root = root
        self._changes: list[Callable[[], None]] | None = []
        self._results: list[Value] = []

    def replace(self, values: Operation | Value | Sequence[Value]) -> None:
        self._results += (
            values.results if isinstance(values, Operation) else [values] if isinstance(values, Value) else values
        )
        self.later(lambda: Rewriter.replace(self, values))

    def replace_value(self, old: Value, new: Value) -> None:
        self._results.append(new)
        self.later(lambda: Rewriter.replace_value(self, old, new))

    def erase(self, op: Operation) -> None:
        self.later(lambda: Rewriter.erase(self, op))

    def accept(self) -> None:
        """Makes the changes; erases what replaces a result that is not used."""
        changes, self._changes = self._changes or [], None
        for change in changes:
            change()
        for op in reversed(self._changed):
            if op.parent is not None and is_unused(op):
                op.erase()
        self._changed = [op for op in self._changed if op.parent is not None]

    def made(self) -> list[tfl.TFLOp]:
        """Returns the operators that were inserted and are of use; erases the others."""
        for op in reversed(self._changed):
            if all(result.first_use is None and result not in self._results for result in op.results):
                op.erase()
        self._changed = [op for op in self._changed if op.parent is not None]
        return [op for op in self._changed if isinstance(op, tfl.TFLOp) and tfl.is_node(op)]

    def reject(self) -> None:
        """Erases what was inserted."""
        for op in reversed(self._changed):
            op.erase()

    def later(self, change: Callable[[], None]) -> None:
        """Makes a change once the rewrite is accepted."""
        if self._changes is None:
            change()
        else:
            self._changes.append(change)
