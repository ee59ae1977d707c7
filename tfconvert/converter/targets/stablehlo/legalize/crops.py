"""Crops of images, resized to one size: the pixels around each sampled point are gathered and weighed.

A decomposition would compute one index for each pixel, as LiteRT's lowering does. Here one gather takes the image, the
row and the column, so that no index overflows, and the images' numbers can be checked when the program runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite
from tfconvert.converter.targets.stablehlo.legalize.expressions import Expression, count, number
from tfconvert.converter.targets.stablehlo.legalize.gathering import gather_at
from tfconvert.converter.targets.stablehlo.legalize.index_checks import require_indices
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, part, sizes_in
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class _Points(NamedTuple):
    """Where an axis is sampled: a row of places for each box.

    Attributes:
        at: The places, limited to the image.
        is_inside: Which ones were inside of it.
    """

    at: Expression
    is_inside: Expression


def _points(emit: StableHLOBuilder, edges: tuple[Expression, Expression], pixels: int, samples: int) -> _Points:
    """Returns where an axis is sampled.

    Args:
        emit: The emitter.
        edges: Columns of where boxes begin and end, as parts of the image.
        pixels: The image's size.
        samples: How many samples are taken.
    """
    start, end = edges
    last = number(emit, emit.size(pixels)) - 1
    at = (start + end) * 0.5 * last
    if samples != 1:
        taken = number(emit, emit.size(samples))
        numbers = count(emit, samples).reshape((1, samples))
        spaced = start * last + numbers * ((end - start) * last / (taken - 1).maximum(1))
        at = spaced if samples >= 0 else (taken > 1).where(spaced, at)
    return _Points(at.maximum(0).minimum(last), (at >= 0) & (at <= last))


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
    sample = _nearest if tf.get(op, "method", "bilinear") == "nearest" else _bilinear
    found = sample(pixels, down.at, across.at)
    inside = emit.binary("and", *(pixels.wide(each.is_inside, axis) for axis, each in ((1, down), (2, across))))
    outside = float(getattr(op.properties.get("extrapolation_value"), "value", 0.0))
    return emit.select(inside, found.value, emit.scalar(outside, types.F32))


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

    def wide(self, each: Expression, axis: int) -> Value:
        """Returns what each row, or column, of a crop has, for all of the crop's elements."""
        return self._emit.broadcast(each.value, self._dims, (0, axis))


def _nearest(pixels: _Pixels, down: Expression, across: Expression) -> Expression:
    # Ties go away from zero, as C rounds.
    return pixels.at((down + 0.5).floor(), (across + 0.5).floor())


def _bilinear(pixels: _Pixels, down: Expression, across: Expression) -> Expression:
    top, left, bottom, right = down.floor(), across.floor(), down.ceil(), across.ceil()
    emit = down.emit
    y, x = Expression(emit, pixels.wide(down - top, 1)), Expression(emit, pixels.wide(across - left, 2))
    above, below = (
        near + (pixels.at(row, right) - near) * x for row in (top, bottom) for near in (pixels.at(row, left),)
    )
    return above + (below - above) * y


LOWERINGS: Mapping[str, Rewrite] = {"CropAndResize": _crop_and_resize}
