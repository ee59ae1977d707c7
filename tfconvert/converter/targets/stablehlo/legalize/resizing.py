"""Resizing of images, scaling and moving them, and crops of one size.

Pixels are gathered at the positions that TensorFlow's kernels compute, and weighed. Where sizes are known, positions
and weights are constants; otherwise they are computed from the sizes at run time.

Crops are not a decomposition, which would compute one index for each pixel as LiteRT's lowering does. Here one gather
takes the image, the row and the column, so that no index overflows, and the images' numbers can be checked at run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.constraints import require_indices
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite
from tfconvert.converter.targets.stablehlo.legalize.expressions import Expression, count, number
from tfconvert.converter.targets.stablehlo.legalize.gathering import gather, gather_at
from tfconvert.converter.targets.stablehlo.legalize.linear_algebra import dot
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, part, pick, sizes_in
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.ops.formula import Elementwise
from tfconvert.ops.image import CropPoints, bilinear_pixels, limited_points, nearest_pixels
from tfconvert.ops.resampling import KERNELS, TABLE, area_weights, far_cubic, near_cubic, scaled_weights
from tfconvert.ops.resampling import Axis as PixelAxis
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class Axis(NamedTuple):
    """An axis that is resized.

    Attributes:
        number: The axis.
        before: Its size.
        after: The size of the result.
    """

    number: int
    before: int
    after: int


def axes_of(op: Operation, emit: StableHLOBuilder) -> list[Axis]:
    """Returns the rows' and the columns' axis, with their sizes after resizing.

    Raises:
        Declined: The operand is not a batch of images.
    """
    dims = emit.dims(op.operands[0])
    if len(dims) != 4:
        raise Declined("its operand is not a batch of images")
    declared = op.results[0].shape or (-1,) * 4
    elements = emit.sizes.elements(op.operands[1]) or (-1,) * 2
    axes = []
    for axis, element in zip((1, 2), elements, strict=True):
        known = max(declared[axis], element)
        size = known if known >= 0 else emit.size_of(pick(emit, op.operands[1], axis - 1))
        axes.append(Axis(axis, dims[axis], size))
    return axes


def _scale(emit: StableHLOBuilder, op: Operation, axis: Axis) -> Expression:
    """Returns the width of a result pixel in pixels."""
    before, after = (number(emit, emit.size(dim)) for dim in axis[1:])
    if not tf.get(op, "align_corners", False) or axis.after == 1:
        return before / after
    if axis.after >= 0:
        return (before - 1) / (after - 1)
    aligned = (before - 1) / (after - 1).maximum(1)
    return (after > 1).where(aligned, before / after)


def _places(emit: StableHLOBuilder, op: Operation, axis: Axis) -> Expression:
    """Returns where the centre of each pixel of the result lies among the pixels."""
    places, scale = count(emit, axis.after), _scale(emit, op, axis)
    return (places + 0.5) * scale - 0.5 if tf.get(op, "half_pixel_centers", False) else places * scale


def _last(emit: StableHLOBuilder, axis: Axis) -> Expression:
    return number(emit, emit.size(axis.before)) - 1


def _taken(emit: StableHLOBuilder, value: Value, places: Expression, axis: Axis) -> Value:
    """Returns the pixels at positions, limited to the image."""
    return gather(emit, value, places.maximum(0).minimum(_last(emit, axis)).integers(), axis.number, 0)


def _weighed(emit: StableHLOBuilder, value: Value, weights: Elementwise, axis: Axis) -> Value:
    assert isinstance(weights, Expression)
    return emit.binary("multiply", value, emit.broadcast(weights.value, emit.dims(value), (axis.number,)))


def _nearest(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    for axis in axes_of(op, emit):
        places = count(emit, axis.after)
        if tf.get(op, "half_pixel_centers", False):
            places = places + 0.5
        at = places * _scale(emit, op, axis)
        if tf.get(op, "align_corners", False):
            at = at + 0.5
        value = _taken(emit, value, at.floor(), axis)
    return value


def _bilinear(op: Operation, emit: StableHLOBuilder) -> Value:
    value = emit.convert(op.operands[0], types.F32)
    # Columns first: TensorFlow's kernel mixes pixels of a row before it mixes rows.
    for axis in reversed(axes_of(op, emit)):
        at = _places(emit, op, axis)
        floor = at.floor()
        low, high = (_taken(emit, value, each, axis) for each in (floor, at.ceil()))
        value = emit.binary("add", low, _weighed(emit, emit.binary("subtract", high, low), at - floor, axis))
    return value


def _bicubic(op: Operation, emit: StableHLOBuilder) -> Value:
    value = emit.convert(op.operands[0], types.F32)
    is_half = bool(tf.get(op, "half_pixel_centers", False))
    for axis in axes_of(op, emit):
        at = _places(emit, op, axis)
        floor = at.floor()
        offset = ((at - floor) * TABLE).round() * (1 / TABLE)
        weights = [
            far_cubic(offset + 1, is_half=is_half),
            near_cubic(offset, is_half=is_half),
            near_cubic(1 - offset, is_half=is_half),
            far_cubic(2 - offset, is_half=is_half),
        ]
        places = [floor + step for step in (-1, 0, 1, 2)]
        if is_half:
            weights = _shared(emit, weights, places, axis)
        parts = [
            _weighed(emit, _taken(emit, value, place, axis), weight, axis)
            for place, weight in zip(places, weights, strict=True)
        ]
        value = parts[0]
        for each in parts[1:]:
            value = emit.binary("add", value, each)
    return value


def _shared(
    emit: StableHLOBuilder, weights: Sequence[Elementwise], places: Sequence[Elementwise], axis: Axis
) -> list[Elementwise]:
    """Returns normalized weights; those of pixels beyond the edge are 0."""
    last = _last(emit, axis)
    inside = [((place >= 0) & (place <= last)).where(weight, 0) for weight, place in zip(weights, places, strict=True)]
    total = inside[0] + inside[1] + inside[2] + inside[3]
    return [weight / total for weight in inside]


def pixels_of(emit: StableHLOBuilder, axis: Axis) -> PixelAxis:
    """Returns the numbers of an axis' pixels."""
    pixels, places = count(emit, axis.before), count(emit, axis.after)
    size = number(emit, emit.size(axis.before))
    return PixelAxis(size, pixels.reshape((1, axis.before)), places.reshape((axis.after, 1)))


