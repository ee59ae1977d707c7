"""Convolutions: with any layout, padding, dilation and groups, depthwise, and their gradients to the input.

Padding that sizes at run time decide is an operand, as `dynamic_conv` has it; that of a gradient is put around the
input before it is convolved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.targets.stablehlo.legalize.emit import DeclinedError, Emit
from tfconvert.converter.targets.stablehlo.legalize.entry import Lowering, attribute
from tfconvert.converter.targets.stablehlo.legalize.shaping import pick, requested
from tfconvert.converter.targets.stablehlo.legalize.sizes import Dims
from tfconvert.converter.targets.stablehlo.legalize.window_geometry import (
    FIRST,
    Amounts,
    Axis,
    axes_of,
    channel_axis,
    known,
    pad_around,
    padding_of,
    slid,
    table,
)
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.stablehlo import ConvAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _layouts(op: Operation, rank: int) -> ConvAttr:
    spatial = [str(number) for number in range(rank - 2)]
    is_first = attribute(op, "data_format", "NHWC") in FIRST
    features = ["b", "f", *spatial] if is_first else ["b", *spatial, "f"]
    return ConvAttr.get(features, [*spatial, "i", "o"], features)


def _convolved(
    op: Operation,
    operands: tuple[Value, Value],
    dims: Dims,
    axes: Sequence[Axis],
    padding: Sequence[Amounts],
    groups: int,
    emit: Emit,
    gaps: Sequence[int] = (),
) -> Value:
    """Inserts a convolution of a value with a kernel; the result's sizes are given, and steps between elements."""
    value = operands[0]
    properties: dict[str, attrs.Value] = {
        "window_strides": tuple(axis.stride for axis in axes),
        "lhs_dilation": tuple(gaps) or (1,) * len(axes),
        "rhs_dilation": tuple(axis.dilation for axis in axes),
        "window_reversal": (False,) * len(axes),
        "dimension_numbers": _layouts(op, len(dims)),
        "feature_group_count": groups,
        "batch_group_count": 1,
    }
    element = types.element_of(value.type)
    numbers = known(padding)
    if numbers is not None:
        return emit.one("convolution", operands, element, dims, {**properties, "padding": table(numbers)})
    amounts = emit.vector([amount for pair in padding for amount in pair])
    amounts = emit.reshape(amounts, (len(padding), 2))
    return emit.one("dynamic_conv", (*operands, amounts), element, dims, properties)


def _convolve(op: Operation, kernel: Value, groups: int, outputs: int, emit: Emit) -> Value:
    """Inserts a convolution of an op's first operand with a kernel."""
    dims = emit.dims(op.operands[0])
    axes = axes_of(op, len(dims), emit.dims(kernel)[:-2])
    padding = padding_of(op, dims, axes, emit)
    result = list(dims)
    for axis, amounts in zip(axes, padding, strict=True):
        result[axis.number] = slid(op, dims[axis.number], axis, amounts, emit)
    result[channel_axis(op, len(dims))] = outputs
    return _convolved(op, (op.operands[0], kernel), tuple(result), axes, padding, groups, emit)


def _channels(op: Operation, dims: Dims) -> int:
    channels = dims[channel_axis(op, len(dims))]
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


