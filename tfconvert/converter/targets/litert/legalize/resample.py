"""Resizing for which LiteRT has no operator: products with matrices, one for the rows and one for the columns."""

from __future__ import annotations

import numpy as np

from tfconvert.converter.ir.constants import Scalar
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering, all_of, ints
from tfconvert.converter.targets.litert.legalize.formulas import count, number
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.ops.call import Array
from tfconvert.ops.resampling import KERNELS, Axis, area, area_weights, bicubic, bicubic_weights, scaled, scaled_weights
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_ELEMENTS = "f32 f16 bf16 ui8 i8 i16 ui16 i32"
# Largest size of a matrix: 16 MiB, which is 2048 pixels on either side.
_MAX_ELEMENTS = 1 << 22


def _sizes_are_known(op: Operation) -> Failure | None:
    shape = types.shape_of(op.operands[0].type)
    if shape is None or len(shape) != 4 or 0 in shape:
        return Failure("how many dimensions the image has is not known, or it has no elements")
    pairs = _sizes(op)
    if any(outputs == 0 for _, outputs in pairs):
        return Failure("the result has no elements")
    if any(max(pair) * max(min(pair), 1) > _MAX_ELEMENTS for pair in pairs):
        return Failure("the matrix that resizes would take more than 16 MiB")
    aligns = bool(tf.get(op, "align_corners", False))
    if aligns and any(min(pair) < 0 for pair in pairs):
        return Failure("corners are aligned, and only the batch and the channels may be of unknown size then")
    is_point = aligns and op.name == "tf.ResizeArea" and 1 in shape[1:3]
    return Failure("one pixel is spread over several without a width of its own") if is_point else None


def _sizes(op: Operation) -> list[tuple[int, int]]:
    """Returns the sizes of rows and of columns, before and after; -1 for what is not known."""
    before = (types.shape_of(op.operands[0].type) or (-1,) * 4)[1:3]
    constant = tensor_data.constant_of(op.operands[1])
    after = [-1, -1] if constant is None else ints(op.operands[1])
    return list(zip(before, after, strict=True))


def _is_scaled(op: Operation) -> Failure | None:
    for operand in op.operands[2:]:
        constant = tensor_data.constant_of(operand)
        if constant is not None and tensor_data.to_array(constant).shape != (2,):
            return Failure("its scale and translation are not pairs")
    scale = tensor_data.constant_of(op.operands[2])
    if scale is not None and not (tensor_data.to_array(scale) > 0).all():
        return Failure("its scale is not positive")
    return None if str(tf.get(op, "kernel_type", "lanczos3")) in KERNELS else Failure("its kernel is not known")


def _is_known(op: Operation, axis: int) -> bool:
    """Returns whether the matrix of an axis is a constant."""
    scales = [tensor_data.constant_of(operand) for operand in op.operands[2:]]
    return min(_sizes(op)[axis]) >= 0 and None not in scales


def _floats(value: Value) -> Array:
    constant = tensor_data.constant_of(value)
    assert constant is not None, "checked by the constraint"
    return np.asarray(tensor_data.to_array(constant))


def matrix_of(op: Operation, axis: int) -> Array:
    """Returns the matrix that resizes an axis, 0 for rows and 1 for columns, of shape [outputs, inputs]."""
    inputs, outputs = (types.shape_of(op.operands[0].type) or ())[axis + 1], ints(op.operands[1])[axis]
    align = bool(tf.get(op, "align_corners", False))
    if op.name == "tf.ResizeArea":
        return area(inputs, outputs, align_corners=align)
    if op.name == "tf.ResizeBicubic":
        half = bool(tf.get(op, "half_pixel_centers", False))
        return bicubic(inputs, outputs, align_corners=align, half_pixel_centers=half)
    scale, translation = (float(_floats(operand)[axis]) for operand in op.operands[2:])
    kernel, antialias = str(tf.get(op, "kernel_type", "lanczos3")), bool(tf.get(op, "antialias", True))
    return scaled(inputs, outputs, kernel, scale, translation, antialias=antialias)


def _resize(op: Operation, emit: LiteRTBuilder) -> Value:
    """Brings each axis to the end in turn, multiplies it by its matrix, and puts it back."""
    value = emit.cast(op.operands[0], types.F32)
    for axis, order in ((0, (0, 3, 2, 1)), (1, (0, 1, 3, 2))):
        if _is_known(op, axis):
            matrix = matrix_of(op, axis)
            if matrix.shape[0] == matrix.shape[1] and (matrix == np.eye(len(matrix), dtype=np.float32)).all():
                continue
            weights = emit.constant(np.ascontiguousarray(matrix.T))
        else:
            weights = emit.transpose(_open_matrix(emit, op, axis), (1, 0))
        moved = emit.transpose(value, order)
        shape = types.shape_of(moved.type) or ()
        result = types.tensor(types.F32, (*shape[:-1], (types.shape_of(weights.type) or (-1,))[-1]))
        product = emit.tf("BatchMatMulV2", (moved, weights), result, {"adj_x": False, "adj_y": False})
        value = emit.transpose(product, order)
    return value


def _open_matrix(emit: LiteRTBuilder, op: Operation, at: int) -> Value:
    """Returns the matrix of an axis whose sizes are open, or that is scaled by open numbers; computed as it runs."""
    known = _sizes(op)[at][1]
    inputs, outputs = (
        emit.size(op.operands[0], at + 1),
        known if known >= 0 else emit.pick(emit.i32(op.operands[1]), at),
    )
    size = number(emit, inputs)
    axis = Axis(size, _numbers(emit, inputs, row=True), _numbers(emit, outputs, row=False))
    scale = size / number(emit, outputs)
    if op.name == "tf.ResizeArea":
        weights = area_weights(axis, scale)
    elif op.name == "tf.ResizeBicubic":
        weights = bicubic_weights(axis, scale, is_half=bool(tf.get(op, "half_pixel_centers", False)))
    else:
        factor, translation = (EmittedTensor(emit, emit.pick(operand, at)) for operand in op.operands[2:])
        kernel, antialias = str(tf.get(op, "kernel_type", "lanczos3")), bool(tf.get(op, "antialias", True))
        weights = scaled_weights(axis, kernel, factor, translation, antialias=antialias)
    assert isinstance(weights, EmittedTensor)
    return weights.value


def _numbers(emit: LiteRTBuilder, size: Scalar, *, row: bool) -> EmittedTensor:
    length = size if isinstance(size, int) else -1
    return count(emit, size).reshape((1, length) if row else (length, 1))


_BECOMES = "Transpose BatchMatMulV2"

ENTRIES: tuple[Entry, ...] = (
    *(Lowering(op, _BECOMES, _resize, _ELEMENTS, _sizes_are_known) for op in ("ResizeArea", "ResizeBicubic")),
    Lowering("ScaleAndTranslate", _BECOMES, _resize, _ELEMENTS, all_of(_sizes_are_known, _is_scaled)),
)
