"""Crops of images, and windows on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from tfconvert.ops.call import Array, Call, Results, ints
from tfconvert.ops.declaration import Decomposition, op, ops_like
from tfconvert.ops.formula import Elementwise, Tensor
from tfconvert.ops.operands import Operands
from tfconvert.ops.requirements import Requirement
from tfconvert.ops.resampling import height_and_width
from tfconvert.ops.segments import segment_sum
from tfconvert.ops.shape_functions import Shapes
from tfconvert.ops.windows import windows
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.dims import dim_of_element, merge, window, with_rank
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
X = TypeVar("X", bound=Tensor)


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


def sampled_points(start: X, end: X, pixels: X, samples: int | X, numbers: X) -> CropPoints[X]:
    """Returns where the crops sample an axis.

    Args:
        start: A column of where boxes begin, as parts of the image.
        end: Where they end.
        pixels: The image's size, a float.
        samples: How many points there are, if that isn't known a float.
        numbers: Their numbers, a row.
    """
    last = pixels - 1
    middle = (start + end) * 0.5 * last
    at = middle
    if not isinstance(samples, int) or samples != 1:
        # A constant divisor would become a factor, which moves the last point beyond the edge now and then.
        gaps = start * 0 + (samples - 1 if isinstance(samples, int) else (samples - 1).maximum(1))
        at = start * last + numbers * ((end - start) * last / gaps)
    if not isinstance(samples, int):
        at = (samples > 1).where(at, middle)
    return limited_points(at, last)


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


class _Crops:
    """The points that crops sample, and the images' pixels around them, one after the other.

    Args:
        gradient: The gradient of the crops.
        boxes: The boxes.
        owners: The number of each box' image.
        sizes: The height and the width of the images.
    """

    def __init__(self, gradient: Tensor, boxes: Tensor, owners: Tensor, sizes: Sequence[Tensor | int]) -> None:
        self.gradient = gradient
        self._height, self.width = (_tensor(gradient, size) for size in sizes)
        self.owners = owners.cast(np.int32)
        top, left, bottom, right = boxes.split(1, 4)
        self.samples = gradient.size(1), gradient.size(2)
        self.down = self._points(top, bottom, self._height, 1)
        self.across = self._points(left, right, self.width, 2)

    def _points(self, start: Tensor, end: Tensor, size: Tensor, axis: int) -> CropPoints[Tensor]:
        count = self.gradient.size(axis)
        samples = count if isinstance(count, int) else count.cast(np.float32)
        return sampled_points(start, end, size.cast(np.float32), samples, self.numbers(axis).reshape((1, -1)))

    def numbers(self, axis: int) -> Tensor:
        """Returns the numbers of the points along an axis, as floats."""
        return self.gradient.numbers(axis).cast(np.float32)

    @property
    def is_inside(self) -> Tensor:
        return wide(self.down.is_inside, 1) & wide(self.across.is_inside, 2)

    def places(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Returns where the pixels at rows and columns are among those of all images."""
        first = self.owners.expand_dims(1) * self._height + rows.cast(np.int32)
        return (first * self.width).expand_dims(2) + columns.cast(np.int32).expand_dims(1)


def _tensor(like: Tensor, size: Tensor | int) -> Tensor:
    return like.of(np.array(size, np.int32)) if isinstance(size, int) else size


def wide(each: X, axis: int) -> X:
    """Reshapes numbers of crops' rows (axis 1) or columns (axis 2) so that they broadcast to the crops' elements."""
    return (each.expand_dims(2) if axis == 1 else each.expand_dims(1)).expand_dims(3)


def crops_to_images(
    gradient: Tensor,
    boxes: Tensor,
    owners: Tensor,
    shape: Tensor,
    *,
    method: str = "bilinear",
    attributes: Mapping[str, Any] = MappingProxyType({}),
) -> Tensor:
    """Adds each gradient up at the pixels that its sample was mixed of, by their parts."""
    known = shape.constant
    batch, height, width, depth = ints(known) if known is not None else (_picked(shape, at) for at in range(4))
    crops = _Crops(gradient, boxes, owners, (height, width))
    y, x = crops.down.at, crops.across.at
    parts: list[tuple[Tensor, Tensor]] = []
    inside = crops.is_inside.where(gradient, 0)
    if method == "nearest":
        parts.append((crops.places((y + 0.5).floor(), (x + 0.5).floor()), inside))
    else:
        down, across = wide(y - y.floor(), 1), wide(x - x.floor(), 2)
        for row, rest in ((y.floor(), inside * (1 - down)), (y.ceil(), inside * down)):
            parts.append((crops.places(row, x.floor()), rest * (1 - across)))
            parts.append((crops.places(row, x.ceil()), rest * across))
    places, given = (joined.concat(others, 0) for joined, *others in zip(*parts, strict=True))
    count = _tensor(gradient, batch) * height * width
    flat = given.op("Reshape", given, _vector(gradient, -1, depth))
    found = segment_sum(flat, places.reshape([-1]), count)
    return found.op("Reshape", found, shape).cast(attributes.get("T", np.float32))  # type: ignore[no-any-return]


