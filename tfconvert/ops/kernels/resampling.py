"""Resizing along one axis as a matrix: how much of each input pixel is in each output pixel, as TensorFlow has it.

All is computed in float32 where TensorFlow does, since a pixel's position decides which others count. Matrices have the
shape [outputs, inputs].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from tfconvert.ops.kernels.call import Array

TABLE = 1024
"""Bicubic resizing looks its weights up in a table of so many steps a pixel."""

_ONE, _HALF = np.float32(1), np.float32(0.5)
SMALL_SUM = float(1000 * np.finfo(np.float32).tiny)
"""Sums of weights below this count as zero, and aren't divided by."""


def scale_of(inputs: int, outputs: int, align_corners: bool) -> np.float32:
    """Returns how many input pixels an output pixel is wide."""
    if align_corners and outputs > 1:
        return np.float32(inputs - 1) / np.float32(outputs - 1)
    return np.float32(inputs) / np.float32(outputs)


def positions(inputs: int, outputs: int, *, align_corners: bool, half_pixel_centers: bool) -> Array:
    """Returns where the centre of each output pixel lies among the input's."""
    scale = scale_of(inputs, outputs, align_corners)
    places = np.arange(outputs, dtype=np.float32)
    return np.asarray((places + _HALF) * scale - _HALF if half_pixel_centers else places * scale)


def _cubic(distance: Array, sharpness: float) -> Array:
    a = np.float32(sharpness)
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, far).astype(np.float32)


def bicubic(inputs: int, outputs: int, *, align_corners: bool = False, half_pixel_centers: bool = False) -> Array:
    """Returns the matrix of `ResizeBicubic`."""
    at = positions(inputs, outputs, align_corners=align_corners, half_pixel_centers=half_pixel_centers)
    floor = np.floor(at)
    offset = np.rint((at - floor) * np.float32(TABLE)) / np.float32(TABLE)
    neighbours = floor.astype(np.int64)[:, None] + np.arange(-1, 3)
    distances = np.stack([offset + 1, offset, 1 - offset, 2 - offset], axis=1).astype(np.float32)
    weights = _cubic(distances, -0.5 if half_pixel_centers else -0.75)
    bounded = np.clip(neighbours, 0, inputs - 1)
    if half_pixel_centers:
        # Pixels beyond the edge don't count; the others share their weight.
        weights = np.where(bounded == neighbours, weights, np.float32(0))
        weights = weights / weights.sum(1, keepdims=True)
    return _matrix(inputs, bounded, weights)


def area(inputs: int, outputs: int, *, align_corners: bool = False) -> Array:
    """Returns the matrix of `ResizeArea`: each output pixel is the mean of what it covers."""
    scale = scale_of(inputs, outputs, align_corners)
    places = np.arange(outputs, dtype=np.float32)
    start, end = places * scale, (places + _ONE) * scale
    first, last = np.floor(start).astype(np.int64), np.ceil(end).astype(np.int64)
    pixels = first[:, None] + np.arange(int((last - first).max(initial=0)))
    covered = np.minimum(pixels + 1, end[:, None]) - np.maximum(pixels, start[:, None])
    weights = np.where(pixels < last[:, None], covered, 0) / scale
    return _matrix(inputs, np.clip(pixels, 0, inputs - 1), weights.astype(np.float32))


def scaled(inputs: int, outputs: int, kernel: str, scale: float, translation: float, *, antialias: bool) -> Array:
    """Returns the matrix of `ScaleAndTranslate`: samples by a kernel, which is as wide as an output pixel at least."""
    function, radius = KERNELS[kernel]
    inverse = _ONE / np.float32(scale)
    at = (np.arange(outputs, dtype=np.float32) + _HALF) * inverse - inverse * np.float32(translation)
    width = np.maximum(inverse, _ONE) if antialias else _ONE
    reach = np.float32(radius) * width
    start = np.maximum(np.ceil(at - reach - _HALF).astype(np.int64), 0)
    end = np.minimum(np.floor(at + reach - _HALF).astype(np.int64), inputs - 1)
    pixels = np.arange(inputs)
    weights = function((pixels + _HALF - at[:, None]) / width)
    is_near = (pixels >= start[:, None]) & (pixels <= end[:, None])
    weights = np.where(is_near & ((at >= 0) & (at <= inputs))[:, None], weights, 0)
    total = weights.sum(1, keepdims=True)
    return np.asarray(weights / np.where(np.abs(total) < SMALL_SUM, np.inf, total), np.float32)


def _matrix(inputs: int, places: Array, weights: Array) -> Array:
    """Adds up weights at places of rows."""
    result = np.zeros((len(places), inputs), np.float32)
    np.add.at(result, (np.arange(len(places))[:, None], places), weights)
    return result


def _lanczos(radius: float, x: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        wave = radius * np.sin(np.pi * x) * np.sin(np.pi * x / radius) / (np.pi * x) ** 2
    return np.asarray(np.where(np.abs(x) > radius, 0, np.where(np.abs(x) <= 1e-3, 1, wave)))


def _gaussian(x: Array) -> Array:
    return np.where(np.abs(x) >= 1.5, 0, np.exp(-2 * x * x))


def _box(x: Array) -> Array:
    return np.where(np.abs(x) < 0.5, 1, np.where(np.abs(x) == 0.5, 0.5, 0))


def _triangle(x: Array) -> Array:
    return np.asarray(np.maximum(1 - np.abs(x), 0))


def _two_cubics(near: tuple[float, ...], far: tuple[float, ...], x: Array) -> Array:
    """Two polynomials, highest power first: one within a pixel, one within two."""
    size = np.abs(x)
    return np.where(size >= 2, 0, np.where(size >= 1, np.polyval(far, size), np.polyval(near, size)))


TWO_CUBICS: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "keyscubic": ((1.5, -2.5, 0, 1), (-0.5, 2.5, -4, 2)),
    "mitchellcubic": ((7 / 6, -2, 0, 8 / 9), (-7 / 18, 2, -10 / 3, 16 / 9)),
}
"""Kernels that are two polynomials, highest power first: one within a pixel, one within two."""

KERNELS: Mapping[str, tuple[Callable[[Array], Array], float]] = {
    **{f"lanczos{radius}": (partial(_lanczos, float(radius)), float(radius)) for radius in (1, 3, 5)},
    "gaussian": (_gaussian, 1.5),
    "box": (_box, 1.0),
    "triangle": (_triangle, 1.0),
    **{name: (partial(_two_cubics, *factors), 2.0) for name, factors in TWO_CUBICS.items()},
}
"""Kernel of `ScaleAndTranslate` -> its function and its radius."""
