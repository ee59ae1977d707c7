"""Parses numbers into attributes, checked against the range of their type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfconvert.schema.ir.attributes import FALSE, TRUE, DenseArrayAttr, FloatAttr, IntegerAttr
from tfconvert.schema.ir.float_text import float_of_bits
from tfconvert.schema.ir.lexer import INTEGER
from tfconvert.schema.ir.types import F64, I1, I64, FloatType, IndexType, IntegerType, Signedness

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute import Attribute
    from tfconvert.schema.ir.attribute_parser import AttributeParser

_INDEX_WIDTH = 64


def parse_number_attribute(parser: AttributeParser) -> IntegerAttr | FloatAttr:
    """Parses `1`, `-1.5 : f32` or `0x7FC00000 : f32`; without a type, integers are `i64` and floats `f64`."""
    position = parser.pos
    is_bits = _is_bits(parser)
    value = parser.parse_number()
    if parser.parse_optional_punctuation(":") is None:
        if isinstance(value, float):
            return FloatAttr.get(value, F64)
        return IntegerAttr.get(_integer(parser, value, I64, position), I64)
    type_position = parser.pos
    of = parser.parse_type()
    if isinstance(of, FloatType):
        return FloatAttr.get(_float(parser, value, of, is_bits, position), of)
    if not isinstance(of, IntegerType | IndexType):
        parser.raise_error("expected a type of integers or floats after a number", type_position)
    if isinstance(value, float):
        parser.raise_error(f"expected an integer before the type {of}", position)
    return _integer_attribute(parser, value, of, position)


def parse_dense_array(parser: AttributeParser) -> Attribute:
    """Parses `<i64: 1, 2>`, which follows `array`."""
    with parser.in_angle_brackets():
        position = parser.pos
        element_type = parser.parse_type()
        if not isinstance(element_type, IntegerType | FloatType):
            parser.raise_error("expected a type of integers or floats in an array", position)
        values: list[int | float] = []
        if parser.parse_optional_punctuation(":") is not None:
            values = parser.parse_comma_separated_list(
                parser.Delimiter.NONE, lambda: _element(parser, element_type), " in an array"
            )
    return DenseArrayAttr.get(element_type, values)


def _element(parser: AttributeParser, element_type: IntegerType | FloatType) -> int | float:
    position = parser.pos
    if isinstance(element_type, FloatType):
        is_bits = _is_bits(parser)
        value = _float(parser, parser.parse_number(), element_type, is_bits, position)
        return FloatAttr.get(value, element_type).value
    number = parser.parse_integer(allow_boolean=element_type is I1)
    return _integer_attribute(parser, number, element_type, position).value


def _is_bits(parser: AttributeParser) -> bool:
    """Returns whether the next token is a number by its bits."""
    return parser.token[0] == INTEGER and parser.text.startswith("0x", parser.pos)


def _float(parser: AttributeParser, value: int | float, type: FloatType, is_bits: bool, position: int) -> float:
    try:
        return float_of_bits(int(value), type) if is_bits else float(value)
    except OverflowError:
        parser.raise_error(f"expected a number that fits into {type}", position)
    except ValueError:
        parser.raise_error(f"the bits of a number of type {type} are not supported", position)


def _integer_attribute(
    parser: AttributeParser, value: int, type: IntegerType | IndexType, position: int
) -> IntegerAttr:
    if type is I1:
        return TRUE if _integer(parser, value, type, position) else FALSE
    return IntegerAttr.get(_integer(parser, value, type, position), type)


def _integer(parser: AttributeParser, value: int, type: IntegerType | IndexType, position: int) -> int:
    """Returns the value of a number in a type; signless ones may be written either way."""
    width = type.width if isinstance(type, IntegerType) else _INDEX_WIDTH
    signedness = type.signedness if isinstance(type, IntegerType) else Signedness.SIGNLESS
    # All bits but the sign's.
    bits = (value if value >= 0 else ~value).bit_length()
    fits = bits < width if signedness is not Signedness.UNSIGNED else value >= 0 and bits <= width
    if fits or value == 0:
        return value
    if signedness is not Signedness.SIGNLESS or value < 0 or bits > width:
        parser.raise_error(f"expected an integer that fits into {type}", position)
    return value - (1 << width)
