"""Convolutions, pooling, and normalization of batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tfconvert.converter.stablehlo.legalize.emit import DeclinedError, Emit, lowest
from tfconvert.converter.stablehlo.legalize.entry import Lowering, attribute
from tfconvert.converter.stablehlo.legalize.sizes import Dims
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.stablehlo_attributes import ConvAttr
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_FIRST = ("NCHW", "NCDHW", "NCW")
"""Layouts whose channels come before the spatial dimensions."""


def _spatial_axes(op: Operation, rank: int) -> range:
    return range(2, rank) if attribute(op, "data_format", "NHWC") in _FIRST else range(1, rank - 1)


def _extent(size: int, dilation: int) -> int:
    return (size - 1) * dilation + 1


def _padding(op: Operation, dims: Dims, window: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Returns the padding of each spatial dimension, of windows of an extent.

    Raises:
        DeclinedError: It depends on a size that is not known.
    """
    mode = attribute(op, "padding", "VALID")
    axes = _spatial_axes(op, len(dims))
    if mode == "EXPLICIT":
        amounts = attribute(op, "explicit_paddings", ())
        return [(amounts[2 * axis], amounts[2 * axis + 1]) for axis in axes]
    if mode == "VALID":
        return [(0, 0)] * len(axes)
    found = []
    for axis, extent, stride in zip(axes, window, strides, strict=True):
        dim = dims[axis]
        if stride == 1:
            total = extent - 1
        elif dim < 0:
            raise DeclinedError("padding SAME with strides depends on a size that is not known")
        else:
            total = max((-(-dim // stride) - 1) * stride + extent - dim, 0)
        found.append((total // 2, total - total // 2))
    return found


def _slid(dim: int, extent: int, stride: int, padding: tuple[int, int], emit: Emit) -> int:
    """Returns how many windows fit."""
    if dim < 0 and stride == 1 and sum(padding) == extent - 1:
        return dim
    padded = emit.compute("add", emit.size(dim), sum(padding) - extent)
    count = emit.compute("add", emit.compute("divide", padded, stride), 1)
    return count if isinstance(count, int) else emit.sizes.fresh(count)


def _table(padding: Sequence[tuple[int, int]]) -> Attribute:
    return tensor_data.of_array(np.array(padding, np.int64).reshape(-1, 2))


def _layouts(op: Operation, rank: int) -> ConvAttr:
    spatial = [str(number) for number in range(rank - 2)]
    is_first = attribute(op, "data_format", "NHWC") in _FIRST
    features = ["b", "f", *spatial] if is_first else ["b", *spatial, "f"]
    return ConvAttr.get(features, [*spatial, "i", "o"], features)


def _convolve(op: Operation, kernel: Value, groups: int, outputs: int, emit: Emit) -> Value:
    """Inserts a convolution of an op's first operand with a kernel."""
    value = op.operands[0]
    dims, window = emit.dims(value), emit.dims(kernel)[:-2]
    axes = _spatial_axes(op, len(dims))
    strides = [attribute(op, "strides")[axis] for axis in axes]
    dilations = [(attribute(op, "dilations", ()) or (1,) * len(dims))[axis] for axis in axes]
    if min(window, default=1) < 0:
        raise DeclinedError("the size of the kernel is not known")
    extents = [_extent(size, dilation) for size, dilation in zip(window, dilations, strict=True)]
    padding = _padding(op, dims, extents, strides)
    result = list(dims)
    for axis, extent, stride, amounts in zip(axes, extents, strides, padding, strict=True):
        result[axis] = _slid(dims[axis], extent, stride, amounts, emit)
    result[1 if axes[0] == 2 else len(dims) - 1] = outputs
    count = len(axes)
    properties: dict[str, attrs.Value] = {
        "window_strides": tuple(strides), "padding": _table(padding), "lhs_dilation": (1,) * count,
        "rhs_dilation": tuple(dilations), "window_reversal": (False,) * count,
        "dimension_numbers": _layouts(op, len(dims)), "feature_group_count": groups, "batch_group_count": 1,
    }  # fmt: skip
    return emit.one("convolution", (value, kernel), types.element_of(value.type), result, properties)


def _channels(op: Operation, dims: Dims) -> int:
    channels = dims[1 if attribute(op, "data_format", "NHWC") in _FIRST else len(dims) - 1]
    if channels < 0:
        raise DeclinedError("the number of channels is not known")
    return channels


def _conv(op: Operation, emit: Emit) -> Value:
    kernel = op.operands[1]
    *_, inputs, outputs = emit.dims(kernel)
    return _convolve(op, kernel, _channels(op, emit.dims(op.operands[0])) // inputs, outputs, emit)


def _depthwise(op: Operation, emit: Emit) -> Value:
    kernel = op.operands[1]
    height, width, channels, multiplier = emit.dims(kernel)
    kernel = emit.reshape(kernel, (height, width, 1, channels * multiplier))
    return _convolve(op, kernel, channels, channels * multiplier, emit)


def _transposed(op: Operation, emit: Emit) -> Value:
    """Inserts the gradient of a convolution: one with a dilated input and the reversed kernel."""
    sizes, kernel, value = op.operands
    dims, window = emit.dims(value), emit.dims(kernel)
    axes = _spatial_axes(op, len(dims))
    wanted = emit.sizes.of(op.results[0])
    if wanted is None or any(wanted[axis] < 0 or dims[axis] < 0 for axis in axes):
        known = emit.sizes.elements(sizes)
        if known is None or any(known[axis] < 0 for axis in axes) or any(dims[axis] < 0 for axis in axes):
            raise DeclinedError("the size of its result is not known")
        wanted = tuple(known)
    strides = [attribute(op, "strides")[axis] for axis in axes]
    dilations = [(attribute(op, "dilations", ()) or (1,) * len(dims))[axis] for axis in axes]
    extents = [_extent(size, dilation) for size, dilation in zip(window, dilations, strict=False)]
    forward = _padding(op, wanted, extents, strides)
    padding = []
    for axis, extent, stride, (low, _) in zip(axes, extents, strides, forward, strict=True):
        before = extent - 1 - low
        padding.append((before, wanted[axis] + extent - 1 - before - (dims[axis] - 1) * stride - 1))
    turned = emit.one("reverse", (kernel,), types.element_of(kernel.type), window,
                      {"dimensions": tuple(range(len(axes)))})  # fmt: skip
    *_, outputs, _ = window
    turned = emit.transpose(turned, [*range(len(axes)), len(axes) + 1, len(axes)])
    result = list(dims)
    for axis in axes:
        result[axis] = wanted[axis]
    result[1 if axes[0] == 2 else len(dims) - 1] = outputs
    properties: dict[str, attrs.Value] = {
        "window_strides": (1,) * len(axes), "padding": _table(padding), "lhs_dilation": tuple(strides),
        "rhs_dilation": tuple(dilations), "window_reversal": (False,) * len(axes),
        "dimension_numbers": _layouts(op, len(dims)), "feature_group_count": 1, "batch_group_count": 1,
    }  # fmt: skip
    return emit.one("convolution", (value, turned), types.element_of(value.type), result, properties)


def _window(op: Operation, value: Value, name: str, initial: float, emit: Emit) -> Value:
    """Inserts a reduction of windows."""
    dims, element = emit.dims(value), types.element_of(value.type)
    window, strides = attribute(op, "ksize"), attribute(op, "strides")
    axes = _spatial_axes(op, len(dims))
    spatial = _padding(op, dims, [window[axis] for axis in axes], [strides[axis] for axis in axes])
    padding = [(0, 0)] * len(dims)
    for axis, amounts in zip(axes, spatial, strict=True):
        padding[axis] = amounts
    result = [dim if size == stride == 1 else _slid(dim, size, stride, amounts, emit)
              for dim, size, stride, amounts in zip(dims, window, strides, padding, strict=True)]  # fmt: skip
    ones = (1,) * len(dims)
    properties: dict[str, attrs.Value] = {
        "window_dimensions": tuple(window), "window_strides": tuple(strides), "base_dilations": ones,
        "window_dilations": ones, "padding": _table(padding),
    }  # fmt: skip
    operands = (value, emit.scalar(initial, element))
    return emit.one("reduce_window", operands, element, result, properties, (emit.body(name, element),))


def _max_pool(op: Operation, emit: Emit) -> Value:
    value = op.operands[0]
    return _window(op, value, "maximum", lowest(types.element_of(value.type)), emit)


def _avg_pool(op: Operation, emit: Emit) -> Value:
    value = op.operands[0]
    total = _window(op, value, "add", 0, emit)
    if attribute(op, "padding", "VALID") == "VALID":
        return emit.binary("divide", total, int(np.prod(attribute(op, "ksize"))))
    # What is padded doesn't count: as many elements as the window has there.
    dims = emit.dims(value)
    axes = _spatial_axes(op, len(dims))
    shape = [dim if axis in axes else 1 for axis, dim in enumerate(dims)]
    ones = emit.broadcast(emit.scalar(1, types.element_of(value.type)), shape)
    return emit.binary("divide", total, _window(op, ones, "add", 0, emit))


def _batch_norm(op: Operation, emit: Emit) -> Sequence[Value]:
    if attribute(op, "is_training", True):
        raise DeclinedError("it is in training mode")
    value, scale, offset, mean, variance = op.operands
    dims = emit.dims(value)
    axis = 1 if attribute(op, "data_format", "NHWC") in _FIRST else len(dims) - 1
    epsilon = float(getattr(op.properties.get("epsilon"), "value", 1e-4))
    factor = emit.binary("multiply", emit.unary("rsqrt", emit.binary("add", variance, epsilon)), scale)
    shift = emit.binary("subtract", offset, emit.binary("multiply", mean, factor))
    element = types.element_of(value.type)
    wide = emit.convert(value, types.element_of(scale.type))
    scaled = emit.binary("multiply", wide, emit.broadcast(factor, dims, (axis,)))
    result = emit.convert(emit.binary("add", scaled, emit.broadcast(shift, dims, (axis,))), element)
    return [result, mean, variance, mean, variance, mean][: len(op.results)]


LOWERINGS: Mapping[str, Lowering] = {
    "AvgPool": _avg_pool,
    "AvgPool3D": _avg_pool,
    "Conv2D": _conv,
    "Conv2DBackpropInput": _transposed,
    "Conv3D": _conv,
    "Conv3DBackpropInputV2": _transposed,
    "DepthwiseConv2dNative": _depthwise,
    "FusedBatchNorm": _batch_norm,
    "FusedBatchNormV2": _batch_norm,
    "FusedBatchNormV3": _batch_norm,
    "MaxPool": _max_pool,
    "MaxPool3D": _max_pool,
}
