"""Resizing and other ops on images and boxes."""

from __future__ import annotations

import numpy as np

from tfconvert.converter.ir.constants import constant_number
from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Attr, BuiltinRow, Entry, Lowering, number_operand
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_FLOAT = "f32"

# The operand for how much overlapping boxes count.
_SIGMA = 5

_SOFT = "NonMaxSuppressionV5-soft"

_RESIZE = {"align_corners": Attr("align_corners", False), "half_pixel_centers": Attr("half_pixel_centers", False)}


def _as_float(op: Operation, emit: LiteRTBuilder) -> Value:
    """Resizes as floats, the result type of bilinear resizing in any case."""
    image = emit.cast(op.operands[0], types.F32)
    shape = op.results[0].shape
    name = op.name.removeprefix("tf.")
    resized = emit.tf(name, (image, op.operands[1]), types.tensor(types.F32, shape), op.properties)
    return emit.cast(resized, op.results[0].element)


def _suppresses(op: Operation) -> Failure | None:
    """The constraint that a threshold is below 1: the kernel drops boxes that overlap by it, also equal ones."""
    if op.operands[2].shape not in ((), None):
        return Failure("the largest number of boxes is not a scalar")
    threshold = constant_number(op.operands[3])
    return (
        Failure("the kernel drops equal boxes, which overlap by 1")
        if threshold is not None and threshold >= 1
        else None
    )


def _is_hard(op: Operation) -> Failure | None:
    return number_operand(_SIGMA, "sigma")(op) or (
        Failure("its sigma is not zero") if constant_number(op.operands[_SIGMA]) else _suppresses(op)
    )


def _is_soft(op: Operation) -> Failure | None:
    return number_operand(_SIGMA, "sigma")(op) or (
        None if constant_number(op.operands[_SIGMA]) else Failure("its sigma is zero")
    )


def _just_above(emit: LiteRTBuilder, threshold: Value) -> Value:
    """Returns the next larger float: the kernel drops boxes that overlap by the threshold, TensorFlow by more."""
    constant = tensor_data.constant_of(threshold)
    if constant is not None:
        return emit.constant(np.asarray(np.nextafter(tensor_data.to_array(constant), np.float32(1))))
    above = emit.binary("Mul", threshold, float(1 + np.finfo(np.float32).eps))
    return emit.binary("Minimum", emit.binary("Maximum", above, float(np.finfo(np.float32).tiny)), 1.0)


def _suppress(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    """Selects boxes; the kernel fills up to the largest number with zeros, which are cut off unless required."""
    version = int(op.name[-1])
    operands = list(op.operands)
    if version == 2:
        operands.append(emit.scalar(float(np.finfo(np.float32).min), types.F32))
    # With a sigma TensorFlow only lowers the scores of overlapping boxes; the kernel would drop them as well.
    soft = version == 5 and constant_number(op.operands[_SIGMA])
    operands[3] = emit.scalar(1, types.F32) if soft else _just_above(emit, operands[3])
    limit = tensor_data.constant_of(operands[2])
    size = -1 if limit is None else int(tensor_data.to_array(limit).reshape(()))
    elements = (types.I32, types.F32, types.I32) if version == 5 else (types.I32, types.I32)
    shapes: list[types.Shape] = [(size,)] * (len(elements) - 1) + [()]
    result_types = [types.tensor(element, shape) for element, shape in zip(elements, shapes, strict=True)]
    name = "non_max_suppression_v5" if version == 5 else "non_max_suppression_v4"
    *selected, valid = emit.tfl_op(name, operands, result_types).results
    padded: list[Value] = [*selected]
    if not tf.get(op, "pad_to_max_output_size", False):
        count = emit.reshape(valid, (1,))
        padded = [
            emit.tf("Slice", (value, emit.ints((0,)), count), types.tensor(value.element, (-1,))) for value in padded
        ]
    return [*padded, valid][: len(op.results)]


ENTRIES: tuple[Entry, ...] = (
    BuiltinRow("ResizeBilinear", "resize_bilinear", "f32", narrow=(1,), options=_RESIZE),
    Lowering("ResizeBilinear", "Cast ResizeBilinear", _as_float, "ui8 i8 i16 ui16 i32 f16"),
    *(
        Lowering(f"NonMaxSuppressionV{version}", "non_max_suppression_v4 Slice", _suppress, _FLOAT, _suppresses)
        for version in (2, 3, 4)
    ),
    Lowering("NonMaxSuppressionV5", "non_max_suppression_v5 Slice", _suppress, _FLOAT, _is_hard),
    Lowering(
        "NonMaxSuppressionV5",
        "non_max_suppression_v5 Slice",
        _suppress,
        _FLOAT,
        _is_soft,
        name=_SOFT,
        note="boxes equal to a chosen one are dropped, TensorFlow lowers their scores only",
    ),
    BuiltinRow("ResizeNearestNeighbor", "resize_nearest_neighbor", "f32 ui8 i8 i16", narrow=(1,), options=_RESIZE),
    Lowering("ResizeNearestNeighbor", "Cast ResizeNearestNeighbor", _as_float, "ui16 f16"),
)
