"""Derivatives of convolutions by their filters, and of poolings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np

from tfconvert.ops.call import Call, ints
from tfconvert.ops.convolution import convolves_images, dilated, dilation_is_small, layout_of, slid, windows_of
from tfconvert.ops.declaration import Decomposition, op, ops_like
from tfconvert.ops.formula import Tensor, sizes_of
from tfconvert.ops.operands import Operands
from tfconvert.ops.requirements import only_batch_is_open
from tfconvert.ops.segments import segment_sum
from tfconvert.ops.shape_functions import Shapes, same
from tfconvert.ops.windows import (
    MAX_TAPS,
    Windows,
    slides_over_images,
    spatial,
    windows,
    with_channels_as,
    with_channels_last,
)
from tfconvert.schema.dialects import tensor_data, tf
from tfconvert.schema.dialects.dims import dim_of_element
from tfconvert.schema.dialects.relations.rules import rank
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation


def _filter_gradient_shape(operands: Operands) -> Shapes:
    sizes = operands.elements(1)
    return (None if sizes is None else tuple(map(dim_of_element, sizes)),)


def _average_gradient_shape(operands: Operands) -> Shapes:
    sizes = operands.elements(0)
    return (None if sizes is None else tuple(size if size >= 0 else -1 for size in sizes),)


def filter_gradient(
    x: Tensor,
    sizes: Tensor,
    gradient: Tensor,
    *,
    attributes: Mapping[str, object] = MappingProxyType({}),
    result_shape: Shape | None = None,
) -> Tensor:
    """Convolves the images with the gradient: batches and channels change places, and so do strides and dilations."""
    images, gradients = (with_channels_last(each, layout_of(attributes)) for each in (x, gradient))
    batch, *dims, channels = images.shape or ()
    *size, depth, _ = sizes_of(sizes, result_shape)
    at = windows_of(attributes, dims, size)
    images = at.reached(images)
    rank, reach, groups = len(size), (images.shape or ())[1:-1], channels // depth
    if groups > 1:
        images = images.reshape([-1, *reach, groups, depth])
        images = images.transpose([rank + 2, *range(1, rank + 1), rank + 1, 0])
        images = images.reshape([depth, *reach, -1 if batch < 0 else groups * batch])
    else:
        images = images.transpose([rank + 1, *range(1, rank + 1), 0])
    gradients = gradients.transpose([*range(1, rank + 1), 0, rank + 1])
    found = slid("Conv2D" if rank == 2 else "Conv3D", images, gradients, at.strides, at.dilations)
    return found.transpose([*range(1, rank + 1), 0, rank + 1])


def depthwise_filter_gradient(
    x: Tensor,
    sizes: Tensor,
    gradient: Tensor,
    *,
    attributes: Mapping[str, object] = MappingProxyType({}),
    result_shape: Shape | None = None,
) -> Tensor:
    """Sums products of the gradient and what each element of the filter was multiplied by."""
    images, gradients = (with_channels_last(each, layout_of(attributes)) for each in (x, gradient))
    *size, channels, multiplier = sizes_of(sizes, result_shape)
    dims = (images.shape or ())[1:-1]
    at = windows_of(attributes, dims, size)
    parts = at.slices(images)
    if multiplier > 1:
        gradients = gradients.reshape([-1, *at.outputs, channels, multiplier])
        parts = [part.expand_dims(-1) for part in parts]
    sums = [(part * gradients).sum([0, 1, 2]) for part in parts]
    return x.op("Pack", *sums, axis=0, N=len(sums)).reshape([*size, channels, multiplier])  # type: ignore[no-any-return]


def max_pool_gradient(
    is_first: bool, x: Tensor, y: Tensor, gradient: Tensor, *, attributes: Mapping[str, object] = MappingProxyType({})
) -> Tensor:
    """Hands each gradient on to the largest element of its window: of several, to the first one or, in 3D, to all."""
    layout = str(attributes.get("data_format", "NHWC"))
    images, best, rest = (with_channels_last(each, layout) for each in (x, y, gradient))
    call = Call("MaxPool", (), attributes)
    size, strides = (call.integers(name, (1, 2, 2, 1)) for name in ("ksize", "strides"))
    at = windows(call, (images.shape or ())[1:-1], spatial(size, layout), layout, strides)
    parts = []
    # Padding equals nothing.
    for part in at.slices(images, math.nan):
        is_best = part.equal(best)
        parts.append(is_best.where(rest, 0))
        rest = is_best.where(0, rest) if is_first else rest
    return with_channels_as(at.spread(parts), layout)


def max_pool_gradient_v2(
    x: Tensor,
    y: Tensor,
    gradient: Tensor,
    size: Tensor,
    strides: Tensor,
    *,
    attributes: Mapping[str, object] = MappingProxyType({}),
) -> Tensor:
    """The window and the strides are operands."""
    given = {name: ints(np.asarray(each.constant)) for name, each in (("ksize", size), ("strides", strides))}
    return max_pool_gradient(True, x, y, gradient, attributes={**attributes, **given})


def max_pool_second_gradient(
    x: Tensor, y: Tensor, gradient: Tensor, *, attributes: Mapping[str, object] = MappingProxyType({})
) -> Tensor:
    """Takes the gradient of the first largest element of each window: the adjoint of `max_pool_gradient`."""
    layout = str(attributes.get("data_format", "NHWC"))
    images, best, gradients = (with_channels_last(each, layout) for each in (x, y, gradient))
    call = Call("MaxPool", (), attributes)
    size, strides = (call.integers(name, (1, 2, 2, 1)) for name in ("ksize", "strides"))
    at = windows(call, (images.shape or ())[1:-1], spatial(size, layout), layout, strides)
    found = best * 0
    pairs = list(zip(at.slices(images, math.nan), at.slices(gradients), strict=True))
    for part, given in reversed(pairs):
        found = part.equal(best).where(given, found)
    return with_channels_as(found, layout)


def max_pool_gradient_at(
    x: Tensor, gradient: Tensor, places: Tensor, *, attributes: Mapping[str, object] = MappingProxyType({})
) -> Tensor:
    """Adds gradients up at the places that `MaxPoolWithArgmax` returned."""
    _, *dims = x.shape or ()
    count = math.prod(dims)
    places = places.cast(np.int32)
    if not attributes.get("include_batch_in_index"):
        places = places + (x.numbers(0) * count).reshape([-1, 1, 1, 1])
    batch = x.size(0)
    found = segment_sum(gradient.reshape([-1]), places.reshape([-1]), batch * count)
    return found.reshape([-1, *dims])


def _dilation_gradients(
    image: Tensor, kernel: Tensor, gradient: Tensor, attributes: Mapping[str, object]
) -> tuple[Windows, list[Tensor]]:
    """Returns the windows, and the gradients that each place in a window gets: those of the first largest sums."""
    at, sums, best = dilated(image, kernel, attributes)
    parts = []
    for each in sums:
        is_best = each.equal(best)
        parts.append(is_best.where(gradient, 0))
        gradient = is_best.where(0, gradient)
    return at, parts


def dilation_input_gradient(
    image: Tensor, kernel: Tensor, gradient: Tensor, *, attributes: Mapping[str, object] = MappingProxyType({})
) -> Tensor:
    """Hands each gradient on to the element of the image that was part of the largest sum."""
    at, parts = _dilation_gradients(image, kernel, gradient, attributes)
    return at.spread(parts)


def dilation_filter_gradient(
    image: Tensor, kernel: Tensor, gradient: Tensor, *, attributes: Mapping[str, object] = MappingProxyType({})
) -> Tensor:
    """Adds each gradient up at the element of the filter that was part of the largest sum."""
    _, parts = _dilation_gradients(image, kernel, gradient, attributes)
    sums = [part.sum([0, 1, 2]) for part in parts]
    return image.op("Pack", *sums, axis=0, N=len(sums)).reshape(list(kernel.shape or ()))  # type: ignore[no-any-return]


def average_pool_gradient(
    sizes: Tensor,
    gradient: Tensor,
    *,
    attributes: Mapping[str, object] = MappingProxyType({}),
    result_shape: Shape | None = None,
) -> Tensor:
    """Hands an equal part of each gradient on to the elements of its window, padding excluded."""
    layout = str(attributes.get("data_format", "NHWC"))
    dims = spatial(sizes_of(sizes, result_shape), layout)
    call = Call("AvgPool", (), attributes)
    size, strides = (call.integers(name, (1, 2, 2, 1)) for name in ("ksize", "strides"))
    at = windows(call, dims, spatial(size, layout), layout, strides)
    present = at.pad(np.ones((1, *dims, 1), gradient.dtype))
    counts = sum(present[index] for _, index in at.taps())
    part = with_channels_last(gradient, layout) * gradient.of(np.asarray(1 / counts, gradient.dtype))
    return with_channels_as(at.spread_evenly(part), layout)


def _size_and_strides(op: Operation) -> list[Sequence[int]] | None:
    """Returns the window's size and the strides, which may be operands; `None` if they are computed."""
    if len(op.operands) < 5:
        return [tf.get(op, name) for name in ("ksize", "strides")]
    constants = [tensor_data.constant_of(operand) for operand in op.operands[3:]]
    return [ints(tensor_data.to_array(each)) for each in constants if each is not None] if all(constants) else None


