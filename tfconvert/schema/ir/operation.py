"""Operations, as in MLIR.

Everything is linked both ways: a value knows its uses, a block its ops as an intrusive list, so that
inserting, moving, erasing and replacing take the same time however large a function is. What is public and not a
method may be read freely; only methods write, but for the fields that an op owns alone (`attributes`, `properties`,
`location`) and a value's `type` and `name_hint`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Self, TypeVar

from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.printer import text_of
from tfconvert.schema.ir.traits import NO_TRAITS, Trait
from tfconvert.schema.ir.values import OpResult, Use, Value, link, results_of, unlink, unlink_all, uses_of

Op = TypeVar("Op", bound="Operation")

NO_ATTRIBUTES: Mapping[str, Attribute] = {}
"""The attributes of an op without any; never written to."""


class Operation:
    """An operation; dialects derive classes with verifiers, printers and parsers of their own.

    Attributes:
        NAME: The full name of all ops of a class; empty where a class is for ops of many names.
        PROPERTIES: The names of the properties of a class, which the generic form may have among the attributes.
        TRAITS: The traits of the class.
        HAS_ASSEMBLY: Whether a class has a custom assembly format: a method `print(printer)` for what follows the op's
            name, and a class method `parse(parser)` that reads the same.
        name: The full name, `tf.Relu`.
        operands: Its operands; `set_operand` and `set_operands` change them.
        results: The values that it defines.
        properties: The attributes that its definition names.
        attributes: All others.
        regions: The code inside it.
        successors: Blocks that a terminator may go to.
        location: The location.
        parent: The block that it is in.
        prev_op, next_op: Its neighbours there.
    """

    __slots__ = (
        "_operands",
        "_uses",
        "attributes",
        "location",
        "name",
        "next_op",
        "operands",
        "parent",
        "prev_op",
        "properties",
        "regions",
        "results",
        "successors",
    )

    NAME: ClassVar[str] = ""
    PROPERTIES: ClassVar[tuple[str, ...]] = ()
    TRAITS: ClassVar[frozenset[Trait]] = NO_TRAITS
    HAS_ASSEMBLY: ClassVar[bool] = False

    operands: Sequence[Value]

    def __init__(
        self,
        name: str,
        operands: Sequence[Value] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] = NO_ATTRIBUTES,
        attributes: Mapping[str, Attribute] = NO_ATTRIBUTES,
        regions: Sequence[Region] = (),
        location: Location = UNKNOWN_LOC,
        successors: Sequence[Block] = (),
    ) -> None:
        self.name = name
        self.location = location
        self.properties: dict[str, Attribute] = {**properties} if properties else {}
        self.attributes: dict[str, Attribute] = {**attributes} if attributes else {}
        self.parent: Block | None = None
        self.prev_op: Operation | None = None
        self.next_op: Operation | None = None
        self.successors: Sequence[Block] = successors
        self.regions: tuple[Region, ...] = ()
        self.operands = self._operands = list(operands)
        self._uses: list[Use] = uses_of(self, operands) if operands else []
        self.results: tuple[OpResult, ...] = results_of(self, result_types)
        if regions:
            self._add_regions(regions)

    @classmethod
    def create(
        cls,
        *,
        operands: Sequence[Value] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] = NO_ATTRIBUTES,
        attributes: Mapping[str, Attribute] = NO_ATTRIBUTES,
        regions: Sequence[Region] = (),
        location: Location = UNKNOWN_LOC,
        successors: Sequence[Block] = (),
    ) -> Self:
        """Returns a new op of a class whose ops all have one name."""
        assert cls.NAME
        return cls(cls.NAME, operands, result_types, properties, attributes, regions, location, successors)

    @classmethod
    def infer_result_types(
        cls, name: str, operands: Sequence[Value], properties: Mapping[str, Attribute]
    ) -> Sequence[Attribute] | None:
        """Returns the result types that operands and properties determine, `None` if they don't.

        Args:
            name: The op's full name.
            operands: Its operands.
            properties: Its properties.
        """
        return None

    # Identity.

    def has_trait(self, trait: Trait) -> bool:
        """Returns whether something is true of the op by its definition."""
        return trait in self.TRAITS

    @property
    def dialect(self) -> str:
        return self.name.partition(".")[0]

    @property
    def operand_types(self) -> list[Attribute]:
        return [operand.type for operand in self._operands]

    @property
    def result_types(self) -> list[Attribute]:
        return [result.type for result in self.results]

    def parent_op(self) -> Operation | None:
        """Returns the op that has this one in a region."""
        return self.parent.parent_op() if self.parent is not None else None

    def verify_(self) -> None:
        """Checks the rules of this op alone; the verifier checks nested ops and uses.

        Raises:
            VerifyError: The op breaks these rules.
        """

    # Operands.

    def set_operand(self, index: int, value: Value) -> None:
        """Replaces one operand; negative indices count from the end."""
        use = self._uses[index]
        unlink(self._operands[index], use)
        self._operands[index] = value
        link(value, use)

    def set_operands(self, operands: Sequence[Value]) -> None:
        """Replaces all operands; there may be more or fewer than before."""
        values = list(operands)
        self.drop_operands()
        self._operands += values
        self._uses += uses_of(self, values)

    def turn_into(self, kind: type[Operation], name: str, properties: dict[str, Attribute]) -> None:
        """Makes another op of this one: operands, results, location and place stay, its own attributes do not.

        Args:
            kind: The other op's class, which has no fields of its own either.
            name: The other op's name.
            properties: Its properties, which become the op's own.
        """
        self.__class__ = kind
        self.name = name
        self.properties = properties
        if self.attributes:
            self.attributes = {}
        for result in self.results:
            result.name_hint = None

    def drop_operands(self) -> None:
        if self._uses:
            unlink_all(self._operands, self._uses)
            self._operands.clear()
            self._uses.clear()

    # Regions.

    def _add_regions(self, regions: Sequence[Region]) -> None:
        for region in regions:
            assert region.parent is None, "the region is in an op already"
            region.parent = self
        self.regions = (*self.regions, *regions)

    def walk(self) -> Iterator[Operation]:
        """Yields the op and all ops inside it, each before those in its regions.

        The current op may be erased or moved; ops inserted right after it are not visited.
        """
        yield self
        # Blocks that aren't begun, and the next ops of those that are.
        pending: list[Block | Operation | None] = _blocks_of(self)
        while pending:
            first = pending.pop()
            op = first.first_op if isinstance(first, Block) else first
            while op is not None:
                following = op.next_op
                yield op
                if op.regions:
                    pending.append(following)
                    pending += _blocks_of(op)
                    break
                op = following

    # Position.

    def detach(self) -> None:
        """Removes the op from its block; its uses stay."""
        if self.parent is not None:
            self.parent.detach_op(self)

    def erase(self) -> None:
        """Erases the op and drops all its references; its results must be unused.

        Raises:
            ValueError: A result is used.
        """
        for result in self.results:
            if result.first_use is not None:
                raise ValueError(
                    f"{self.name} can't be erased: {result.first_use.operation.name} uses result {result.index}"
                )
        if self.parent is not None:
            self.parent.detach_op(self)
        if self.regions:
            self.drop_all_references()
        else:
            self.drop_operands()
        # They point back at the op: without them it is freed at once.
        self.results = ()

    def drop_all_references(self) -> None:
        """Drops the operands of the op and of all ops inside it, so that they can be destroyed in any order."""
        pending: list[Operation] = [self]
        while pending:
            op = pending.pop()
            if op.operands:
                op.drop_operands()
            for region in op.regions:
                for block in region.blocks:
                    pending += block.ops

    # Copies.

    def clone(self, mapping: dict[Value, Value] | None = None) -> Self:
        """Returns a copy with all that is inside it, in no block.

        Args:
            mapping: The values that replace those of the original in the copy, others stay; afterwards it also maps
                the values that the original defines, at any depth, to those of the copy.
        """
        return _Cloning({} if mapping is None else mapping).clone(self)

    def copy_without_regions(self, mapping: Mapping[Value, Value]) -> Self:
        """Returns a copy with as many regions as the original has, all empty."""
        return type(self)(
            self.name,
            [mapping.get(operand, operand) for operand in self._operands],
            [result.type for result in self.results],
            self.properties,
            self.attributes,
            [Region() for _ in self.regions],
            self.location,
            self.successors,
        )

    def __str__(self) -> str:
        return text_of(self)

    def __repr__(self) -> str:
        return f"<{self.name}, {len(self._operands)} operands, {len(self.results)} results>"


def _blocks_of(op: Operation) -> list[Block | Operation | None]:
    """Returns the blocks in an op's regions, the first one last."""
    return [block for region in reversed(op.regions) for block in reversed(region.blocks)]


