"""Fourier transforms: the one kernel is the transform of real images."""

from __future__ import annotations

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import BuiltinRow, Entry, ints
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.ir.operation import Operation


def _is_power_of_two(op: Operation) -> Failure | None:
    """A computed length is left to the kernel, which refuses to run with another."""
    if tensor_data.constant_of(op.operands[1]) is None:
        return None
    if any(length < 1 or length & (length - 1) for length in ints(op.operands[1])):
        return Failure("the kernel requires lengths that are powers of two")
    return None


ENTRIES: tuple[Entry, ...] = (BuiltinRow("RFFT2D", "rfft2d", "f32", narrow=(1,), constraint=_is_power_of_two),)