def multiplied(emit: StableHLOBuilder, value: Value, matrix: Elementwise, axis: int) -> Value:
    """Multiplies axis 1 or 2 of images by a matrix of [outputs, inputs]."""
    assert isinstance(matrix, Expression)
    product = dot(emit, value, matrix.value, (), [(axis, 1)])
    return emit.transpose(product, (0, 3, 1, 2) if axis == 1 else (0, 1, 3, 2))


def _area(op: Operation, emit: StableHLOBuilder) -> Value:
    """Inserts products with matrices of how much of each pixel is in each pixel of the result."""
    value = emit.convert(op.operands[0], types.F32)
    if tf.get(op, "align_corners", False):
        raise Declined("it aligns corners")
    for axis in axes_of(op, emit):
        value = multiplied(emit, value, area_weights(pixels_of(emit, axis), _scale(emit, op, axis)), axis.number)
    return value


RESIZING: Mapping[str, Rewrite] = {
    "ResizeArea": _area,
    "ResizeBicubic": _bicubic,
    "ResizeBilinear": _bilinear,
    "ResizeNearestNeighbor": _nearest,
}


def _scale_and_translate(op: Operation, emit: StableHLOBuilder) -> Value:
    name = str(tf.get(op, "kernel_type", "lanczos3"))
    if name not in KERNELS:
        raise Declined(f"{name} is not a kernel that is known")
    value = emit.convert(op.operands[0], types.F32)
    antialias = bool(tf.get(op, "antialias", True))
    for axis in axes_of(op, emit):
        at = axis.number - 1
        scale, moved = (
            Expression(emit, emit.reshape(part(emit, operand, 0, at, at + 1), ())) for operand in op.operands[2:]
        )
        weights = scaled_weights(pixels_of(emit, axis), name, scale, moved, antialias=antialias)
        value = multiplied(emit, value, weights, axis.number)
    return value


