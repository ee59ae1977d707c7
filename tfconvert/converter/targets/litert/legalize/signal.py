"""Fourier transforms: the one kernel is the transform of real images; inverse ones are products with matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import (
    BuiltinRow,
    Entry,
    Lowering,
    all_of,
    constant_operand,
    ints,
)
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _is_power_of_two(op: Operation) -> Failure | None:
    """A computed length is left to the kernel, which refuses to run with another."""
    if tensor_data.constant_of(op.operands[1]) is None:
        return None
    if any(length < 1 or length & (length - 1) for length in ints(op.operands[1])):
        return Failure("the kernel requires lengths that are powers of two")
    return None


def _rank_is_known(op: Operation) -> Failure | None:
    shapes = types.shape_of(op.operands[0].type), types.shape_of(op.results[0].type)
    return Failure("the rank is not known") if shapes[0] is None or shapes[1] is None else None


def _rfft(op: Operation, emit: LiteRTBuilder) -> Value:
    """A vector is an image of one row."""
    shape, result = types.shape_of(op.operands[0].type), types.shape_of(op.results[0].type)
    assert shape is not None
    assert result is not None
    element = types.element_of(op.results[0].type)
    axis = emit.constant(np.array(-2, np.int32))
    rows_type = types.tensor(types.element_of(op.operands[0].type), (*shape[:-1], 1, shape[-1]))
    rows = emit.tf("ExpandDims", (op.operands[0], axis), rows_type)
    if tensor_data.constant_of(op.operands[1]) is not None:
        lengths = emit.ints((1, *ints(op.operands[1])))
    else:
        joined = (emit.ints((1,)), emit.i32(op.operands[1]), emit.scalar(0, types.I32))
        lengths = emit.tf("ConcatV2", joined, types.tensor(types.I32, (2,)))
    transformed = emit.tfl("rfft2d", (rows, lengths), types.tensor(element, (*result[:-1], 1, result[-1])))
    return emit.tf("Squeeze", (transformed,), op.results[0].type, {"squeeze_dims": [-2]})


def _same_shapes(op: Operation) -> Failure | None:
    shapes = [types.shape_of(operand.type) for operand in op.operands]
    return None if shapes[0] == shapes[1] is not None else Failure("its operands aren't known to have one shape")


def _complex(op: Operation, emit: LiteRTBuilder) -> Value:
    """Makes complex numbers by the one kernel that does: the transform of `x, -y, 0, 0` has `x + iy` as its second."""
    shape = types.shape_of(op.results[0].type) or ()
    real, imaginary = op.operands
    zeros = emit.unary("ZerosLike", real)
    part = types.tensor(types.F32, (*shape, 1, 4))
    rows = emit.tf(
        "Pack", (real, emit.unary("Neg", imaginary), zeros, zeros), types.tensor(types.F32, (*shape, 4)), {"axis": -1}
    )
    rows = emit.tf("ExpandDims", (rows, emit.constant(np.array(-2, np.int32))), part)
    element = types.element_of(op.results[0].type)
    found = emit.tfl("rfft2d", (rows, emit.ints((1, 4))), types.tensor(element, (*shape, 1, 3)))
    rank = len(shape)
    bounds = (emit.ints([0] * (rank + 1) + [1]), emit.ints([0] * rank + [1, 2]), emit.ints([1] * (rank + 2)))
    masks = {"begin_mask": (1 << rank) - 1, "end_mask": (1 << rank) - 1, "shrink_axis_mask": 3 << rank}
    return emit.tf("StridedSlice", (found, *bounds), op.results[0].type, masks)


# Inverse transforms are products with matrices, whose size grows with the square of the length.
_MAX_LENGTH = 1024


def _inverse_constraint(op: Operation) -> Failure | None:
    shape, lengths = types.shape_of(op.operands[0].type), ints(op.operands[1])
    if not all(0 < length <= _MAX_LENGTH for length in lengths):
        return Failure(f"its length is not between 1 and {_MAX_LENGTH}")
    if shape is None or len(shape) < len(lengths) or min(shape[-len(lengths) :]) < 1:
        return Failure("the size of the spectrum is not known")
    needed = (*lengths[:-1], lengths[-1] // 2 + 1)
    is_enough = all(size <= dim for size, dim in zip(needed, shape[-len(lengths) :], strict=True))
    return None if is_enough else Failure("the spectrum is smaller than the length requires")


def _inverse(op: Operation, emit: LiteRTBuilder) -> Value:
    """Multiplies by matrices of waves: columns of complex numbers first, then rows, which become real."""
    shape, lengths = types.shape_of(op.operands[0].type) or (), ints(op.operands[1])
    part = types.tensor(types.F32, shape)
    real, imaginary = (emit.tf(name, op.operands[:1], part) for name in ("Real", "Imag"))
    if len(lengths) == 2:
        real, imaginary = _inverse_columns(emit, real, imaginary, lengths[0])
    joined = _joined(emit, (real, imaginary), len(shape) - 1)
    if len(shape) == 1:
        joined = emit.reshape(joined, (1, 2 * shape[0]))
    waves = emit.constant(_row_waves(shape[-1], lengths[-1]))
    rows = (types.shape_of(joined.type) or ())[:-1]
    signal_type = types.tensor(types.F32, (*rows, lengths[-1]))
    signal = emit.tf("BatchMatMulV2", (joined, waves), signal_type, {"adj_x": False, "adj_y": False})
    return signal if len(shape) > 1 else emit.reshape(signal, lengths)


def _inverse_columns(emit: LiteRTBuilder, real: Value, imaginary: Value, length: int) -> Sequence[Value]:
    shape = types.shape_of(real.type) or ()
    joined = _joined(emit, (real, imaginary), len(shape) - 2)
    order = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    columns = emit.transpose(joined, order)
    waves = emit.constant(_column_waves(shape[-2], length))
    product_type = types.tensor(types.F32, (*shape[:-2], shape[-1], 2 * length))
    product = emit.tf("BatchMatMulV2", (columns, waves), product_type, {"adj_x": False, "adj_y": False})
    half = types.tensor(types.F32, (*shape[:-2], length, shape[-1]))
    axis = emit.scalar(len(shape) - 2, types.I32)
    return emit.tf_op("Split", (axis, emit.transpose(product, order)), (half, half)).results


def _joined(emit: LiteRTBuilder, parts: Sequence[Value], axis: int) -> Value:
    shape = list(types.shape_of(parts[0].type) or ())
    shape[axis] *= 2
    return emit.tf("ConcatV2", (*parts, emit.scalar(axis, types.I32)), types.tensor(types.F32, shape))


def _column_waves(count: int, length: int) -> np.ndarray:
    """Returns the matrix that maps real parts above imaginary ones, transposed, to those of the inverse.

    Frequencies beyond the length are cut.
    """
    angles = 2 * np.pi * np.outer(np.arange(count), np.arange(length)) / length
    cosines, sines = np.cos(angles) / length, np.sin(angles) / length
    cosines[length:], sines[length:] = 0, 0
    return np.block([[cosines, sines], [-sines, cosines]]).astype(np.float32)


def _row_waves(count: int, length: int) -> np.ndarray:
    """Returns the matrix that maps real parts beside imaginary ones to a real signal.

    All frequencies but the first and, of an even length, the middle one also represent their mirror images.
    """
    angles = 2 * np.pi * np.outer(np.arange(count), np.arange(length)) / length
    weights = np.where(np.arange(count) < (length + 1) // 2, 2.0, 0.0)
    weights[0] = 1
    if length % 2 == 0 and length // 2 < count:
        weights[length // 2] = 1
    factors = weights[:, None] / length
    return np.concatenate([factors * np.cos(angles), -factors * np.sin(angles)]).astype(np.float32)


_LENGTH = constant_operand(1, "the length")
_CONSTRAINT = all_of(_is_power_of_two, _rank_is_known)

ENTRIES: tuple[Entry, ...] = (
    Lowering("Complex", "Pack rfft2d StridedSlice", _complex, "f32", _same_shapes),
    Lowering("RFFT", "rfft2d", _rfft, "f32", _CONSTRAINT),
    *(
        Lowering(op, "Real Imag BatchMatMulV2", _inverse, "complex<f32>", all_of(_LENGTH, _inverse_constraint))
        for op in ("IRFFT", "IRFFT2D")
    ),
    BuiltinRow("RFFT2D", "rfft2d", "f32", narrow=(1,), constraint=_is_power_of_two),
)