def _pools_images(op: Operation) -> str | None:
    found, is_average = _size_and_strides(op), op.name in ("tf.AvgPoolGrad", "tf.AvgPool3DGrad")
    if found is None:
        return "the windows are not known"
    if (reason := only_batch_is_open(*((1,) if is_average else (0, 2)))(op)) is not None:
        return reason
    lists = dict(zip(("ksize", "strides"), found, strict=True))
    if (reason := slides_over_images(op, lists, 5 if "3D" in op.name else 4)) is not None:
        return reason
    is_small = is_average or math.prod(found[0]) <= MAX_TAPS
    return None if is_small else f"its windows have more than {MAX_TAPS} places"


def _filter_is_known(op: Operation) -> str | None:
    return convolves_images(op, op.results[0].shape) or only_batch_is_open(0, 2)(op)


_IMAGE, _POOLED = (2, 4, 4, 3), (2, 2, 2, 3)
_EVENLY = Decomposition(
    average_pool_gradient, requires=_pools_images, typed=1, example=(np.array(_IMAGE, np.int32), _POOLED)
)
_TO_FIRST, _TO_ALL = (
    Decomposition(partial(max_pool_gradient, is_first), requires=_pools_images, example=(_IMAGE, _POOLED, _POOLED))
    for is_first in (True, False)
)
_SECOND = Decomposition(max_pool_second_gradient, requires=_pools_images, example=(_IMAGE, _POOLED, _IMAGE))
_DILATION = (_IMAGE, (2, 2, 3), (2, 3, 3, 3))
_PAIR = np.array((1, 2, 2, 1), np.int32)
_FILTER = (_IMAGE, np.array([3, 3, 3, 2], np.int32), (2, 2, 2, 2))
_DEPTHWISE = (*_FILTER[:2], (2, 2, 2, 6))

