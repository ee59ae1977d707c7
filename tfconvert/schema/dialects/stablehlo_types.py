"""Types of StableHLO, and attributes that are named values: `#stablehlo.channel_handle<handle = 1, type = 0>`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tfconvert.schema.ir.attribute import Attribute, AttributePrinter, Type
from tfconvert.schema.ir.attributes import float_text
from tfconvert.schema.ir.types import DYNAMIC, F64

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute_parser import AttributeParser
    from tfconvert.schema.ir.dialect import Syntax


class TokenType(Type):
    """`!stablehlo.token`: orders ops with side effects."""

    __slots__ = ()

    NAME = "stablehlo.token"


class FutureType(Type):
    """`!stablehlo.future<tensor<2xf32>>`: the results of an op that has only been started."""

    __slots__ = ("types",)

    NAME = "stablehlo.future"

    types: tuple[Attribute, ...]

    @classmethod
    def get(cls, types: Sequence[Attribute]) -> FutureType:
        return cls.intern(tuple(types))

    def print_parameters(self, printer: AttributePrinter) -> None:
        printer.write("<")
        printer.attributes(self.types)
        printer.write(">")

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> FutureType:
        return cls.get(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_type))


class BoundsAttr(Attribute):
    """`#stablehlo.bounds<?, 4>`: the maximum of each dynamic size, as the encoding of a tensor type."""

    __slots__ = ("bounds",)

    NAME = "stablehlo.bounds"

    bounds: tuple[int, ...]

    @classmethod
    def get(cls, bounds: Sequence[int]) -> BoundsAttr:
        """Returns the attribute of maximum sizes, `DYNAMIC` for sizes without one."""
        return cls.intern(tuple(bounds))

    def print_parameters(self, printer: AttributePrinter) -> None:
        printer.write(f"<{', '.join(['?' if bound == DYNAMIC else str(bound) for bound in self.bounds])}>")

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> BoundsAttr:
        def parse_bound() -> int:
            if parser.parse_optional_punctuation("?") is not None:
                return DYNAMIC
            return parser.parse_integer(allow_boolean=False, allow_negative=False)

        return cls.get(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_bound))


Entry = bool | int | float | str | Attribute | tuple["Entry", ...]
"""A value in a `StructAttr`; a string is written as it is."""


class StructAttr(Attribute):
    """`#stablehlo.channel_handle<handle = 1, type = 0>`: named values, in the order of `STRUCTS`."""

    __slots__ = ("entries", "kind")

    kind: str
    entries: tuple[tuple[str, Entry], ...]

    @classmethod
    def get(cls, kind: str, entries: Mapping[str, Entry]) -> StructAttr:
        """Returns the attribute of a kind, a key of `STRUCTS`."""
        items = tuple(entries.items())
        return cls.intern(kind, items, key=(kind, *[(name, _key(value)) for name, value in items]))

    def __reduce__(self) -> tuple[object, tuple[str, dict[str, Entry]]]:  # type: ignore[override]
        return StructAttr.get, (self.kind, dict(self.entries))

    def of(self, name: str) -> Entry | None:
        """Returns a value, `None` if it is absent."""
        return dict(self.entries).get(name)

    def print(self, printer: AttributePrinter) -> None:
        printer.write(f"#stablehlo.{self.kind}<")
        for index, (name, value) in enumerate(self.entries):
            printer.write(f"{', ' if index else ''}{name} = ")
            _print_entry(printer, value)
        printer.write(">")


def _key(value: Entry) -> Hashable:
    """Returns a key that tells 1 from `True` and 0.0 from -0.0."""
    if isinstance(value, tuple):
        return tuple([_key(each) for each in value])
    return value if isinstance(value, Attribute) else repr(value)


def _print_entry(printer: AttributePrinter, value: Entry) -> None:
    if isinstance(value, Attribute):
        printer.attribute(value)
    elif isinstance(value, tuple):
        printer.write("[")
        for index, each in enumerate(value):
            printer.write(", " if index else "")
            _print_entry(printer, each)
        printer.write("]")
    elif isinstance(value, bool):
        printer.write("true" if value else "false")
    else:
        printer.write(float_text(value, F64) if isinstance(value, float) else str(value))


STRUCTS: Mapping[str, tuple[str, ...]] = {
    "axis_ref": ("name", "sub_axis_info"),
    "channel_handle": ("handle", "type"),
    "dot_algorithm": (
        "lhs_precision_type",
        "rhs_precision_type",
        "accumulation_type",
        "lhs_component_count",
        "rhs_component_count",
        "num_primitive_operations",
        "allow_imprecise_accumulation",
    ),
    "output_operand_alias": ("output_tuple_indices", "operand_index", "operand_tuple_indices"),
    "replica_group_mesh_axes": ("mesh", "axes"),
    "result_accuracy": ("atol", "rtol", "ulps", "mode"),
}
"""The names of values by the kind of `StructAttr`."""


def _struct(kind: str, parser: AttributeParser) -> StructAttr:
    entries: dict[str, Entry] = {}
    with parser.in_angle_brackets():
        while parser.token[0] != ">":
            name = parser.parse_identifier(" of a value")
            if name not in STRUCTS[kind] or name in entries:
                parser.raise_error(f"'{name}' is not one of the values of #stablehlo.{kind}, or occurs twice")
            parser.parse_punctuation("=", f" after '{name}'")
            entries[name] = _entry(parser)
            if parser.parse_optional_punctuation(",") is None:
                break
    return StructAttr.get(kind, {name: entries[name] for name in STRUCTS[kind] if name in entries})


def _entry(parser: AttributeParser) -> Entry:
    if parser.token[0] == "[":
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _entry(parser)))
    if parser.parse_optional_punctuation("(") is not None:
        first = parser.parse_integer()
        parser.parse_punctuation(")")
        return f"({first}){parser.parse_integer()}"
    truth = parser.parse_optional_boolean()
    if truth is not None:
        return truth
    number = parser.parse_optional_number()
    return parser.parse_attribute() if number is None else number


ATTRIBUTES: Mapping[str, Syntax] = {
    "bounds": BoundsAttr.parse_parameters,
    **{kind: partial(_struct, kind) for kind in STRUCTS},
}
"""The parsers of the attributes' parameters."""

TYPES: Mapping[str, Syntax] = {"token": lambda parser: TokenType.intern(), "future": FutureType.parse_parameters}
"""The parsers of the types' parameters."""
