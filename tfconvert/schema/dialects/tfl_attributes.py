"""The attributes of the `tfl` dialect that only texts have: each states what our dialect has in another form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tfl_file
from tfconvert.schema.ir.attribute import Attribute, AttributePrinter
from tfconvert.schema.ir.attributes import DictionaryAttr

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute_parser import AttributeParser


class MirrorPadAttr(Attribute):
    """`#tfl<mirror_pad_attr REFLECT>`."""

    __slots__ = ("data",)

    NAME = "tfl.mirror_pad_attr"

    data: str

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> MirrorPadAttr:
        """Parses the enumerator."""
        return cls.intern(parser.parse_identifier())

    def print(self, printer: AttributePrinter) -> None:
        printer.write(f"#tfl<mirror_pad_attr {self.data}>")


class LSTMKernelTypeAttr(Attribute):
    """`#tfl<lstm_kernel_type_attr FULL>`."""

    __slots__ = ("data",)

    NAME = "tfl.lstm_kernel_type_attr"

    data: str

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> LSTMKernelTypeAttr:
        """Parses the enumerator."""
        return cls.intern(parser.parse_identifier())

    def print(self, printer: AttributePrinter) -> None:
        printer.write(f"#tfl<lstm_kernel_type_attr {self.data}>")


Fields = Mapping[str, Callable[["AttributeParser"], Any]]
"""The parsers of the values of `<name = value, ...>`, by name."""


def _fields(parser: AttributeParser, known: Fields) -> dict[str, Any]:
    """Parses `<name = value, ...>`; each of the names has a value."""
    found: dict[str, Any] = {}
    with parser.in_angle_brackets():
        while True:
            position = parser.pos
            name = parser.parse_identifier(" of a parameter")
            if name not in known or name in found:
                parser.raise_error(f"expected one of {', '.join(known)}, each once", position)
            parser.parse_punctuation("=", f" after '{name}'")
            found[name] = known[name](parser)
            if parser.parse_optional_punctuation(",") is None:
                break
        if missing := [name for name in known if name not in found]:
            parser.raise_error(f"expected a value of '{missing[0]}'")
    return found


def _text(parser: AttributeParser) -> str:
    return parser.parse_str_literal()


def _count(parser: AttributeParser) -> int:
    return parser.parse_integer(allow_boolean=False, allow_negative=False)


def _numbers(parser: AttributeParser) -> list[int]:
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _count(parser))


_BUFFER: Fields = {"group_name": _text, "offset": _count, "length": _count, "packing": _text}


def parse_external_buffer(parser: AttributeParser) -> DictionaryAttr:
    """Parses what follows `#tfl.external_buffer`: `<group_name = "a", offset = 0, length = 1, packing = "b">`."""
    return DictionaryAttr.get({name: attrs.of(value) for name, value in _fields(parser, _BUFFER).items()})


# The tables of indices, narrow ones first, and the number that theirs are less than.
_INDEX_VECTORS = ((1 << 8, "Uint8Vector"), (1 << 16, "Uint16Vector"), (1 << 31, "Int32Vector"))


def _index_vector(values: list[int]) -> tuple[str, dict[str, Any]] | None:
    greatest = max(values, default=-1)
    table = next((name for beyond, name in _INDEX_VECTORS if greatest < beyond), "Int32Vector")
    return (table, {"values": values}) if values else None


def _format(parser: AttributeParser) -> str:
    return parser.parse_identifier(" of a format")


_DIMENSION: Fields = {"format": _format, "dense_size": _count, "segments": _numbers, "indices": _numbers}


def _dimension(parser: AttributeParser) -> dict[str, Any]:
    fields = _fields(parser, _DIMENSION)
    vectors = {
        f"array_{name}": vector for name in ("segments", "indices") if (vector := _index_vector(fields.pop(name)))
    }
    return {**fields, **vectors}


def _dimensions(parser: AttributeParser) -> list[dict[str, Any]]:
    found = [_dimension(parser)]
    while parser.parse_optional_punctuation(",") is not None:
        found.append(_dimension(parser))
    return found


_SPARSITY: Fields = {"traversal_order": _numbers, "block_map": _numbers, "dim_metadata": _dimensions}


def parse_sparsity(parser: AttributeParser) -> DictionaryAttr:
    """Parses what follows `#tfl.sparsity_parameter`; returns the fields of the table `SparsityParameters`."""
    return tfl_file.to_dictionary("SparsityParameters", _fields(parser, _SPARSITY))