OPS = (
    *ops_like("AvgPoolGrad AvgPool3DGrad", shape=_average_gradient_shape, decompose=(_EVENLY,)),
    op(
        "Conv2DBackpropFilter",
        shape=_filter_gradient_shape,
        decompose=(Decomposition(filter_gradient, requires=_filter_is_known, example=_FILTER),),
    ),
    op(
        "Conv3DBackpropFilterV2",
        shape=_filter_gradient_shape,
        decompose=(
            Decomposition(
                filter_gradient,
                requires=_filter_is_known,
                example=((2, 4, 4, 4, 3), np.array([3, 3, 3, 3, 2], np.int32), (2, 2, 2, 2, 2)),
            ),
        ),
    ),
    op(
        "DepthwiseConv2dNativeBackpropFilter",
        shape=_filter_gradient_shape,
        decompose=(Decomposition(depthwise_filter_gradient, requires=_filter_is_known, example=_DEPTHWISE),),
    ),
    op(
        "Dilation2DBackpropFilter",
        shape=lambda operands: (operands.shape(1),),
        decompose=(Decomposition(dilation_filter_gradient, requires=dilation_is_small, example=_DILATION),),
    ),
    op(
        "Dilation2DBackpropInput",
        shape=same,
        decompose=(Decomposition(dilation_input_gradient, requires=dilation_is_small, example=_DILATION),),
    ),
    op("MaxPool3DGrad", shape=same, decompose=(_TO_ALL,)),
    op("MaxPool3DGradGrad", shape=lambda operands: (operands.shape(1),), decompose=(_SECOND,)),
    op(
        "MaxPoolGrad",
        shape=same,
        decompose=(_TO_FIRST,),
        relations=(rank("orig_input", 4), rank("orig_output", 4), rank("grad", 4)),
    ),
    op("MaxPoolGradGrad", shape=lambda operands: (operands.shape(1),), decompose=(_SECOND,)),
    op(
        "MaxPoolGradWithArgmax",
        shape=same,
        decompose=(
            Decomposition(
                max_pool_gradient_at, requires=only_batch_is_open(0), example=(_IMAGE, _POOLED, np.zeros(_POOLED, "i8"))
            ),
        ),
    ),
    op(
        "MaxPoolGradV2",
        shape=same,
        decompose=(
            Decomposition(
                max_pool_gradient_v2, requires=_pools_images, example=(_IMAGE, _POOLED, _POOLED, _PAIR, _PAIR)
            ),
        ),
    ),
)
