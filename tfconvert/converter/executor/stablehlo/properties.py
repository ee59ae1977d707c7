"""The form of kernels of StableHLO's ops; dtypes of results and operands of integers for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfconvert.ops.call import Array, Dtype, Results
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation

Kernel = Callable[[Operation, Results], Any]
"""Computes an op from its operands' values: an array, or a tuple of several."""


def dtype_of(op: Operation, result: int = 0) -> Dtype:
    return np.dtype(types.numpy_dtype(op.results[result].element))


def numbers(array: Array) -> list[int]:
    """Returns an operand of integers, sizes or starts, as a list."""
    return [int(each) for each in array.reshape(-1)]
