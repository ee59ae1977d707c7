"""Pooling, also with the indices of the maxima; in three dimensions two poolings, by height and width and by depth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.convolution import explicit_pads, slides
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering, ints
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tf, tfl, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_FLOAT = "f32"
_LOWEST = float(np.finfo(np.float32).min)


def _window(op: Operation, name: str) -> Sequence[int]:
    return tuple(tf.get(op, name))


def _constraint(op: Operation) -> Failure | None:
    shape = op.operands[0].shape
    if shape is None:
        return Failure("the input's rank is not known")
    return slides(op, ("ksize", "strides"), len(shape))


def _unpadded(op: Operation) -> Failure | None:
    return _constraint(op) or (Failure("the padding is named") if explicit_pads(op) is not None else None)


def _options(op: Operation, padding: str) -> dict[str, Any]:
    ksize, strides = _window(op, "ksize"), _window(op, "strides")
    return {
        "padding": padding,
        "stride_h": strides[1],
        "stride_w": strides[2],
        "filter_height": ksize[1],
        "filter_width": ksize[2],
        **tfl.NOT_FUSED,
    }


def _average(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.tfl("average_pool_2d", op.operands, op.results[0].type, _options(op, str(tf.get(op, "padding"))))


def _maximum(op: Operation, emit: LiteRTBuilder) -> Value:
    pads = explicit_pads(op)
    if pads is None:
        return emit.tfl("max_pool_2d", op.operands, op.results[0].type, _options(op, str(tf.get(op, "padding"))))
    padded = emit.pad(op.operands[0], pads, _LOWEST)
    return emit.tfl("max_pool_2d", (padded,), op.results[0].type, _options(op, "VALID"))


def _constant_window(op: Operation) -> Failure | None:
    constants = (tensor_data.constant_of(operand) for operand in op.operands[1:3])
    return None if all(constants) else Failure("ksize or strides are not constants")


def _maximum_v2(op: Operation, emit: LiteRTBuilder) -> Value:
    window = {name: ints(operand) for name, operand in zip(("ksize", "strides"), op.operands[1:], strict=True)}
    attributes = {name: op.properties[name] for name in ("padding", "data_format") if name in op.properties}
    return emit.tf("MaxPool", op.operands[:1], op.results[0].type, attributes | window)


def _pool_3d_constraint(op: Operation) -> Failure | None:
    if (reason := _unpadded(op)) is not None:
        return reason
    shapes = op.operands[0].shape, op.results[0].shape
    if any(not types.is_static((shape or (-1, -1))[1:]) for shape in shapes):
        return Failure("only the batch may be of unknown size")
    return None


def _pool_3d(emit: LiteRTBuilder, op: Operation, name: str) -> Value:
    """Pools height and width of every slice, then depth with height and width laid side by side."""
    shape, pooled = op.operands[0].shape, op.results[0].shape
    assert shape is not None
    assert pooled is not None
    batch, depth, height, width, channels = shape
    new_depth, new_height, new_width = pooled[1:4]
    ksize, strides = _window(op, "ksize"), _window(op, "strides")
    slices = -1 if batch < 0 else batch * depth
    padding = tf.get(op, "padding")

    def pool(value: Value, result: Sequence[int], ksize: Sequence[int], strides: Sequence[int]) -> Value:
        attributes = {"ksize": ksize, "strides": strides, "padding": padding, "data_format": "NHWC"}
        return emit.tf(name, (value,), types.tensor(types.F32, result), attributes)

    flat = emit.reshape(op.operands[0], (slices, height, width, channels))
    flat = pool(flat, (slices, new_height, new_width, channels), (1, *ksize[2:4], 1), (1, *strides[2:4], 1))
    area = math.prod((new_height, new_width))
    deep = emit.reshape(flat, (batch, depth, area, channels))
    deep = pool(deep, (batch, new_depth, area, channels), (1, ksize[1], 1, 1), (1, strides[1], 1, 1))
    return emit.reshape(deep, pooled)


def _maximum_3d(op: Operation, emit: LiteRTBuilder) -> Value:
    return _pool_3d(emit, op, "MaxPool")


def _average_3d(op: Operation, emit: LiteRTBuilder) -> Value:
    return _pool_3d(emit, op, "AvgPool")


ENTRIES: tuple[Entry, ...] = (
    Lowering("AvgPool", "average_pool_2d", _average, _FLOAT, _unpadded),
    Lowering("MaxPool", "max_pool_2d", _maximum, _FLOAT, _constraint),
    Lowering("MaxPoolV2", "MaxPool", _maximum_v2, _FLOAT, _constant_window),
    Lowering("AvgPool3D", "AvgPool", _average_3d, _FLOAT, _pool_3d_constraint),
    Lowering("MaxPool3D", "MaxPool", _maximum_3d, _FLOAT, _pool_3d_constraint),
)
