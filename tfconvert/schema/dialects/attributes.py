"""Builtin attributes of Python values; those that rewrites create often are cached."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache

from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import (
    FALSE,
    TRUE,
    ArrayAttr,
    BytesAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
)
from tfconvert.schema.ir.types import F32, I32, I64

Value = bool | int | float | str | bytes | Attribute | Iterable["Value"]
"""The values that `of` accepts."""

_ENTRIES = 4096


def boolean(value: bool) -> Attribute:
    """Returns an `i1` attribute; printed as `true` or `false`."""
    return TRUE if value else FALSE


@lru_cache(_ENTRIES)
def integer(value: int) -> Attribute:
    return IntegerAttr.get(value, I64)


@lru_cache(_ENTRIES)
def integers(values: tuple[int, ...]) -> Attribute:
    """Returns an array of `i64` attributes."""
    return ArrayAttr.get([integer(value) for value in values])


@lru_cache(_ENTRIES)
def int32(value: int) -> Attribute:
    return IntegerAttr.get(value, I32)


def float32(value: float) -> Attribute:
    """Returns an `f32` attribute."""
    return _float32(struct.pack("<d", value))


@lru_cache(_ENTRIES)
def _float32(bits: bytes) -> Attribute:
    # The key is the bits, since 0.0 and -0.0 are equal but different.
    return FloatAttr.get(struct.unpack("<d", bits)[0], F32)


@lru_cache(_ENTRIES)
def string(value: str) -> StringAttr:
    """Returns a string attribute."""
    return StringAttr.get(value)


@lru_cache(_ENTRIES)
def symbol(name: str) -> SymbolRefAttr:
    """Returns the reference `@name`."""
    return SymbolRefAttr.get(name)


def of(value: Value) -> Attribute:
    """Returns the attribute that TensorFlow's dialects use for a Python value.

    Integers become `i64`, floats `f32`, sequences arrays; attributes are returned as they are.
    """
    if isinstance(value, Attribute):
        return value
    if isinstance(value, bool):
        return boolean(value)
    if isinstance(value, int):
        return integer(value)
    if isinstance(value, float):
        return float32(value)
    if isinstance(value, str):
        return string(value)
    if isinstance(value, bytes):
        return BytesAttr.get(value)
    return ArrayAttr.get([of(item) for item in value])
