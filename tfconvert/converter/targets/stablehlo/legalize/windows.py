"""Convolutions, pooling and padding.

Convolutions have any layout, padding, dilation and groups, may be depthwise, and have gradients to the input. Padding
that sizes at run time decide is an operand, as `dynamic_conv` has it; that of a gradient is put around the input before
it is convolved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tfconvert.converter.ir.constants import constant_array
from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite, ints
from tfconvert.converter.targets.stablehlo.legalize.reductions import arg_body
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, padded, pick, requested
from tfconvert.converter.targets.stablehlo.legalize.sizes import Dims
from tfconvert.converter.targets.stablehlo.legalize.slicing import from_to
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.dims import UNKNOWN
from tfconvert.schema.dialects.stablehlo import ConvAttr
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

FIRST = ("NCHW", "NCDHW", "NCW")
"""Layouts whose channels come before the spatial dimensions."""

Scalar = Value | int
Amounts = tuple[Scalar, Scalar]
"""How much is padded before an axis and behind it."""


class Axis(NamedTuple):
    """The windows along one axis.

    Attributes:
        number: The axis.
        size: Elements of a window.
        stride: Steps between windows.
        dilation: Steps between the elements of a window.
    """

    number: int
    size: int
    stride: int
    dilation: int

    @property
    def extent(self) -> int:
        """The extent of a window in elements."""
        return (self.size - 1) * self.dilation + 1


def spatial_axes(op: Operation, rank: int) -> range:
    """Returns the axes that windows move over."""
    return range(2, rank) if tf.get(op, "data_format", "NHWC") in FIRST else range(1, rank - 1)


def channel_axis(op: Operation, rank: int) -> int:
    return 1 if tf.get(op, "data_format", "NHWC") in FIRST else rank - 1


def axes_of(op: Operation, rank: int, window: Sequence[int]) -> list[Axis]:
    """Returns the windows along each spatial axis.

    Args:
        op: An op with the attributes `strides` and maybe `dilations`.
        rank: The images' rank.
        window: The sizes of windows along the spatial axes.

    Raises:
        Declined: A size of the windows is not known.
    """
    if min(window, default=1) < 0:
        raise Declined("the size of the kernel is not known")
    strides = tf.get(op, "strides")
    dilations = tf.get(op, "dilations", ()) or (1,) * rank
    axes = spatial_axes(op, rank)
    return [Axis(axis, size, strides[axis], dilations[axis]) for axis, size in zip(axes, window, strict=True)]


def pooled_axes(op: Operation, rank: int) -> list[Axis]:
    """Returns the windows of a pooling along every axis, those of the batch and the channels included."""
    if len(op.operands) > 1:
        sizes, strides = ints(op, 1, "the windows' size"), ints(op, 2, "the strides")
    else:
        sizes, strides = tf.get(op, "ksize"), tf.get(op, "strides")
    if len(sizes) != rank or len(strides) != rank:
        raise Declined("its windows don't have the rank of its operand")
    return [Axis(number, size, stride, 1) for number, (size, stride) in enumerate(zip(sizes, strides, strict=True))]


def padding_of(emit: StableHLOBuilder, op: Operation, dims: Dims, axes: Sequence[Axis]) -> list[Amounts]:
    """Returns how much is padded before and behind each axis."""
    mode = tf.get(op, "padding", "VALID")
    if mode == "EXPLICIT":
        amounts = tf.get(op, "explicit_paddings", ())
        return [(amounts[2 * axis.number], amounts[2 * axis.number + 1]) for axis in axes]
    if mode == "VALID":
        return [(0, 0)] * len(axes)
    return [same(emit, dims[axis.number], axis) for axis in axes]


def same(emit: StableHLOBuilder, dim: int, axis: Axis) -> Amounts:
    """Returns the padding by which there are as many windows as strides fit into an axis."""
    if axis.stride == 1:
        missing: Scalar = axis.extent - 1
    elif axis.extent == 1:
        missing = 0
    else:
        windows = emit.compute("divide", emit.compute("add", emit.size(dim), axis.stride - 1), axis.stride)
        covered = emit.compute("add", emit.compute("multiply", windows, axis.stride), axis.extent - axis.stride)
        missing = emit.compute("maximum", emit.compute("subtract", covered, emit.size(dim)), 0)
    low = emit.compute("divide", missing, 2)
    return low, emit.compute("subtract", missing, low)


def slid(emit: StableHLOBuilder, op: Operation, dim: int, axis: Axis, amounts: Amounts) -> int:
    """Returns the number of windows along a padded axis."""
    if tf.get(op, "padding", "VALID") == "SAME":
        if axis.stride == 1:
            return dim
        return emit.size_of(emit.compute("divide", emit.compute("add", emit.size(dim), axis.stride - 1), axis.stride))
    if axis.extent == axis.stride == 1 and amounts == (0, 0):
        return dim
    padded = emit.compute("add", emit.compute("add", emit.size(dim), amounts[0]), amounts[1])
    reached = emit.at_least_zero(emit.compute("add", padded, axis.stride - axis.extent))
    return emit.size_of(emit.compute("divide", reached, axis.stride))


def amounts_of(emit: StableHLOBuilder, op: Operation, index: int, rank: int) -> list[Amounts]:
    """Returns the amounts that an operand holds for `rank` axes, as numbers where they are known."""
    values = op.operands[index]
    known = emit.sizes.elements(values) or (UNKNOWN,) * (2 * rank)
    flat = values if min(known, default=0) > UNKNOWN else emit.reshape(values, (2 * rank,))
    found = [each if each > UNKNOWN else pick(emit, flat, at) for at, each in enumerate(known)]
    return list(zip(found[::2], found[1::2], strict=True))


def pad_around(
    emit: StableHLOBuilder, value: Value, amounts: Sequence[Amounts], fill: Value, interior: Sequence[int] = ()
) -> Value:
    """Inserts padding by pairs of amounts."""
    return padded(emit, value, [low for low, _ in amounts], [high for _, high in amounts], fill, interior)


def known(amounts: Sequence[Amounts]) -> list[tuple[int, int]] | None:
    """Returns padding as numbers, `None` if some are computed at run time."""
    found = [(low, high) for low, high in amounts if isinstance(low, int) and isinstance(high, int)]
    return found if len(found) == len(amounts) else None


def table(padding: Sequence[tuple[int, int]]) -> Attribute:
    return tensor_data.of_array(np.array(padding, np.int64).reshape(-1, 2))


def _layouts(op: Operation, rank: int) -> ConvAttr:
    spatial = [str(number) for number in range(rank - 2)]
    is_first = tf.get(op, "data_format", "NHWC") in FIRST
    features = ["b", "f", *spatial] if is_first else ["b", *spatial, "f"]
    return ConvAttr.get(features, [*spatial, "i", "o"], features)


def _convolved(
    emit: StableHLOBuilder,
    op: Operation,
    operands: tuple[Value, Value],
    dims: Dims,
    axes: Sequence[Axis],
    padding: Sequence[Amounts],
    groups: int,
    gaps: Sequence[int] = (),
) -> Value:
    """Inserts a convolution of a value with a kernel; the result's sizes are given, and steps between elements."""
    properties: dict[str, attrs.Value] = {
        "window_strides": tuple(axis.stride for axis in axes),
        "lhs_dilation": tuple(gaps) or (1,) * len(axes),
        "rhs_dilation": tuple(axis.dilation for axis in axes),
        "window_reversal": (False,) * len(axes),
        "dimension_numbers": _layouts(op, len(dims)),
        "feature_group_count": groups,
        "batch_group_count": 1,
    }
    numbers = known(padding)
    if numbers is not None:
        return emit.one("convolution", operands, {**properties, "padding": table(numbers)}, dims=dims)
    amounts = emit.vector([amount for pair in padding for amount in pair])
    amounts = emit.reshape(amounts, (len(padding), 2))
    return emit.one("dynamic_conv", (*operands, amounts), properties, dims=dims)


