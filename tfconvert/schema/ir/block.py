"""Blocks, whose ops form an intrusive list, and the regions that contain blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.values import BlockArgument

if TYPE_CHECKING:
    from tfconvert.schema.ir.operation import Operation


class BlockOps:
    """The ops of a block, in order. The current op of a loop may be erased or moved.

    There is no length: it would take a walk over all ops, and `list` and `tuple` would ask for it before their own.
    """

    __slots__ = ("_block",)

    def __init__(self, block: Block) -> None:
        self._block = block

    def __iter__(self) -> Iterator[Operation]:
        op = self._block.first_op
        while op is not None:
            following = op.next_op
            yield op
            op = following

    def __reversed__(self) -> Iterator[Operation]:
        op = self._block.last_op
        while op is not None:
            following = op.prev_op
            yield op
            op = following

    def __bool__(self) -> bool:
        return self._block.first_op is not None


class Block:
    """A list of ops, with arguments.

    Attributes:
        args: The arguments.
        first_op, last_op: The ends of the list.
        parent: The region that it is in.
        name_hint: The name to print, if it is free.
    """

    __slots__ = ("args", "first_op", "last_op", "name_hint", "parent")

    def __init__(self, ops: Iterable[Operation] = (), *, arg_types: Sequence[Attribute] = ()) -> None:
        self.first_op: Operation | None = None
        self.last_op: Operation | None = None
        self.parent: Region | None = None
        self.name_hint: str | None = None
        self.args: tuple[BlockArgument, ...] = ()
        if arg_types:
            self.args = tuple([BlockArgument(arg_type, self, index) for index, arg_type in enumerate(arg_types)])
        for op in ops:
            self.add_op(op)

    @property
    def ops(self) -> BlockOps:
        """The ops, in order."""
        return BlockOps(self)

    @property
    def arg_types(self) -> list[Attribute]:
        return [argument.type for argument in self.args]

    def parent_op(self) -> Operation | None:
        """Returns the op that has the block in a region."""
        return self.parent.parent if self.parent is not None else None

    def insert_arg(self, type: Attribute, index: int, location: Location = UNKNOWN_LOC) -> BlockArgument:
        """Inserts an argument before the one at an index, or at the end."""
        argument = BlockArgument(type, self, index, location)
        self.args = (*self.args[:index], argument, *self.args[index:])
        self._number()
        return argument

    def add_arg(self, type: Attribute) -> BlockArgument:
        """Appends an argument."""
        return self.insert_arg(type, len(self.args))

    def erase_arg(self, argument: BlockArgument) -> None:
        """Erases an argument, which must be unused.

        Raises:
            ValueError: The argument is used.
        """
        if argument.first_use is not None:
            raise ValueError(f"argument {argument.index} is used by {argument.first_use.operation.name}")
        self.args = tuple([other for other in self.args if other is not argument])
        self._number()

    def _number(self) -> None:
        for index, argument in enumerate(self.args):
            argument.index = index

    def add_op(self, op: Operation) -> None:
        """Adds an op at the end."""
        assert op.parent is None, f"{op.name} is in a block already"
        last = self.last_op
        op.parent = self
        op.prev_op = last
        if last is None:
            self.first_op = op
        else:
            last.next_op = op
        self.last_op = op

    def add_ops(self, ops: Iterable[Operation]) -> None:
        """Adds ops at the end."""
        for op in ops:
            self.add_op(op)

    def insert_op_before(self, op: Operation, existing: Operation) -> None:
        """Inserts an op before one of the block's."""
        assert op.parent is None, f"{op.name} is in a block already"
        assert existing.parent is self, f"{existing.name} is not in this block"
        previous = existing.prev_op
        op.parent = self
        op.prev_op = previous
        op.next_op = existing
        existing.prev_op = op
        if previous is None:
            self.first_op = op
        else:
            previous.next_op = op

    def insert_ops_before(self, other: Block, existing: Operation) -> None:
        """Inserts all ops of another block before one of this block's; the other one is empty afterwards."""
        assert existing.parent is self, f"{existing.name} is not in this block"
        first, last = other.first_op, other.last_op
        if first is None or last is None:
            return
        op: Operation | None = first
        while True:  # Python 3.11 doesn't specialize the instructions of a loop that `while op` begins.
            if op is None:
                break
            op.parent = self
            op = op.next_op
        previous = existing.prev_op
        first.prev_op, last.next_op, existing.prev_op = previous, existing, last
        if previous is None:
            self.first_op = first
        else:
            previous.next_op = first
        other.first_op = other.last_op = None

    def insert_op_after(self, op: Operation, existing: Operation) -> None:
        """Inserts an op after one of the block's."""
        if existing.next_op is None:
            assert existing.parent is self, f"{existing.name} is not in this block"
            self.add_op(op)
        else:
            self.insert_op_before(op, existing.next_op)

    def detach_op(self, op: Operation) -> Operation:
        """Removes an op from the block; its uses stay."""
        assert op.parent is self, f"{op.name} is not in this block"
        previous, following = op.prev_op, op.next_op
        if previous is None:
            self.first_op = following
        else:
            previous.next_op = following
        if following is None:
            self.last_op = previous
        else:
            following.prev_op = previous
        op.parent = op.prev_op = op.next_op = None
        return op


class Region:
    """Blocks of an op, the first one its entry.

    Attributes:
        blocks: The blocks; `add_block`, `insert_block` and `detach_block` change them.
        parent: The op.
    """

    __slots__ = ("blocks", "parent")

    blocks: list[Block]

    def __init__(self, blocks: Block | Iterable[Block] = ()) -> None:
        self.blocks = [blocks] if isinstance(blocks, Block) else list(blocks)
        self.parent: Operation | None = None
        for block in self.blocks:
            assert block.parent is None, "the block is in a region already"
            block.parent = self

    @property
    def block(self) -> Block:
        """The only block."""
        (block,) = self.blocks
        return block

    @property
    def first_block(self) -> Block | None:
        """The entry, `None` if there are no blocks."""
        return self.blocks[0] if self.blocks else None

    def parent_op(self) -> Operation | None:
        """Returns the op that has the region."""
        return self.parent

    def add_block(self, block: Block) -> None:
        """Appends a block."""
        self.insert_block(block, len(self.blocks))

    def insert_block(self, block: Block, index: int) -> None:
        """Inserts a block before the one at an index."""
        assert block.parent is None, "the block is in a region already"
        block.parent = self
        self.blocks.insert(index, block)

    def detach_block(self, block: Block) -> Block:
        """Removes a block from the region."""
        self.blocks.remove(block)
        block.parent = None
        return block

    def walk(self) -> Iterator[Operation]:
        """Yields all ops inside, each before those in its regions."""
        for block in list(self.blocks):
            op = block.first_op
            while op is not None:
                following = op.next_op
                if op.regions:
                    yield from op.walk()
                else:
                    yield op
                op = following
