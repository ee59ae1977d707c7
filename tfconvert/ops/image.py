"""Crops of images, and windows on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from tfconvert.ops.call import Array, Call, Results, ints
from tfconvert.ops.declaration import op, ops_like
from tfconvert.ops.formula import Elementwise
from tfconvert.ops.operands import Operands
from tfconvert.ops.resampling import height_and_width
from tfconvert.ops.shape_functions import Shapes
from tfconvert.schema.dialects.dims import merge, window, with_rank


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


OPS = (
    op("CropAndResize", shape=_crop_and_resize_shape, compute=_crop_and_resize),
    op("ExtractImagePatches", shape=_patches_shape, compute=_patches),
    *ops_like("ImageProjectiveTransformV2 ImageProjectiveTransformV3", shape=_projective_shape),
)
