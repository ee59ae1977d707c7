"""Ops of other dialects in texts of TensorFlow and LiteRT: `arith`, and those that `dialects-to-tf` replaces.

Constants of StableHLO are read in all three dialects that it has had; the types of `vhlo` become those of tensors.
`quantfork.stats` states the observed range of a tensor, `quantfork.qcast` and `quantfork.dcast` convert to quantized
numbers and back. `tensor.cast` changes how much of a shape is static.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.arith import ConstantOp
from tfconvert.schema.dialects.tf_executor.base import compatible
from tfconvert.schema.ir.attribute import Attribute, AttributePrinter, Type
from tfconvert.schema.ir.dialect import Dialect
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import PLAIN_TYPES, TensorType, UnrankedTensorType

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute_parser import AttributeParser
    from tfconvert.schema.ir.dialect import Syntax
    from tfconvert.schema.ir.parser import Parser
    from tfconvert.schema.ir.printer import Printer


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


class OpaqueAttr(Attribute):
    """`#sdy.sharding<...>`: an attribute of a dialect that nothing here reads, kept as its text."""

    __slots__ = ("name", "text")

    name: str  # The name with its dialect.
    text: str  # What follows the name: nothing, or angle brackets and their contents.

    @classmethod
    def get(cls, name: str, text: str) -> OpaqueAttr:
        return cls.intern(name, text)

    @classmethod
    def syntax(cls, name: str) -> Syntax:
        """Returns the parser of the attributes of a full name."""
        return lambda parser: cls.get(name, parser.parse_optional_balanced())

    def print(self, printer: AttributePrinter) -> None:
        printer.write(f"#{self.name}{self.text}")


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
