"""Convolutions in one, two and three dimensions, grouped, depthwise, dilated, and their transposes.

All work on N, spatial dimensions, C. A convolution gathers the windows of a few output rows into a matrix and
multiplies it at once, so that the time is spent in BLAS; sums are in float32, or in float64 for that dtype.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np

from tfconvert.ops.call import Array, Call, Results, ints, typed, wide
from tfconvert.ops.declaration import Decomposition, op
from tfconvert.ops.formula import Tensor, sizes_of
from tfconvert.ops.operands import Operands
from tfconvert.ops.requirements import only_batch_is_open
from tfconvert.ops.shape_functions import Shapes
from tfconvert.ops.windows import (
    MAX_TAPS,
    Windows,
    channels_first,
    from_channels_last,
    image_shape,
    slides_over_images,
    spatial,
    to_channels_last,
    window_counts,
    windows,
    with_channels_as,
    with_channels_last,
)
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.dims import MismatchError, dim_of_element, merge, multiply, text, window, with_rank
from tfconvert.schema.dialects.relations.rules import list_at_least, rank
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation

# Elements of the gathered windows that are multiplied at once: more would not stay in the cache.
_COLUMNS = 1 << 21
_ONES = (1, 1, 1, 1)


def _convolution_shape(rank: int, operands: Operands) -> Shapes:
    image = with_rank(operands.shape(0), rank, "the input")
    kernel = with_rank(operands.shape(1), rank, "the filter")
    layout = operands.text("data_format")
    depth = image[1] if channels_first(layout) else image[-1]
    if depth > 0 and kernel[-2] > 0 and depth % kernel[-2]:
        raise MismatchError(f"{depth} input channels are not a multiple of those of the filter, {text(kernel)}")
    groups = depth // kernel[-2] if depth > 0 and kernel[-2] > 0 else 1
    if kernel[-1] > 0 and kernel[-1] % groups:
        raise MismatchError(f"{kernel[-1]} output channels can't be divided among {groups} groups")
    space = window_counts(operands, spatial(image, layout), kernel[:-2], layout)
    return (image_shape(image[0], space, kernel[-1], layout),)


def _depthwise_shape(operands: Operands) -> Shapes:
    image = with_rank(operands.shape(0), 4, "the input")
    kernel = with_rank(operands.shape(1), 4, "the filter")
    layout = operands.text("data_format")
    depth = merge((image[1] if channels_first(layout) else image[-1],), kernel[2:3])
    assert depth is not None
    space = window_counts(operands, spatial(image, layout), kernel[:2], layout)
    return (image_shape(image[0], space, multiply(depth[0], kernel[3]), layout),)


def _transposed_shape(rank: int, operands: Operands) -> Shapes:
    """The result's shape is an operand; an unknown batch is the gradient's."""
    gradient = operands.shape(2)
    kernel = operands.shape(1)
    sizes = operands.elements(0)
    shape = (-1,) * rank if sizes is None else tuple(map(dim_of_element, sizes))
    layout = operands.text("data_format")
    if len(shape) == rank - 2 and kernel is not None:
        shape = image_shape(-1, shape, with_rank(kernel, rank, "the filter")[-2], layout)
    shape = with_rank(shape, rank, "the result")
    if gradient is not None:
        batch = merge(shape[:1], with_rank(gradient, rank, "the input")[:1])
        assert batch is not None
        shape = batch + shape[1:]
    return (shape,)


def _dilation_shape(operands: Operands) -> Shapes:
    image = with_rank(operands.shape(0), 4, "the input")
    kernel = with_rank(operands.shape(1), 3, "the filter")
    strides, rates = operands.integers("strides", 4)[1:3], operands.integers("rates", 4)[1:3]
    depth = merge(image[-1:], kernel[-1:])
    assert depth is not None
    padding = operands.text("padding")
    space = [
        window(size, length, stride, padding, rate)
        for size, length, stride, rate in zip(image[1:3], kernel[:2], strides, rates, strict=True)
    ]
    return (image_shape(image[0], space, depth[0], "NHWC"),)


def _windows(call: Call, x: Array, kernel: Array, data_format: str) -> Windows:
    return windows(call, x.shape[1:-1], kernel.shape[:-2], data_format, call.integers("strides"))


def _conv(default_format: str, call: Call) -> Results:
    x, kernel = call.inputs
    data_format = call.text("data_format", default_format)
    images = wide(to_channels_last(x, data_format))
    result = _convolve(images, wide(kernel), _windows(call, images, kernel, data_format), call)
    return (typed(from_channels_last(result, data_format), x.dtype),)


def _convolve(x: Array, kernel: Array, at: Windows, call: Call) -> Array:
    depth, outputs = kernel.shape[-2:]
    if depth == 0 or x.shape[-1] % depth or outputs % (groups := x.shape[-1] // depth):
        raise call.bad(f"an input of {x.shape[-1]} channels doesn't fit a filter of shape {list(kernel.shape)}")
    padded = at.pad(x)
    if set(at.size) == {1} and groups == 1:
        sampled = padded[at.taps()[0][1]]
        return np.asarray(np.matmul(sampled.reshape(-1, depth), kernel.reshape(depth, outputs))).reshape(
            x.shape[0], *at.outputs, outputs
        )
    result = np.empty((x.shape[0], *at.outputs, outputs), x.dtype)
    each = outputs // groups
    # groups, taps x depth, outputs of a group
    matrix = kernel.reshape(-1, depth, groups, each).transpose(2, 0, 1, 3).reshape(groups, -1, each)
    for image, target in zip(padded, result, strict=True):
        gathered = at.view(image[None])[0]
        rows = max(_COLUMNS * len(gathered) // max(gathered.size, 1), 1)
        for row in range(0, len(gathered), rows):
            product = np.matmul(_columns(gathered[row : row + rows], groups), matrix)
            part = target[row : row + rows]
            part[...] = product.transpose(1, 0, 2).reshape(part.shape)
    return result


def _columns(gathered: Array, groups: int) -> Array:
    """Turns (windows, channels, elements) into (groups, windows, elements x channels of a group), copied."""
    rank = gathered.ndim // 2
    places, taps = gathered.shape[:rank], gathered.shape[rank + 1 :]
    split = gathered.reshape(*places, groups, gathered.shape[rank] // groups, *taps)
    order = (rank, *range(rank), *range(rank + 2, 2 * rank + 2), rank + 1)
    return split.transpose(order).reshape(groups, int(np.prod(places)), -1)


def _depthwise(call: Call) -> Results:
    x, kernel = call.inputs
    data_format = call.text("data_format", "NHWC")
    images, weights = wide(to_channels_last(x, data_format)), wide(kernel)
    if images.shape[-1] != kernel.shape[-2]:
        raise call.bad(f"an input of {images.shape[-1]} channels doesn't fit a filter of shape {list(kernel.shape)}")
    at = _windows(call, images, kernel, data_format)
    padded = at.pad(images)
    multiplier = kernel.shape[-1]
    result = np.zeros((x.shape[0], *at.outputs, images.shape[-1] * multiplier), images.dtype)
    for tap, index in at.taps():
        sampled = padded[index]
        if multiplier > 1:
            sampled = np.repeat(sampled, multiplier, axis=-1)
        result += sampled * weights[tap].reshape(-1)
    return (typed(from_channels_last(result, data_format), x.dtype),)


def _conv_transpose(default_format: str, call: Call) -> Results:
    sizes, kernel, gradient = call.inputs
    data_format = call.text("data_format", default_format)
    gradients, weights = wide(to_channels_last(gradient, data_format)), wide(kernel)
    shape = ints(sizes)
    dims = spatial(shape, data_format) if len(shape) == gradient.ndim else shape
    at = windows(call, dims, kernel.shape[:-2], data_format, call.integers("strides"))
    if at.outputs != gradients.shape[1:-1] or gradients.shape[-1] != kernel.shape[-1]:
        raise call.bad(f"an input of shape {list(gradient.shape)} can't come from an output of shape {list(shape)}")
    padded = np.zeros((gradient.shape[0], *at.padded, kernel.shape[-2]), gradients.dtype)
    for tap, index in at.taps():
        padded[index] += np.matmul(gradients, weights[tap].T)
    return (typed(from_channels_last(padded[at.interior], data_format), gradient.dtype),)


def _depthwise_transpose(call: Call) -> Results:
    sizes, kernel, gradient = call.inputs
    data_format = call.text("data_format", "NHWC")
    gradients, weights = wide(to_channels_last(gradient, data_format)), wide(kernel)
    at = windows(call, spatial(ints(sizes), data_format), kernel.shape[:-2], data_format, call.integers("strides"))
    channels, multiplier = kernel.shape[-2:]
    padded = np.zeros((gradient.shape[0], *at.padded, channels), gradients.dtype)
    split = gradients.reshape(*gradients.shape[:-1], channels, multiplier)
    for tap, index in at.taps():
        padded[index] += (split * weights[tap]).sum(-1)
    return (typed(from_channels_last(padded[at.interior], data_format), gradient.dtype),)


def _dilation(call: Call) -> Results:
    """The morphological dilation: the largest sum of a window's element and the filter's."""
    x, kernel = call.inputs
    rates = {"dilations": call.integers("rates"), "padding": call.text("padding")}
    at = windows(Call(call.op, call.inputs, rates), x.shape[1:-1], kernel.shape[:-1], "NHWC", call.integers("strides"))
    padded = at.pad(wide(x), -np.inf)
    result = np.full((x.shape[0], *at.outputs, x.shape[-1]), -np.inf, padded.dtype)
    for tap, index in at.taps():
        np.maximum(result, padded[index] + wide(kernel)[tap], out=result)
    return (typed(result, x.dtype),)


def dilated(
    image: Tensor, kernel: Tensor, attributes: Mapping[str, object]
) -> tuple[Windows, Sequence[Tensor], Tensor]:
    """Returns the windows of `Dilation2D`, the sums at each place in a window, and the largest of these."""
    call = Call("Dilation2D", (), {**attributes, "dilations": attributes.get("rates", _ONES)})
    at = windows(call, (image.shape or ())[1:-1], (kernel.shape or ())[:-1], "NHWC", call.integers("strides", _ONES))
    rows = kernel.reshape([math.prod(at.size), -1])
    sums = [part + rows.gather(index) for index, part in enumerate(at.slices(image, -math.inf))]
    best = sums[0]
    for each in sums[1:]:
        best = best.maximum(each)
    return at, sums, best


def dilation(image: Tensor, kernel: Tensor, *, attributes: Mapping[str, object] = MappingProxyType({})) -> Tensor:
    """The largest sum of elements of a window and of the filter."""
    return dilated(image, kernel, attributes)[2]


def dilation_is_small(op: Operation) -> str | None:
    """Requires a filter of few elements: each is a slice of the image."""
    size = op.operands[1].shape
    if size is None or not types.is_static(size):
        return "the size of the filter is not known"
    if math.prod(size[:-1]) > MAX_TAPS:
        return f"its windows have more than {MAX_TAPS} places"
    return only_batch_is_open(0)(op)


def _flipped(kernel: Tensor) -> Tensor:
    return kernel.op("ReverseV2", kernel, list(range(kernel.rank - 2)))  # type: ignore[no-any-return]


def input_gradient(
    sizes: Tensor,
    kernel: Tensor,
    gradient: Tensor,
    *,
    attributes: Mapping[str, object] = MappingProxyType({}),
    result_shape: Shape | None = None,
) -> Tensor:
    """Convolves the gradient, with zeros between its elements, with the reversed filter."""
    data_format = layout_of(attributes)
    gradients = with_channels_last(gradient, data_format)
    shape = sizes_of(sizes, result_shape)
    dims = spatial(shape, data_format) if len(shape) == gradient.rank else shape
    *size, depth, outputs = kernel.shape or ()
    at = windows_of(attributes, dims, size)
    channels = shape[1 if channels_first(data_format) else -1] if len(shape) == gradient.rank else depth
    groups = channels // depth
    # Of each group, the inputs and the outputs change places.
    weights = _flipped(kernel).reshape([*size, depth, groups, outputs // groups])
    rank = len(size)
    weights = weights.transpose([*range(rank), rank + 2, rank + 1, rank])
    weights = weights.reshape([*size, outputs // groups, groups * depth])
    found = slid("Conv2D" if rank == 2 else "Conv3D", at.undone(gradients), weights, at.dilations)
    return with_channels_as(found, data_format)


def depthwise_input_gradient(
    sizes: Tensor,
    kernel: Tensor,
    gradient: Tensor,
    *,
    attributes: Mapping[str, object] = MappingProxyType({}),
    result_shape: Shape | None = None,
) -> Tensor:
    """Convolves as `input_gradient` does, and sums the results of each channel."""
    data_format = layout_of(attributes)
    dims = spatial(sizes_of(sizes, result_shape), data_format)
    *size, channels, multiplier = kernel.shape or ()
    at = windows_of(attributes, dims, size)
    weights = _flipped(kernel).reshape([*size, channels * multiplier, 1])
    images = at.undone(with_channels_last(gradient, data_format))
    found = slid("DepthwiseConv2dNative", images, weights, at.dilations)
    if multiplier > 1:
        found = found.reshape([-1, *dims, channels, multiplier]).sum([4])
    return with_channels_as(found, data_format)


def layout_of(attributes: Mapping[str, object]) -> str:
    """Returns the data format, for windows that move in two dimensions or three."""
    return str(attributes.get("data_format", "NHWC"))


def windows_of(attributes: Mapping[str, object], dims: Sequence[int], size: Sequence[int]) -> Windows:
    """Returns the windows of an op's attributes, of which absent or empty lists mean ones."""
    call = Call("Conv2D", (), {name: value for name, value in attributes.items() if value != ()})
    return windows(call, dims, size, layout_of(attributes), call.integers("strides", (1,) * (len(size) + 2)))


