"""Crops of images, and windows on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from tfconvert.ops.call import Array, Call, Results, ints
from tfconvert.ops.declaration import Decomposition, op, ops_like
from tfconvert.ops.formula import Elementwise, Tensor
from tfconvert.ops.operands import Operands
from tfconvert.ops.resampling import height_and_width
from tfconvert.ops.shape_functions import Shapes
from tfconvert.ops.windows import windows
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.dims import merge, window, with_rank
from tfconvert.schema.ir.operation import Operation


def _crop_and_resize_shape(operands: Operands) -> Shapes:
    image = with_rank(operands.shape(0), 4, "the image")
    boxes = with_rank(operands.shape(1), 2, "the boxes")
    merge(boxes[1:], (4,))
    count = merge(boxes[:1], with_rank(operands.shape(2), 1, "the box indices"))
    assert count is not None
    return ((*count, *height_and_width(operands, 3), image[3]),)


def _projective_shape(operands: Operands) -> Shapes:
    image = with_rank(operands.shape(0), 4, "the images")
    return ((image[0], *height_and_width(operands, 2), image[3]),)


def _patches_shape(operands: Operands) -> Shapes:
    image = with_rank(operands.shape(0), 4, "the images")
    names = ("ksizes", "strides", "rates")
    sizes, strides, rates = (operands.integers(name, 4)[1:3] for name in names)
    padding = operands.text("padding")
    space = [
        window(dim, size, stride, padding, rate)
        for dim, size, stride, rate in zip(image[1:3], sizes, strides, rates, strict=True)
    ]
    depth = image[3] * sizes[0] * sizes[1] if image[3] >= 0 else -1
    return ((image[0], *space, depth),)


E = TypeVar("E", bound=Elementwise)


class CropPoints(NamedTuple, Generic[E]):
    """Points where crops sample an axis: a row for each box.

    Attributes:
        at: The points, limited to the image.
        is_inside: Whether each one was inside the image.
    """

    at: E
    is_inside: E


def limited_points(at: E, last: E) -> CropPoints[E]:
    """Returns the points of crops, limited to the image.

    Args:
        at: The points, which may be outside.
        last: The number of the image's last pixel.
    """
    return CropPoints(at.maximum(0).minimum(last), (at >= 0) & (at <= last))


def nearest_pixels(pixels: Callable[[E, E], E], down: E, across: E) -> E:
    """Returns the pixels that are nearest to points.

    Args:
        pixels: Returns the pixels at rows and columns.
        down: The points' rows.
        across: The points' columns.
    """
    # Ties go away from zero, as C rounds.
    return pixels((down + 0.5).floor(), (across + 0.5).floor())


def bilinear_pixels(pixels: Callable[[E, E], E], wide: Callable[[E, int], E], down: E, across: E) -> E:
    """Returns mixtures of the four pixels around points.

    Args:
        pixels: Returns the pixels at rows and columns.
        wide: Broadcasts weights of rows (axis 1) or columns (axis 2) to all pixels.
        down: The points' rows.
        across: The points' columns.
    """
    top, left, bottom, right = down.floor(), across.floor(), down.ceil(), across.ceil()
    y, x = wide(down - top, 1), wide(across - left, 2)
    above, below = (near + (pixels(row, right) - near) * x for row in (top, bottom) for near in (pixels(row, left),))
    return above + (below - above) * y


def _crop_places(start: np.float32, stop: np.float32, dim: int, count: int) -> Array:
    last = np.float32(dim - 1)
    if count == 1:
        return np.array([np.float32(0.5) * (start + stop) * last], np.float32)
    step = (stop - start) * last / np.float32(count - 1)
    return np.asarray(start * last + np.arange(count, dtype=np.float32) * step)


def _crop_and_resize(call: Call) -> Results:
    images, boxes, batch, size = call.inputs
    height, width = ints(size)
    result = np.full((len(boxes), height, width, images.shape[3]), call.number("extrapolation_value"), np.float32)
    for crop, box, image in zip(result, boxes.astype(np.float32), ints(batch), strict=True):
        if not 0 <= image < len(images):
            raise call.bad(f"there is no image {image} in a batch of {len(images)}")
        down = _crop_places(box[0], box[2], images.shape[1], height)
        across = _crop_places(box[1], box[3], images.shape[2], width)
        rows = np.flatnonzero((down >= 0) & (down <= images.shape[1] - 1))
        columns = np.flatnonzero((across >= 0) & (across <= images.shape[2] - 1))
        sample = _sample_nearest if call.text("method", "bilinear") == "nearest" else _sample_bilinear
        crop[np.ix_(rows, columns)] = sample(images[image].astype(np.float32), down[rows], across[columns])
    return (result,)


def _sample_nearest(image: Array, down: Array, across: Array) -> Array:
    # Ties go away from zero, as C rounds.
    rows, columns = (np.floor(at + np.float32(0.5)).astype(np.int64) for at in (down, across))
    return np.asarray(image[np.ix_(rows, columns)])


def _sample_bilinear(image: Array, down: Array, across: Array) -> Array:
    top, left = np.floor(down).astype(np.int64), np.floor(across).astype(np.int64)
    bottom, right = np.ceil(down).astype(np.int64), np.ceil(across).astype(np.int64)
    y, x = (down - top.astype(np.float32))[:, None, None], (across - left.astype(np.float32))[:, None]
    above = image[np.ix_(top, left)] + (image[np.ix_(top, right)] - image[np.ix_(top, left)]) * x
    below = image[np.ix_(bottom, left)] + (image[np.ix_(bottom, right)] - image[np.ix_(bottom, left)]) * x
    return np.asarray(above + (below - above) * y)


def _patches(call: Call) -> Results:
    """Concatenates the pixels of each window."""
    (images,) = call.inputs
    size, strides, rates = (call.integers(name)[1:3] for name in ("ksizes", "strides", "rates"))
    spans = [(count - 1) * rate + 1 for count, rate in zip(size, rates, strict=True)]
    if call.text("padding") == "SAME":
        missing = [
            max((-(-dim // stride) - 1) * stride + span - dim, 0)
            for dim, stride, span in zip(images.shape[1:3], strides, spans, strict=True)
        ]
        images = np.pad(images, [(0, 0), *((each // 2, each - each // 2) for each in missing), (0, 0)])
    views = np.lib.stride_tricks.sliding_window_view(images, spans, (1, 2))
    windows = views[:, :: strides[0], :: strides[1], :, :: rates[0], :: rates[1]]
    moved = np.moveaxis(windows, 3, 5)
    return (np.ascontiguousarray(moved).reshape(*moved.shape[:3], -1),)


# Largest number of pixels of a window whose parts are cut out one by one.
_MAX_WINDOW = 256


def _windows_are_known(op: Operation) -> str | None:
    shape, result = (value.shape for value in (op.operands[0], op.results[0]))
    if shape is None or result is None or not types.is_static(shape[1:]) or not types.is_static(result[1:]):
        return "the images' size is not known"
    size, strides = (tuple(tf.get(op, name))[1:3] for name in ("ksizes", "strides"))
    if (size == strides and size[0] == size[1]) or math.prod(size) <= _MAX_WINDOW:
        return None
    return f"windows that overlap have at most {_MAX_WINDOW} pixels"


def patches(
    images: Tensor,
    *,
    ksizes: Sequence[int] = (1, 2, 2, 1),
    strides: Sequence[int] = (1, 1, 1, 1),
    rates: Sequence[int] = (1, 1, 1, 1),
    padding: str = "VALID",
) -> Tensor:
    """Cuts out, for each place in a window, that pixel of every window; blocks side by side are depth."""
    attributes = {"padding": padding, "dilations": tuple(rates)}
    space = (images.shape or ())[1:3]
    at = windows(Call("ExtractImagePatches", (), attributes), space, ksizes[1:3], "NHWC", strides)
    if at.size == at.strides and at.size[0] == at.size[1] and at.dilations == (1, 1):
        reach = [count * at.size[0] for count in at.outputs]
        cut = images.op("Slice", at.padded_images(images), [0] * 4, [-1, *reach, -1])
        return images.op("SpaceToDepth", cut, block_size=at.size[0])  # type: ignore[no-any-return]
    first, *others = at.slices(images)
    return first.concat(others, 3)


OPS = (
    op("CropAndResize", shape=_crop_and_resize_shape, compute=_crop_and_resize),
    op(
        "ExtractImagePatches",
        shape=_patches_shape,
        compute=_patches,
        decompose=(Decomposition(patches, "f32 i32 i64 ui8 i8", _windows_are_known),),
    ),
    *ops_like("ImageProjectiveTransformV2 ImageProjectiveTransformV3", shape=_projective_shape),
)
