"""The executor's control flow but for loops: Switch and Merge, ControlTrigger, Send and Recv.

Operands and results have the names of the dialect's description. Attributes that an op declares are properties
(`num_outs`); all others, such as `T` and `device`, are attributes, which nothing here reads.

TensorFlow's own dialect has no Send and Recv (the dialect's description has); their text is ours:
`tf_executor.Send %value key "name" : type` and `tf_executor.Recv key "name" : type`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.tf_executor import syntax
from tfconvert.schema.dialects.tf_executor.base import (
    NOTHING,
    SCALAR_BOOL,
    SCALAR_INT32,
    Attributes,
    ExecutorOp,
    ForwardingOp,
)
from tfconvert.schema.dialects.tf_executor.values import (
    CONTROL,
    Signature,
    compatible,
    scalar_bool,
    scalar_int32,
    tensor,
)
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import IntegerAttr, StringAttr
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
    signature = Signature((tensor("data"), scalar_bool("predicate")), (tensor("falseOutput"), tensor("trueOutput")))

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
        kinds = (data.type, data.type, CONTROL)
        operands = (data, predicate, *controls)
        return cls.create(operands=operands, result_types=kinds, attributes=attributes, location=location)

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
        """Parses the form that `print` prints."""
        operands = syntax.parse_operands(parser)
        values, kinds = syntax.parse_types(parser, operands, lambda kind: ([kind, SCALAR_BOOL], [kind, kind, CONTROL]))
        return cls.create(operands=values, result_types=kinds, attributes=syntax.parse_attributes(parser))


class SwitchNOp(ForwardingOp):
    """`tf_executor._SwitchN`: data, index -> N outputs, control; the indexed output is alive, or else the last."""

    __slots__ = ()

    NAME = "tf_executor._SwitchN"
    signature = Signature((tensor("data"), scalar_int32("index")), (tensor("outputs"),), many_results=True)
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
            raise VerifyError(f"num_outs = {count.value}, one at least, expected; found {len(self.outputs)}")

    def print(self, printer: Printer) -> None:
        syntax.print_operands(printer, self.operands[:2])
        printer.write(f" of {len(self.outputs)}")
        if self.control_operands:
            printer.write(" (")
            printer.operands(self.control_operands)
            printer.write(")")
        syntax.print_types(printer, self, self.short_type())
        syntax.print_attributes(printer, self, self.PROPERTIES)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the form that `print` prints."""
        operands = syntax.parse_operands(parser)
        if len(operands) != 2:
            parser.raise_error(f"expected data and index before 'of', found {len(operands)} operands")
        parser.parse_keyword("of", " before the number of outputs")
        count = parser.parse_integer(allow_boolean=False, allow_negative=False)
        operands += syntax.parse_controls(parser)
        values, kinds = syntax.parse_types(
            parser,
            operands,
            lambda kind: ([syntax.known_type(parser, operands[0], kind), SCALAR_INT32], [*[kind] * count, CONTROL]),
        )
        return cls.create(
            operands=values,
            result_types=kinds,
            properties={"num_outs": attrs.integer(count)},
            attributes=syntax.parse_attributes(parser, cls.PROPERTIES),
        )


class MergeOp(ExecutorOp):
    """`tf_executor.Merge`: the first live input, its index, control; dead only if all inputs are."""

    __slots__ = ()

    NAME = "tf_executor.Merge"
    signature = Signature((tensor("inputs"),), (tensor("output"), scalar_int32("value_index")), many_operands=True)

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
        kinds = (output, SCALAR_INT32, CONTROL)
        return cls.create(operands=(*inputs, *controls), result_types=kinds, attributes=attributes, location=location)

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
            if is_reference and types.element_of(value.type) != types.element_of(output):
                raise VerifyError(f"the output is a reference, operand {index} is not the same: {value.type}")

    def print(self, printer: Printer) -> None:
        """Prints ` %inputs, %controls : types {...}`."""
        data = self.data_operands
        kind = self.output.type
        is_short = len(data) == 2 and data[0].type == kind == data[1].type and self.value_index.type == SCALAR_INT32
        syntax.print_operands(printer, self.operands)
        syntax.print_types(printer, self, kind if is_short else None)
        syntax.print_attributes(printer, self)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the form that `print` prints; the short form has two inputs."""
        operands = syntax.parse_operands(parser)
        values, kinds = syntax.parse_types(parser, operands, lambda kind: ([kind, kind], [kind, SCALAR_INT32, CONTROL]))
        return cls.create(operands=values, result_types=kinds, attributes=syntax.parse_attributes(parser))


class ControlTriggerOp(ExecutorOp):
    """`tf_executor.ControlTrigger`: fires even if its control operands are dead."""

    __slots__ = ()

    NAME = "tf_executor.ControlTrigger"
    signature = Signature()

    @classmethod
    def build(
        cls, controls: Sequence[Value], attributes: Attributes = NOTHING, location: Location = UNKNOWN_LOC
    ) -> Self:
        """Returns a ControlTrigger that runs after the ops of its controls."""
        return cls.create(operands=controls, result_types=(CONTROL,), attributes=attributes, location=location)

    def print(self, printer: Printer) -> None:
        """Prints ` %controls {...}`."""
        syntax.print_operands(printer, self.operands)
        if self.operands or self.attributes:
            syntax.print_attributes(printer, self)
        else:
            # With nothing after the name a parser, TensorFlow's too, reads the next line's result as an operand.
            printer.write(" {}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the form that `print` prints."""
        controls = [parser.resolve_operand(operand, CONTROL) for operand in syntax.parse_operands(parser)]
        return cls.create(operands=controls, result_types=(CONTROL,), attributes=syntax.parse_attributes(parser))


class _RendezvousOp(ExecutorOp):
    """Base of Send and Recv, which meet by name."""

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
        syntax.print_operands(printer, self.operands)
        printer.write(" key ")
        printer.attribute(self.properties["tensor_name"])
        syntax.print_types(printer, self, self._value.type)
        syntax.print_attributes(printer, self, self.PROPERTIES)

    @property
    def _value(self) -> Value:
        """The value that is sent."""
        return self.operands[0] if isinstance(self, SendOp) else self.results[0]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the form that `print` prints."""
        operands = syntax.parse_operands(parser)
        parser.parse_keyword("key", " before the name")
        name = parser.parse_str_literal(" as the name")
        is_send = cls is SendOp
        values, kinds = syntax.parse_types(
            parser, operands, lambda kind: ([kind], [CONTROL]) if is_send else ([], [kind, CONTROL])
        )
        return cls.create(
            operands=values,
            result_types=kinds,
            properties={"tensor_name": attrs.string(name)},
            attributes=syntax.parse_attributes(parser, cls.PROPERTIES),
        )


class SendOp(_RendezvousOp):
    """`tf_executor.Send`: sends a value to a Recv of the same name."""

    __slots__ = ()

    NAME = "tf_executor.Send"
    signature = Signature((tensor("tensor"),))

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
        return cls.create(
            operands=(value, *controls),
            result_types=(CONTROL,),
            properties={"tensor_name": attrs.string(tensor_name)},
            attributes=attributes,
            location=location,
        )


class RecvOp(_RendezvousOp):
    """`tf_executor.Recv`: receives a value from a Send of the same name."""

    __slots__ = ()

    NAME = "tf_executor.Recv"
    signature = Signature((), (tensor("tensor"),))

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
        return cls.create(
            operands=controls,
            result_types=(kind, CONTROL),
            properties={"tensor_name": attrs.string(tensor_name)},
            attributes=attributes,
            location=location,
        )
