"""Least scales of results: integer kernels refuse or abort on scales that are too small for those of their operands.

A result that is finer than its operands is mere noise: of numbers that cancel each other out.
"""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.targets.litert.quantize.range import Range
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import I16, IntegerType

# Above the least, since scales are rounded.
_MARGIN = 1.01

# An activation's bounds, as integers, must fit into 32 bits.
_CLIPPED_AT = 6.0 / 2**30


def least_scale(op: Operation, storage: IntegerType, operands: Sequence[float], weight: float | None) -> float:
    """Returns the least scale of a result that an op's kernels take.

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


def room(scale: float, storage: IntegerType) -> Range:
    """Returns a range whose scale is at least a certain one."""
    levels = 2 ** (storage.width - 1) - 1 if storage.width > 8 else 2**storage.width - 1
    return Range(0.0, scale * levels * _MARGIN)
