"""Resizing images, with each of TensorFlow's three ways to lay pixel centres, and cropping."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from converter.evaluate.call import Array, Call, Kernel, Results, ints, typed

_TABLE = 1024
"""The bicubic kernel looks its weights up in a table of so many steps a pixel."""


def _scale(inputs: int, outputs: int, align_corners: bool) -> np.float32:
    if align_corners and outputs > 1:
        return np.float32(inputs - 1) / np.float32(outputs - 1)
    return np.float32(inputs) / np.float32(outputs)


def _positions(inputs: int, outputs: int, call: Call) -> Array:
    """Returns where each output pixel's centre lies on the input's axis, in float32 as TensorFlow computes it."""
    scale = _scale(inputs, outputs, call.flag("align_corners"))
    places = np.arange(outputs, dtype=np.float32)
    if call.flag("half_pixel_centers"):
        return np.asarray((places + np.float32(0.5)) * scale - np.float32(0.5))
    return np.asarray(places * scale)


def _neighbours(inputs: int, outputs: int, call: Call) -> tuple[Array, Array, Array]:
    """Returns the lower and the upper neighbour of each output pixel, and the upper one's weight."""
    at = _positions(inputs, outputs, call)
    floor = np.floor(at)
    lower = np.maximum(floor, 0).astype(np.int64)
    upper = np.minimum(np.ceil(at), inputs - 1).astype(np.int64)
    return lower, upper, at - floor


def _bilinear(call: Call) -> Results:
    images, size = call.inputs
    height, width = ints(size)
    x = images.astype(np.float32)
    top, bottom, down = _neighbours(images.shape[1], height, call)
    left, right, across = _neighbours(images.shape[2], width, call)
    across, down = across[:, None], down[:, None, None]
    rows = x[:, :, left] + (x[:, :, right] - x[:, :, left]) * across
    return (rows[:, top] + (rows[:, bottom] - rows[:, top]) * down,)


def _nearest_places(inputs: int, outputs: int, call: Call) -> Array:
    scale = _scale(inputs, outputs, call.flag("align_corners"))
    places = np.arange(outputs, dtype=np.float32)
    if call.flag("half_pixel_centers"):
        places += np.float32(0.5)
    at = places * scale
    chosen = np.floor(at + np.float32(0.5)) if call.flag("align_corners") else np.floor(at)
    return np.asarray(np.clip(chosen, 0, inputs - 1).astype(np.int64))


def _nearest(call: Call) -> Results:
    images, size = call.inputs
    height, width = ints(size)
    rows = images[:, _nearest_places(images.shape[1], height, call)]
    return (rows[:, :, _nearest_places(images.shape[2], width, call)],)


def _cubic_weights(distance: Array, sharpness: float) -> Array:
    """Returns the cubic convolution's weights of pixels at distances of less than two."""
    a = np.float32(sharpness)
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, far).astype(np.float32)


def _cubic_axis(inputs: int, outputs: int, call: Call) -> tuple[Array, Array]:
    """Returns the four neighbours of each output pixel, and their weights."""
    at = _positions(inputs, outputs, call)
    floor = np.floor(at)
    offset = np.rint((at - floor) * np.float32(_TABLE)) / np.float32(_TABLE)
    neighbours = floor.astype(np.int64)[:, None] + np.arange(-1, 3)
    distances = np.stack([offset + 1, offset, 1 - offset, 2 - offset], axis=1).astype(np.float32)
    half_pixel = call.flag("half_pixel_centers")
    weights = _cubic_weights(distances, -0.5 if half_pixel else -0.75)
    bounded = np.clip(neighbours, 0, inputs - 1)
    if half_pixel:
        # Pixels beyond the edge don't count; the others share their weight.
        weights = np.where(bounded == neighbours, weights, np.float32(0))
        weights = weights / weights.sum(1, keepdims=True)
    return bounded, weights


def _bicubic(call: Call) -> Results:
    images, size = call.inputs
    height, width = ints(size)
    x = images.astype(np.float32)
    rows, row_weights = _cubic_axis(images.shape[1], height, call)
    columns, column_weights = _cubic_axis(images.shape[2], width, call)
    tall = np.einsum("nokwc,ok->nowc", x[:, rows], row_weights)
    return (typed(np.einsum("nhokc,ok->nhoc", tall[:, :, columns], column_weights), np.dtype(np.float32)),)


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


KERNELS: Mapping[str, Kernel] = {
    "CropAndResize": _crop_and_resize,
    "ResizeBicubic": _bicubic,
    "ResizeBilinear": _bilinear,
    "ResizeNearestNeighbor": _nearest,
}
"""Op name -> kernel."""
