"""Maximum and average over windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from tfconvert.ops.call import Array, Call, Kernel, Results, ints, is_integer, lowest, typed, wide
from tfconvert.ops.kernels.windows import Windows, from_channels_last, spatial, to_channels_last, windows


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


KERNELS: Mapping[str, Kernel] = {
    "AvgPool": partial(_average, "NHWC"),
    "AvgPool3D": partial(_average, "NDHWC"),
    "MaxPool": partial(_max, "NHWC"),
    "MaxPool3D": partial(_max, "NDHWC"),
    "MaxPoolV2": partial(_max, "NHWC"),
    "MaxPoolWithArgmax": _max_with_argmax,
}
"""Op name -> kernel."""
