"""Resizing of images: pixels are gathered at the places that TensorFlow's kernels compute, and weighed.

Where sizes are known, places and weights are constants; else they are computed from the sizes at run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.targets.stablehlo.legalize.emit import DeclinedError, Emit
from tfconvert.converter.targets.stablehlo.legalize.entry import Lowering, attribute
from tfconvert.converter.targets.stablehlo.legalize.expressions import Expression, count, number
from tfconvert.converter.targets.stablehlo.legalize.gathering import gather
from tfconvert.converter.targets.stablehlo.legalize.products import dot
from tfconvert.converter.targets.stablehlo.legalize.shaping import pick
from tfconvert.ops.formula import Elementwise
from tfconvert.ops.resampling import TABLE, area_weights, far_cubic, near_cubic
from tfconvert.ops.resampling import Axis as PixelAxis
from tfconvert.schema.dialects import types
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


def axes_of(op: Operation, emit: Emit) -> list[Axis]:
    """Returns the rows' and the columns' axis, with their sizes after resizing.

    Raises:
        DeclinedError: The operand is not a batch of images.
    """
    dims = emit.dims(op.operands[0])
    if len(dims) != 4:
        raise DeclinedError("its operand is not a batch of images")
    declared = types.shape_of(op.results[0].type) or (-1,) * 4
    elements = emit.sizes.elements(op.operands[1]) or (-1,) * 2
    axes = []
    for axis, element in zip((1, 2), elements, strict=True):
        known = max(declared[axis], element)
        size = known if known >= 0 else emit.size_of(pick(op.operands[1], axis - 1, emit))
        axes.append(Axis(axis, dims[axis], size))
    return axes


def _scale(op: Operation, axis: Axis, emit: Emit) -> Expression:
    """Returns how many pixels a pixel of the result is wide."""
    before, after = (number(emit.size(dim), emit) for dim in axis[1:])
    if not attribute(op, "align_corners", False) or axis.after == 1:
        return before / after
    if axis.after >= 0:
        return (before - 1) / (after - 1)
    aligned = (before - 1) / (after - 1).maximum(1)
    return (after > 1).where(aligned, before / after)


def _places(op: Operation, axis: Axis, emit: Emit) -> Expression:
    """Returns where the centre of each pixel of the result lies among the pixels."""
    places, scale = count(axis.after, emit), _scale(op, axis, emit)
    return (places + 0.5) * scale - 0.5 if attribute(op, "half_pixel_centers", False) else places * scale


def _last(axis: Axis, emit: Emit) -> Expression:
    return number(emit.size(axis.before), emit) - 1


def _taken(value: Value, places: Expression, axis: Axis, emit: Emit) -> Value:
    """Returns the pixels at places, which are limited to the image."""
    return gather(value, places.maximum(0).minimum(_last(axis, emit)).integers(), axis.number, 0, emit)


def _weighed(value: Value, weights: Elementwise, axis: Axis, emit: Emit) -> Value:
    assert isinstance(weights, Expression)
    return emit.binary("multiply", value, emit.broadcast(weights.value, emit.dims(value), (axis.number,)))


def _nearest(op: Operation, emit: Emit) -> Value:
    value = op.operands[0]
    for axis in axes_of(op, emit):
        places = count(axis.after, emit)
        if attribute(op, "half_pixel_centers", False):
            places = places + 0.5
        at = places * _scale(op, axis, emit)
        if attribute(op, "align_corners", False):
            at = at + 0.5
        value = _taken(value, at.floor(), axis, emit)
    return value


def _bilinear(op: Operation, emit: Emit) -> Value:
    value = emit.convert(op.operands[0], types.F32)
    # Columns first: TensorFlow's kernel mixes pixels of a row before it mixes rows.
    for axis in reversed(axes_of(op, emit)):
        at = _places(op, axis, emit)
        floor = at.floor()
        low, high = (_taken(value, each, axis, emit) for each in (floor, at.ceil()))
        value = emit.binary("add", low, _weighed(emit.binary("subtract", high, low), at - floor, axis, emit))
    return value


def _bicubic(op: Operation, emit: Emit) -> Value:
    value = emit.convert(op.operands[0], types.F32)
    is_half = bool(attribute(op, "half_pixel_centers", False))
    for axis in axes_of(op, emit):
        at = _places(op, axis, emit)
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
            weights = _shared(weights, places, axis, emit)
        parts = [
            _weighed(_taken(value, place, axis, emit), weight, axis, emit)
            for place, weight in zip(places, weights, strict=True)
        ]
        value = parts[0]
        for part in parts[1:]:
            value = emit.binary("add", value, part)
    return value


def _shared(weights: Sequence[Elementwise], places: Sequence[Elementwise], axis: Axis, emit: Emit) -> list[Elementwise]:
    """Returns weights of which those beyond the edge are 0, and the others share theirs."""
    last = _last(axis, emit)
    inside = [((place >= 0) & (place <= last)).where(weight, 0) for weight, place in zip(weights, places, strict=True)]
    total = inside[0] + inside[1] + inside[2] + inside[3]
    return [weight / total for weight in inside]


def pixels_of(axis: Axis, emit: Emit) -> PixelAxis:
    """Returns the numbers of an axis' pixels."""
    pixels, places = count(axis.before, emit), count(axis.after, emit)
    size = number(emit.size(axis.before), emit)
    return PixelAxis(size, pixels.reshape((1, axis.before)), places.reshape((axis.after, 1)))


def multiplied(value: Value, matrix: Elementwise, axis: int, emit: Emit) -> Value:
    """Emits images of which an axis, 1 or 2, is multiplied by a matrix of [outputs, inputs]."""
    assert isinstance(matrix, Expression)
    product = dot(value, matrix.value, (), [(axis, 1)], emit)
    return emit.transpose(product, (0, 3, 1, 2) if axis == 1 else (0, 1, 3, 2))


def _area(op: Operation, emit: Emit) -> Value:
    """Inserts products with matrices of how much of each pixel is in each pixel of the result."""
    value = emit.convert(op.operands[0], types.F32)
    if attribute(op, "align_corners", False):
        raise DeclinedError("it aligns corners")
    for axis in axes_of(op, emit):
        value = multiplied(value, area_weights(pixels_of(axis, emit), _scale(op, axis, emit)), axis.number, emit)
    return value


LOWERINGS: Mapping[str, Lowering] = {
    "ResizeArea": _area,
    "ResizeBicubic": _bicubic,
    "ResizeBilinear": _bilinear,
    "ResizeNearestNeighbor": _nearest,
}
