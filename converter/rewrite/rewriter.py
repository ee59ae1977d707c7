"""What a pattern may do to the IR while the driver runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, ArrayAttr, FusedLoc, LocationAttr, NoneAttr
from xdsl.ir import Operation, OpResult, SSAValue

_NO_METADATA = NoneAttr()

Op = TypeVar("Op", bound=Operation)


def fuse_locations(locations: Sequence[LocationAttr]) -> LocationAttr:
    """Returns the location of something that stands for several ops; nested fusions are flattened."""
    flat: dict[LocationAttr, None] = {}
    for location in locations:
        parts = location.locations if isinstance(location, FusedLoc) else [location]
        assert isinstance(parts, list | ArrayAttr)
        for part in parts:
            if part is not UNKNOWN_LOC:
                flat[part] = None
    if len(flat) <= 1:
        return next(iter(flat), UNKNOWN_LOC)
    return FusedLoc(ArrayAttr(list(flat)), _NO_METADATA)


class Rewriter:
    """Edits around one op and tells the driver what to look at again.

    Attributes:
        root: The op that the pattern matched.
    """

    __slots__ = ("_enqueue", "root")

    def __init__(self, enqueue: Callable[[Operation], None]) -> None:
        self._enqueue = enqueue
        self.root: Operation = None  # type: ignore[assignment]  # set by the driver before each rewrite

    def insert(self, op: Op, *absorbed: Operation, before: Operation | None = None) -> Op:
        """Inserts an op before the root (or another op) and returns it.

        Args:
            op: The op; without a location of its own it gets that of the root, fused with the absorbed ops'.
            absorbed: Ops, beside the root, whose work the new op does.
            before: Where to insert, the root by default.
        """
        if op.location is UNKNOWN_LOC:
            op.location = (
                fuse_locations([*(each.location for each in absorbed), self.root.location])
                if absorbed
                else self.root.location
            )
        anchor = before or self.root
        block = anchor.parent
        assert block is not None
        block.insert_op_before(op, anchor)
        self._enqueue(op)
        return op

    def replace(self, values: Operation | SSAValue | Sequence[SSAValue]) -> None:
        """Replaces the root's results by values and erases it; ops that become dead are erased by the driver."""
        root = self.root
        if isinstance(values, Operation):
            values = values.results
        elif isinstance(values, SSAValue):
            values = (values,)
        for old, new in zip(root.results, values, strict=True):
            self.replace_value(old, new)
        self.erase(root)

    def replace_value(self, old: SSAValue, new: SSAValue) -> None:
        """Lets every user of one value use another; the users are looked at again."""
        for use in tuple(old.uses):
            user = use.operation
            user.operands[use.index] = new
            self._enqueue(user)

    def erase(self, op: Operation) -> None:
        """Erases an op without uses; what made its operands is looked at again."""
        operands = op.operands[:]
        op.detach()
        op.erase()
        for operand in operands:
            self.use_dropped(operand)

    def use_dropped(self, value: SSAValue) -> None:
        """Looks again at what made a value that lost a use, and at its last user if there is just one left."""
        if isinstance(value, OpResult):
            self._enqueue(value.op)
        last = value.get_user_of_unique_use()
        if last is not None:
            self._enqueue(last)
