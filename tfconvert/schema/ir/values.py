"""Values, and the list of uses that each has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location

if TYPE_CHECKING:
    from tfconvert.schema.ir.block import Block
    from tfconvert.schema.ir.operation import Operation


class Use:
    """One operand of an op, in the use list of its value, to which new uses are prepended.

    Attributes:
        operation: The op whose operand it is.
        index: Which operand.
    """

    __slots__ = ("index", "next", "operation", "previous")

    def __init__(self, operation: Operation, index: int, value: Value) -> None:
        self.operation = operation
        self.index = index
        self.previous: Use | None = None
        head = value.first_use
        self.next = head
        if head is not None:
            head.previous = self
        value.first_use = self


class Uses:
    """The uses of a value, newest first. The current use of a loop may be removed, even moved to another value.

    There is no length, for the reason that `BlockOps` has none.
    """

    __slots__ = ("_value",)

    def __init__(self, value: Value) -> None:
        self._value = value

    def __iter__(self) -> Iterator[Use]:
        use = self._value.first_use
        while use is not None:
            following = use.next
            yield use
            use = following

    def __bool__(self) -> bool:
        return self._value.first_use is not None


class Value:
    """An SSA value: a result of an op, or an argument of a block.

    Attributes:
        type: Its type.
        first_use: The newest use, the head of the list.
        name_hint: The name to print, if it is free.
    """

    __slots__ = ("first_use", "name_hint", "type")

    def __init__(self, type: Attribute) -> None:
        self.type = type
        self.first_use: Use | None = None
        self.name_hint: str | None = None

    @property
    def owner(self) -> Operation | Block:
        """The op that defines the value, or the block whose argument it is."""
        raise TypeError("a value is a result or an argument")

    @property
    def uses(self) -> Uses:
        """The uses, newest first."""
        return Uses(self)

    @property
    def is_unused(self) -> bool:
        """Whether nothing uses the value."""
        return self.first_use is None

    def has_one_use(self) -> bool:
        """Returns whether there is exactly one use."""
        use = self.first_use
        return use is not None and use.next is None

    def move_uses(self, other: Value) -> list[Operation]:
        """Gives this value's uses to another one; returns the ops that have them, that of the newest first."""
        users: list[Operation] = []
        if other is self:
            return users
        use, head = self.first_use, other.first_use
        self.first_use = None
        while use is not None:
            following = use.next
            user = use.operation
            # Ops and uses are one data structure; `set_operand` would undo each link before the next is created.
            user._operands[use.index] = other  # noqa: SLF001
            users.append(user)
            use.previous = None
            use.next = head
            if head is not None:
                head.previous = use
            head = use
            use = following
        other.first_use = head
        return users

    def replace_all_uses_with(self, other: Value) -> None:
        """Replaces this value by another one in all ops."""
        self.move_uses(other)
        if other.name_hint is None:
            other.name_hint = self.name_hint

    def replace_uses_with_if(self, other: Value, predicate: Callable[[Use], bool]) -> None:
        """Replaces this value by another one where a predicate holds."""
        for use in self.uses:
            if predicate(use):
                use.operation.set_operand(use.index, other)
        if other.name_hint is None:
            other.name_hint = self.name_hint


class OpResult(Value):
    """A result of an op.

    Attributes:
        op: The op.
        index: Which result.
    """

    __slots__ = ("index", "op")

    def __init__(self, type: Attribute, op: Operation, index: int) -> None:
        self.type = type
        self.first_use = None
        self.name_hint = None
        self.op = op
        self.index = index

    @property
    def owner(self) -> Operation:
        return self.op

    def __repr__(self) -> str:
        return f"<result {self.index} of {self.op.name}: {self.type}>"


class BlockArgument(Value):
    """An argument of a block.

    Attributes:
        block: The block.
        index: Which argument.
        location: The location.
    """

    __slots__ = ("block", "index", "location")

    def __init__(self, type: Attribute, block: Block, index: int, location: Location = UNKNOWN_LOC) -> None:
        super().__init__(type)
        self.block = block
        self.index = index
        self.location = location

    @property
    def owner(self) -> Block:
        return self.block

    def __repr__(self) -> str:
        return f"<argument {self.index}: {self.type}>"


def link(value: Value, use: Use) -> None:
    """Puts a use at the head of a value's list."""
    head = value.first_use
    use.previous = None
    use.next = head
    if head is not None:
        head.previous = use
    value.first_use = use


def unlink(value: Value, use: Use) -> None:
    """Removes a use from a value's list."""
    following, previous = use.next, use.previous
    if following is not None:
        following.previous = previous
    if previous is None:
        value.first_use = following
    else:
        previous.next = following
