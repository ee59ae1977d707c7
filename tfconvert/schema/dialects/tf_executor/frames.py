"""The ops of loops' frames: Enter, Exit, LoopCond, and NextIteration, which is two ops since SSA form has no cycles.

A Source yields the value and precedes its users, a Sink takes it where it is ready; a token ties them. So values
are defined before they are used, as SSA requires.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.tf_executor import syntax
from tfconvert.schema.dialects.tf_executor.base import NOTHING, Attributes, ExecutorOp, ForwardingOp, UnaryOp
from tfconvert.schema.dialects.tf_executor.values import CONTROL, TOKEN, Signature, scalar_bool, tensor, token
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import IntegerAttr, StringAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.values import OpResult, Value

if TYPE_CHECKING:
    from tfconvert.schema.ir.parser import Parser
    from tfconvert.schema.ir.printer import Printer

PARALLEL_ITERATIONS = 10
"""The default number of iterations of a loop that run in parallel."""


class EnterOp(ForwardingOp):
    """`tf_executor.Enter`: brings a value into a frame, for its first iteration or, if constant, for every one."""

    __slots__ = ()

    NAME = "tf_executor.Enter"
    signature = Signature((tensor("data"),), (tensor("output"),))
    PROPERTIES = ("frame_name", "parallel_iterations", "is_constant")

    @classmethod
    def build(
        cls,
        data: Value,
        frame_name: str,
        *,
        output: Attribute | None = None,
        is_constant: bool = False,
        parallel_iterations: int = PARALLEL_ITERATIONS,
        controls: Sequence[Value] = (),
        attributes: Attributes = NOTHING,
        location: Location = UNKNOWN_LOC,
    ) -> Self:
        """Returns an Enter; the output's type is the data's by default."""
        return cls.create(
            operands=(data, *controls),
            result_types=(output or data.type, CONTROL),
            properties=_frame_properties(frame_name, parallel_iterations, is_constant),
            attributes=attributes,
            location=location,
        )

    @property
    def frame_name(self) -> str:
        """The frame."""
        found = self.properties["frame_name"]
        assert isinstance(found, StringAttr)
        return found.data

    @property
    def is_constant(self) -> bool:
        """Whether every iteration sees the value."""
        found = self.properties.get("is_constant")
        return isinstance(found, IntegerAttr) and found.value != 0

    @property
    def parallel_iterations(self) -> int:
        """The number of iterations that may run in parallel."""
        found = self.properties.get("parallel_iterations")
        return found.value if isinstance(found, IntegerAttr) else PARALLEL_ITERATIONS

    @property
    def output(self) -> OpResult:
        """The value in the frame."""
        return self.results[0]

    def verify_(self) -> None:
        super().verify_()
        name, count, constant = (self.properties.get(each) for each in self.PROPERTIES)
        if not isinstance(name, StringAttr):
            raise VerifyError(f"frame_name must be a string, found {name or 'none'}")
        if count is not None and (not isinstance(count, IntegerAttr) or count.type != types.I64):
            raise VerifyError(f"parallel_iterations must be an i64 integer, found {count}")
        if constant is not None and (not isinstance(constant, IntegerAttr) or constant.type != types.I1):
            raise VerifyError(f"is_constant must be true or false, found {constant}")

    def print(self, printer: Printer) -> None:
        syntax.print_operands(printer, self.operands)
        printer.write(" frame ")
        printer.attribute(self.properties["frame_name"])
        if self.parallel_iterations != PARALLEL_ITERATIONS:
            printer.write(f" parallel_iterations {self.parallel_iterations}")
        if self.is_constant:
            printer.write(" constant ")
        syntax.print_types(printer, self, self.short_type())
        syntax.print_attributes(printer, self, self.PROPERTIES)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the form that `print` prints."""
        operands = syntax.parse_operands(parser)
        parser.parse_keyword("frame", " before the frame's name")
        name = parser.parse_str_literal(" as the frame's name")
        count = PARALLEL_ITERATIONS
        if parser.parse_optional_keyword("parallel_iterations") is not None:
            count = parser.parse_integer(allow_boolean=False)
        is_constant = parser.parse_optional_keyword("constant") is not None
        values, kinds = syntax.parse_types(parser, operands, lambda kind: ([kind], [kind, CONTROL]))
        return cls.create(
            operands=values,
            result_types=kinds,
            properties=_frame_properties(name, count, is_constant),
            attributes=syntax.parse_attributes(parser, cls.PROPERTIES),
        )


def _frame_properties(name: str, parallel_iterations: int, is_constant: bool) -> dict[str, Attribute]:
    return {
        "frame_name": attrs.string(name),
        "parallel_iterations": attrs.integer(parallel_iterations),
        "is_constant": attrs.boolean(is_constant),
    }


