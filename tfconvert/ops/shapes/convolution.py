"""Shapes of convolutions, their gradients (which are transposed convolutions) and of depth-space exchanges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.ops.operands import Operands, ShapeFunction
from tfconvert.schema.dialects.dims import (
    MismatchError,
    add,
    dim_of_element,
    divide,
    merge,
    multiply,
    product,
    text,
    window,
    with_rank,
)
from tfconvert.schema.dialects.types import Shape

Shapes = Sequence[Shape | None]
Pads = tuple[tuple[int, int], ...]


def channels_first(operands: Operands) -> bool:
    """Returns whether channels come right after the batch."""
    return operands.text("data_format", "NHWC").startswith("NC")


def spatial_of(values: Sequence[int], is_channels_first: bool) -> Sequence[int]:
    """Returns the spatial part of a shape or a list of strides."""
    return values[2:] if is_channels_first else values[1:-1]


def image_shape(batch: int, space: Sequence[int], channels: int, is_channels_first: bool) -> Shape:
    """Returns the shape of images in a layout."""
    return (batch, channels, *space) if is_channels_first else (batch, *space, channels)


def explicit_pads(operands: Operands, rank: int, is_channels_first: bool) -> Pads:
    """Returns what `EXPLICIT` padding adds before and after each spatial dimension; zeros for any other padding."""
    if operands.text("padding") != "EXPLICIT":
        return ((0, 0),) * (rank - 2)
    flat = operands.integers("explicit_paddings", 2 * rank)
    pairs = tuple(zip(flat[::2], flat[1::2], strict=True))
    return pairs[2:] if is_channels_first else pairs[1:-1]


def steps(operands: Operands, name: str, rank: int, is_channels_first: bool) -> Sequence[int]:
    """Returns the spatial part of a list such as `strides`; absent or empty means all 1."""
    if not operands.attribute(name, ()):
        return (1,) * (rank - 2)
    return spatial_of(operands.integers(name, rank), is_channels_first)


def windows(operands: Operands, space: Sequence[int], kernel: Sequence[int], is_first: bool) -> Shape:
    """Returns the spatial dimensions that sliding a kernel over an image gives."""
    rank = len(space) + 2
    padding = operands.text("padding")
    strides = steps(operands, "strides", rank, is_first)
    dilations = steps(operands, "dilations", rank, is_first)
    pads = explicit_pads(operands, rank, is_first)
    return tuple(
        window(size, length, stride, padding, dilation, pad)
        for size, length, stride, dilation, pad in zip(space, kernel, strides, dilations, pads, strict=True)
    )


def _convolution(operands: Operands, rank: int) -> Shapes:
    image = with_rank(operands.shape(0), rank, "the input")
    kernel = with_rank(operands.shape(1), rank, "the filter")
    is_first = channels_first(operands)
    depth = image[1] if is_first else image[-1]
    if depth > 0 and kernel[-2] > 0 and depth % kernel[-2]:
        raise MismatchError(f"{depth} input channels are not a multiple of those of the filter, {text(kernel)}")
    groups = depth // kernel[-2] if depth > 0 and kernel[-2] > 0 else 1
    if kernel[-1] > 0 and kernel[-1] % groups:
        raise MismatchError(f"{kernel[-1]} output channels can't be divided among {groups} groups")
    space = windows(operands, spatial_of(image, is_first), kernel[:-2], is_first)
    return (image_shape(image[0], space, kernel[-1], is_first),)


def _conv_2d(operands: Operands) -> Shapes:
    return _convolution(operands, 4)


def _conv_3d(operands: Operands) -> Shapes:
    return _convolution(operands, 5)


def _depthwise(operands: Operands) -> Shapes:
    image = with_rank(operands.shape(0), 4, "the input")
    kernel = with_rank(operands.shape(1), 4, "the filter")
    is_first = channels_first(operands)
    depth = merge((image[1] if is_first else image[-1],), kernel[2:3])
    assert depth is not None
    space = windows(operands, spatial_of(image, is_first), kernel[:2], is_first)
    return (image_shape(image[0], space, multiply(depth[0], kernel[3]), is_first),)


def _transposed(operands: Operands) -> Shapes:
    """The result's shape is an operand; an unknown batch is the gradient's."""
    gradient = operands.shape(2)
    kernel = operands.shape(1)
    rank = 5 if "3D" in operands.op.name else 4
    sizes = operands.elements(0)
    shape = (-1,) * rank if sizes is None else tuple(map(dim_of_element, sizes))
    is_first = channels_first(operands)
    if len(shape) == rank - 2 and kernel is not None:
        shape = image_shape(-1, shape, with_rank(kernel, rank, "the filter")[-2], is_first)
    shape = with_rank(shape, rank, "the result")
    if gradient is not None:
        batch = merge(shape[:1], with_rank(gradient, rank, "the input")[:1])
        assert batch is not None
        shape = batch + shape[1:]
    return (shape,)


def _filter_gradient(operands: Operands) -> Shapes:
    sizes = operands.elements(1)
    return (None if sizes is None else tuple(map(dim_of_element, sizes)),)


def _dilation(operands: Operands) -> Shapes:
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
    return (image_shape(image[0], space, depth[0], False),)


def _depth_to_space(operands: Operands) -> Shapes:
    shape, block = operands.shape(0), operands.integer("block_size")
    if operands.text("data_format", "NHWC") == "NCHW_VECT_C":
        return (None,)
    shape, is_first = with_rank(shape, 4), channels_first(operands)
    depth = divide(shape[1] if is_first else shape[3], block * block)
    space = [multiply(dim, block) for dim in spatial_of(shape, is_first)]
    return (image_shape(shape[0], space, depth, is_first),)


def _space_to_depth(operands: Operands) -> Shapes:
    shape, block = operands.shape(0), operands.integer("block_size")
    if operands.text("data_format", "NHWC") == "NCHW_VECT_C":
        return (None,)
    shape, is_first = with_rank(shape, 4), channels_first(operands)
    depth = multiply(shape[1] if is_first else shape[3], block * block)
    space = [divide(dim, block) for dim in spatial_of(shape, is_first)]
    return (image_shape(shape[0], space, depth, is_first),)


def _blocks(operands: Operands) -> tuple[tuple[int, ...] | None, int]:
    """Returns the block shape and the place of the paddings or crops among the operands."""
    if operands.op.name.endswith("ND"):
        return operands.ints(1), 2
    return (operands.integer("block_size"),) * 2, 1


def _batch_exchange(operands: Operands) -> tuple[Shape, tuple[int, ...], list[tuple[int, int]]] | None:
    """Returns the shape, the block and the pads or crops (-1 where unknown), `None` if too little is known."""
    shape = operands.shape(0)
    blocks, index = _blocks(operands)
    if shape is None or blocks is None:
        return None
    if len(shape) < len(blocks) + 1:
        raise MismatchError(f"{len(blocks)} blocks are more than shape {text(shape)} has dimensions")
    if any(block < 1 for block in blocks):
        raise MismatchError(f"block shape {text(blocks)} should be positive")
    value = operands.value(index)
    if value is None:
        return shape, blocks, [(-1, -1)] * len(blocks)
    if value.shape != (len(blocks), 2):
        raise MismatchError(f"{text(value.shape)} paddings don't fit {len(blocks)} blocks")
    return shape, blocks, [(int(before), int(after)) for before, after in value]


def _space_to_batch(operands: Operands) -> Shapes:
    found = _batch_exchange(operands)
    if found is None:
        return _same_rank(operands)
    shape, blocks, pads = found
    space = [
        -1 if before < 0 else divide(add(dim, before + after), block)
        for dim, block, (before, after) in zip(shape[1:], blocks, pads, strict=False)
    ]
    return ((multiply(shape[0], product(blocks)), *space, *shape[1 + len(blocks) :]),)


def _batch_to_space(operands: Operands) -> Shapes:
    found = _batch_exchange(operands)
    if found is None:
        return _same_rank(operands)
    shape, blocks, crops = found
    space = []
    for dim, block, (before, after) in zip(shape[1:], blocks, crops, strict=False):
        whole = multiply(dim, block)
        if before < 0 or (whole < 0 and before + after > 0):
            space.append(-1)
        elif 0 <= whole < before + after:
            raise MismatchError(f"crops ({before}, {after}) are more than dimension {whole} has")
        else:
            space.append(whole if before + after == 0 else whole - before - after)
    return ((divide(shape[0], product(blocks)), *space, *shape[1 + len(blocks) :]),)


def _same_rank(operands: Operands) -> Shapes:
    """What comes after the blocks, of which only the number may be known, stays as it is."""
    shape, blocks = operands.shape(0), operands.elements(1)
    if shape is None:
        return (None,)
    kept = shape[1 + len(blocks) :] if blocks is not None else ()
    return ((*(-1,) * (len(shape) - len(kept)), *kept),)


SHAPES: Mapping[str, ShapeFunction] = {
    "BatchToSpace": _batch_to_space,
    "BatchToSpaceND": _batch_to_space,
    "Conv2D": _conv_2d,
    "Conv2DBackpropFilter": _filter_gradient,
    "Conv2DBackpropInput": _transposed,
    "Conv3D": _conv_3d,
    "Conv3DBackpropInputV2": _transposed,
    "DepthToSpace": _depth_to_space,
    "DepthwiseConv2dNative": _depthwise,
    "DepthwiseConv2dNativeBackpropFilter": _filter_gradient,
    "DepthwiseConv2dNativeBackpropInput": _transposed,
    "Dilation2D": _dilation,
    "SpaceToBatch": _space_to_batch,
    "SpaceToBatchND": _space_to_batch,
    "SpaceToDepth": _space_to_depth,
}
"""Op name -> shape function."""
