"""Resizing and other ops on images and boxes."""

from __future__ import annotations

import math

from xdsl.ir import Operation, SSAValue

from converter.legalize.emit import Emit
from converter.legalize.row import Attr, Entry, Lowering, Row, constant_operand
from schema.dialects import tensor_data, tf, types

_FLOAT = "f32"

_RESIZE = {
    "align_corners": Attr("align_corners", False),
    "half_pixel_centers": Attr("half_pixel_centers", False),
}


def _as_float(op: Operation, emit: Emit) -> SSAValue:
    """Resizes as floats, which bilinear resizing has as a result in any case."""
    image = emit.cast(op.operands[0], types.F32)
    shape = types.shape_of(op.results[0].type)
    name = op.name.removeprefix("tf.")
    resized = emit.tf(name, (image, op.operands[1]), types.tensor(types.F32, shape), op.properties)
    return emit.cast(resized, types.element_of(op.results[0].type))


def _sigma(op: Operation) -> float:
    constant = tensor_data.constant_of(op.operands[5])
    assert constant is not None
    return float(tensor_data.to_array(constant).reshape(()))


def _suppress(op: Operation, emit: Emit) -> list[SSAValue]:
    """Selects boxes; the kernel fills up to the largest number with zeros, which are cut off unless asked for."""
    version = int(op.name[-1])
    operands = list(op.operands)
    if version == 2:
        operands.append(emit.scalar(-math.inf, types.F32))
    if version == 5 and _sigma(op):
        # TensorFlow only lowers the scores of overlapping boxes then; the kernel would drop them as well.
        operands[3] = emit.scalar(1, types.F32)
    limit = tensor_data.constant_of(operands[2])
    size = -1 if limit is None else int(tensor_data.to_array(limit).reshape(()))
    elements = (types.I32, types.F32, types.I32) if version == 5 else (types.I32, types.I32)
    shapes: list[types.Shape] = [(size,)] * (len(elements) - 1) + [()]
    result_types = [types.tensor(element, shape) for element, shape in zip(elements, shapes, strict=True)]
    name = "non_max_suppression_v5" if version == 5 else "non_max_suppression_v4"
    *selected, valid = emit.tfl_op(name, operands, result_types).results
    padded: list[SSAValue] = [*selected]
    if not tf.get(op, "pad_to_max_output_size", False):
        count = emit.reshape(valid, (1,))
        padded = [
            emit.tf("Slice", (value, emit.ints((0,)), count), types.tensor(types.element_of(value.type), (-1,)))
            for value in padded
        ]
    return [*padded, valid][: len(op.results)]


ENTRIES: tuple[Entry, ...] = (
    Row("ResizeBilinear", "resize_bilinear", "f32", narrow=(1,), options=_RESIZE),
    Lowering("ResizeBilinear", "Cast ResizeBilinear", _as_float, "ui8 i8 i16 ui16 i32 f16"),
    Lowering("NonMaxSuppressionV2", "non_max_suppression_v4 Slice", _suppress, _FLOAT),
    Lowering("NonMaxSuppressionV3", "non_max_suppression_v4 Slice", _suppress, _FLOAT),
    Lowering("NonMaxSuppressionV4", "non_max_suppression_v4 Slice", _suppress, _FLOAT),
    Lowering("NonMaxSuppressionV5", "non_max_suppression_v5 Slice", _suppress, _FLOAT, constant_operand(5, "sigma")),
    Row("ResizeNearestNeighbor", "resize_nearest_neighbor", "f32 ui8 i8 i16", narrow=(1,), options=_RESIZE),
    Lowering("ResizeNearestNeighbor", "Cast ResizeNearestNeighbor", _as_float, "ui16 f16"),
)
