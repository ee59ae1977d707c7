"""Resizing for which LiteRT has no operator, crops that are resized to one size, and windows taken from images.

Resizing is two products with matrices, one for the rows and one for the columns. For crops, such matrices would need a
copy of the image for each crop, and detectors take hundreds: the pixels around each sampled point are gathered instead.
"""

from __future__ import annotations

import math

import numpy as np

from tfconvert.converter.ir.constants import Scalar
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering, all_of, ints
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.ops.call import Array
from tfconvert.ops.image import CropPoints, bilinear_pixels, nearest_pixels, sampled_points, wide
from tfconvert.ops.resampling import KERNELS, Axis, area, area_weights, bicubic, bicubic_weights, scaled, scaled_weights
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def number(emit: LiteRTBuilder, scalar: Scalar) -> EmittedTensor:
    """Returns a scalar integer as a float."""
    return EmittedTensor(emit, emit.cast(emit.value(scalar), types.F32))


def count(emit: LiteRTBuilder, size: Scalar) -> EmittedTensor:
    """Returns the numbers from zero up to a size."""
    length = size if isinstance(size, int) else -1
    bounds = (emit.number(0), emit.value(size), emit.number(1))
    return EmittedTensor(emit, emit.cast(emit.tf("Range", bounds, types.tensor(types.I32, (length,))), types.F32))


_ELEMENTS = "f32 f16 bf16 ui8 i8 i16 ui16 i32"
# Largest size of a matrix: 16 MiB, which is 2048 pixels on either side.
_MAX_ELEMENTS = 1 << 22


def _sizes_are_known(op: Operation) -> Failure | None:
    shape = op.operands[0].shape
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
    """Returns the sizes of rows and of columns, before and after; -1 if unknown."""
    before = (op.operands[0].shape or (-1,) * 4)[1:3]
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
    inputs, outputs = (op.operands[0].shape or ())[axis + 1], ints(op.operands[1])[axis]
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
        shape = moved.shape or ()
        result = types.tensor(types.F32, (*shape[:-1], (weights.shape or (-1,))[-1]))
        product = emit.tf("BatchMatMulV2", (moved, weights), result, {"adj_x": False, "adj_y": False})
        value = emit.transpose(product, order)
    return value


def _open_matrix(emit: LiteRTBuilder, op: Operation, at: int) -> Value:
    """Computes the matrix of an axis at run time, where its sizes or scale are dynamic."""
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


def _crop_constraint(op: Operation) -> Failure | None:
    ranks = [len(operand.shape or ()) for operand in op.operands[:3]]
    if ranks != [4, 2, 1]:
        return Failure("the ranks of its operands are not known")
    if any(0 in (value.shape or ()) for value in (*op.operands, *op.results)):
        return Failure("it has no elements")
    return None


def _points(
    emit: LiteRTBuilder, edges: tuple[EmittedTensor, EmittedTensor], pixels: Scalar, samples: Scalar
) -> CropPoints[EmittedTensor]:
    """Returns where an axis of a size is sampled, between columns of edges."""
    numbers = count(emit, samples).reshape((1, samples if isinstance(samples, int) else -1))
    wanted = samples if isinstance(samples, int) else number(emit, samples)
    return sampled_points(*edges, number(emit, pixels), wanted, numbers)


def _crop(op: Operation, emit: LiteRTBuilder) -> Value:
    image, boxes = op.operands[:2]
    sizes: list[Scalar] = [emit.size(image, axis) for axis in (1, 2)]
    if tensor_data.constant_of(op.operands[3]) is not None:
        samples: list[Scalar] = [*ints(op.operands[3])]
    else:
        wanted = emit.i32(op.operands[3])
        samples = [emit.pick(wanted, axis) for axis in (0, 1)]
    column = types.tensor(types.F32, ((boxes.shape or (-1,))[0], 1))
    corners = emit.tf_op(
        "Split", (emit.number(1), emit.cast(boxes, types.F32)), (column,) * 4, {"num_split": 4}
    ).results
    top, left, bottom, right = (EmittedTensor(emit, corner) for corner in corners)
    down = _points(emit, (top, bottom), sizes[0], samples[0])
    across = _points(emit, (left, right), sizes[1], samples[1])
    pixels = _Pixels(op, emit, sizes)
    if str(tf.get(op, "method", "bilinear")) == "nearest":
        sampled = nearest_pixels(pixels.at, down.at, across.at)
    else:
        sampled = bilinear_pixels(pixels.at, wide, down.at, across.at)
    inside = down.is_inside.expand_dims(2) & across.is_inside.expand_dims(1)
    outside = float(tf.get(op, "extrapolation_value", 0.0))
    return inside.expand_dims(3).where(sampled, outside).value


class _Pixels:
    """The pixels of a batch of images, one after the other."""

    __slots__ = ("_first", "_rows", "_width")

    def __init__(self, op: Operation, emit: LiteRTBuilder, sizes: list[Scalar]) -> None:
        image = emit.cast(op.operands[0], types.F32)
        *around, channels = image.shape or (-1,)
        count = -1 if -1 in around else math.prod(around)
        target = emit.pack((count, emit.size(image, 3)))
        rows = emit.tf("Reshape", (image, target), types.tensor(types.F32, (count, channels)))
        self._rows = EmittedTensor(emit, rows)
        self._width = EmittedTensor(emit, emit.value(sizes[1]))
        owners = EmittedTensor(emit, emit.i32(op.operands[2]))
        self._first = owners.expand_dims(1) * EmittedTensor(emit, emit.value(sizes[0]))

    def at(self, row: EmittedTensor, column: EmittedTensor) -> EmittedTensor:
        """Returns the pixels of each box at whole rows and columns."""
        rows = (self._first + row.cast(np.int32)) * self._width
        places = rows.expand_dims(2) + column.cast(np.int32).expand_dims(1)
        return self._rows.op("Gather", self._rows, places)  # type: ignore[no-any-return]


_BECOMES = "Transpose BatchMatMulV2"

ENTRIES: tuple[Entry, ...] = (
    *(Lowering(op, _BECOMES, _resize, _ELEMENTS, _sizes_are_known) for op in ("ResizeArea", "ResizeBicubic")),
    Lowering("ScaleAndTranslate", _BECOMES, _resize, _ELEMENTS, all_of(_sizes_are_known, _is_scaled)),
    Lowering("CropAndResize", "Gather Floor Ceil SelectV2", _crop, _ELEMENTS, _crop_constraint),
)
