"""The ops of MLIR's `arith` dialect: constants and arithmetic of two operands, and what it does with integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import IntegerAttr
from tfconvert.schema.ir.dialect import Dialect
from tfconvert.schema.ir.dim import COMPARISONS
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

if TYPE_CHECKING:
    from tfconvert.schema.ir.parser import Parser
    from tfconvert.schema.ir.printer import Printer


class ConstantOp(Operation):
    """`arith.constant`: a constant."""

    __slots__ = ()

    NAME: ClassVar[str] = "arith.constant"
    PROPERTIES: ClassVar[tuple[str, ...]] = ("value",)
    HAS_ASSEMBLY: ClassVar[bool] = True

    @classmethod
    def infer_result_types(
        cls, name: str, operands: Sequence[Value], properties: Mapping[str, Attribute]
    ) -> Sequence[Attribute] | None:
        kind = _type_of(properties["value"]) if "value" in properties else None
        return None if kind is None else (kind,)

    def verify_(self) -> None:
        value = self.properties.get("value")
        if len(self.results) != 1 or value is None or _type_of(value) is not self.results[0].type:
            raise VerifyError(f"{self.name} needs the property 'value', of the type of its one result")

    def print(self, printer: Printer) -> None:
        """Prints ` {...} value`."""
        printer.optional_attr_dict(self.attributes)
        printer.write(" ")
        printer.attribute(self.properties["value"])

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        """Parses the form that `print` prints."""
        attributes = parser.parse_optional_attr_dict()
        position = parser.pos
        value = parser.parse_attribute()
        kind = _type_of(value)
        if kind is None:
            parser.raise_error("expected a value that has a type", position)
        return cls.create(properties={"value": value}, attributes=attributes, result_types=(kind,))


def _type_of(value: Attribute) -> Attribute | None:
    kind = getattr(value, "type", None)
    return kind if isinstance(kind, Attribute) else None


class BinaryOp(Operation):
    """`arith.addi` and similar ops: two operands and a result of one type."""

    __slots__ = ()

    HAS_ASSEMBLY: ClassVar[bool] = True

    @classmethod
    def infer_result_types(
        cls, name: str, operands: Sequence[Value], properties: Mapping[str, Attribute]
    ) -> Sequence[Attribute] | None:
        return (operands[0].type,) if operands else None

    def verify_(self) -> None:
        if len(self.operands) != 2 or len(self.results) != 1 or len({*self.operand_types, *self.result_types}) != 1:
            raise VerifyError(f"{self.name} needs two operands and a result of one type")

    def print(self, printer: Printer) -> None:
        """Prints ` %a, %b {...} : type`."""
        printer.write(" ")
        printer.operands(self.operands)
        printer.optional_attr_dict(self.attributes)
        printer.write(" : ")
        printer.attribute(self.results[0].type)

    @classmethod
    def parse(cls, parser: Parser) -> BinaryOp:
        """Parses the form that `print` prints."""
        name = parser.op_name
        one = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        other = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        kind = parser.parse_type()
        operands = parser.resolve_operands([one, other], [kind, kind], position)
        return cls(name, operands, (kind,), attributes=attributes)


_BINARY = frozenset(
    {
        f"arith.{name}"
        for name in (
            "addi",
            "subi",
            "muli",
            "divsi",
            "divui",
            "remsi",
            "remui",
            "floordivsi",
            "ceildivsi",
            "minsi",
            "maxsi",
            "minui",
            "maxui",
            "andi",
            "ori",
            "xori",
            "shli",
            "shrsi",
            "shrui",
            "addf",
            "subf",
            "mulf",
            "divf",
            "remf",
            "minimumf",
            "maximumf",
            "minnumf",
            "maxnumf",
        )
    }
)


def _open_ops(name: str) -> type[Operation] | None:
    return BinaryOp if name in _BINARY else None


INTEGER_OPS: Mapping[str, str] = {
    "add": "arith.addi",
    "and": "arith.andi",
    "ceil_divide": "arith.ceildivsi",
    "divide": "arith.divsi",
    "floor_divide": "arith.floordivsi",
    "maximum": "arith.maxsi",
    "minimum": "arith.minsi",
    "multiply": "arith.muli",
    "or": "arith.ori",
    "remainder": "arith.remsi",
    "select": "arith.select",
    "subtract": "arith.subi",
    "xor": "arith.xori",
    **dict.fromkeys(COMPARISONS, "arith.cmpi"),
}
"""The ops that are the operations of the algebra of sizes; those of comparisons have a predicate."""

_OPERATIONS: Mapping[str, str] = {op: name for name, op in INTEGER_OPS.items()}


def operation_of(op: Operation) -> str | None:
    """Returns the operation of the algebra of sizes that an op on integers is, or `None`."""
    if op.name != "arith.cmpi":
        return _OPERATIONS.get(op.name)
    predicate = op.properties["predicate"]
    value = predicate.value if isinstance(predicate, IntegerAttr) else len(COMPARISONS)
    return COMPARISONS[value] if 0 <= value < len(COMPARISONS) else None


def width(kind: Attribute) -> int:
    """Returns the bits of an integer type; 64 of `index`."""
    return int(getattr(kind, "width", 64))


def wrapped(number: int, kind: Attribute) -> int:
    """Returns a number as an integer type holds it."""
    bits = width(kind)
    if bits == 1:
        return number & 1
    return (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


ARITH = Dialect("arith", (ConstantOp,), open_ops=_open_ops)
