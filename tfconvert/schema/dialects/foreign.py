"""Ops of other dialects in texts of TensorFlow and LiteRT: `arith`, and those that `dialects-to-tf` replaces.

Constants of StableHLO are read in all three dialects that it has had; the types of `vhlo` become those of tensors.
`quantfork.stats` states the observed range of a tensor, `quantfork.qcast` and `quantfork.dcast` convert to quantized
numbers and back. `tensor.cast` changes how much of a shape is static.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.tf_executor.base import compatible
from tfconvert.schema.ir.attribute import Attribute, Type
from tfconvert.schema.ir.attribute_parser import PLAIN_TYPES
from tfconvert.schema.ir.dialect import Dialect
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import TensorType, UnrankedTensorType
from tfconvert.schema.ir.values import Value

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute_parser import AttributeParser
    from tfconvert.schema.ir.dialect import Syntax
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
        printer.optional_attr_dict(self.attributes)
        printer.write(" ")
        printer.attribute(self.properties["value"])

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
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


ARITH = Dialect("arith", (ConstantOp,), open_ops=_open_ops)


class StableHLOConstantOp(ConstantOp):
    """`stablehlo.constant`: a constant."""

    __slots__ = ()

    NAME: ClassVar[str] = "stablehlo.constant"


class MHLOConstantOp(ConstantOp):
    """`mhlo.constant`: a constant."""

    __slots__ = ()

    NAME: ClassVar[str] = "mhlo.constant"


class VHLOConstantOp(ConstantOp):
    """`vhlo.constant_v1`: a constant."""

    __slots__ = ()

    NAME: ClassVar[str] = "vhlo.constant_v1"


class StatsOp(Operation):
    """`quantfork.stats`: the operand, with its observed range.

    `layerStats` holds the minimum and maximum of the whole tensor, `axisStats` those of each slice of `axis`.
    """

    __slots__ = ()

    NAME: ClassVar[str] = "quantfork.stats"
    PROPERTIES: ClassVar[tuple[str, ...]] = ("layerStats", "axisStats", "axis")

    def verify_(self) -> None:
        if len(self.operands) != 1 or self.operand_types != self.result_types:
            raise VerifyError(f"{self.name} has one operand and one result, of one type")
        stats = self.properties.get("layerStats")
        if not tensor_data.is_constant(stats) or stats.type is not types.tensor(types.F32, (2,)):
            raise VerifyError(f"{self.name} needs the property 'layerStats', a tensor<2xf32>")


class QuantCastOp(Operation):
    """`quantfork.qcast` and `quantfork.dcast`: the operand in another type that represents the same numbers."""

    __slots__ = ()

    def verify_(self) -> None:
        if len(self.operands) != 1 or len(self.results) != 1:
            raise VerifyError(f"{self.name} has one operand and one result")
        if not _shapes_agree(self.operands[0].type, self.results[0].type):
            raise VerifyError(f"the operand and the result of {self.name} must have the same shape")


class TensorCastOp(Operation):
    """`tensor.cast`: the operand, with a type that states more or less of its shape."""

    __slots__ = ()

    NAME: ClassVar[str] = "tensor.cast"
    HAS_ASSEMBLY: ClassVar[bool] = True

    def verify_(self) -> None:
        if len(self.operands) != 1 or len(self.results) != 1:
            raise VerifyError("tensor.cast has one operand and one result")
        source, result = self.operands[0].type, self.results[0].type
        if types.element_of(source) is not types.element_of(result) or not _shapes_agree(source, result):
            raise VerifyError(f"tensor.cast can't make {result} of {source}")

    def print(self, printer: Printer) -> None:
        """Prints ` %a {...} : type to type`."""
        printer.write(" ")
        printer.operands(self.operands)
        printer.optional_attr_dict(self.attributes)
        printer.write(" : ")
        printer.types(self.operands)
        printer.write(" to ")
        printer.types(self.results)

    @classmethod
    def parse(cls, parser: Parser) -> TensorCastOp:
        operand = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":", " before the type")
        value = parser.resolve_operand(operand, parser.parse_type())
        parser.parse_keyword("to", " before the result's type")
        return cls.create(operands=(value,), result_types=(parser.parse_type(),), attributes=attributes)


def _shapes_agree(one: Attribute, other: Attribute) -> bool:
    """Returns whether two types are tensors of shapes that don't contradict each other."""
    if not all(isinstance(each, TensorType | UnrankedTensorType) for each in (one, other)):
        return False
    return compatible(*(types.tensor(types.F32, types.shape_of(each)) for each in (one, other)))


def _tensor_type(parser: AttributeParser) -> Type:
    """Parses what follows `!vhlo.tensor_v1`: `<2x!vhlo.f32_v1>`."""
    with parser.in_angle_brackets():
        shape = parser.parse_leading_dimensions()
        found = types.tensor(parser.parse_type(), shape)
    assert isinstance(found, Type)
    return found


def _tensor_value(parser: AttributeParser) -> Attribute:
    """Parses what follows `#vhlo.tensor_v1`: `<dense<1> : tensor<2xi32>>`."""
    with parser.in_angle_brackets():
        return parser.parse_attribute()


def _plain(kind: Attribute) -> Syntax:
    return lambda parser: kind


_VHLO_TYPES = {"bool_v1": types.I1, **{f"{name}_v1": kind for name, kind in PLAIN_TYPES.items()}}

_CASTS = frozenset({"quantfork.qcast", "quantfork.dcast"})

DIALECTS = (
    Dialect("mhlo", (MHLOConstantOp,)),
    Dialect(
        "vhlo",
        (VHLOConstantOp,),
        attributes={"tensor_v1": _tensor_value},
        types={"tensor_v1": _tensor_type, **{name: _plain(kind) for name, kind in _VHLO_TYPES.items()}},
    ),
    Dialect("quantfork", (StatsOp,), open_ops=lambda name: QuantCastOp if name in _CASTS else None),
    Dialect("tensor", (TensorCastOp,)),
)
"""The dialects of these ops, as far as they occur."""