class _Cloning:
    """A copy under construction; a stack of ops instead of recursion, since models determine the depth."""

    def __init__(self, values: dict[Value, Value]) -> None:
        self.values = values
        self._blocks: dict[Block, Block] = {}
        self._unmapped: list[tuple[Operation, int, Value]] = []
        self._branches: list[Operation] = []

    def clone(self, op: Op) -> Op:
        clone = self._clone_without_regions(op)
        pending: list[tuple[Operation, Operation]] = [(op, clone)] if op.regions else []
        while pending:
            original, copy = pending.pop()
            for region, new_region in zip(original.regions, copy.regions, strict=True):
                for block in region.blocks:
                    new_region.add_block(self._empty(block))
                for block, new_block in zip(region.blocks, new_region.blocks, strict=True):
                    for inner in block.ops:
                        new_block.add_op(new := self._clone_without_regions(inner))
                        if inner.regions:
                            pending.append((inner, new))
        self._resolve_operands()
        return clone

    def _clone_without_regions(self, op: Op) -> Op:
        values = self.values
        clone = op.copy_without_regions(values)
        for index, operand in enumerate(op.operands):
            if operand not in values:
                self._unmapped.append((clone, index, operand))
        if op.successors:
            self._branches.append(clone)
        for result, new in zip(op.results, clone.results, strict=True):
            new.name_hint = result.name_hint
            values[result] = new
        return clone

    def _empty(self, block: Block) -> Block:
        new = Block(arg_types=[argument.type for argument in block.args])
        for argument, copy in zip(block.args, new.args, strict=True):
            copy.name_hint, copy.location = argument.name_hint, argument.location
            self.values[argument] = copy
        self._blocks[block] = new
        return new

    def _resolve_operands(self) -> None:
        """Replaces operands that were copied only after the ops that use them, and the blocks of branches."""
        for clone, index, operand in self._unmapped:
            new = self.values.get(operand)
            if new is not None:
                clone.set_operand(index, new)
        for clone in self._branches:
            clone.successors = tuple([self._blocks.get(block, block) for block in clone.successors])
