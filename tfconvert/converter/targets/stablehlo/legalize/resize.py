"""Resizing of images: pixels are gathered at the places that TensorFlow's kernels compute, and weighed.

Where sizes are known, places and weights are constants; else they are computed from the sizes at run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite
from tfconvert.converter.targets.stablehlo.legalize.expressions import Expression, count, number
from tfconvert.converter.targets.stablehlo.legalize.gathering import gather
from tfconvert.converter.targets.stablehlo.legalize.linear_algebra import dot
from tfconvert.converter.targets.stablehlo.legalize.shaping import pick
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.ops.formula import Elementwise
from tfconvert.ops.resampling import TABLE, area_weights, far_cubic, near_cubic
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
    declared = types.shape_of(op.results[0].type) or (-1,) * 4
    elements = emit.sizes.elements(op.operands[1]) or (-1,) * 2
    axes = []
    for axis, element in zip((1, 2), elements, strict=True):
        known = max(declared[axis], element)
        size = known if known >= 0 else emit.size_of(pick(emit, op.operands[1], axis - 1))
        axes.append(Axis(axis, dims[axis], size))
    return axes


def _scale(emit: StableHLOBuilder, op: Operation, axis: Axis) -> Expression:
    """Returns how many pixels a pixel of the result is wide."""
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
    """Returns the pixels at places, which are limited to the image."""
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
        for part in parts[1:]:
            value = emit.binary("add", value, part)
    return value


def _shared(
    emit: StableHLOBuilder, weights: Sequence[Elementwise], places: Sequence[Elementwise], axis: Axis
) -> list[Elementwise]:
    """Returns weights of which those beyond the edge are 0, and the others share theirs."""
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
    """Emits images of which an axis, 1 or 2, is multiplied by a matrix of [outputs, inputs]."""
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


LOWERINGS: Mapping[str, Rewrite] = {
    "ResizeArea": _area,
    "ResizeBicubic": _bicubic,
    "ResizeBilinear": _bilinear,
    "ResizeNearestNeighbor": _nearest,
}
