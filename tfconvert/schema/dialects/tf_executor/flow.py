"""The executor's control flow: Switch and Merge, ControlTrigger, Send and Recv, and the ops of loops' frames.

Operands and results have the names of the dialect's description. Attributes that an op declares are properties
(`num_outs`); all others, such as `T` and `device`, are attributes, which nothing here reads.

TensorFlow's own dialect has no Send and Recv (the dialect's description has); their text is ours:
`tf_executor.Send %value key "name" : type` and `tf_executor.Recv key "name" : type`.

NextIteration is two ops, since SSA form has no cycles: a Source yields the value and precedes its users, a Sink takes
it where it is ready; a token ties them. So values are defined before they are used, as SSA requires.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.tf_executor import base
from tfconvert.schema.dialects.tf_executor.base import (
    CONTROL,
    NOTHING,
    SCALAR_BOOL,
    SCALAR_INT32,
    TOKEN,
    Attributes,
    ExecutorOp,
    ExecutorSignature,
    ForwardingOp,
    UnaryOp,
    compatible,
    scalar_bool,
    scalar_int32,
    tensor,
    token,
)
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import IntegerAttr, StringAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.values import OpResult, Value

if TYPE_CHECKING:
    from tfconvert.schema.ir.parser import Parser
    from tfconvert.schema.ir.printer import Printer


class SwitchOp(ForwardingOp):
    """`tf_executor.Switch`: data, predicate -> false output, true output, control; one output is alive."""

    __slots__ = ()

    NAME = "tf_executor.Switch"
    signature = ExecutorSignature(
        (tensor("data"), scalar_bool("predicate")), (tensor("falseOutput"), tensor("trueOutput"))
    )

    @classmethod
    def build(
        cls,
        data: Value,
        predicate: Value,
        controls: Sequence[Value] = (),
        attributes: Attributes = NOTHING,
        location: Location = UNKNOWN_LOC,
    ) -> Self:
        """Returns a Switch whose outputs have the data's type."""
        return cls.assemble((data, predicate), (data.type, data.type), controls, attributes, location)

    @property
    def predicate(self) -> Value:
        """The boolean that selects the live output."""
        return self.operands[1]

    @property
    def false_output(self) -> OpResult:
        """The data where the predicate is false; dead where it is true."""
        return self.results[0]

    @property
    def true_output(self) -> OpResult:
        """The data where the predicate is true; dead where it is false."""
        return self.results[1]

    def short_type(self) -> Attribute | None:
        return super().short_type() if self.predicate.type == SCALAR_BOOL else None

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parser.parse_operands()
        return cls.parse_end(parser, operands, lambda kind: ([kind, SCALAR_BOOL], [kind, kind, CONTROL]))


class SwitchNOp(ForwardingOp):
    """`tf_executor._SwitchN`: data, index -> N outputs, control; the indexed output is alive, or else the last."""

    __slots__ = ()

    NAME = "tf_executor._SwitchN"
    signature = ExecutorSignature((tensor("data"), scalar_int32("index")), (tensor("outputs"),), many_results=True)
    PROPERTIES = ("num_outs",)

    @property
    def outputs(self) -> Sequence[OpResult]:
        return self.results[:-1]

    def verify_(self) -> None:
        super().verify_()
        count = self.properties.get("num_outs")
        if not isinstance(count, IntegerAttr) or count.type != types.I64:
            raise VerifyError(f"num_outs must be an i64 integer, found {count or 'none'}")
        if count.value != len(self.outputs) or not self.outputs:
            raise VerifyError(f"expected num_outs = {count.value} outputs, at least one; found {len(self.outputs)}")

    def print(self, printer: Printer) -> None:
        base.print_operands(printer, self.operands[:2])
        printer.write(f" of {len(self.outputs)}")
        if self.control_operands:
            printer.write(" (")
            printer.operands(self.control_operands)
            printer.write(")")
        base.print_end(printer, self, self.short_type())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parser.parse_operands()
        if len(operands) != 2:
            parser.raise_error(f"expected data and index before 'of', found {len(operands)} operands")
        parser.parse_keyword("of", " before the number of outputs")
        count = parser.parse_integer(allow_boolean=False, allow_negative=False)
        operands += base.parse_controls(parser)
        return cls.parse_end(
            parser,
            operands,
            lambda kind: ([base.known_type(parser, operands[0], kind), SCALAR_INT32], [*[kind] * count, CONTROL]),
            {"num_outs": attrs.integer(count)},
        )


