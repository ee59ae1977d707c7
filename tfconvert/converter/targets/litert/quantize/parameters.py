"""Scales and zero points as TensorFlow's converter computes them; the smallest scales that integer kernels accept.

The calibrated ranges of values, on the ops that compute them.

    %0 = "tfl.relu"(%x) {tfl.ranges = array<f32: 0.0, 6.0>} : (tensor<4xf32>) -> tensor<4xf32>

An op has two numbers per result, NaNs if the range is unknown. A function has those of its arguments.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tfconvert.converter.targets.litert.quantize.observers import ChannelRange, Range
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.ir.attributes import ArrayAttr, DenseArrayAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import F32, I16, IntegerType
from tfconvert.schema.ir.values import BlockArgument, OpResult, Value

RANGES = "tfl.ranges"
CHANNEL_RANGES = "tfl.channel_ranges"


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
        known = [own.get(index) or range_of(value) or _UNSEEN for index, value in enumerate(values)]
        numbers = [number for ends in known for number in ends]
        holder.attributes[RANGES] = DenseArrayAttr.get(F32, numbers)


def set_channel_ranges(found: Mapping[Value, ChannelRange]) -> None:
    """Sets the calibrated ranges of the channels of results, on the ops that compute them."""
    holders: dict[Operation, dict[int, ChannelRange]] = {}
    for value, seen in found.items():
        if isinstance(value, OpResult):  # Those of arguments aren't free.
            holders.setdefault(value.op, {})[value.index] = seen
    for op, own in holders.items():
        ends = (np.concatenate(own[index]) if index in own else () for index in range(len(op.results)))
        op.attributes[CHANNEL_RANGES] = ArrayAttr.get([DenseArrayAttr.get(F32, tuple(each)) for each in ends])


def take_channel_ranges(function: FuncOp) -> dict[Value, ChannelRange]:
    """Removes the calibrated ranges of channels, and returns them."""
    found: dict[Value, ChannelRange] = {}
    for op in function.body.block.ops:
        rows = op.attributes.pop(CHANNEL_RANGES, None)
        for value, row in zip(op.results, rows.data if isinstance(rows, ArrayAttr) else (), strict=False):
            if isinstance(row, DenseArrayAttr) and row.values:
                found[value] = ChannelRange(*np.array(row.values, np.float32).reshape(3, -1))
    return found


def drop_ranges(holder: Operation) -> None:
    holder.attributes.pop(RANGES, None)


_UNSEEN = Range(math.nan, math.nan)


def _place(value: Value) -> tuple[Operation | None, int]:
    """Returns the op with a value's range, and the value's index there."""
    if isinstance(value, OpResult):
        return value.op, value.index
    assert isinstance(value, BlockArgument)
    return value.block.parent_op(), value.index


# The factor by which 16-bit numbers may exceed those of the samples.
#
# Losing one bit is negligible compared to the errors of 8-bit weights; a clipped number spoils a whole result. It isn't
# quite 2, so that the largest number of the samples is 2**14: products of masks of zeros and ones are exact then.
_HEADROOM = (2**15 - 1) / 2**14


def headroom(storage: IntegerType) -> float:
    """Returns the factor by which integers reach beyond the range that they are for."""
    return _HEADROOM if storage.width > 8 else 1.0


_MAX_WIDENING = 1.4
"""The factor by which a range may be widened to be symmetric about 0: half a bit."""


def uniform_of(values: Range, storage: IntegerType, *, is_centered: bool = False) -> Uniform:
    """Returns the mapping of integers to a range of numbers, widened to contain 0.

    8-bit integers cover the range. Wider ones are symmetric about 0, as the kernels require, and cover a larger range.

    Args:
        values: The range.
        storage: The type of the integers.
        is_centered: Whether 0 should be the integer 0, unless the steps would be much larger.
    """
    low, high = min(values.low, 0.0), max(values.high, 0.0)
    largest = max(-low, high)
    if is_centered and storage.width == 8 and 2 * largest <= _MAX_WIDENING * (high - low):
        return Uniform(storage, (_scale(largest / 127),), (0,))
    if storage.width > 8:
        return Uniform(storage, (_scale(max(-low, high) * headroom(storage) / (2 ** (storage.width - 1) - 1)),), (0,))
    lowest, highest = -(2 ** (storage.width - 1)), 2 ** (storage.width - 1) - 1
    scale = (high - low) / (highest - lowest)
    if not _scale(scale, 0.0):
        return Uniform(storage, (1.0,), (0,))
    from_low, from_high = lowest - low / scale, highest - high / scale
    # Rounding affects the end with the larger absolute value more.
    zero = from_low if abs(lowest) + abs(low / scale) < abs(highest) + abs(high / scale) else from_high
    return Uniform(storage, (_scale(scale),), (min(max(_rounded(zero), lowest), highest),))


def _rounded(value: float) -> int:
    """Rounds to the nearest integer, halves away from 0."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def _scale(value: float, otherwise: float = 1.0) -> float:
    """Returns a scale rounded to `f32`; `otherwise` if that is not a positive normal number."""
    scale = float(np.float32(value))
    return scale if scale >= float(np.finfo(np.float32).tiny) else otherwise


def range_of_integers(uniform: Uniform) -> Range:
    """Returns the numbers that a mapping with one scale can represent."""
    bits = uniform.storage.width
    scale, zero = uniform.scales[0], uniform.zero_points[0]
    return Range((-(2 ** (bits - 1)) - zero) * scale, (2 ** (bits - 1) - 1 - zero) * scale)


# Above the minimum, since scales are rounded.
_MARGIN = 1.01

# An activation's bounds, as integers, must fit into 32 bits.
_CLIPPED_AT = 6.0 / 2**30


def minimum_scale(op: Operation, storage: IntegerType, operands: Sequence[float], weight: float | None) -> float:
    """Returns the minimum scale of a result that an op's kernels accept.

    Args:
        op: The op.
        storage: The type of integers.
        operands: The scales of its activations.
        weight: The largest scale of its weight, `None` if it has none.
    """
    largest = max(operands, default=0.0)
    if op.name == "tfl.add":
        return 2 * largest / 2 ** (15 if storage is I16 else 20)
    if op.name == "tfl.squared_difference":
        return (2 * largest) ** 2 / 2**14
    if op.name == "tfl.hard_swish":
        return largest / 128
    if weight is not None:
        return max(largest * weight / 256, _CLIPPED_AT)
    return 0.0


def range_of_scale(scale: float, storage: IntegerType) -> Range:
    """Widens a range so that its scale is at least a minimum."""
    levels = 2 ** (storage.width - 1) - 1 if storage.width > 8 else 2**storage.width - 1
    return Range(0.0, scale * levels * _MARGIN)
