"""The ops of `tf_executor` that have bodies, and those that end them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from tfconvert.schema.dialects.tf_executor import base
from tfconvert.schema.dialects.tf_executor.base import (
    CONTROL,
    NOTHING,
    Attributes,
    ExecutorOp,
    ExecutorSignature,
    anything,
)
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.traits import Trait
from tfconvert.schema.ir.values import Value

if TYPE_CHECKING:
    from tfconvert.schema.ir.parser import Parser
    from tfconvert.schema.ir.printer import Printer


class _TerminatorOp(ExecutorOp):
    """Base of the ops that end a block and name its values."""

    __slots__ = ()

    TRAITS = frozenset({Trait.TERMINATOR})

    def verify_(self) -> None:
        super().verify_()
        if self.parent is not None and self.next_op is not None:
            raise VerifyError(f"{self.name} must be the last op of its block, found {self.next_op.name} after it")

    def print(self, printer: Printer) -> None:
        """Prints ` %a, %control : types {...}`."""
        printer.typed_operands(self.operands)
        base.print_attributes(printer, self)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        values = parser.parse_typed_operands()
        return cls.create(operands=values, attributes=base.parse_attributes(parser))


class FetchOp(_TerminatorOp):
    """`tf_executor.fetch`: the graph's results, and the controls whose effects it waits for."""

    __slots__ = ()

    NAME = "tf_executor.fetch"
    signature = ExecutorSignature((anything("fetches"),), many_operands=True, optional_operands=True, control=False)


class YieldOp(_TerminatorOp):
    """`tf_executor.yield`: an island's values."""

    __slots__ = ()

    NAME = "tf_executor.yield"
    signature = ExecutorSignature(
        (anything("values"),), many_operands=True, optional_operands=True, controls=False, control=False
    )
    inside = "tf_executor.island"


class _BodyOp(ExecutorOp):
    """An op with one block."""

    __slots__ = ()

    @property
    def body(self) -> Block:
        """The only block."""
        return self.regions[0].block

    @property
    def terminator(self) -> Operation:
        """The block's last op."""
        last = self.body.last_op
        assert last is not None
        return last

    def check_body(self, terminator: type[_TerminatorOp]) -> None:
        """Checks that there is one block without arguments, with the required terminator.

        Raises:
            VerifyError: There isn't.
        """
        blocks = sum(len(region.blocks) for region in self.regions)
        if len(self.regions) != 1 or blocks != 1:
            raise VerifyError(
                f"{self.name} must have one region of one block, found {len(self.regions)} regions and {blocks} blocks"
            )
        if self.body.args:
            raise VerifyError(f"the block must have no arguments, found {len(self.body.args)}")
        last = self.body.last_op
        if not isinstance(last, terminator):
            found = "an empty block" if last is None else last.name
            raise VerifyError(f"{self.name} must end in {terminator.NAME}, found {found}")

    def check_results(self, values: Sequence[Value], results: Sequence[Value]) -> None:
        """Checks that results have the types of the values that the terminator names.

        Raises:
            VerifyError: They don't.
        """
        if len(values) != len(results):
            raise VerifyError(f"{self.terminator.name} names {len(values)} values for {len(results)} results")
        for index, (value, result) in enumerate(zip(values, results, strict=True)):
            if value.type != result.type:
                raise VerifyError(
                    f"result {index} is {result.type}, but the value that {self.terminator.name} names is {value.type}"
                )


