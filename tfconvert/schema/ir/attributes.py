"""The builtin attributes except for tensors' values: strings, numbers, arrays, dictionaries, symbols."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from tfconvert.schema.ir.attribute import Attribute, AttributePrinter
from tfconvert.schema.ir.types import I1, FloatType, IndexType, IntegerType

_FORMATS = {"f16": "<e", "f32": "<f", "f64": "<d"}
# Significant digits from which a number is read back with the same bits.
_DIGITS = {"f32": 9, "f64": 17}


def round_to(value: float, type: FloatType) -> float:
    """Returns the number of a type that is nearest to a value; the value itself for types that Python can't pack."""
    if type.keyword == "bf16":
        return _bits_to_float32(_bfloat16(value) << 16)
    form = _FORMATS.get(type.keyword)
    if form is None or form == "<d":
        return value
    try:
        return float(struct.unpack(form, struct.pack(form, value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def float_text(value: float, type: FloatType) -> str:
    """Returns the shortest of MLIR's forms of a number: few digits where they are exact, bits where none are."""
    if not math.isfinite(value):
        return f"0x{_bits(value, type):0{type.width // 4}X}"
    return decimal_text(value, _DIGITS.get(type.keyword), lambda number: round_to(number, type) == value)


def decimal_text(value: float, digits: int | None, is_value: Callable[[float], bool]) -> str:
    """Returns the shortest of MLIR's decimal forms of a finite number.

    Args:
        value: The number.
        digits: The significant digits from which any number of its type is read back; `None` if Python's will do.
        is_value: Whether a number, rounded to the type, is the value.
    """
    short = f"{value:.5e}"
    mantissa, _, exponent = short.partition("e")
    if is_value(float(short)):
        return f"{mantissa}0e{exponent}"
    text = f"{value:.{digits}g}" if digits else repr(value)
    mantissa, e, exponent = text.partition("e")
    # MLIR reads digits without a point as an integer.
    return mantissa + ("" if "." in mantissa else ".0") + e + exponent


def float_of_bits(bits: int, type: FloatType) -> float:
    """Returns the number that bits are.

    Raises:
        OverflowError: There are more bits than the type has.
        ValueError: The bits of the type are not known here.
    """
    if type.keyword == "bf16":
        if bits >> 16:
            raise OverflowError
        return _bits_to_float32(bits << 16)
    form = _FORMATS.get(type.keyword)
    if form is None:
        raise ValueError(type.keyword)
    return float(struct.unpack(form, bits.to_bytes(type.width // 8, "little"))[0])


def _bits(value: float, type: FloatType) -> int:
    if type.keyword == "bf16":
        return _bfloat16(value)
    form = _FORMATS.get(type.keyword, "<d")
    return int.from_bytes(struct.pack(form, value), "little")


def _bfloat16(value: float) -> int:
    """Returns the upper half of a 32-bit number's bits, rounded to even."""
    try:
        bits = int.from_bytes(struct.pack("<f", value), "little")
    except OverflowError:
        bits = 0xFF800000 if value < 0 else 0x7F800000
    if math.isnan(value):
        return (bits >> 16) | 0x40
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def _bits_to_float32(bits: int) -> float:
    return float(struct.unpack("<f", bits.to_bytes(4, "little"))[0])


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
        return cls.intern(data)

    def print(self, printer: AttributePrinter) -> None:
        printer.write(quoted(self.data))


class BytesAttr(Attribute):
    """A string that is not UTF-8; printed as one with escapes."""

    __slots__ = ("data",)

    data: bytes

    @classmethod
    def get(cls, data: bytes) -> BytesAttr:
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
        return cls.intern(int(value), type)

    def to_python(self) -> Any:
        """Returns the number, or whether it is `true`."""
        # Not one expression, whose type would be `int`: compiled code would convert the boolean to a number.
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
        return cls.intern(root, tuple(nested))

    def print(self, printer: AttributePrinter) -> None:
        printer.write("::".join(map(symbol_text, (self.root, *self.nested))))


def symbol_text(name: str) -> str:
    """Returns `@name`, quoted where necessary."""
    return f"@{name}" if _BARE_SYMBOL.fullmatch(name) else f"@{quoted(name)}"


UNIT = UnitAttr.intern()
TRUE = IntegerAttr.get(1, I1)
FALSE = IntegerAttr.get(0, I1)
