"""The edits that patterns may make to the IR while the driver runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from tfconvert.schema.dialects.tensor_data import CONSTANT_OPS
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.locations import UNKNOWN_LOC, FusedLoc, Location
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

Op = TypeVar("Op", bound=Operation)

MAX_FUSED = 64
"""Maximum number of locations in a fused one, since a chain of any length may become one op."""


def fuse_locations(locations: Sequence[Location]) -> Location:
    """Returns the location of something that replaces several ops; nested fusions are flattened.

    The last location stays the last one, which gives the result its name. If there are too many, the first are omitted.
    """
    parts: list[Location] = []
    for location in reversed(locations):
        if isinstance(location, FusedLoc):
            parts += reversed(location.locations)
        else:
            parts.append(location)
    flat = dict.fromkeys(parts)
    flat.pop(UNKNOWN_LOC, None)
    if len(flat) <= 1:
        return next(iter(flat), UNKNOWN_LOC)
    return FusedLoc.get([*flat][MAX_FUSED - 1 :: -1])


def fuse_origins(values: Iterable[object]) -> Location:
    """Returns the fused location of the ops that define values."""
    return fuse_locations([value.op.location for value in values if isinstance(value, OpResult)])


def ops_within(op: Operation) -> Iterator[Operation]:
    """Yields the ops in the regions of an op, at any depth, each before the enclosing op."""
    pending = [(op, False)]
    while pending:
        current, is_exit = pending.pop()
        if is_exit:
            if current is not op:
                yield current
        elif current.regions or current is op:
            pending.append((current, True))
            inner = [each for region in current.regions for block in region.blocks for each in block.ops]
            pending.extend((each, False) for each in reversed(inner))
        else:
            yield current


class Rewriter:
    """Edits around one op, remembered until the driver enqueues the ops that they affect.

    Attributes:
        root: The op that the pattern matched.
        inserts_anywhere: Whether an op was inserted elsewhere than before a root, which may be after it.
        users_wait: Whether the driver will visit all ops anyway that changed ones feed.
    """

    __slots__ = ("_changed", "_dropped", "_gone", "_inserted", "inserts_anywhere", "root", "users_wait")

    def __init__(self) -> None:
        self.root: Operation = None  # type: ignore[assignment]  # set by the driver before each rewrite
        self.inserts_anywhere = self.users_wait = False
        self._changed: list[Operation] = []
        self._dropped: list[Value] = []
        self._inserted: list[Operation] = []
        self._gone: list[Location] = []

    def insert(self, op: Op, before: Operation | None = None) -> Op:
        """Inserts an op before the root (or another op) and returns it.

        Args:
            op: The op. Without a location it gets the root's; at the end of the rewrite, this is fused with the
                locations of all ops that became dead.
            before: The op to insert before; by default, the root.
        """
        if op.location is UNKNOWN_LOC:
            op.location = self.root.location
            self._inserted.append(op)
        anchor = before or self.root
        if before is not None:
            self.inserts_anywhere, self.users_wait = True, False
        block = anchor.parent
        assert block is not None
        block.insert_op_before(op, anchor)
        self._changed.append(op)
        return op

    def replace(self, values: Operation | Value | Sequence[Value]) -> None:
        """Replaces the root's results by values and erases it; ops that become dead are erased by the driver."""
        root = self.root
        if isinstance(values, Operation):
            values = values.results
        elif isinstance(values, Value):
            values = (values,)
        for old, new in zip(root.results, values, strict=True):
            self.replace_value(old, new)
        self.erase(root)

    def turn_root_into(
        self,
        kind: type[Operation],
        name: str,
        properties: dict[str, Attribute],
        operands: Sequence[Value] | None = None,
    ) -> None:
        """Makes another op of the root, with the same results: like `replace` by such an op, but faster.

        Args:
            kind: The other op's class.
            name: The other op's name.
            properties: The other op's properties, which become the op's own.
            operands: Other operands; those of the root by default.
        """
        root = self.root
        if operands is not None:
            self._dropped += root.operands
            root.set_operands(operands)
        root.turn_into(kind, name, properties)
        self._changed.append(root)
        if not self.users_wait:
            self._changed += [use.operation for result in root.results for use in result.uses]

    def extend(self, op: Operation, properties: Mapping[str, Attribute]) -> None:
        """Makes an op that only feeds the root do the root's work too, at the root's place and with its result.

        This is like replacing the root by a copy of the op, but faster. Both have one result.

        Args:
            op: The op.
            properties: Properties that it gets beside or instead of its own.
        """
        root, result = self.root, op.results[0]
        block = root.parent
        assert block is not None
        if op.next_op is not root:
            op.detach()
            block.insert_op_before(op, root)
        self._dropped += [operand for operand in root.operands if operand is not result]
        root.drop_operands()
        result.type, result.name_hint = root.results[0].type, None
        op.properties = {**op.properties, **properties}
        self._gone.append(op.location)
        self._inserted.append(op)
        op.location = root.location
        self._changed.append(op)
        self.replace_value(root.results[0], result)
        root.erase()

    def set_operand(self, op: Operation, index: int, value: Value) -> None:
        """Replaces an operand of an op; what only it used is erased by the driver."""
        self._dropped.append(op.operands[index])
        op.set_operand(index, value)

    def replace_value(self, old: Value, new: Value) -> None:
        """Replaces all uses of one value by another; the users are visited again."""
        self._changed += old.move_uses(new)
        self._dropped.append(old)
        if type(old) is not OpResult or old.op is not self.root:
            self.users_wait = False

    def erase(self, op: Operation) -> None:
        """Erases an op without uses; the producers of its operands are visited again."""
        for each in (*ops_within(op), op) if op.regions else (op,):
            self._dropped.extend(each.operands)
        if op.name not in CONSTANT_OPS and op is not self.root:
            self._gone.append(op.location)
        op.erase()

    def touched(self) -> Sequence[Operation]:
        """Returns the ops that were inserted or got other operands, since the last `finish`."""
        return self._changed

    def finish(self, has_side_effects: Callable[[Operation], bool]) -> tuple[list[Operation], list[Operation]]:
        """Erases dead ops, and sets the location of inserted ops to those of all erased ones.

        Args:
            has_side_effects: Returns whether an op must not be erased although nothing uses it.

        Returns:
            The ops that changed, and the ops whose results lost a use.
        """
        dropped, changed = self._dropped, self._changed
        losers: list[Operation] = []
        self._changed = []
        if not dropped and not self._gone:
            if self._inserted:
                self._inserted.clear()
            return changed, losers
        known = set(changed)
        while dropped:
            value = dropped.pop()
            use = value.first_use
            if type(value) is OpResult:
                op = value.op
                if op.parent is None:
                    continue
                if use is None and is_unused(op) and not has_side_effects(op):
                    self.erase(op)
                    continue
                losers.append(op)
            if use is not None and use.next is None and use.operation not in known:
                changed.append(use.operation)
                self.users_wait = False  # It may be anywhere.
        if self._gone and self._inserted:
            self._locate()
        self._inserted.clear()
        self._gone.clear()
        return changed, losers

    def _locate(self) -> None:
        # The op that was erased first is nearest to the root.
        own = self.root.location
        fused = fuse_locations([*reversed(self._gone), own])
        for op in self._inserted:
            if op.location is own:
                op.location = fused


def is_unused(op: Operation) -> bool:
    """Returns whether an op has results and nothing uses them."""
    results = op.results
    for result in results:
        if result.first_use is not None:
            return False
    return bool(results)
