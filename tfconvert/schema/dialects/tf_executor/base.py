"""Base classes of the executor's ops: their types, the constraints on operands and results, and their assembly.

Every op has data operands first and control operands after them, data results first and one control result after them.
A `Signature` states which; an op's verifier checks itself against it.

Most ops read `name operands : types {attributes}`. The types are one type (the short form) where that suffices, and a
function type otherwise, which also lists the control tokens. Texts are exactly TensorFlow's. If its own form would lose
a type (an `Exit` or a `_SwitchN` whose results differ from their operand), ours is the function type, which TensorFlow
rejects instead of misreading it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from tfconvert.schema.dialects import types
from tfconvert.schema.ir.attribute import Attribute, Type
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import TensorType, UnrankedTensorType
from tfconvert.schema.ir.values import OpResult, Value

if TYPE_CHECKING:
    from tfconvert.schema.ir.parser import Parser, UnresolvedOperand
    from tfconvert.schema.ir.printer import Printer


class ControlType(Type):
    """`!tf_executor.control`: happens after, and dead if dead."""

    __slots__ = ()

    NAME = "tf_executor.control"


class ExecutorTokenType(Type):
    """`!tf_executor.token`: ties a NextIteration's source to its sink."""

    __slots__ = ()

    NAME = "tf_executor.token"


CONTROL = ControlType.intern()
TOKEN = ExecutorTokenType.intern()


def is_control(value: Value) -> bool:
    """Returns whether a value is a control token and carries no data."""
    return value.type is CONTROL


class OperandConstraint(NamedTuple):
    """The constraint on an operand or a result."""

    name: str  # The operand's name.
    expected: str  # The requirement, for error messages.
    accepts: Callable[[Attribute], bool]  # Returns whether a type satisfies it.


def _is_tensor(found: Attribute) -> bool:
    return isinstance(found, TensorType | UnrankedTensorType)


def _is_scalar_of(element: Attribute) -> Callable[[Attribute], bool]:
    def accepts(found: Attribute) -> bool:
        return (
            _is_tensor(found) and types.dereferenced(types.element_of(found)) == element and not types.shape_of(found)
        )

    return accepts


def anything(name: str) -> OperandConstraint:
    """Returns the kind of a value of any type but a control token."""
    return OperandConstraint(name, "a value, not a control token", lambda found: not isinstance(found, ControlType))


def tensor(name: str) -> OperandConstraint:
    """Returns the kind of a tensor of any element type and shape."""
    return OperandConstraint(name, "a tensor", _is_tensor)


def scalar_bool(name: str) -> OperandConstraint:
    """Returns the kind of a boolean scalar, whose rank may be unknown; references are dereferenced."""
    return OperandConstraint(name, "tensor<i1> or tensor<*xi1>", _is_scalar_of(types.I1))


def scalar_int32(name: str) -> OperandConstraint:
    """Returns the kind of an `i32` scalar, whose rank may be unknown."""
    return OperandConstraint(name, "tensor<i32> or tensor<*xi32>", _is_scalar_of(types.I32))


def token(name: str) -> OperandConstraint:
    """Returns the kind of a NextIteration's token."""
    return OperandConstraint(name, "!tf_executor.token", lambda found: isinstance(found, ExecutorTokenType))


Short = Callable[[Attribute], tuple[list[Attribute], list[Attribute]]]
"""Returns the types of the data operands, and those of all results, that the short form's type implies."""


class ExecutorSignature(NamedTuple):
    """The operands and results of an op."""

    operands: tuple[OperandConstraint, ...] = ()  # The data operands.
    results: tuple[OperandConstraint, ...] = ()  # The data results.
    many_operands: bool = False  # Whether there may be one or more of the last data operand.
    many_results: bool = False  # Whether there may be any number of the last data result.
    optional_operands: bool = False  # Whether there may be no data operand.
    controls: bool = True  # Whether control operands may follow.
    control: bool = True  # Whether a control result follows.

    def check(self, op: Operation) -> None:
        """Checks an op's operands and results.

        Raises:
            VerifyError: One is missing, too many, of a wrong type, or out of order.
        """
        data = list(op.operands)
        if self.controls:
            while data and is_control(data[-1]):
                data.pop()
        for index, value in enumerate(data):
            if is_control(value) and self.controls:
                raise VerifyError(
                    f"data operands must come before control operands; operand {index} is a control token, "
                    f"operand {len(data) - 1} is {data[-1].type}"
                )
        _check(
            "operand",
            self.operands,
            self.many_operands,
            data,
            at_least=0 if self.optional_operands else len(self.operands),
        )
        results: Sequence[Value] = op.results
        if self.control:
            if not results or not is_control(results[-1]):
                found = results[-1].type if results else "no result"
                raise VerifyError(f"the last result must be !tf_executor.control, found {found}")
            results = results[:-1]
        at_least = len(self.results) - self.many_results
        _check("result", self.results, self.many_results, results, at_least=at_least)