def _convolve(emit: StableHLOBuilder, op: Operation, kernel: Value, groups: int, outputs: int) -> Value:
    """Inserts a convolution of an op's first operand with a kernel."""
    dims = emit.dims(op.operands[0])
    axes = axes_of(op, len(dims), emit.dims(kernel)[:-2])
    padding = padding_of(emit, op, dims, axes)
    result = list(dims)
    for axis, amounts in zip(axes, padding, strict=True):
        result[axis.number] = slid(emit, op, dims[axis.number], axis, amounts)
    result[channel_axis(op, len(dims))] = outputs
    return _convolved(emit, op, (op.operands[0], kernel), tuple(result), axes, padding, groups)


def _channels(op: Operation, dims: Dims) -> int:
    channels = dims[channel_axis(op, len(dims))]
    if channels < 0:
        raise Declined("the number of channels is not known")
    return channels


def _conv(op: Operation, emit: StableHLOBuilder) -> Value:
    kernel = op.operands[1]
    *_, inputs, outputs = emit.dims(kernel)
    if inputs <= 0:
        raise Declined("the number of its kernel's channels is not known")
    return _convolve(emit, op, kernel, _channels(op, emit.dims(op.operands[0])) // inputs, outputs)


def _depthwise(op: Operation, emit: StableHLOBuilder) -> Value:
    kernel = op.operands[1]
    height, width, channels, multiplier = emit.dims(kernel)
    if min(channels, multiplier) < 0:
        raise Declined("the number of its kernel's channels is not known")
    kernel = emit.reshape(kernel, (height, width, 1, channels * multiplier))
    return _convolve(emit, op, kernel, channels, channels * multiplier)


def _turned(emit: StableHLOBuilder, kernel: Value, groups: int) -> Value:
    """Returns a kernel back to front, with inputs and outputs exchanged within each group."""
    *window, inputs, outputs = emit.dims(kernel)
    count = len(window)
    kernel = emit.one("reverse", (kernel,), {"dimensions": tuple(range(count))})
    if groups == 1:
        return emit.transpose(kernel, [*range(count), count + 1, count])
    kernel = emit.reshape(kernel, (*window, inputs, groups, outputs // groups))
    kernel = emit.transpose(kernel, [*range(count), count + 2, count + 1, count])
    return emit.reshape(kernel, (*window, outputs // groups, groups * inputs))


def _wanted(emit: StableHLOBuilder, op: Operation, axes: Sequence[int]) -> list[int]:
    """Returns the sizes of the result's spatial axes, from shapes or else from the operand."""
    (count,) = emit.dims(op.operands[0])
    found = emit.sizes.of(op.results[0])
    if found is not None and all(found[axis] >= 0 for axis in axes):
        return [found[axis] for axis in axes]
    if count == len(axes) + 2:
        sizes = requested(emit, op, 0)
        return [sizes[axis] for axis in axes]
    if count != len(axes):
        raise Declined("the size of its result is not known")
    elements = emit.sizes.elements(op.operands[0])
    if elements is not None and min(elements) >= 0:
        return list(elements)
    return [emit.size_of(pick(emit, op.operands[0], index)) for index in range(count)]


def _groups(op: Operation, rank: int, inputs: int) -> int:
    """Returns the number of groups of a gradient's result, from its channels."""
    shape = op.results[0].shape
    channels = -1 if shape is None else shape[channel_axis(op, rank)]
    return max(channels // inputs, 1) if inputs > 0 else 1


def _input_gradient(op: Operation, emit: StableHLOBuilder) -> Value:
    """Inserts the gradient of a convolution: the input with gaps, convolved with the reversed kernel."""
    _, kernel, value = op.operands
    dims, (*window, inputs, outputs) = emit.dims(value), emit.dims(kernel)
    if min(inputs, outputs) < 0:
        raise Declined("the number of channels is not known")
    forward, groups = axes_of(op, len(dims), window), _groups(op, len(dims), inputs)
    wanted = _wanted(emit, op, [axis.number for axis in forward])
    around: list[Amounts] = []
    result = list(dims)
    for axis, size in zip(forward, wanted, strict=True):
        around.append(_around(emit, op, axis, dims[axis.number], size))
        result[axis.number] = size
    result[channel_axis(op, len(dims))] = inputs * groups
    turned = _turned(emit, kernel, groups)
    steps = [axis._replace(stride=1) for axis in forward]
    numbers = known(around)
    if numbers is not None and all(dims[axis.number] >= 0 for axis in forward):
        gaps = [axis.stride for axis in forward]
        return _convolved(emit, op, (value, turned), tuple(result), steps, numbers, groups, gaps)
    every: list[Amounts] = [(0, 0)] * len(dims)
    interior = [0] * len(dims)
    for axis, amounts in zip(forward, around, strict=True):
        every[axis.number], interior[axis.number] = amounts, axis.stride - 1
    spread = pad_around(emit, value, every, emit.scalar(0, value.element), interior)
    return _convolved(emit, op, (spread, turned), tuple(result), steps, [(0, 0)] * len(steps), groups)


def _around(emit: StableHLOBuilder, op: Operation, axis: Axis, dim: int, wanted: int) -> Amounts:
    """Returns the padding of a gradient along an axis: the windows of the result reach from its start to its end."""
    # What the windows of the convolution itself, as many as the gradient's operand has elements, reach over.
    reached = emit.compute("add", emit.compute("multiply", emit.size(dim), axis.stride), axis.extent - axis.stride)
    low: Value | int = 0
    if tf.get(op, "padding", "VALID") == "EXPLICIT":
        low = tf.get(op, "explicit_paddings", ())[2 * axis.number]
    elif tf.get(op, "padding", "VALID") == "SAME":
        missing = emit.compute("maximum", emit.compute("subtract", reached, emit.size(wanted)), 0)
        low = emit.compute("divide", missing, 2)
    before = emit.compute("subtract", axis.extent - 1, low)
    size = emit.compute("add", emit.size(wanted), 2 * (axis.extent - 1))
    return before, emit.compute("subtract", emit.compute("subtract", size, reached), before)


CONVOLUTIONS: Mapping[str, Rewrite] = {
    "Conv2D": _conv,
    "Conv2DBackpropInput": _input_gradient,
    "Conv3D": _conv,
    "Conv3DBackpropInputV2": _input_gradient,
    "DepthwiseConv2dNative": _depthwise,
}


def _padding(emit: StableHLOBuilder, op: Operation, value: Value, axes: Sequence[Axis]) -> list[Amounts]:
    dims = emit.dims(value)
    moving = [axis.size != 1 or axis.stride != 1 for axis in axes]
    found = padding_of(emit, op, dims, axes)
    return [amounts if moves else (0, 0) for amounts, moves in zip(found, moving, strict=True)]


def window_properties(axes: Sequence[Axis], padding: Sequence[tuple[int, int]]) -> dict[str, attrs.Value]:
    """Returns the properties of a reduction of windows along every axis."""
    ones = (1,) * len(axes)
    return {
        "window_dimensions": tuple(axis.size for axis in axes),
        "window_strides": tuple(axis.stride for axis in axes),
        "base_dilations": ones,
        "window_dilations": ones,
        "padding": table(padding),
    }


def _window(emit: StableHLOBuilder, op: Operation, value: Value, name: str, initial: float) -> Value:
    """Inserts a reduction of windows; padding that is computed at run time is put around the value before."""
    dims, element = emit.dims(value), value.element
    axes = pooled_axes(op, len(dims))
    padding = _padding(emit, op, value, axes)
    result = [
        dim if axis.size == axis.stride == 1 else slid(emit, op, dim, axis, amounts)
        for dim, axis, amounts in zip(dims, axes, padding, strict=True)
    ]
    start, numbers = emit.scalar(initial, element), known(padding)
    if numbers is None:
        value, numbers = pad_around(emit, value, padding, start), [(0, 0)] * len(dims)
    body = emit.body(name, element)
    return emit.one("reduce_window", (value, start), window_properties(axes, numbers), (body,), dims=result)


def _max_pool(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    return _window(emit, op, value, "maximum", types.lowest(value.element))


def _avg_pool(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    element = value.element
    if element in (types.F16, types.BF16):
        value = emit.convert(value, types.F32)
    total = _window(emit, op, value, "add", 0)
    if tf.get(op, "padding", "VALID") == "VALID":
        mean = emit.binary("divide", total, math.prod(tf.get(op, "ksize")))
        return emit.convert(mean, element)
    # What is padded doesn't count: as many elements as the window has there.
    axes = pooled_axes(op, len(emit.dims(value)))
    shape = [1 if axis.size == axis.stride == 1 else dim for axis, dim in zip(axes, emit.dims(value), strict=True)]
    ones = emit.filled(1, value.element, shape)
    return emit.convert(emit.binary("divide", total, _window(emit, op, ones, "add", 0)), element)


def _max_pool_with_argmax(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    """Inserts a reduction of windows of pairs: the elements with their places in the image."""
    value = op.operands[0]
    dims = emit.dims(value)
    axes = pooled_axes(op, len(dims))
    padding = known(_padding(emit, op, value, axes))
    result = [
        dim if axis.size == axis.stride == 1 else slid(emit, op, dim, axis, (0, 0))
        for dim, axis in zip(dims, axes, strict=True)
    ]
    element, index = (each.element for each in op.results)
    places = _places(op, emit)
    fill, no_place = emit.scalar(types.lowest(element), element), emit.scalar(1 << 62, types.I64)
    if padding is None:
        amounts = _padding(emit, op, value, axes)
        value = pad_around(emit, value, amounts, fill)
        places, padding = pad_around(emit, places, amounts, no_place), [(0, 0)] * len(dims)
    operands = (value, places, fill, no_place)
    elements, region = (element, types.I64), arg_body(emit, "GT", element, types.I64)
    properties = window_properties(axes, padding)
    best, place = emit.several("reduce_window", operands, elements, properties, (region,), dims=result)
    return [best, emit.convert(place, index)]


def _places(op: Operation, emit: StableHLOBuilder) -> Value:
    """Returns the number of each element, counted through its image or through the batch."""
    dims = emit.dims(op.operands[0])
    has_batch = bool(tf.get(op, "include_batch_in_index", False))
    total: Value | None = None
    for axis in range(0 if has_batch else 1, len(dims)):
        at = emit.iota(dims, axis, types.I64)
        step = emit.convert(emit.value(emit.product(dims[axis + 1 :])), types.I64)
        at = emit.binary("multiply", at, step)
        total = at if total is None else emit.binary("add", total, at)
    if total is None or any(dim == UNKNOWN for dim in dims):
        raise Declined("the rank of an operand is not known")
    return total


POOLINGS: Mapping[str, Rewrite] = {
    "AvgPool": _avg_pool,
    "AvgPool3D": _avg_pool,
    "MaxPool": _max_pool,
    "MaxPool3D": _max_pool,
    "MaxPoolV2": _max_pool,
    "MaxPoolWithArgmax": _max_pool_with_argmax,
}


def _pad(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    fill = op.operands[2] if len(op.operands) > 2 else emit.scalar(0, value.element)
    return pad_around(emit, value, amounts_of(emit, op, 1, len(emit.dims(value))), emit.reshape(fill, ()))


def _pad_between(op: Operation, emit: StableHLOBuilder) -> Value:
    value, fill, *vectors = op.operands
    low, high, interior = map(_constant_ints, vectors)
    return padded(emit, value, low, high, fill, interior)


def _constant_ints(vector: Value) -> list[int]:
    array = constant_array(vector)
    if array is None:
        raise Declined("its padding is not constant")
    return [int(each) for each in array]


def _mirror_pad(op: Operation, emit: StableHLOBuilder) -> Value:
    from_edge = 1 if tf.get(op, "mode", "REFLECT") == "REFLECT" else 0
    value = op.operands[0]
    for axis, (low, high) in enumerate(amounts_of(emit, op, 1, len(emit.dims(value)))):
        size = emit.size(emit.dims(value)[axis])
        behind = emit.compute("subtract", size, from_edge)
        before_end = emit.compute("subtract", behind, high)
        pieces = [value]
        if low != 0:
            pieces.insert(0, _mirrored(emit, value, axis, from_edge, emit.compute("add", low, from_edge)))
        if high != 0:
            pieces.append(_mirrored(emit, value, axis, before_end, behind))
        value = concatenate(emit, pieces, axis)
    return value


def _mirrored(emit: StableHLOBuilder, value: Value, axis: int, begin: Value | int, end: Value | int) -> Value:
    """Returns a part of an axis back to front."""
    dim = emit.dims(value)[axis]
    if dim >= 0 and isinstance(begin, int) and isinstance(end, int) and not 0 <= begin <= end <= dim:
        raise Declined("more is mirrored than there is")
    edge = from_to(emit, value, axis, begin, end)
    if emit.dims(edge)[axis] == 1:
        return edge
    return emit.one("reverse", (edge,), {"dimensions": (axis,)})


PADDINGS: Mapping[str, Rewrite] = {"MirrorPad": _mirror_pad, "Pad": _pad, "PadV2": _pad, "XlaPad": _pad_between}