class MergeOp(ExecutorOp):
    """`tf_executor.Merge`: the first live input, its index, control; dead only if all inputs are."""

    __slots__ = ()

    NAME = "tf_executor.Merge"
    signature = ExecutorSignature(
        (tensor("inputs"),), (tensor("output"), scalar_int32("value_index")), many_operands=True
    )

    @classmethod
    def build(
        cls,
        inputs: Sequence[Value],
        output: Attribute,
        controls: Sequence[Value] = (),
        attributes: Attributes = NOTHING,
        location: Location = UNKNOWN_LOC,
    ) -> Self:
        """Returns a Merge of one or more inputs, whose output has the type `output`."""
        return cls.assemble(inputs, (output, SCALAR_INT32), controls, attributes, location)

    @property
    def output(self) -> OpResult:
        """The live input's value."""
        return self.results[0]

    @property
    def value_index(self) -> OpResult:
        """The live input's index, an `i32` scalar."""
        return self.results[1]

    def verify_(self) -> None:
        super().verify_()
        output = self.output.type
        is_reference = isinstance(types.element_of(output), types.RefType)
        for index, value in enumerate(self.data_operands):
            if not compatible(value.type, output):
                raise VerifyError(f"the output is {output}, operand {index} can't be that: it is {value.type}")
            if is_reference and value.element != types.element_of(output):
                raise VerifyError(f"the output is a reference, operand {index} is not the same: {value.type}")

    def print(self, printer: Printer) -> None:
        """Prints ` %inputs, %controls : types {...}`."""
        data = self.data_operands
        kind = self.output.type
        is_short = len(data) == 2 and data[0].type == kind == data[1].type and self.value_index.type == SCALAR_INT32
        base.print_operands(printer, self.operands)
        base.print_end(printer, self, kind if is_short else None)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the form that `print` prints; the short form has two inputs."""
        operands = parser.parse_operands()
        return cls.parse_end(parser, operands, lambda kind: ([kind, kind], [kind, SCALAR_INT32, CONTROL]))


class ControlTriggerOp(ExecutorOp):
    """`tf_executor.ControlTrigger`: fires even if its control operands are dead."""

    __slots__ = ()

    NAME = "tf_executor.ControlTrigger"
    signature = ExecutorSignature()

    @classmethod
    def build(
        cls, controls: Sequence[Value], attributes: Attributes = NOTHING, location: Location = UNKNOWN_LOC
    ) -> Self:
        """Returns a ControlTrigger that runs after the ops of its controls."""
        return cls.assemble((), (), controls, attributes, location)

    def print(self, printer: Printer) -> None:
        """Prints ` %controls {...}`."""
        base.print_operands(printer, self.operands)
        if self.operands or self.attributes:
            base.print_attributes(printer, self)
        else:
            # With nothing after the name, a parser, also TensorFlow's, reads the next line's result as an operand.
            printer.write(" {}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        controls = [parser.resolve_operand(operand, CONTROL) for operand in parser.parse_operands()]
        return cls.create(operands=controls, result_types=(CONTROL,), attributes=base.parse_attributes(parser))


class _RendezvousOp(ExecutorOp):
    """Base of Send and Recv, which are matched by name."""

    __slots__ = ()

    PROPERTIES = ("tensor_name",)

    @property
    def tensor_name(self) -> str:
        """The name under which the value is sent."""
        found = self.properties["tensor_name"]
        assert isinstance(found, StringAttr)
        return found.data

    def verify_(self) -> None:
        super().verify_()
        name = self.properties.get("tensor_name")
        if not isinstance(name, StringAttr):
            raise VerifyError(f"tensor_name must be a string, found {name or 'none'}")

    def print(self, printer: Printer) -> None:
        """Prints ` %value, %controls key "name" : type {...}`."""
        base.print_operands(printer, self.operands)
        printer.write(" key ")
        printer.attribute(self.properties["tensor_name"])
        base.print_end(printer, self, self._value.type)

    @property
    def _value(self) -> Value:
        """The value that is sent."""
        return self.operands[0] if isinstance(self, SendOp) else self.results[0]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parser.parse_operands()
        parser.parse_keyword("key", " before the name")
        name = parser.parse_str_literal(" as the name")
        is_send = cls is SendOp
        return cls.parse_end(
            parser,
            operands,
            lambda kind: ([kind], [CONTROL]) if is_send else ([], [kind, CONTROL]),
            {"tensor_name": attrs.string(name)},
        )


class SendOp(_RendezvousOp):
    """`tf_executor.Send`: sends a value to a Recv of the same name."""

    __slots__ = ()

    NAME = "tf_executor.Send"
    signature = ExecutorSignature((tensor("tensor"),))

    @classmethod
    def build(
        cls,
        tensor_name: str,
        value: Value,
        controls: Sequence[Value] = (),
        attributes: Attributes = NOTHING,
        location: Location = UNKNOWN_LOC,
    ) -> Self:
        """Returns a Send of a value."""
        properties = {"tensor_name": attrs.string(tensor_name)}
        return cls.assemble((value,), (), controls, attributes, location, properties)


class RecvOp(_RendezvousOp):
    """`tf_executor.Recv`: receives a value from a Send of the same name."""

    __slots__ = ()

    NAME = "tf_executor.Recv"
    signature = ExecutorSignature((), (tensor("tensor"),))

    @classmethod
    def build(
        cls,
        tensor_name: str,
        kind: Attribute,
        controls: Sequence[Value] = (),
        attributes: Attributes = NOTHING,
        location: Location = UNKNOWN_LOC,
    ) -> Self:
        """Returns a Recv of a value of a type."""
        properties = {"tensor_name": attrs.string(tensor_name)}
        return cls.assemble((), (kind,), controls, attributes, location, properties)


PARALLEL_ITERATIONS = 10
"""The default number of iterations of a loop that run in parallel."""


class EnterOp(ForwardingOp):
    """`tf_executor.Enter`: passes a value into a frame, for its first iteration or, if constant, for every one."""

    __slots__ = ()

    NAME = "tf_executor.Enter"
    signature = ExecutorSignature((tensor("data"),), (tensor("output"),))
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
        properties = _frame_properties(frame_name, parallel_iterations, is_constant)
        return cls.assemble((data,), (output or data.type,), controls, attributes, location, properties)

    @property
    def frame_name(self) -> str:
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
        base.print_operands(printer, self.operands)
        printer.write(" frame ")
        printer.attribute(self.properties["frame_name"])
        if self.parallel_iterations != PARALLEL_ITERATIONS:
            printer.write(f" parallel_iterations {self.parallel_iterations}")
        if self.is_constant:
            printer.write(" constant ")
        base.print_end(printer, self, self.short_type())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parser.parse_operands()
        parser.parse_keyword("frame", " before the frame's name")
        name = parser.parse_str_literal(" as the frame's name")
        count = PARALLEL_ITERATIONS
        if parser.parse_optional_keyword("parallel_iterations") is not None:
            count = parser.parse_integer(allow_boolean=False)
        is_constant = parser.parse_optional_keyword("constant") is not None
        properties = _frame_properties(name, count, is_constant)
        return cls.parse_end(parser, operands, lambda kind: ([kind], [kind, CONTROL]), properties)


def _frame_properties(name: str, parallel_iterations: int, is_constant: bool) -> dict[str, Attribute]:
    return {
        "frame_name": attrs.string(name),
        "parallel_iterations": attrs.integer(parallel_iterations),
        "is_constant": attrs.boolean(is_constant),
    }


class ExitOp(UnaryOp):
    """`tf_executor.Exit`: passes a value out of a frame; alive only in the iteration that ends the loop."""

    __slots__ = ()

    NAME = "tf_executor.Exit"
    signature = ExecutorSignature((tensor("data"),), (tensor("output"),))


class LoopCondOp(UnaryOp):
    """`tf_executor.LoopCond`: the predicate that decides on another iteration."""

    __slots__ = ()

    NAME = "tf_executor.LoopCond"
    signature = ExecutorSignature((scalar_bool("predicate"),), (scalar_bool("output"),))


class NextIterationSourceOp(ExecutorOp):
    """`tf_executor.NextIteration.Source`: the sink's operand of the last iteration; precedes its users."""

    __slots__ = ()

    NAME = "tf_executor.NextIteration.Source"
    signature = ExecutorSignature(results=(tensor("output"), token("token")), controls=False)

    @classmethod
    def build(cls, output: Attribute, attributes: Attributes = NOTHING, location: Location = UNKNOWN_LOC) -> Self:
        """Returns a source of a value of a type."""
        return cls.assemble((), (output, TOKEN), (), attributes, location)

    @property
    def output(self) -> OpResult:
        return self.results[0]

    @property
    def token(self) -> OpResult:
        """The token that ties the sink to this source."""
        return self.results[1]

    @property
    def sink(self) -> NextIterationSinkOp | None:
        """The sink, or `None` if there is no sink yet."""
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
        base.print_end(printer, self, self.output.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return cls.parse_end(parser, (), lambda kind: ([], [kind, TOKEN, CONTROL]))


class NextIterationSinkOp(ExecutorOp):
    """`tf_executor.NextIteration.Sink`: forwards a value to the next iteration."""

    __slots__ = ()

    NAME = "tf_executor.NextIteration.Sink"
    signature = ExecutorSignature((token("token"), tensor("input")), control=False)

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
        return cls.assemble((source.token, value), (), controls, attributes, location)

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
        base.print_operands(printer, self.operands[1:])
        base.print_end(printer, self, self.input.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        with parser.in_square_brackets():
            ties = parser.parse_operand(TOKEN, msg="expected the token of a NextIteration.Source")
        values, _ = base.parse_types(parser, parser.parse_operands(), lambda kind: ([kind], []))
        return cls.create(operands=[ties, *values], attributes=base.parse_attributes(parser))