def convolves_images(op: Operation, kernel: Shape | None) -> str | None:
    """Returns why a filter can't slide over an op's images; absent or empty dilations mean ones."""
    rank = 5 if "3D" in op.name else 4
    if kernel is None or len(kernel) != rank or not types.is_static(kernel):
        return "the filter's shape is not known"
    strides, dilations = tf.get(op, "strides") or (), tf.get(op, "dilations") or (1,) * rank
    return slides_over_images(op, {"strides": strides, "dilations": dilations}, rank)


def slid(
    name: str, images: Tensor, kernel: Tensor, dilations: Sequence[int], strides: Sequence[int] | None = None
) -> Tensor:
    """Returns a convolution without padding."""
    steps = [1, *(strides or [1] * len(dilations)), 1]
    rates = [1, *dilations, 1]
    return images.op(name, images, kernel, strides=steps, dilations=rates, padding="VALID")  # type: ignore[no-any-return]


def _is_reversible(op: Operation) -> str | None:
    """Explicit padding and windows need sizes that are known."""
    return convolves_images(op, op.operands[1].shape) or only_batch_is_open(2)(op)


_INPUT = (np.array([2, 4, 4, 3], np.int32), (3, 3, 3, 2), (2, 2, 2, 2))
_DEPTHWISE = (*_INPUT[:2], (2, 2, 2, 6))

