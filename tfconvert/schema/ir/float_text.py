"""Float numbers as MLIR writes them, and rounded to a type."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from tfconvert.schema.ir.types import FloatType

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
