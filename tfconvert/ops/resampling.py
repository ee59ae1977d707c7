"""Resizing images, with each of TensorFlow's three ways to lay pixel centres.

Along one axis, that is a matrix [outputs, inputs]: how much of each input pixel is in each output pixel. All is
computed in float32 where TensorFlow does, since a pixel's position decides which others count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from tfconvert.ops.call import Array, Call, Results, ints, typed
from tfconvert.ops.declaration import op
from tfconvert.ops.operands import Operands
from tfconvert.ops.shape_functions import Shapes
from tfconvert.schema.dialects.dims import MismatchError, dim_of_element, text, with_rank

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


def height_and_width(operands: Operands, index: int) -> tuple[int, int]:
    """Returns the height and width that an operand holds."""
    found = operands.elements(index)
    if found is None:
        return (-1, -1)
    if len(found) != 2:
        raise MismatchError(f"its size {text(found)} should be a height and a width")
    return (dim_of_element(found[0]), dim_of_element(found[1]))


def _resized(operands: Operands) -> Shapes:
    image = with_rank(operands.shape(0), 4, "the image")
    return ((image[0], *height_and_width(operands, 1), image[3]),)


def _bilinear_gradient_shape(operands: Operands) -> Shapes:
    """The gradient has the shape of what was resized."""
    with_rank(operands.shape(0), 4, "the gradient")
    return (operands.shape(1),)


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


OPS = (
    op("ResizeArea", shape=_resized, compute=_area),
    op("ResizeBicubic", shape=_resized, compute=_bicubic),
    op("ResizeBilinear", shape=_resized, compute=_bilinear),
    op("ResizeBilinearGrad", shape=_bilinear_gradient_shape),
    op("ResizeNearestNeighbor", shape=_resized, compute=_nearest),
    op("ResizeNearestNeighborGrad", shape=_resized),
    op("ScaleAndTranslate", shape=_resized, compute=_scale_and_translate),
)
