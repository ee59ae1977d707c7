"""Parsers of the builtin types, by the keyword that they begin with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tfconvert.schema.ir.attribute import Type
from tfconvert.schema.ir.types import (
    DYNAMIC,
    FLOAT_WIDTHS,
    INDEX,
    NONE,
    ComplexType,
    FloatType,
    IntegerType,
    MemRefType,
    Signedness,
    TensorType,
    TupleType,
    UnrankedTensorType,
    VectorType,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfconvert.schema.ir.attribute_parser import AttributeParser

_MAX_WIDTH = (1 << 24) - 1
_MAX_DIMENSION = (1 << 63) - 1

_INTEGER_TYPE = re.compile(r"(s?i|ui)([0-9]+)")
_DIMENSION = re.compile(r"[ \t\r\n]*+(\?|[0-9]++)[ \t\r\n]*+")

PLAIN_TYPES: Mapping[str, Type] = {
    "index": INDEX,
    "none": NONE,
    **{keyword: FloatType.get(keyword) for keyword in FLOAT_WIDTHS},
    **{
        f"{signedness.value}{width}": IntegerType.get(width, signedness)
        for signedness in Signedness
        for width in (1, 2, 4, 8, 16, 32, 64)
    },
}
"""Types that are one word; integers of other widths are for `integer_type`."""


def integer_type(parser: AttributeParser, word: str) -> IntegerType | None:
    """Returns the integer type that a word, the parser's next token, names; `None` if it names none."""
    match = _INTEGER_TYPE.fullmatch(word)
    if match is None:
        return None
    signedness, digits = match.groups()
    if len(digits) > 8 or int(digits) > _MAX_WIDTH:
        parser.raise_error(f"expected an integer type of at most {_MAX_WIDTH} bits")
    return IntegerType.get(int(digits), Signedness(signedness))


def parse_dimensions(parser: AttributeParser) -> list[int]:
    """Parses `2x?x3`, `DYNAMIC` where unknown, or nothing."""
    dims: list[int] = []
    position = parser.pos
    while (match := _DIMENSION.match(parser.text, position)) is not None:
        dims.append(_dimension(parser, match))
        position = match.end()
        if not parser.text.startswith("x", position):
            break
        position += 1
    if dims and parser.text.startswith("x", position - 1):
        parser.raise_error("expected a dimension after 'x'", position)
    parser.resume_at(position)
    return dims


def parse_leading_dimensions(parser: AttributeParser) -> tuple[int, ...]:
    """Parses `2x?x`: the dimensions before an element type."""
    dims: list[int] = []
    position = parser.pos
    while (match := _DIMENSION.match(parser.text, position)) is not None:
        position = match.end()
        if not parser.text.startswith("x", position):
            parser.raise_error("expected 'x' and a type after the dimension", position)
        dims.append(_dimension(parser, match))
        position += 1
    parser.resume_at(position)
    return tuple(dims)


def _dimension(parser: AttributeParser, match: re.Match[str]) -> int:
    digits = match[1]
    if digits == "?":
        return DYNAMIC
    # As many digits as any number of 64 bits can have.
    if len(digits) > 19 or int(digits) > _MAX_DIMENSION:
        parser.raise_error("expected a dimension that fits into 64 bits", match.start(1))
    return int(digits)


def _tensor(parser: AttributeParser) -> Type:
    with parser.in_angle_brackets():
        if parser.parse_optional_punctuation("*") is not None:
            return UnrankedTensorType.get(_unranked_element(parser))
        shape = parse_leading_dimensions(parser)
        element = parser.parse_type()
        encoding = parser.parse_attribute() if parser.parse_optional_punctuation(",") is not None else None
    return TensorType.get(element, shape, encoding)


def _unranked_element(parser: AttributeParser) -> Type:
    """Parses `xf32`, which is one token to the lexer."""
    position = parser.pos
    if not parser.text.startswith("x", position):
        parser.raise_error("expected 'x' and a type after '*'")
    parser.resume_at(position + 1)
    return parser.parse_type()


def _vector(parser: AttributeParser) -> Type:
    with parser.in_angle_brackets():
        position = parser.pos
        if parser.token[0] == "[":
            parser.raise_error("a scalable vector is not supported")
        shape = parse_leading_dimensions(parser)
        if any(dim < 1 for dim in shape):
            parser.raise_error("expected dimensions of a vector that are known and positive", position)
        element = parser.parse_type()
    return VectorType.get(element, shape)


def _memref(parser: AttributeParser) -> Type:
    with parser.in_angle_brackets():
        if parser.token[0] == "*":
            parser.raise_error("a memref of unknown rank is not supported")
        shape = parse_leading_dimensions(parser)
        element = parser.parse_type()
        if parser.token[0] == ",":
            parser.raise_error("a memref with a layout or a memory space is not supported")
    return MemRefType.get(element, shape)


def _tuple(parser: AttributeParser) -> Type:
    return TupleType.get(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_type))


def _complex(parser: AttributeParser) -> Type:
    with parser.in_angle_brackets():
        position = parser.pos
        element = parser.parse_type()
        if not isinstance(element, IntegerType | FloatType):
            parser.raise_error("expected a type of integers or floats in a complex type", position)
    return ComplexType.get(element)


TYPES: Mapping[str, Callable[[AttributeParser], Type]] = {
    "tensor": _tensor,
    "vector": _vector,
    "memref": _memref,
    "tuple": _tuple,
    "complex": _complex,
}
"""The parsers of builtin types, by and after the keyword that they begin with."""