def _check(what: str, kinds: Sequence[OperandConstraint], many: bool, values: Sequence[Value], at_least: int) -> None:
    if len(values) < at_least or (len(values) > at_least and not many):
        names = ", ".join(kind.name for kind in kinds) or "none"
        count = f"at least {at_least}" if many else str(at_least)
        raise VerifyError(f"expected {count} data {what}s ({names}), found {len(values)}")
    for index, value in enumerate(values):
        kind = kinds[min(index, len(kinds) - 1)]
        if not kind.accepts(value.type):
            raise VerifyError(f"{what} {index} ({kind.name}) must be {kind.expected}, found {value.type}")


def compatible(one: Attribute, other: Attribute) -> bool:
    """Returns whether one value may have both of two types.

    The element types must be the same except for references and for handles' subtypes, and no known dimensions may
    contradict.
    """
    if one is other or one == other:
        return True
    if not _is_tensor(one) or not _is_tensor(other):
        return False
    if types.dereferenced(types.element_of(one)) != types.dereferenced(types.element_of(other)):
        return False
    a, b = types.shape_of(one), types.shape_of(other)
    if a is None or b is None:
        return True
    return len(a) == len(b) and all(x == y or x < 0 or y < 0 for x, y in zip(a, b, strict=True))


def print_operands(printer: Printer, operands: Sequence[Value]) -> None:
    """Prints ` %a, %b`, or nothing."""
    if operands:
        printer.write(" ")
        printer.operands(operands)


def print_end(printer: Printer, op: Operation, short: Attribute | None) -> None:
    """Prints ` : type {attributes}`, with ` : (types) -> (types)` where there is no short form."""
    printer.write(" : ")
    if short is not None:
        printer.attribute(short)
    else:
        printer.functional_type(op)
    print_attributes(printer, op)


def print_attributes(printer: Printer, op: Operation) -> None:
    """Prints ` {name = value}` of an op's attributes; its properties are in the text already."""
    printer.optional_attr_dict(op.properties | op.attributes, op.PROPERTIES)


def parse_controls(parser: Parser) -> list[UnresolvedOperand]:
    """Parses `(%a, %b)`, or nothing."""
    found = parser.parse_optional_comma_separated_list(
        parser.Delimiter.PAREN, parser.parse_unresolved_operand, " in the list of control operands"
    )
    return found or []


def known_type(parser: Parser, operand: UnresolvedOperand, default: Attribute) -> Attribute:
    """Returns the type that an operand was defined with, for short forms that have the results' type only."""
    return parser.defined_type(operand) or default


def parse_types(
    parser: Parser, operands: Sequence[UnresolvedOperand], short: Short
) -> tuple[list[Value], list[Attribute]]:
    """Parses `: type` or `: (types) -> (types)`; returns the operands and the results' types."""
    parser.parse_punctuation(":", " before the types")
    position = parser.pos
    function = parser.parse_optional_function_type()
    if function is not None:
        return list(parser.resolve_operands(operands, function.inputs, position)), list(function.results)
    data, results = short(parser.parse_type())
    return _resolve(parser, operands, data, position), results


def parse_attributes(parser: Parser, properties: Sequence[str] = ()) -> dict[str, Attribute]:
    """Parses an optional `{name = value}` without properties, which are in the text already."""
    position = parser.pos
    attributes = parser.parse_optional_attr_dict()
    for name in properties:
        if name in attributes:
            parser.raise_error(f"expected {name!r} once, found it in the attributes too", position)
    return attributes


def parse_body(parser: Parser, terminator: type[Operation], others: Sequence[type[Operation]]) -> Region:
    """Parses a region; a missing terminator is added.

    Args:
        parser: The parser.
        terminator: The terminator's class.
        others: Other terminators, which the verifier reports.
    """
    region = parser.parse_region()
    if not region.blocks:
        region.add_block(Block())
    block = region.first_block
    if block is not None and not isinstance(block.last_op, (terminator, *others)):
        block.add_op(terminator.create())
    return region