class GraphOp(_BodyOp):
    """`tf_executor.graph`: runs its islands as their operands allow; its results are the operands of `fetch`."""

    __slots__ = ()

    NAME = "tf_executor.graph"
    signature = ExecutorSignature((), (anything("results"),), many_results=True, controls=False, control=False)
    inside = ""

    @classmethod
    def build(cls, body: Block, location: Location = UNKNOWN_LOC) -> GraphOp:
        """Returns a graph of a block that ends in a fetch."""
        return cls._of(Region(body), NOTHING, location)

    @classmethod
    def _of(cls, region: Region, attributes: Attributes, location: Location = UNKNOWN_LOC) -> Self:
        fetch = region.blocks[0].last_op if len(region.blocks) == 1 else None
        results = [value.type for value in fetch.data_operands] if isinstance(fetch, FetchOp) else []
        return cls.create(result_types=results, attributes=attributes, regions=(region,), location=location)

    def verify_(self) -> None:
        super().verify_()
        parent = self.parent_op()
        if isinstance(parent, GraphOp):
            raise VerifyError("a graph in a graph must be in an island")
        self.check_body(FetchOp)
        for op in self.body.ops:
            if not isinstance(op, ExecutorOp):
                raise VerifyError(f"a graph holds tf_executor ops only, found {op.name}")
        assert isinstance(self.terminator, FetchOp)
        self.check_results(self.terminator.data_operands, self.results)
        self._check_order()

    def _check_order(self) -> None:
        defined: set[Value] = set()
        for op in self.body.ops:
            for user in op.walk() if op.regions else (op,):
                for index, operand in enumerate(user.operands):
                    owner = operand.owner
                    if isinstance(owner, Operation) and owner.parent is self.body and operand not in defined:
                        raise VerifyError(
                            f"values must be defined before they are used (NextIteration.Source breaks cycles): "
                            f"operand {index} of a {user.name} is a result of a later {owner.name}"
                        )
            defined.update(op.results)

    def print(self, printer: Printer) -> None:
        """Prints ` {...} {attributes}`."""
        printer.write(" ")
        printer.region(self.regions[0])
        base.print_attributes(printer, self)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the form that `print` prints; a body without a fetch fetches nothing."""
        region = base.parse_body(parser, FetchOp, (YieldOp,))
        return cls._of(region, base.parse_attributes(parser))


class IslandOp(_BodyOp):
    """`tf_executor.island`: runs its body once all operands are alive; else all its results are dead."""

    __slots__ = ()

    NAME = "tf_executor.island"
    signature = ExecutorSignature((), (anything("outputs"),), many_results=True)

    @classmethod
    def build(
        cls,
        body: Block,
        controls: Sequence[Value] = (),
        attributes: Attributes = NOTHING,
        location: Location = UNKNOWN_LOC,
    ) -> Self:
        """Returns an island of a block that ends in a yield."""
        return cls._of(Region(body), controls, attributes, location)

    @classmethod
    def _of(
        cls,
        region: Region,
        controls: Sequence[Value],
        attributes: Attributes = NOTHING,
        location: Location = UNKNOWN_LOC,
    ) -> Self:
        last = region.blocks[0].last_op if len(region.blocks) == 1 else None
        kinds: list[Attribute] = [value.type for value in last.operands] if isinstance(last, YieldOp) else []
        kinds.append(CONTROL)
        return cls.create(
            operands=controls, result_types=kinds, attributes=attributes, regions=(region,), location=location
        )

    @classmethod
    def wrap(cls, op: Operation, controls: Sequence[Value], location: Location = UNKNOWN_LOC) -> Self:
        """Returns an island of a single op that yields all the op's results."""
        types: list[Attribute] = [result.type for result in op.results]
        types.append(CONTROL)
        block = Block((op, YieldOp(YieldOp.NAME, op.results)))
        return cls(cls.NAME, controls, types, regions=(Region(block),), location=location)

    @property
    def outputs(self) -> Sequence[Value]:
        """The results that the yield names."""
        return self.results[:-1]

    @property
    def wrapped(self) -> Operation | None:
        """The only op of the body if the island yields just its results, else `None`."""
        first = self.body.first_op
        if first is None or first.next_op is None or first.next_op is not self.body.last_op:
            return None
        return first if tuple(self.terminator.operands) == tuple(first.results) else None

    def verify_(self) -> None:
        super().verify_()
        self.check_body(YieldOp)
        self.check_results(self.terminator.operands, self.outputs)

    def print(self, printer: Printer) -> None:
        """Prints the controls and `wraps` with the op, or the region."""
        if self.operands:
            printer.write("(")
            printer.operands(self.operands)
            printer.write(")")
        wrapped = self._short_form(printer)
        if wrapped is not None:
            # The op has no location of its own: the island's text ends with it.
            printer.write(f' wraps "{wrapped.name}"')
            printer.generic_form(wrapped)
            return
        printer.write(" ")
        printer.region(self.regions[0])
        base.print_attributes(printer, self)

    def _short_form(self, printer: Printer) -> Operation | None:
        """Returns the op that `wraps` can print: everything that the short form omits must have its default."""
        wrapped = self.wrapped
        if wrapped is None or isinstance(wrapped, ExecutorOp) or self.attributes or self.terminator.attributes:
            return None
        return wrapped if not printer.locations or wrapped.location is self.location else None

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the form that `print` prints; a body without a yield yields nothing."""
        controls = [parser.resolve_operand(operand, CONTROL) for operand in base.parse_controls(parser)]
        if parser.parse_optional_keyword("wraps") is not None:
            position = parser.pos
            op = parser.parse_operation()
            if isinstance(op, ExecutorOp) and not isinstance(op, GraphOp):
                parser.raise_error(f"expected an op of another dialect, found {op.name}", position)
            return cls.wrap(op, controls, op.location)
        region = base.parse_body(parser, YieldOp, (FetchOp,))
        return cls._of(region, controls, base.parse_attributes(parser))
