"""Reads what ops of StableHLO carry: their properties as Python values, and the dtypes of their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfconvert.ops.call import Array, Dtype, Results
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.stablehlo_properties import integer_of, ints_of, pairs_of, text_of
from tfconvert.schema.ir.attributes import UnitAttr
from tfconvert.schema.ir.operation import Operation

Kernel = Callable[[Operation, Results], Any]
"""Computes an op from its operands' values: an array, or a tuple of several."""


def ints(op: Operation, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
    """Returns a property that is a list of integers or booleans."""
    return ints_of(op.properties.get(name), default)


def integer(op: Operation, name: str, default: int = 0) -> int:
    """Returns a property that is an integer or a boolean."""
    return integer_of(op.properties.get(name), default)


def flag(op: Operation, name: str) -> bool:
    """Returns whether a property is present and true."""
    return isinstance(op.properties.get(name), UnitAttr) or bool(integer(op, name))


def text(op: Operation, name: str) -> str:
    """Returns a property that is a string, an enumerator or a symbol; empty if it is absent."""
    return text_of(op.properties.get(name))


def pairs(op: Operation, name: str, rank: int) -> list[tuple[int, int]]:
    """Returns a property that holds two numbers for each dimension, such as padding; zeros if it is absent."""
    return pairs_of(op.properties.get(name), rank)


def dtype_of(op: Operation, result: int = 0) -> Dtype:
    return np.dtype(types.numpy_dtype(op.results[result].element))


def numbers(array: Array) -> list[int]:
    """Returns an operand of integers, sizes or starts, as a list."""
    return [int(each) for each in array.reshape(-1)]
