"""Maximum and average over windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tfconvert.ops.call import Array, Call, Results, ints, is_integer, lowest, typed, wide
from tfconvert.ops.declaration import Decomposition, op
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands
from tfconvert.ops.shape_functions import Shapes
from tfconvert.ops.windows import (
    MAX_TAPS,
    Windows,
    channels_first,
    explicit_pads,
    from_channels_last,
    image_shape,
    spatial,
    to_channels_last,
    windows,
)
from tfconvert.schema.dialects import tf
from tfconvert.schema.dialects.dims import text, window, with_rank
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation


def _pool(operands: Operands, rank: int, kernel: Sequence[int], strides: Sequence[int]) -> Shape:
    image = with_rank(operands.shape(0), rank, "the input")
    layout = operands.text("data_format")
    padding = operands.text("padding")
    sizes = zip(
        spatial(image, layout),
        spatial(kernel, layout),
        spatial(strides, layout),
        explicit_pads(operands, rank, layout),
        strict=True,
    )
    space = [window(size, length, stride, padding, 1, pads) for size, length, stride, pads in sizes]
    depth_at = 1 if channels_first(layout) else rank - 1
    # A window over channels (of the NHWC MaxPool) is as good a window as any other.
    depth = window(image[depth_at], kernel[depth_at], strides[depth_at], padding if padding != "EXPLICIT" else "VALID")
    return image_shape(image[0], space, depth, layout)


def _pool_by_attributes_shape(rank: int, operands: Operands) -> Shapes:
    return (_pool(operands, rank, operands.integers("ksize", rank), operands.integers("strides", rank)),)


def _pool_v2_shape(operands: Operands) -> Shapes:
    """The window and the strides are operands."""
    kernel, strides = operands.ints(1), operands.ints(2)
    if kernel is None or strides is None:
        image = with_rank(operands.shape(0), 4, "the input")
        return ((image[0], -1, -1, -1),)
    return (_pool(operands, 4, with_rank(kernel, 4, "ksize"), with_rank(strides, 4, f"strides {text(strides)}")),)


def _pool_with_indices_shape(operands: Operands) -> Shapes:
    return (*_pool_by_attributes_shape(4, operands),) * 2


def _pooled(call: Call, x: Array, size: Sequence[int], strides: Sequence[int], data_format: str) -> Windows:
    channel = 1 if data_format.startswith("NC") else len(size) - 1
    if size[0] != 1 or size[channel] != 1 or strides[0] != 1 or strides[channel] != 1:
        raise call.bad("pooling over the batch or the channels has no reference kernel")
    return windows(call, x.shape[1:-1], spatial(size, data_format), data_format, strides)


def _max(default_format: str, call: Call) -> Results:
    x = call.inputs[0]
    data_format = call.text("data_format", default_format)
    images = to_channels_last(x, data_format)
    if len(call.inputs) == 3:
        size, strides = ints(call.inputs[1]), ints(call.inputs[2])
    else:
        size, strides = call.integers("ksize"), call.integers("strides")
    at = _pooled(call, images, size, strides, data_format)
    padded = at.pad(images, lowest(x.dtype))
    result = np.full((x.shape[0], *at.outputs, images.shape[-1]), lowest(x.dtype), x.dtype)
    for _, index in at.taps():
        np.maximum(result, padded[index], out=result)
    return (from_channels_last(result, data_format),)


def _average(default_format: str, call: Call) -> Results:
    (x,) = call.inputs
    data_format = call.text("data_format", default_format)
    images = wide(to_channels_last(x, data_format))
    at = _pooled(call, images, call.integers("ksize"), call.integers("strides"), data_format)
    padded = at.pad(images)
    # Padding is not counted.
    present = at.pad(np.ones((1, *images.shape[1:-1], 1), images.dtype))
    total = np.zeros((x.shape[0], *at.outputs, images.shape[-1]), images.dtype)
    count = np.zeros((1, *at.outputs, 1), images.dtype)
    for _, index in at.taps():
        total += padded[index]
        count += present[index]
    mean = total // count if is_integer(total.dtype) else total / count
    return (typed(from_channels_last(np.asarray(mean), data_format), x.dtype),)


def _max_with_argmax(call: Call) -> Results:
    (x,) = call.inputs
    at = _pooled(call, x, call.integers("ksize"), call.integers("strides"), "NHWC")
    batch, height, width, channels = x.shape
    places = np.arange(x.size, dtype=np.int64).reshape(x.shape)
    if not call.flag("include_batch_in_index"):
        places %= height * width * channels
    values, indices = at.pad(x, lowest(x.dtype)), at.pad(places, -1)
    best = np.full((batch, *at.outputs, channels), lowest(x.dtype), x.dtype)
    where = np.full(best.shape, -1, np.int64)
    for _, index in at.taps():
        better = (indices[index] >= 0) & ((where < 0) | (values[index] > best))
        best = np.where(better, values[index], best)
        where = np.where(better, indices[index], where)
    return best, where.astype(call.dtype("Targmax", np.int64))


def _windows_are_known(op: Operation) -> str | None:
    shape = op.operands[0].shape
    if shape is None or len(shape) != 4 or min(shape[1:]) < 1:
        return "only the batch may be of unknown size"
    size, strides = tf.get(op, "ksize"), tf.get(op, "strides")
    if size[0] != 1 or size[3] != 1 or strides[0] != 1 or strides[3] != 1:
        return "it pools over the batch or the channels"
    if tf.get(op, "padding") not in ("SAME", "VALID"):
        return "its padding is neither SAME nor VALID"
    if math.prod(shape[1:]) * max(shape[0], 1) > np.iinfo(np.int32).max:
        return "places in the image don't fit 32 bits"
    return None if math.prod(size) <= MAX_TAPS else f"its windows have more than {MAX_TAPS} places"


def max_pool_with_argmax(
    image: Tensor,
    *,
    ksize: Sequence[int] = (1, 2, 2, 1),
    strides: Sequence[int] = (1, 2, 2, 1),
    padding: str = "VALID",
    include_batch_in_index: bool = False,
    Targmax: Any = np.int64,  # noqa: N803
) -> Sequence[Tensor]:
    """Compares slices, one for each place in a window; the first of equals is taken, as TensorFlow does.

    A place in the image is that of the window's corner, which may be outside, plus that within the window.
    """
    _, height, width, channels = image.shape or ()
    at = windows(Call("MaxPool", (), {"padding": padding}), (height, width), ksize[1:3], "NHWC", strides)
    # What is added by padding is never a maximum.
    parts = at.slices(image, -math.inf)
    window = image.op("Pack", *parts, axis=4, N=len(parts))
    found = image.op("ArgMax", window, -1, output_type=np.dtype(np.int32))
    within = np.array([(y * width + x) * channels for (y, x), _ in at.taps()], np.int32)
    steps = zip(at.outputs, at.strides, at.pads, strict=True)
    rows, columns = (np.arange(count) * stride - pad[0] for count, stride, pad in steps)
    corner = (rows[:, None, None] * width + columns[:, None]) * channels + np.arange(channels)
    places = image.of(within).gather(found) + image.of(corner.astype(np.int32))
    if include_batch_in_index:
        places = places + (image.numbers(0) * (height * width * channels)).reshape([-1, 1, 1, 1])
    best = image.op("MaxPool", image, ksize=list(ksize), strides=list(strides), padding=padding)
    return best, places.cast(Targmax)


OPS = (
    op("AvgPool", shape=partial(_pool_by_attributes_shape, 4), compute=partial(_average, "NHWC")),
    op("AvgPool3D", shape=partial(_pool_by_attributes_shape, 5), compute=partial(_average, "NDHWC")),
    op("MaxPool", shape=partial(_pool_by_attributes_shape, 4), compute=partial(_max, "NHWC")),
    op("MaxPool3D", shape=partial(_pool_by_attributes_shape, 5), compute=partial(_max, "NDHWC")),
    op("MaxPoolV2", shape=_pool_v2_shape, compute=partial(_max, "NHWC")),
    op(
        "MaxPoolWithArgmax",
        shape=_pool_with_indices_shape,
        compute=_max_with_argmax,
        decompose=(Decomposition(max_pool_with_argmax, requires=_windows_are_known),),
    ),
)
