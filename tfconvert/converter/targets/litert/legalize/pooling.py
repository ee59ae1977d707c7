"""Pooling, also with the indices of the maxima; in three dimensions two poolings, by height and width and by depth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.convolution import explicit_pads, slides
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering, ints
from tfconvert.converter.targets.litert.legalize.indexing import numbers
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_FLOAT = "f32"
_LOWEST = float(np.finfo(np.float32).min)


def _window(op: Operation, name: str) -> Sequence[int]:
    return tuple(tf.get(op, name))


def _constraint(op: Operation) -> Failure | None:
    shape = types.shape_of(op.operands[0].type)
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
        "fused_activation_function": "NONE",
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
    shapes = types.shape_of(op.operands[0].type), types.shape_of(op.results[0].type)
    if any(not types.is_static((shape or (-1, -1))[1:]) for shape in shapes):
        return Failure("only the batch may be of unknown size")
    return None


def _pool_3d(emit: LiteRTBuilder, op: Operation, name: str) -> Value:
    """Pools height and width of every slice, then depth with height and width laid side by side."""
    shape, pooled = types.shape_of(op.operands[0].type), types.shape_of(op.results[0].type)
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


# Largest number of elements of a window: each is a slice.
_MAX_TAPS = 64


def _argmax_constraint(op: Operation) -> Failure | None:
    shape = types.shape_of(op.operands[0].type)
    if shape is None or len(shape) != 4 or min(shape[1:]) < 1:
        return Failure("only the batch may be of unknown size")
    size, strides = tf.get(op, "ksize"), tf.get(op, "strides")
    if size[0] != 1 or size[3] != 1 or strides[0] != 1 or strides[3] != 1:
        return Failure("it pools over the batch or the channels")
    if tf.get(op, "padding") not in ("SAME", "VALID"):
        return Failure("its padding is neither SAME nor VALID")
    if math.prod(shape[1:]) * max(shape[0], 1) > np.iinfo(np.int32).max:
        return Failure("places in the image don't fit 32 bits")
    return None if math.prod(size) <= _MAX_TAPS else Failure(f"its windows have more than {_MAX_TAPS} places")


def _axis(op: Operation, axis: int) -> tuple[int, int]:
    """Returns how many windows there are along an axis, and how much of the first is before the image."""
    dim = (types.shape_of(op.operands[0].type) or ())[axis]
    size, stride = tf.get(op, "ksize")[axis], tf.get(op, "strides")[axis]
    if tf.get(op, "padding") == "VALID":
        return max((dim - size) // stride + 1, 0), 0
    count = -(-dim // stride)
    return count, max((count - 1) * stride + size - dim, 0) // 2


def _max_with_argmax(op: Operation, emit: LiteRTBuilder) -> Sequence[Value]:
    """Compares slices, one for each place in a window; the first of equals is taken, as TensorFlow does.

    A place in the image is that of the window's corner, which may be outside, plus that within the window.
    """
    image, pooled = op.operands[0], op.results[0]
    _, height, width, channels = types.shape_of(image.type) or ()
    size, strides = tf.get(op, "ksize")[1:3], tf.get(op, "strides")[1:3]
    (rows, top), (columns, left) = _axis(op, 1), _axis(op, 2)
    taps = [(y, x) for y in range(size[0]) for x in range(size[1])]
    parts = _slices(emit, _padded(op, emit), taps, (rows, columns), strides)
    stacked = types.tensor(types.F32, (*(types.shape_of(parts[0].type) or ()), len(taps)))
    window = emit.tf("Pack", parts, stacked, {"axis": 4})
    found_type = types.tensor(types.I32, types.shape_of(parts[0].type))
    found = emit.tf("ArgMax", (window, emit.scalar(-1, types.I32)), found_type, {"output_type": types.I32})
    within = np.array([(y * width + x) * channels for y, x in taps], np.int32)
    steps = emit.tf(
        "GatherV2", (emit.constant(within), found, emit.scalar(0, types.I32)), found_type, {"batch_dims": 0}
    )
    corners = [
        np.arange(count) * stride - before
        for count, stride, before in ((rows, strides[0], top), (columns, strides[1], left))
    ]
    corner = (corners[0][:, None, None] * width + corners[1][:, None]) * channels + np.arange(channels)
    places = emit.binary("AddV2", steps, emit.constant(corner.astype(np.int32)))
    if tf.get(op, "include_batch_in_index", False):
        before = emit.binary("Mul", numbers(emit, image, 0), height * width * channels)
        places = emit.binary("AddV2", places, emit.reshape(before, (-1, 1, 1, 1)))
    options = {name: tf.get(op, name) for name in ("ksize", "strides", "padding")}
    best = emit.tf("MaxPool", (image,), pooled.type, options)
    return [best, emit.cast(places, types.element_of(op.results[1].type))]


def _padded(op: Operation, emit: LiteRTBuilder) -> Value:
    """Returns the image padded for windows that reach outside of it: with minus infinity, which is never a maximum."""
    pads = [(0, 0), (0, 0), (0, 0), (0, 0)]
    for axis in (1, 2):
        count, before = _axis(op, axis)
        dim = (types.shape_of(op.operands[0].type) or ())[axis]
        reach = (count - 1) * tf.get(op, "strides")[axis] + tf.get(op, "ksize")[axis]
        pads[axis] = (before, max(reach - dim - before, 0))
    return emit.pad(op.operands[0], pads, -math.inf) if any(map(any, pads)) else op.operands[0]


def _slices(
    emit: LiteRTBuilder, image: Value, taps: Sequence[tuple[int, int]], counts: tuple[int, int], strides: Sequence[int]
) -> list[Value]:
    """Returns the elements of all windows at some offsets."""
    batch, _, _, channels = types.shape_of(image.type) or ()
    part = types.tensor(types.F32, (batch, *counts, channels))
    results = []
    for tap in taps:
        ends = [at + (count - 1) * stride + 1 for at, count, stride in zip(tap, counts, strides, strict=True)]
        bounds = (emit.ints((0, *tap, 0)), emit.ints((0, *ends, 0)), emit.ints((1, *strides, 1)))
        results.append(emit.tf("StridedSlice", (image, *bounds), part, {"begin_mask": 9, "end_mask": 9}))
    return results


ENTRIES: tuple[Entry, ...] = (
    Lowering("AvgPool", "average_pool_2d", _average, _FLOAT, _unpadded),
    Lowering("MaxPool", "max_pool_2d", _maximum, _FLOAT, _constraint),
    Lowering("MaxPoolV2", "MaxPool", _maximum_v2, _FLOAT, _constant_window),
    Lowering("AvgPool3D", "AvgPool", _average_3d, _FLOAT, _pool_3d_constraint),
    Lowering("MaxPool3D", "MaxPool", _maximum_3d, _FLOAT, _pool_3d_constraint),
    Lowering(
        "MaxPoolWithArgmax",
        "StridedSlice Pack ArgMax GatherV2 MaxPool",
        _max_with_argmax,
        "f32",
        _argmax_constraint,
        note="where all of a window is minus infinity or NaN, the place that is reported may be another",
    ),
)