_STEPS = (list_at_least("strides", 1), list_at_least("dilations", 1))
_PADDED = (*_STEPS, list_at_least("explicit_paddings", 0))


OPS = (
    op(
        "Conv2D", shape=partial(_convolution_shape, 4), compute=partial(_conv, "NHWC"), relations=_PADDED, verified=True
    ),
    op(
        "Conv2DBackpropInput",
        shape=partial(_transposed_shape, 4),
        compute=partial(_conv_transpose, "NHWC"),
        decompose=(Decomposition(input_gradient, requires=_is_reversible, typed=2, example=_INPUT),),
        relations=(rank("out_backprop", 4), rank("filter", 4), rank("output", 4), *_STEPS),
    ),
    op(
        "Conv3D", shape=partial(_convolution_shape, 5), compute=partial(_conv, "NDHWC"), relations=_STEPS, verified=True
    ),
    op(
        "Conv3DBackpropInputV2",
        shape=partial(_transposed_shape, 5),
        compute=partial(_conv_transpose, "NDHWC"),
        decompose=(
            Decomposition(
                input_gradient,
                requires=_is_reversible,
                typed=2,
                example=(np.array([2, 4, 4, 4, 3], np.int32), (3, 3, 3, 3, 2), (2, 2, 2, 2, 2)),
            ),
        ),
    ),
    op("DepthwiseConv2dNative", shape=_depthwise_shape, compute=_depthwise),
    op(
        "DepthwiseConv2dNativeBackpropInput",
        shape=partial(_transposed_shape, 4),
        compute=_depthwise_transpose,
        decompose=(Decomposition(depthwise_input_gradient, requires=_is_reversible, typed=2, example=_DEPTHWISE),),
    ),
    op(
        "Dilation2D",
        shape=_dilation_shape,
        compute=_dilation,
        decompose=(Decomposition(dilation, requires=dilation_is_small, example=((2, 4, 4, 3), (2, 2, 3))),),
    ),
)
