"""Values, and the list of uses that each has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.types import Shape, TensorType, UnrankedTensorType

if TYPE_CHECKING:
    from tfconvert.schema.ir.block import Block
    from tfconvert.schema.ir.operation import Operation


class Use:
    """One operand of an op, in the use list of its value, to which new uses are prepended.

    `uses_of` creates uses. There is no constructor, since a call of one written in Python takes most of the time.

    Attributes:
        operation: The op whose operand it is.
        index: Which operand.
        next, previous: Its neighbours in the list.
    """

    __slots__ = ("index", "next", "operation", "previous")

    operation: Operation
    index: int
    next: Use | None
    previous: Use | None


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

    # Set by the functions that make values, for the reason that `Use` has no constructor.
    type: Attribute
    first_use: Use | None
    name_hint: str | None

    @property
    def owner(self) -> Operation | Block:
        """The op that defines the value, or the block whose argument it is."""
        raise TypeError("a value is a result or an argument")

    @property
    def shape(self) -> Shape | None:
        """The dimensions of a tensor, -1 where unknown; `None` if the rank is unknown or it is no tensor."""
        kind = self.type
        return kind.shape if type(kind) is TensorType else None

    @property
    def element(self) -> Attribute:
        """The element type of a tensor; any other type is its own element."""
        kind = self.type
        return kind.element_type if type(kind) is TensorType or type(kind) is UnrankedTensorType else kind

    def producer(self, names: str | Collection[str]) -> Operation | None:
        """Returns the op that defines the value, if it has the name, or one of several."""
        return None

    def sole_producer(self, names: str | Collection[str]) -> Operation | None:
        """Like `producer`, but `None` if the value has other uses than one."""
        return self.producer(names) if self.has_one_use() else None

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

    `results_of` creates results; there is no constructor, for the reason that `Use` has none.

    Attributes:
        op: The op.
        index: Which result.
    """

    __slots__ = ("index", "op")

    op: Operation
    index: int

    def producer(self, names: str | Collection[str]) -> Operation | None:
        op = self.op
        # Comparing the exact class is cheap, unlike `isinstance`.
        return op if (op.name == names if type(names) is str else op.name in names) else None

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
        self.type = type
        self.first_use = None
        self.name_hint = None
        self.block = block
        self.index = index
        self.location = location

    def __repr__(self) -> str:
        return f"<argument {self.index}: {self.type}>"


# The slots themselves: a property would be a call.
OpResult.owner = OpResult.op  # type: ignore[assignment, method-assign, misc]
BlockArgument.owner = BlockArgument.block  # type: ignore[assignment, method-assign, misc]


def value_of(type: Attribute) -> Value:
    """Returns a value of a type that nothing defines yet."""
    value = Value()
    value.type = type
    value.first_use = value.name_hint = None
    return value


def results_of(op: Operation, types: Sequence[Attribute]) -> tuple[OpResult, ...]:
    """Returns the results of a new op, one of each type."""
    results = []
    for index, kind in enumerate(types):
        result = OpResult()
        result.type = kind
        result.first_use = result.name_hint = None
        result.op = op
        result.index = index
        if len(types) == 1:
            return (result,)
        results.append(result)
    return tuple(results)


def uses_of(op: Operation, values: Iterable[Value]) -> list[Use]:
    """Returns the uses of values by an op that has them as its operands, in order; each is in its value's list."""
    uses = []
    for index, value in enumerate(values):
        use = Use()
        use.operation = op
        use.index = index
        use.previous = None
        use.next = head = value.first_use
        if head is not None:
            head.previous = use
        value.first_use = use
        uses.append(use)
    return uses


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
    unlink_all((value,), (use,))


def unlink_all(values: Sequence[Value], uses: Sequence[Use]) -> None:
    """Removes a use of each value from its list."""
    for value, use in zip(values, uses, strict=True):
        following, previous = use.next, use.previous
        if following is not None:
            following.previous = previous
        if previous is None:
            value.first_use = following
        else:
            previous.next = following
