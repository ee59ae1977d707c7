"""The text of a constant's elements, between `dense<` and `>`: numbers, strings, or one string of hex digits.

The forms are MLIR's: a value that fills the tensor is written once; up to `LITERAL` elements are written one by one;
more as the hexadecimal bytes of the tensor, little endian and in row-major order, with booleans packed into bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import decimal_text, quoted
from tfconvert.schema.ir.types import ComplexType, FloatType, IndexType, IntegerType

LITERAL = 100
"""Maximum number of elements that are written one by one, unless all are equal."""

# Number of bytes that are converted to hexadecimal, or of elements that are compared, at a time.
_CHUNK = 1 << 16

# Significant digits that round-trip any number, by the size of its type in bytes.
_FLOAT_DIGITS = {4: 9, 8: 17}


def can_write(element: Attribute) -> bool:
    """Returns whether constants of an element type have a `dense` form; handles and quantised types have none."""
    row = types.from_mlir(element)
    if row is None:
        return isinstance(element, IndexType)
    return row.name[0] != "q" and row.name not in ("resource", "variant")


def literal(value: Array, element: Attribute) -> Iterator[str]:
    """Yields the text of a constant's elements, piece by piece.

    Args:
        value: The value.
        element: The element type, one that `can_write` accepts.
    """
    if value.size == 0:
        return
    flat = value.reshape(-1)
    write = _writer(element, value.dtype)
    if _is_splat(flat):
        yield write(flat[0])
    elif flat.dtype == object or flat.size <= LITERAL:
        yield from _nested(flat, value.shape, write)
    else:
        yield from _hexadecimal(flat, element)


def _is_splat(flat: Array) -> bool:
    """Returns whether all elements have the same bits."""
    if flat.strides == (0,):
        return True
    if flat.dtype == object:
        return all(item == flat[0] for item in flat)
    bits = np.ascontiguousarray(flat).view(np.uint8).reshape(len(flat), -1)
    return all((bits[start : start + _CHUNK] == bits[0]).all() for start in range(0, len(bits), _CHUNK))


def _nested(flat: Array, shape: types.Shape, write: Callable[[Any], str]) -> Iterator[str]:
    """Yields brackets around rows; only tensors without empty dimensions get here."""
    rows: list[int] = []
    size = 1
    for dim in reversed(shape):
        size *= dim
        rows.append(size)
    for index, item in enumerate(flat):
        opened = sum(index % size == 0 for size in rows)
        closed = sum((index + 1) % size == 0 for size in rows)
        yield f"{', ' if index else ''}{'[' * opened}{write(item)}{']' * closed}"


def _writer(element: Attribute, dtype: np.dtype[Any]) -> Callable[[Any], str]:
    if dtype.kind == "O":
        return quoted
    if isinstance(element, ComplexType):
        return lambda value: f"({_float(value.real)},{_float(value.imag)})"
    if dtype == np.bool_:
        return lambda value: "true" if value else "false"
    return _float if isinstance(element, FloatType) else lambda value: str(int(value))


def _float(value: Any) -> str:
    """Returns the shortest of MLIR's forms that round-trips a number."""
    number = float(value)
    if not np.isfinite(number):
        return f"0x{value.tobytes()[::-1].hex().upper()}"
    return decimal_text(number, _FLOAT_DIGITS.get(value.dtype.itemsize), lambda near: value.dtype.type(near) == value)


def _hexadecimal(flat: Array, element: Attribute) -> Iterator[str]:
    """Yields a quoted hexadecimal string."""
    if flat.dtype == np.bool_:
        flat = np.packbits(flat, bitorder="little")
    elif width := _partial_width(element):
        flat = flat.astype(np.int8).view(np.uint8) & np.uint8((1 << width) - 1)
    data = np.ascontiguousarray(flat).view(np.uint8)
    yield '"0x'
    for start in range(0, len(data), _CHUNK):
        yield data[start : start + _CHUNK].tobytes().hex().upper()
    yield '"'


def _partial_width(element: Attribute) -> int:
    """Returns the width of an integer type that fills only part of a byte; 0 for all others."""
    width = element.width if isinstance(element, IntegerType) else 0
    return width if 1 < width < 8 else 0


def from_hexadecimal(data: bytes, count: int, element: Attribute) -> Array | None:
    """Returns the elements of a hexadecimal string, flat; one element's bytes fill the tensor.

    Args:
        data: The bytes.
        count: Number of elements of the tensor.
        element: The element type.

    Returns:
        A flat array, `None` if the bytes are too few or too many.
    """
    dtype = types.numpy_dtype(element)
    if dtype == np.bool_:
        return _from_bits(data, count)
    if width := _partial_width(element):
        free = 8 - width
        signed = np.frombuffer(data, np.uint8) << free
        values = ((signed if dtype.name.startswith("u") else signed.view(np.int8)) >> free).astype(dtype)
    elif len(data) % dtype.itemsize:
        return None
    else:
        values = np.frombuffer(data, dtype)
    if len(values) == 1 and count > 0:
        return np.broadcast_to(values, count)
    return values if len(values) == count else None


def _from_bits(data: bytes, count: int) -> Array | None:
    """Returns booleans that are packed into bits, as in TensorFlow's MLIR, or take a byte each, as elsewhere."""
    if len(data) == -(-count // 8):
        return np.unpackbits(np.frombuffer(data, np.uint8), count=count, bitorder="little").astype(np.bool_)
    if len(data) == 1:
        return np.broadcast_to(np.bool_(data[0] != 0), count)
    return np.frombuffer(data, np.uint8) != 0 if len(data) == count else None
