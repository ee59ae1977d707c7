"""Reads what ops of StableHLO carry: their properties as Python values, and the dtypes of their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfconvert.ops.call import Array, Dtype, Results
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.stablehlo import EnumeratorAttr
from tfconvert.schema.ir.attributes import DenseArrayAttr, IntegerAttr, StringAttr, SymbolRefAttr, UnitAttr
from tfconvert.schema.ir.operation import Operation

Kernel = Callable[[Operation, Results], Any]
"""Computes an op from its operands' values: an array, or a tuple of several."""


def ints(op: Operation, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
    """Returns a property that is a list of integers or booleans."""
    value = op.properties.get(name)
    return tuple(int(each) for each in value.values) if isinstance(value, DenseArrayAttr) else tuple(default)


def integer(op: Operation, name: str, default: int = 0) -> int:
    """Returns a property that is an integer or a boolean."""
    value = op.properties.get(name)
    return int(value.value) if isinstance(value, IntegerAttr) else default


def flag(op: Operation, name: str) -> bool:
    """Returns whether a property is present and true."""
    return isinstance(op.properties.get(name), UnitAttr) or bool(integer(op, name))


def text(op: Operation, name: str) -> str:
    """Returns a property that is a string, an enumerator or a symbol; empty if it is absent."""
    value = op.properties.get(name)
    if isinstance(value, StringAttr):
        return value.data
    if isinstance(value, SymbolRefAttr):
        return value.root
    return value.value if isinstance(value, EnumeratorAttr) else ""


def pairs(op: Operation, name: str, rank: int) -> list[tuple[int, int]]:
    """Returns a property that holds two numbers for each dimension, such as padding; zeros if it is absent."""
    value = op.properties.get(name)
    if value is None:
        return [(0, 0)] * rank
    return [(int(low), int(high)) for low, high in tensor_data.to_array(value).reshape(rank, 2)]


def dtype_of(op: Operation, result: int = 0) -> Dtype:
    return np.dtype(types.numpy_dtype(types.element_of(op.results[result].type)))


def numbers(array: Array) -> list[int]:
    """Returns an operand of integers, sizes or starts, as a list."""
    return [int(each) for each in array.reshape(-1)]
