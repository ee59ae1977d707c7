"""Resizing images, with each of TensorFlow's three ways to lay pixel centres, and cropping."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tfconvert.ops.kernels.call import Array, Call, Kernel, Results, ints, typed
from tfconvert.ops.kernels.resampling import KERNELS as SAMPLING
from tfconvert.ops.kernels.resampling import area, bicubic, positions, scale_of, scaled


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
    if kernel not in SAMPLING or (call.inputs[2] <= 0).any():
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


KERNELS: Mapping[str, Kernel] = {
    "CropAndResize": _crop_and_resize,
    "ResizeArea": _area,
    "ExtractImagePatches": _patches,
    "ResizeBicubic": _bicubic,
    "ResizeBilinear": _bilinear,
    "ResizeNearestNeighbor": _nearest,
    "ScaleAndTranslate": _scale_and_translate,
}
"""Op name -> kernel."""
