"""Resizing for which LiteRT has no operator: products with matrices, one for the rows and one for the columns."""

from __future__ import annotations

import numpy as np

from tfconvert.converter.kernels.call import Array
from tfconvert.converter.kernels.resampling import KERNELS, area, bicubic, scaled
from tfconvert.converter.litert.legalize.builder import Emit
from tfconvert.converter.litert.legalize.entry import Entry, Lowering, all_of, constant_operand, ints
from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_ELEMENTS = "f32 f16 bf16 ui8 i8 i16 ui16 i32"
_MAX_ELEMENTS = 1 << 22
"""Largest size of a matrix: 16 MiB, which is 2048 pixels on either side."""


def _sizes_are_known(op: Operation) -> Failure | None:
    shape, size = types.shape_of(op.operands[0].type), ints(op.operands[1])
    if shape is None or len(shape) != 4 or min(shape[1:3]) < 1 or len(size) != 2 or min(size) < 1:
        return Failure("only the batch and the channels may be of unknown size")
    if max(before * after for before, after in zip(shape[1:3], size, strict=True)) > _MAX_ELEMENTS:
        return Failure("the matrix that resizes would take more than 16 MiB")
    is_point = tf.get(op, "align_corners", False) and op.name == "tf.ResizeArea" and 1 in shape[1:3]
    return Failure("one pixel is spread over several without a width of its own") if is_point else None


def _scales_are_known(op: Operation) -> Failure | None:
    for operand in op.operands[2:]:
        constant = tensor_data.constant_of(operand)
        if constant is None or tensor_data.to_array(constant).shape != (2,):
            return Failure("its scale and translation are not known")
    if not (_floats(op.operands[2]) > 0).all():
        return Failure("its scale is not positive")
    return None if str(tf.get(op, "kernel_type", "lanczos3")) in KERNELS else Failure("its kernel is not known")


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


def _resize(op: Operation, emit: Emit) -> Value:
    """Brings each axis to the end in turn, multiplies it by its matrix, and puts it back."""
    value = emit.cast(op.operands[0], types.F32)
    for axis, order in ((0, (0, 3, 2, 1)), (1, (0, 1, 3, 2))):
        matrix = matrix_of(op, axis)
        if matrix.shape[0] == matrix.shape[1] and (matrix == np.eye(len(matrix), dtype=np.float32)).all():
            continue
        moved = emit.transpose(value, order)
        shape = types.shape_of(moved.type) or ()
        result = types.tensor(types.F32, (*shape[:-1], len(matrix)))
        weights = emit.constant(np.ascontiguousarray(matrix.T))
        product = emit.tf("BatchMatMulV2", (moved, weights), result, {"adj_x": False, "adj_y": False})
        value = emit.transpose(product, order)
    return value


_CONSTRAINT = all_of(constant_operand(1, "the size"), _sizes_are_known)

_BECOMES = "Transpose BatchMatMulV2"

ENTRIES: tuple[Entry, ...] = (
    *(Lowering(op, _BECOMES, _resize, _ELEMENTS, _CONSTRAINT) for op in ("ResizeArea", "ResizeBicubic")),
    Lowering("ScaleAndTranslate", _BECOMES, _resize, _ELEMENTS, all_of(_CONSTRAINT, _scales_are_known)),
)
