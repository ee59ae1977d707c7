"""Creating ops at an insertion point, as MLIR's `OpBuilder` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self, TypeVar

from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.operation import NO_ATTRIBUTES, Operation
from tfconvert.schema.ir.values import Value

Op = TypeVar("Op", bound=Operation)


class OpBuilder:
    """Inserts ops before an op, or at the end of a block, one after the other.

    Attributes:
        location: The location of inserted ops that have none of their own.

    Args:
        op: The op to insert before, whose location is the default.
        block: The block to append to, if there is no such op.
    """

    __slots__ = ("_before", "_block", "location")

    def __init__(self, op: Operation | None, block: Block | None = None) -> None:
        self.location: Location = UNKNOWN_LOC if op is None else op.location
        self._before = op
        self._block = block

    @classmethod
    def at_block_end(cls, block: Block, location: Location = UNKNOWN_LOC) -> Self:
        """Returns a builder that appends to a block."""
        builder = cls(None, block)
        builder.location = location
        return builder

    @classmethod
    def at_block_begin(cls, block: Block, location: Location | None = None) -> Self:
        """Returns a builder that inserts before a block's first op, whose location is the default."""
        builder = cls(block.first_op, block)
        if location is not None:
            builder.location = location
        return builder

    @property
    def block(self) -> Block:
        """The block that ops are inserted into."""
        block = self._block if self._before is None else self._before.parent
        assert block is not None, "the op to insert before is in no block"
        return block

    def insert(self, op: Op) -> Op:
        """Inserts an op and returns it; without a location of its own it gets the builder's."""
        if op.location is UNKNOWN_LOC:
            op.location = self.location
        if self._before is None:
            self.block.add_op(op)
        else:
            self.block.insert_op_before(op, self._before)
        return op

    def create(
        self,
        op_class: type[Op],
        name: str = "",
        operands: Sequence[Value] = (),
        result_types: Sequence[Attribute] | None = None,
        properties: Mapping[str, Attribute] = NO_ATTRIBUTES,
        attributes: Mapping[str, Attribute] = NO_ATTRIBUTES,
        regions: Sequence[Region] = (),
    ) -> Op:
        """Creates an op, inserts it and returns it.

        Args:
            op_class: The op's class.
            name: The full name, for a class of ops with many names.
            operands: The operands.
            result_types: The results' types; by default those that the class infers.
            properties: The properties.
            attributes: All other attributes.
            regions: The regions.

        Raises:
            ValueError: There are no result types, and the class can't infer them.
        """
        name = name or op_class.NAME
        if result_types is None:
            result_types = op_class.infer_result_types(name, operands, properties)
            if result_types is None:
                raise ValueError(f"{name} needs result types: they can't be inferred from its operands")
        return self.insert(op_class(name, operands, result_types, properties, attributes, regions, self.location))