def _turned(kernel: Value, groups: int, emit: Emit) -> Value:
    """Returns a kernel back to front, with inputs and outputs exchanged within each group."""
    *window, inputs, outputs = emit.dims(kernel)
    count = len(window)
    kernel = emit.one(
        "reverse",
        (kernel,),
        types.element_of(kernel.type),
        (*window, inputs, outputs),
        {"dimensions": tuple(range(count))},
    )
    if groups == 1:
        return emit.transpose(kernel, [*range(count), count + 1, count])
    kernel = emit.reshape(kernel, (*window, inputs, groups, outputs // groups))
    kernel = emit.transpose(kernel, [*range(count), count + 2, count + 1, count])
    return emit.reshape(kernel, (*window, outputs // groups, groups * inputs))


def _wanted(op: Operation, axes: Sequence[int], emit: Emit) -> list[int]:
    """Returns the sizes of the result's spatial axes: what shapes tell, else what the operand holds."""
    (count,) = emit.dims(op.operands[0])
    found = emit.sizes.of(op.results[0])
    if found is not None and all(found[axis] >= 0 for axis in axes):
        return [found[axis] for axis in axes]
    if count == len(axes) + 2:
        sizes = requested(op, 0, emit)
        return [sizes[axis] for axis in axes]
    if count != len(axes):
        raise DeclinedError("the size of its result is not known")
    elements = emit.sizes.elements(op.operands[0])
    if elements is not None and min(elements) >= 0:
        return list(elements)
    return [emit.size_of(pick(op.operands[0], index, emit)) for index in range(count)]


def _groups(op: Operation, rank: int, inputs: int) -> int:
    """Returns how many groups a gradient's result has, by its channels."""
    shape = types.shape_of(op.results[0].type)
    channels = -1 if shape is None else shape[channel_axis(op, rank)]
    return max(channels // inputs, 1) if inputs > 0 else 1


def _input_gradient(op: Operation, emit: Emit) -> Value:
    """Inserts the gradient of a convolution: the input with gaps, convolved with the reversed kernel."""
    _, kernel, value = op.operands
    dims, (*window, inputs, outputs) = emit.dims(value), emit.dims(kernel)
    if min(inputs, outputs) < 0:
        raise DeclinedError("the number of channels is not known")
    forward, groups = axes_of(op, len(dims), window), _groups(op, len(dims), inputs)
    wanted = _wanted(op, [axis.number for axis in forward], emit)
    around: list[Amounts] = []
    result = list(dims)
    for axis, size in zip(forward, wanted, strict=True):
        around.append(_around(op, axis, dims[axis.number], size, emit))
        result[axis.number] = size
    result[channel_axis(op, len(dims))] = inputs * groups
    turned = _turned(kernel, groups, emit)
    steps = [axis._replace(stride=1) for axis in forward]
    numbers = known(around)
    if numbers is not None and all(dims[axis.number] >= 0 for axis in forward):
        gaps = [axis.stride for axis in forward]
        return _convolved(op, (value, turned), tuple(result), steps, numbers, groups, emit, gaps)
    every: list[Amounts] = [(0, 0)] * len(dims)
    interior = [0] * len(dims)
    for axis, amounts in zip(forward, around, strict=True):
        every[axis.number], interior[axis.number] = amounts, axis.stride - 1
    spread = pad_around(value, every, emit.scalar(0, types.element_of(value.type)), emit, interior)
    return _convolved(op, (spread, turned), tuple(result), steps, [(0, 0)] * len(steps), groups, emit)


def _around(op: Operation, axis: Axis, dim: int, wanted: int, emit: Emit) -> Amounts:
    """Returns the padding of a gradient along an axis: the windows of the result reach from its start to its end."""
    # What the windows of the convolution itself, as many as the gradient's operand has elements, reach over.
    reached = emit.compute("add", emit.compute("multiply", emit.size(dim), axis.stride), axis.extent - axis.stride)
    low: Value | int = 0
    if attribute(op, "padding", "VALID") == "EXPLICIT":
        low = attribute(op, "explicit_paddings", ())[2 * axis.number]
    elif attribute(op, "padding", "VALID") == "SAME":
        missing = emit.compute("maximum", emit.compute("subtract", reached, emit.size(wanted)), 0)
        low = emit.compute("divide", missing, 2)
    before = emit.compute("subtract", axis.extent - 1, low)
    size = emit.compute("add", emit.size(wanted), 2 * (axis.extent - 1))
    return before, emit.compute("subtract", emit.compute("subtract", size, reached), before)


LOWERINGS: Mapping[str, Lowering] = {
    "Conv2D": _conv,
    "Conv2DBackpropInput": _input_gradient,
    "Conv3D": _conv,
    "Conv3DBackpropInputV2": _input_gradient,
    "DepthwiseConv2dNative": _depthwise,
}
