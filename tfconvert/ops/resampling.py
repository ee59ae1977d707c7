"""Resizing images, with each of TensorFlow's three ways to lay pixel centres.

Along one axis, that is a matrix [outputs, inputs]: how much of each input pixel is in each output pixel. All is
computed in float32 where TensorFlow does, since a pixel's position decides which others count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from tfconvert.ops.call import Array, Call, Results, ints, typed
from tfconvert.ops.computed import ComputedTensor
from tfconvert.ops.declaration import op
from tfconvert.ops.formula import Elementwise
from tfconvert.ops.operands import Operands
from tfconvert.ops.shape_functions import Shapes
from tfconvert.schema.dialects.dims import MismatchError, dim_of_element, text, with_rank

TABLE = 1024
"""Steps a pixel in the table of weights of bicubic resizing."""

_HALF = np.float32(0.5)
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


class Axis(NamedTuple):
    """An axis that is resized.

    Attributes:
        inputs: How many pixels the image has.
        pixels: Their numbers, as a row.
        places: The numbers of the result's pixels, as a column.
    """

    inputs: Elementwise
    pixels: Elementwise
    places: Elementwise


def area_weights(axis: Axis, scale: Elementwise) -> Elementwise:
    """Returns the matrix of `ResizeArea` without aligned corners: each output pixel is the mean of what it covers."""
    start, end = axis.places * scale, (axis.places + 1) * scale
    covered = (axis.pixels + 1).minimum(end) - axis.pixels.maximum(start)
    return covered.maximum(0) / scale


def bicubic_weights(axis: Axis, scale: Elementwise, *, is_half: bool) -> Elementwise:
    """Returns the matrix of `ResizeBicubic`."""
    at = (axis.places + 0.5) * scale - 0.5 if is_half else axis.places * scale
    floor = at.floor()
    at = floor + ((at - floor) * TABLE).round() * (1 / TABLE)
    weights = _cubic(abs(axis.pixels - at), is_half=is_half)
    if is_half:
        # Pixels beyond the edge don't count; the others share their weight.
        return weights / weights.sum((1,), keep_dims=True)
    # Those are the pixels at the edge once more.
    before = _cubic(abs(at + 1), is_half=False) + _cubic(abs(at + 2), is_half=False)
    behind = _cubic(abs(axis.inputs - at), is_half=False) + _cubic(abs(axis.inputs + 1 - at), is_half=False)
    nothing = axis.pixels * 0
    is_first, is_last = axis.pixels.equal(0), axis.pixels.equal(axis.inputs - 1)
    return weights + is_first.where(before + nothing, 0) + is_last.where(behind + nothing, 0)


def near_cubic(distance: Elementwise, *, is_half: bool) -> Elementwise:
    """Returns the weights of pixels that are at most one away."""
    a = -0.5 if is_half else -0.75
    return ((a + 2) * distance - (a + 3)) * distance * distance + 1


def far_cubic(distance: Elementwise, *, is_half: bool) -> Elementwise:
    """Returns the weights of pixels that are one to two away."""
    a = -0.5 if is_half else -0.75
    return ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a


def _cubic(distance: Elementwise, *, is_half: bool) -> Elementwise:
    far = (distance < 2).where(far_cubic(distance, is_half=is_half), 0)
    return (distance <= 1).where(near_cubic(distance, is_half=is_half), far)


def scaled_weights(
    axis: Axis, kernel: str, scale: Elementwise, translation: Elementwise, *, antialias: bool
) -> Elementwise:
    """Returns the matrix of `ScaleAndTranslate`: samples by a kernel, which is as wide as an output pixel at least."""
    function, radius = KERNELS[kernel]
    inverse = 1 / scale
    at = (axis.places + 0.5) * inverse - inverse * translation
    distance = axis.pixels + 0.5 - at
    reach: Elementwise | float = radius
    if antialias:
        width = inverse.maximum(1)
        distance, reach = distance / width, width * radius
    first, last = (at - reach - 0.5).ceil(), (at + reach - 0.5).floor()
    is_near, is_inside = (axis.pixels >= first) & (axis.pixels <= last), (at >= 0) & (at <= axis.inputs)
    weights = (is_near & is_inside).where(function(distance), 0)
    total = weights.sum((1,), keep_dims=True)
    return weights / (abs(total) < SMALL_SUM).where(math.inf, total)


def _lanczos(radius: float, x: Elementwise) -> Elementwise:
    size = abs(x)
    wide = size.maximum(1e-3) * math.pi
    wave = radius * (wide.sin() * (wide * (1 / radius)).sin()) / (wide * wide)
    return (size <= 1e-3).where(1, (size <= radius).where(wave, 0))


def _gaussian(x: Elementwise) -> Elementwise:
    return (abs(x) < 1.5).where((x * x * -2).exp(), 0)


def _box(x: Elementwise) -> Elementwise:
    size = abs(x)
    edge = size.equal(0.5).where(size * 0 + 0.5, 0)
    return (size < 0.5).where(size * 0 + 1, edge)


def _triangle(x: Elementwise) -> Elementwise:
    return (1 - abs(x)).maximum(0)


def _two_cubics(near: tuple[float, ...], far: tuple[float, ...], x: Elementwise) -> Elementwise:
    """Two polynomials, highest power first: one within a pixel, one within two."""
    size = abs(x)
    return (size < 1).where(size.horner(near), (size < 2).where(size.horner(far), 0))


KERNELS: Mapping[str, tuple[Callable[[Elementwise], Elementwise], float]] = {
    **{f"lanczos{radius}": (partial(_lanczos, float(radius)), float(radius)) for radius in (1, 3, 5)},
    "gaussian": (_gaussian, 1.5),
    "box": (_box, 1.0),
    "triangle": (_triangle, 1.0),
    "keyscubic": (partial(_two_cubics, (1.5, -2.5, 0, 1), (-0.5, 2.5, -4, 2)), 2.0),
    "mitchellcubic": (partial(_two_cubics, (7 / 6, -2, 0, 8 / 9), (-7 / 18, 2, -10 / 3, 16 / 9)), 2.0),
}
"""Kernel of `ScaleAndTranslate` -> its formula and its radius."""


def _computed(number: float) -> ComputedTensor:
    return ComputedTensor(np.float32(number) * np.ones((), np.float32))


def _axis(inputs: int, outputs: int) -> Axis:
    pixels, places = (ComputedTensor(np.arange(size, dtype=np.float32)) for size in (inputs, outputs))
    return Axis(_computed(inputs), pixels.reshape((1, inputs)), places.reshape((outputs, 1)))


def _matrix(weights: Elementwise) -> Array:
    assert isinstance(weights, ComputedTensor)
    return weights.array


def bicubic(inputs: int, outputs: int, *, align_corners: bool = False, half_pixel_centers: bool = False) -> Array:
    """Returns the matrix of `ResizeBicubic`."""
    scale = _computed(float(scale_of(inputs, outputs, align_corners)))
    return _matrix(bicubic_weights(_axis(inputs, outputs), scale, is_half=half_pixel_centers))


def area(inputs: int, outputs: int, *, align_corners: bool = False) -> Array:
    """Returns the matrix of `ResizeArea`; where corners are aligned, pixels beyond the edge are the last one again."""
    scale = scale_of(inputs, outputs, align_corners)
    places = np.arange(outputs, dtype=np.float32)
    start, end = places * scale, (places + np.float32(1)) * scale
    first, last = np.floor(start).astype(np.int64), np.ceil(end).astype(np.int64)
    pixels = first[:, None] + np.arange(int((last - first).max(initial=0)))
    covered = np.minimum(pixels + 1, end[:, None]) - np.maximum(pixels, start[:, None])
    weights = (np.where(pixels < last[:, None], covered, 0) / scale).astype(np.float32)
    result = np.zeros((outputs, inputs), np.float32)
    np.add.at(result, (np.arange(outputs)[:, None], np.clip(pixels, 0, inputs - 1)), weights)
    return result


def scaled(inputs: int, outputs: int, kernel: str, scale: float, translation: float, *, antialias: bool) -> Array:
    """Returns the matrix of `ScaleAndTranslate`."""
    numbers = _computed(scale), _computed(translation)
    return _matrix(scaled_weights(_axis(inputs, outputs), kernel, *numbers, antialias=antialias))


def height_and_width(operands: Operands, index: int) -> tuple[int, int]:
    """Returns the height and width that an operand holds."""
    found = operands.elements(index)
    if found is None:
        return (-1, -1)
    if len(found) != 2:
        raise MismatchError(f"its size {text(found)} should be a height and a width")
    return (dim_of_element(found[0]), dim_of_element(found[1]))


def resized(operands: Operands) -> Shapes:
    image = with_rank(operands.shape(0), 4, "the image")
    return ((image[0], *height_and_width(operands, 1), image[3]),)


def _positions(inputs: int, outputs: int, call: Call) -> Array:
    align, half = call.flag("align_corners"), call.flag("half_pixel_centers")
    return positions(inputs, outputs, align_corners=align, half_pixel_centers=half)


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
    scale = scale_of(inputs, outputs, call.flag("align_corners"))
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


def _bicubic(call: Call) -> Results:
    align, half = call.flag("align_corners"), call.flag("half_pixel_centers")
    return _by_matrices(
        call, lambda inputs, outputs, axis: bicubic(inputs, outputs, align_corners=align, half_pixel_centers=half)
    )


def _area(call: Call) -> Results:
    align = call.flag("align_corners")
    if align and 1 in call.inputs[0].shape[1:3]:
        raise call.bad("one pixel is spread over several without a width of its own")
    return _by_matrices(call, lambda inputs, outputs, axis: area(inputs, outputs, align_corners=align))


def _scale_and_translate(call: Call) -> Results:
    kernel, antialias = call.text("kernel_type", "lanczos3"), call.flag("antialias", True)
    if kernel not in KERNELS or (call.inputs[2] <= 0).any():
        raise call.bad(f"the kernel {kernel!r} is not known, or a scale is not above zero")
    return _by_matrices(
        call,
        lambda inputs, outputs, axis: scaled(
            inputs, outputs, kernel, call.inputs[2][axis], call.inputs[3][axis], antialias=antialias
        ),
    )


def _by_matrices(call: Call, matrix: Callable[[int, int, int], Array]) -> Results:
    """Resizes by the matrices of rows and columns, each of inputs, outputs and the axis."""
    images, size = call.inputs[:2]
    height, width = ints(size)
    rows, columns = matrix(images.shape[1], height, 0), matrix(images.shape[2], width, 1)
    tall = np.einsum("nhwc,oh->nowc", images.astype(np.float32), rows)
    return (typed(np.einsum("nhwc,ow->nhoc", tall, columns), np.dtype(np.float32)),)


def bilinear(inputs: int, outputs: int, call: Call) -> Array:
    """Returns the matrix of `ResizeBilinear`."""
    lower, upper, weight = _neighbours(inputs, outputs, call)
    result, places = np.zeros((outputs, inputs), np.float32), np.arange(outputs)
    np.add.at(result, (places, lower), 1 - weight)
    np.add.at(result, (places, upper), weight)
    return result


def nearest(inputs: int, outputs: int, call: Call) -> Array:
    """Returns the matrix of `ResizeNearestNeighbor`."""
    return np.eye(inputs, dtype=np.float32)[_nearest_places(inputs, outputs, call)]


OPS = (
    op("ResizeArea", shape=resized, compute=_area),
    op("ResizeBicubic", shape=resized, compute=_bicubic),
    op("ResizeBilinear", shape=resized, compute=_bilinear),
    op("ResizeNearestNeighbor", shape=resized, compute=_nearest),
    op("ScaleAndTranslate", shape=resized, compute=_scale_and_translate),
)
