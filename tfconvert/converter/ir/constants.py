"""Reads constants. Only small ones (`tensor_data.is_small`) are read: axes, shapes, factors, never weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.limits import budget

Scalar = Value | int
"""A scalar `i32`, or a number that becomes one where it is needed."""


def constant_array(value: Value) -> Array | None:
    """Returns a small constant's elements, `None` if the value isn't constant or is too large to look into."""
    constant = tensor_data.constant_of(value)
    return tensor_data.to_array(constant) if constant is not None and tensor_data.is_small(constant) else None


def constant_ints(value: Value) -> tuple[int, ...] | None:
    """Returns a small integer constant's elements, row by row."""
    array = constant_array(value)
    return None if array is None or array.dtype.kind not in "iu" else tuple(array.ravel().tolist())


def constant_number(value: Value) -> float | None:
    """Returns the number that a constant of one element holds, an integer or a float."""
    constant = tensor_data.constant_of(value)
    if constant is None or math.prod(constant.shape or ()) != 1:
        return None
    array = tensor_data.to_array(constant)
    return float(array.item()) if array.dtype.kind in "fiu" else None


def constant_int(scalar: Scalar) -> int | None:
    """Returns an integer that is known: a number as it is, or that of a constant of one element."""
    if isinstance(scalar, int):
        return scalar
    found = constant_ints(scalar)
    return found[0] if found is not None and len(found) == 1 else None


def integers(values: int | Sequence[int | None], dtype: np.dtype[Any]) -> Array:
    """Returns integers as an array.

    Raises:
        ConversionError: One doesn't fit (`absurd-shape`): it was computed from a dimension that is beyond LiteRT.
    """
    try:
        return np.array(values, dtype)
    except OverflowError:
        raise error(
            "absurd-shape", f"a size of {values} doesn't fit {dtype}", hint="check the shapes of the inputs"
        ) from None


def index_range(*bounds: int) -> Array:
    """Returns the integers that `range` has for some bounds, which may be sizes that cost a hostile file nothing.

    Raises:
        ConversionError: They take more memory than constants may (`too-large-constants`).
    """
    budget().take_bytes(len(range(*bounds)) * np.dtype(np.int64).itemsize, "the positions of elements")
    return np.arange(*bounds)


def is_repeated(array: Array, axis: int) -> bool:
    """Returns whether an array holds one element for all along an axis: any size of such an axis takes no memory."""
    return array.shape[axis] > 1 and not array.strides[axis]


def is_enumeration(indices: Value) -> bool:
    """Returns whether indices are 0, 1, 2 and so on. Constants of any size are read: indices are not weights."""
    constant = tensor_data.constant_of(indices)
    if constant is not None:
        array = tensor_data.to_array(constant)
        if any(is_repeated(array, axis) for axis in range(array.ndim)):
            return False
        return bool(np.array_equal(array.reshape(-1), np.arange(array.size)))
    owner = indices.owner
    if not isinstance(owner, Operation) or owner.name != "tf.Range":
        return False
    return constant_int(owner.operands[0]) == 0 and constant_int(owner.operands[2]) == 1
