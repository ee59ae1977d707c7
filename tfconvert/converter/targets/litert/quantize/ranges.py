"""The calibrated ranges of values, on the ops that compute them.

    %0 = "tfl.relu"(%x) {tfl.ranges = array<f32: 0.0, 6.0>} : (tensor<4xf32>) -> tensor<4xf32>

An op has two numbers per result, NaNs if the range is unknown. A function has those of its arguments.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from tfconvert.converter.targets.litert.quantize.observers import Range
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.attributes import DenseArrayAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import F32
from tfconvert.schema.ir.values import BlockArgument, OpResult, Value

RANGES = "tfl.ranges"


def range_of(value: Value) -> Range | None:
    """Returns a value's calibrated range, `None` if it is unknown."""
    holder, index = _place(value)
    numbers = holder.attributes.get(RANGES) if holder is not None else None
    if not isinstance(numbers, DenseArrayAttr) or len(numbers.values) < 2 * index + 2:
        return None
    low, high = numbers.values[2 * index : 2 * index + 2]
    return None if math.isnan(low) else Range(float(low), float(high))


def set_ranges(found: Mapping[Value, Range]) -> None:
    """Sets the calibrated ranges of values."""
    holders: dict[int, tuple[Operation, dict[int, Range]]] = {}
    for value, seen in found.items():
        holder, index = _place(value)
        if holder is not None:
            holders.setdefault(id(holder), (holder, {}))[1][index] = seen
    for holder, own in holders.values():
        values = holder.body.block.args if isinstance(holder, FuncOp) else holder.results
        numbers = [number for index in range(len(values)) for number in own.get(index, _UNSEEN)]
        holder.attributes[RANGES] = DenseArrayAttr.get(F32, numbers)


def drop_ranges(holder: Operation) -> None:
    holder.attributes.pop(RANGES, None)


_UNSEEN = Range(math.nan, math.nan)


def _place(value: Value) -> tuple[Operation | None, int]:
    """Returns the op with a value's range, and the value's index there."""
    if isinstance(value, OpResult):
        return value.op, value.index
    assert isinstance(value, BlockArgument)
    return value.block.parent_op(), value.index