def _vector(like: Tensor, *sizes: Tensor | int) -> Tensor | list[int]:
    """Returns sizes as an operand of a reshape."""
    known = [size for size in sizes if isinstance(size, int)]
    return known if len(known) == len(sizes) else like.op("Pack", *(_tensor(like, size) for size in sizes), axis=0)


def crops_to_boxes(gradient: Tensor, images: Tensor, boxes: Tensor, owners: Tensor) -> Tensor:
    """Sums, for each edge of a box, how the samples change as it moves: their slopes times the points' weights."""
    crops = _Crops(gradient, boxes, owners, (images.size(1), images.size(2)))
    rows = images.op("Reshape", images, _vector(gradient, -1, images.size(3))).cast(np.float32)
    y, x = crops.down.at, crops.across.at
    (above_left, above_right), (below_left, below_right) = (
        [rows.gather(crops.places(row, column)) for column in (x.floor(), x.ceil())] for row in (y.floor(), y.ceil())
    )
    down, across = wide(y - y.floor(), 1), wide(x - x.floor(), 2)
    inside = crops.is_inside.where(gradient, 0)
    by_y = (1 - across) * (below_left - above_left) + across * (below_right - above_right)
    by_x = (1 - down) * (above_right - above_left) + down * (below_right - below_left)
    edges = []
    for slope, axis in ((by_y, 1), (by_x, 2)):
        last = (_tensor(gradient, images.size(axis)) - 1).cast(np.float32)
        sums = (slope * inside).sum([3 - axis, 3])
        samples = gradient.size(axis)
        if samples == 1:
            parts = crops.numbers(axis) + 0.5
        else:
            gaps = (_tensor(gradient, samples) - 1).cast(np.float32)
            parts = crops.numbers(axis) / gaps.maximum(1)
            parts = parts if isinstance(samples, int) else (gaps > 0).where(parts, 0.5)
        edges.append(((sums * (1 - parts) * last).sum([1]), (sums * parts * last).sum([1])))
    (top, bottom), (left, right) = edges
    return top.op("Pack", top, left, bottom, right, axis=1)  # type: ignore[no-any-return]


def _picked(vector: Tensor, index: int) -> Tensor:
    return vector.op("StridedSlice", vector, [index], [index + 1], [1], shrink_axis_mask=1)  # type: ignore[no-any-return]


def _ranks_of_crops(ranks: Sequence[int]) -> Requirement:
    """Returns the requirement that operands have ranks."""

    def check(op: Operation) -> str | None:
        is_known = all(
            shape is not None and len(shape) == rank
            for shape, rank in zip((each.shape for each in op.operands), ranks, strict=False)
        )
        return None if is_known else "the ranks of its operands are not known"

    return check


def _image_of_crops_shape(operands: Operands) -> Shapes:
    found = operands.elements(3)
    return ((-1,) * 4 if found is None else tuple(map(dim_of_element, found)),)


_CROPS = (3, 4, 4, 2)

OPS = (
    op("CropAndResize", shape=_crop_and_resize_shape, compute=_crop_and_resize),
    op(
        "CropAndResizeGradBoxes",
        shape=lambda operands: (operands.shape(2),),
        decompose=(
            Decomposition(crops_to_boxes, "", _ranks_of_crops((4, 4, 2, 1)), example=(_CROPS, _CROPS, (3, 4), (3,))),
        ),
    ),
    op(
        "CropAndResizeGradImage",
        shape=_image_of_crops_shape,
        decompose=(
            Decomposition(
                crops_to_images,
                "",
                _ranks_of_crops((4, 2, 1, 1)),
                example=(_CROPS, (3, 4), (3,), np.array(_CROPS, np.int32)),
            ),
        ),
    ),
    op(
        "ExtractImagePatches",
        shape=_patches_shape,
        compute=_patches,
        decompose=(Decomposition(patches, "f32 i32 i64 ui8 i8", _windows_are_known),),
    ),
    *ops_like("ImageProjectiveTransformV2 ImageProjectiveTransformV3", shape=_projective_shape),
)
