"""The builtin attributes but for tensors' values: strings, numbers, arrays, dictionaries, symbols."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from tfconvert.schema.ir.attribute import Attribute, AttributePrinter
from tfconvert.schema.ir.float_text import float_text, round_to
from tfconvert.schema.ir.types import I1, FloatType, IndexType, IntegerType

BARE_IDENTIFIER = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)
"""A name that requires no quotes as a key of a dictionary."""

_BARE_SYMBOL = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)
_PLAIN = re.compile(r"[ !#-\[\]-~]*")


def quoted(data: str | bytes) -> str:
    """Returns a string literal; all but plain ASCII is escaped."""
    if isinstance(data, str):
        if _PLAIN.fullmatch(data):
            return f'"{data}"'
        data = data.encode("utf-8", "surrogateescape")
    pieces = [
        "\\\\" if byte == 0x5C else chr(byte) if 0x20 <= byte < 0x7F and byte != 0x22 else f"\\{byte:02X}"
        for byte in data
    ]
    return f'"{"".join(pieces)}"'


class UnitAttr(Attribute):
    """`unit`: true by being present."""

    __slots__ = ()

    def print(self, printer: AttributePrinter) -> None:
        printer.write("unit")


class StringAttr(Attribute):
    """`"text"`."""

    __slots__ = ("data",)

    data: str

    @classmethod
    def get(cls, data: str) -> StringAttr:
        """Returns the attribute of a text."""
        return cls.intern(data)

    def print(self, printer: AttributePrinter) -> None:
        printer.write(quoted(self.data))


class BytesAttr(Attribute):
    """A string that is not UTF-8; printed as one with escapes."""

    __slots__ = ("data",)

    data: bytes

    @classmethod
    def get(cls, data: bytes) -> BytesAttr:
        """Returns the attribute of some bytes."""
        return cls.intern(data)

    def print(self, printer: AttributePrinter) -> None:
        printer.write(quoted(self.data))


class IntegerAttr(Attribute):
    """`1 : i32`; `true` and `false` are those of `i1`."""

    __slots__ = ("type", "value")

    value: int
    type: IntegerType | IndexType

    @classmethod
    def get(cls, value: int, type: IntegerType | IndexType) -> IntegerAttr:
        """Returns the attribute of a number."""
        return cls.intern(int(value), type)

    def to_python(self) -> Any:
        """Returns the number, or whether it is `true`."""
        # Not in one expression, whose type would be `int`: what is compiled would make a number of it.
        if self.type is I1:
            return bool(self.value)
        return self.value

    def print(self, printer: AttributePrinter) -> None:
        if self.type is I1:
            printer.write("true" if self.value else "false")
        else:
            printer.write(f"{self.value} : ")
            printer.attribute(self.type)


class FloatAttr(Attribute):
    """`1.000000e+00 : f32`."""

    __slots__ = ("type", "value")

    value: float
    type: FloatType

    @classmethod
    def get(cls, value: float, type: FloatType) -> FloatAttr:
        """Returns the attribute of a number, rounded to what the type can hold."""
        rounded = round_to(float(value), type)
        # Bits distinguish 0.0 from -0.0, and match NaNs.
        return cls.intern(rounded, type, key=(struct.pack("<d", rounded), type))

    def print(self, printer: AttributePrinter) -> None:
        printer.write(f"{float_text(self.value, self.type)} : ")
        printer.attribute(self.type)


class ArrayAttr(Attribute):
    """`[1 : i64, "a"]`."""

    __slots__ = ("data",)

    data: tuple[Attribute, ...]

    @classmethod
    def get(cls, data: Iterable[Attribute]) -> ArrayAttr:
        """Returns the attribute of some attributes."""
        return cls.intern(tuple(data))

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def __bool__(self) -> bool:
        return True

    def print(self, printer: AttributePrinter) -> None:
        printer.write("[")
        printer.attributes(self.data)
        printer.write("]")


class DenseArrayAttr(Attribute):
    """`array<i64: 1, 2>`: numbers of one type."""

    __slots__ = ("element_type", "values")

    element_type: Attribute
    values: tuple[int | float, ...]

    @classmethod
    def get(cls, element_type: Attribute, values: Iterable[int | float]) -> DenseArrayAttr:
        """Returns the attribute of some numbers."""
        numbers = tuple(values)
        return cls.intern(element_type, numbers, key=(element_type, repr(numbers)))

    def print(self, printer: AttributePrinter) -> None:
        printer.write("array<")
        printer.attribute(self.element_type)
        if self.values:
            printer.write(": ")
        printer.write(", ".join([self._literal(value) for value in self.values]))
        printer.write(">")

    def _literal(self, value: int | float) -> str:
        if isinstance(self.element_type, FloatType):
            return float_text(value, self.element_type)
        return ("true" if value else "false") if self.element_type is I1 else str(value)


class DictionaryAttr(Attribute):
    """`{a = 1 : i64, b}`; sorted by name."""

    __slots__ = ("data",)

    data: Mapping[str, Attribute]

    @classmethod
    def get(cls, data: Mapping[str, Attribute]) -> DictionaryAttr:
        """Returns the attribute of names and values."""
        items = tuple(sorted(data.items(), key=_name))
        return cls.intern(MappingProxyType(dict(items)), key=items)

    def __reduce__(self) -> tuple[object, tuple[dict[str, Attribute]]]:  # type: ignore[override]
        return DictionaryAttr.get, (dict(self.data),)

    def print(self, printer: AttributePrinter) -> None:
        print_dictionary(printer, self.data)


def _name(item: tuple[str, Attribute]) -> str:
    return item[0]


def print_dictionary(printer: AttributePrinter, data: Mapping[str, Attribute]) -> None:
    """Prints `{a = 1 : i64, b}`; a unit attribute is its name alone."""
    separator = "{"
    for name, value in data.items():
        printer.write(separator)
        printer.write(name if BARE_IDENTIFIER.fullmatch(name) else quoted(name))
        if type(value) is not UnitAttr:
            printer.write(" = ")
            printer.attribute(value)
        separator = ", "
    printer.write("}" if data else "{}")


class SymbolRefAttr(Attribute):
    """`@root::@nested`: names a symbol.

    Attributes:
        root: The name in the nearest symbol table.
        nested: The names in the tables below it.
    """

    __slots__ = ("nested", "root")

    root: str
    nested: tuple[str, ...]

    @classmethod
    def get(cls, root: str, nested: Iterable[str] = ()) -> SymbolRefAttr:
        """Returns the attribute of names."""
        return cls.intern(root, tuple(nested))

    def print(self, printer: AttributePrinter) -> None:
        printer.write("::".join(map(symbol_text, (self.root, *self.nested))))


def symbol_text(name: str) -> str:
    """Returns `@name`, quoted where necessary."""
    return f"@{name}" if _BARE_SYMBOL.fullmatch(name) else f"@{quoted(name)}"


UNIT = UnitAttr.intern()
TRUE = IntegerAttr.get(1, I1)
FALSE = IntegerAttr.get(0, I1)
