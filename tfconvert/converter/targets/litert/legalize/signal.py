"""Fourier transforms: the one kernel is the transform of real images."""

from __future__ import annotations

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import BuiltinRow, Entry, Lowering, ints
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _is_power_of_two(op: Operation) -> Failure | None:
    """A computed length is left to the kernel, which refuses to run with another."""
    if tensor_data.constant_of(op.operands[1]) is None:
        return None
    lengths = ints(op.operands[1])
    if any(length < 1 or length & (length - 1) for length in lengths) or lengths[-1] == 1:
        return Failure("the kernel requires lengths that are powers of two, the last one of at least 2")
    return None


def _same_shapes(op: Operation) -> Failure | None:
    shapes = [operand.shape for operand in op.operands]
    return None if shapes[0] == shapes[1] is not None else Failure("its operands aren't known to have one shape")


def _complex(op: Operation, emit: LiteRTBuilder) -> Value:
    """Makes complex numbers by the one kernel that does: the transform of `x, -y, 0, 0` has `x + iy` as its second."""
    shape = op.results[0].shape or ()
    real, imaginary = op.operands
    zeros = emit.unary("ZerosLike", real)
    part = types.tensor(types.F32, (*shape, 1, 4))
    rows = emit.tf(
        "Pack", (real, emit.unary("Neg", imaginary), zeros, zeros), types.tensor(types.F32, (*shape, 4)), {"axis": -1}
    )
    rows = emit.tf("ExpandDims", (rows, emit.constant(np.array(-2, np.int32))), part)
    element = op.results[0].element
    found = emit.tfl("rfft2d", (rows, emit.ints((1, 4))), types.tensor(element, (*shape, 1, 3)))
    rank = len(shape)
    bounds = (emit.ints([0] * (rank + 1) + [1]), emit.ints([0] * rank + [1, 2]), emit.ints([1] * (rank + 2)))
    masks = {"begin_mask": (1 << rank) - 1, "end_mask": (1 << rank) - 1, "shrink_axis_mask": 3 << rank}
    return emit.tf("StridedSlice", (found, *bounds), op.results[0].type, masks)


ENTRIES: tuple[Entry, ...] = (
    Lowering("Complex", "Pack rfft2d StridedSlice", _complex, "f32", _same_shapes),
    BuiltinRow("RFFT2D", "rfft2d", "f32", narrow=(1,), constraint=_is_power_of_two),
)