class ExitOp(UnaryOp):
    """`tf_executor.Exit`: brings a value out of a frame; alive only in the iteration that ends the loop."""

    __slots__ = ()

    NAME = "tf_executor.Exit"
    signature = Signature((tensor("data"),), (tensor("output"),))


class LoopCondOp(UnaryOp):
    """`tf_executor.LoopCond`: the predicate that decides on another iteration."""

    __slots__ = ()

    NAME = "tf_executor.LoopCond"
    signature = Signature((scalar_bool("predicate"),), (scalar_bool("output"),))


class NextIterationSourceOp(ExecutorOp):
    """`tf_executor.NextIteration.Source`: the sink's operand of the last iteration; precedes its users."""

    __slots__ = ()

    NAME = "tf_executor.NextIteration.Source"
    signature = Signature(results=(tensor("output"), token("token")), controls=False)

    @classmethod
    def build(cls, output: Attribute, attributes: Attributes = NOTHING, location: Location = UNKNOWN_LOC) -> Self:
        """Returns a source of a value of a type."""
        return cls.create(result_types=(output, TOKEN, CONTROL), attributes=attributes, location=location)

    @property
    def output(self) -> OpResult:
        """The value."""
        return self.results[0]

    @property
    def token(self) -> OpResult:
        """The token that ties the sink to this source."""
        return self.results[1]

    @property
    def sink(self) -> NextIterationSinkOp | None:
        """The sink, `None` if there isn't one (yet)."""
        users = [use.operation for use in self.token.uses]
        return users[0] if len(users) == 1 and isinstance(users[0], NextIterationSinkOp) else None

    def verify_(self) -> None:
        super().verify_()
        uses = sum(1 for _ in self.token.uses)
        if uses != 1:
            raise VerifyError(f"the token must go to one NextIteration.Sink, found {uses} uses")
        sink = self.sink
        if sink is None:
            users = ", ".join(use.operation.name for use in self.token.uses)
            raise VerifyError(f"the token must go to a NextIteration.Sink, found a use by {users}")
        if sink.parent is not self.parent:
            raise VerifyError("the token must go to a NextIteration.Sink of the same graph, found one of another")

    def print(self, printer: Printer) -> None:
        """Prints ` : type {...}`."""
        syntax.print_types(printer, self, self.output.type)
        syntax.print_attributes(printer, self)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the form that `print` prints."""
        _, kinds = syntax.parse_types(parser, (), lambda kind: ([], [kind, TOKEN, CONTROL]))
        return cls.create(result_types=kinds, attributes=syntax.parse_attributes(parser))


class NextIterationSinkOp(ExecutorOp):
    """`tf_executor.NextIteration.Sink`: forwards a value to the next iteration."""

    __slots__ = ()

    NAME = "tf_executor.NextIteration.Sink"
    signature = Signature((token("token"), tensor("input")), control=False)

    @classmethod
    def build(
        cls,
        source: NextIterationSourceOp,
        value: Value,
        controls: Sequence[Value] = (),
        attributes: Attributes = NOTHING,
        location: Location = UNKNOWN_LOC,
    ) -> Self:
        """Returns the sink of a source, whose operand must have the source's type."""
        return cls.create(operands=(source.token, value, *controls), attributes=attributes, location=location)

    @property
    def token(self) -> Value:
        """The token that ties the sink to its source."""
        return self.operands[0]

    @property
    def input(self) -> Value:
        """The value for the next iteration."""
        return self.operands[1]

    @property
    def source(self) -> NextIterationSourceOp | None:
        """The source, `None` if the token is from elsewhere."""
        owner = self.token.owner
        return owner if isinstance(owner, NextIterationSourceOp) else None

    def verify_(self) -> None:
        super().verify_()
        source = self.source
        if source is None:
            owner = self.token.owner
            found = "a block argument" if isinstance(owner, Block) else owner.name
            raise VerifyError(f"the token must be defined by a NextIteration.Source, found {found}")
        if source.output.type != self.input.type:
            raise VerifyError(
                f"the input must have the type of its NextIteration.Source, {source.output.type}, "
                f"found {self.input.type}"
            )

    def print(self, printer: Printer) -> None:
        """Prints `[%token] %value, %controls : type {...}`."""
        printer.write("[")
        printer.operand(self.token)
        printer.write("]")
        syntax.print_operands(printer, self.operands[1:])
        syntax.print_types(printer, self, self.input.type)
        syntax.print_attributes(printer, self)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the form that `print` prints."""
        with parser.in_square_brackets():
            ties = parser.parse_operand(TOKEN, msg="expected the token of a NextIteration.Source")
        values, _ = syntax.parse_types(parser, syntax.parse_operands(parser), lambda kind: ([kind], []))
        return cls.create(operands=[ties, *values], attributes=syntax.parse_attributes(parser))