def _resolve(
    parser: Parser, operands: Sequence[UnresolvedOperand], data: Sequence[Attribute], position: int
) -> list[Value]:
    """Returns the values of operands of which the first have the types `data` and all others are control tokens."""
    if len(operands) < len(data):
        parser.raise_error(f"expected {len(data)} data operands before the type, found {len(operands)}", position)
    kinds = [*data, *[CONTROL] * (len(operands) - len(data))]
    return list(parser.resolve_operands(operands, kinds, position))


Attributes = Mapping[str, Attribute]

NOTHING: Attributes = MappingProxyType({})
"""No attributes."""

SCALAR_BOOL = types.tensor(types.I1, ())
SCALAR_INT32 = types.tensor(types.I32, ())


class ExecutorOp(Operation):
    """Base of the dialect's ops."""

    __slots__ = ()

    HAS_ASSEMBLY = True
    signature: ClassVar[ExecutorSignature]  # Its operands and results.
    inside: ClassVar[str] = "tf_executor.graph"  # The op that must be its parent; empty if any op may be.

    @classmethod
    def assemble(
        cls,
        data: Sequence[Value],
        results: Sequence[Attribute],
        controls: Sequence[Value],
        attributes: Attributes,
        location: Location,
        properties: Attributes = NOTHING,
    ) -> Self:
        """Returns an op with data operands, types of data results and controls."""
        kinds = (*results, CONTROL) if cls.signature.control else results
        return cls.create(
            operands=(*data, *controls),
            result_types=kinds,
            properties=properties,
            attributes=attributes,
            location=location,
        )

    @classmethod
    def parse_end(
        cls, parser: Parser, operands: Sequence[UnresolvedOperand], short: Short, properties: Attributes = NOTHING
    ) -> Self:
        """Parses the types and attributes after the operands; returns the op.

        Args:
            parser: The parser.
            operands: The preceding operands.
            short: The meaning of the short form.
            properties: The properties that were parsed.
        """
        values, kinds = parse_types(parser, operands, short)
        attributes = parse_attributes(parser, cls.PROPERTIES)
        return cls.create(operands=values, result_types=kinds, properties=properties, attributes=attributes)

    @property
    def data_operands(self) -> list[Value]:
        """The operands that carry values."""
        return [operand for operand in self.operands if not is_control(operand)]

    @property
    def control_operands(self) -> list[Value]:
        """The operands that order the op after others."""
        return [operand for operand in self.operands if is_control(operand)]

    @property
    def control(self) -> OpResult:
        """The control result; only of ops that have one."""
        return self.results[-1]

    def verify_(self) -> None:
        parent = self.parent_op()
        if self.inside and parent is not None and parent.name != self.inside:
            raise VerifyError(f"{self.name} must be directly in a {self.inside}, found it in a {parent.name}")
        self.signature.check(self)


class ForwardingOp(ExecutorOp):
    """Base of the ops whose results are their first operand; the short form only has its type."""

    __slots__ = ()

    @property
    def data(self) -> Value:
        """The forwarded operand."""
        return self.operands[0]

    def verify_(self) -> None:
        super().verify_()
        for result in self.results:
            if not is_control(result) and not compatible(self.data.type, result.type):
                raise VerifyError(f"a result forwards the data operand: {self.data.type} can't be {result.type}")

    def short_type(self) -> Attribute | None:
        """Returns the type of the short form, `None` if the types require the long one."""
        kind = self.data.type
        return kind if all(result.type == kind or is_control(result) for result in self.results) else None

    def print(self, printer: Printer) -> None:
        """Prints ` %data, %controls : types {...}`."""
        print_operands(printer, self.operands)
        print_end(printer, self, self.short_type())


class UnaryOp(ForwardingOp):
    """Base of the ops with one data operand and one data result."""

    __slots__ = ()

    @classmethod
    def build(
        cls,
        data: Value,
        controls: Sequence[Value] = (),
        attributes: Attributes = NOTHING,
        location: Location = UNKNOWN_LOC,
    ) -> Self:
        """Returns an op whose output has the data's type."""
        return cls.assemble((data,), (data.type,), controls, attributes, location)

    @property
    def output(self) -> OpResult:
        """The data operand, if alive."""
        return self.results[0]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parser.parse_operands()

        def short(kind: Attribute) -> tuple[list[Attribute], list[Attribute]]:
            return [known_type(parser, operands[0], kind)] if operands else [kind], [kind, CONTROL]

        return cls.parse_end(parser, operands, short)