RESAMPLING: Mapping[str, Rewrite] = {"ScaleAndTranslate": _scale_and_translate}


def _points(
    emit: StableHLOBuilder, edges: tuple[Expression, Expression], pixels: int, samples: int
) -> CropPoints[Expression]:
    """Returns where an axis is sampled.

    Args:
        emit: The emitter.
        edges: Columns of where boxes begin and end, as parts of the image.
        pixels: The image's size.
        samples: The number of samples.
    """
    start, end = edges
    last = number(emit, emit.size(pixels)) - 1
    at = (start + end) * 0.5 * last
    if samples != 1:
        taken = number(emit, emit.size(samples))
        numbers = count(emit, samples).reshape((1, samples))
        spaced = start * last + numbers * ((end - start) * last / (taken - 1).maximum(1))
        at = spaced if samples >= 0 else (taken > 1).where(spaced, at)
    return limited_points(at, last)


def _crop_and_resize(op: Operation, emit: StableHLOBuilder) -> Value:
    image, boxes, owners = op.operands[:3]
    if [len(emit.dims(value)) for value in (image, boxes, owners)] != [4, 2, 1]:
        raise Declined("its operands are not images, boxes and their numbers")
    require_indices(emit, owners, emit.dims(image)[0])
    samples = sizes_in(emit, op.operands[3])
    boxes = emit.convert(boxes, types.F32)
    top, left, bottom, right = (Expression(emit, part(emit, boxes, 1, at, at + 1)) for at in range(4))
    _, height, width, channels = emit.dims(image)
    down = _points(emit, (top, bottom), height, samples[0])
    across = _points(emit, (left, right), width, samples[1])
    dims = (emit.dims(boxes)[0], *samples, channels)
    pixels = _Pixels(emit.convert(image, types.F32), owners, dims, emit)
    if tf.get(op, "method", "bilinear") == "nearest":
        found = nearest_pixels(pixels.at, down.at, across.at)
    else:
        found = bilinear_pixels(pixels.at, pixels.wide, down.at, across.at)
    inside = pixels.wide(down.is_inside, 1) & pixels.wide(across.is_inside, 2)
    outside = float(getattr(op.properties.get("extrapolation_value"), "value", 0.0))
    return emit.select(inside.value, found.value, emit.scalar(outside, types.F32))


class _Pixels:
    """The pixels of images that crops are taken from.

    Args:
        image: The images.
        owners: Which image each crop is of.
        dims: The shape of the crops.
        emit: The emitter.
    """

    __slots__ = ("_dims", "_emit", "_image", "_owners")

    def __init__(self, image: Value, owners: Value, dims: Sequence[int], emit: StableHLOBuilder) -> None:
        self._image, self._dims, self._emit = image, dims, emit
        self._owners = self._column(emit.convert(owners, types.I32), (0,))

    def _column(self, numbers: Value, axes: Sequence[int]) -> Value:
        wide = self._emit.broadcast(numbers, self._dims[:3], axes)
        return self._emit.reshape(wide, (*self._dims[:3], 1))

    def at(self, row: Expression, column: Expression) -> Expression:
        """Returns the pixels of each crop at whole rows and columns."""
        columns = [self._owners, self._column(row.integers(), (0, 1)), self._column(column.integers(), (0, 2))]
        return Expression(self._emit, gather_at(self._emit, self._image, concatenate(self._emit, columns, 3)))

    def wide(self, each: Expression, axis: int) -> Expression:
        """Broadcasts numbers of rows or columns to the crop's elements."""
        return Expression(self._emit, self._emit.broadcast(each.value, self._dims, (0, axis)))


CROPS: Mapping[str, Rewrite] = {"CropAndResize": _crop_and_resize}
