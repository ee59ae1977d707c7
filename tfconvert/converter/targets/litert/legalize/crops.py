"""Crops of images, resized to one size: the pixels around each sampled point are gathered and weighed.

Matrices as for whole images would need a copy of the image for each crop, of which detectors take hundreds.
"""

from __future__ import annotations

from typing import NamedTuple

from tfconvert.converter.ir.constants import Scalar
from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering, ints
from tfconvert.converter.targets.litert.legalize.formulas import Formula, both, count, number
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_ELEMENTS = "f32 f16 bf16 ui8 i8 i16 ui16 i32"


class _Points(NamedTuple):
    """Where an axis is sampled: a row of places for each box.

    Attributes:
        at: The places, limited to the image.
        is_inside: Which ones were inside of it.
    """

    at: Formula
    is_inside: Value


def _constraint(op: Operation) -> Failure | None:
    ranks = [len(types.shape_of(operand.type) or ()) for operand in op.operands[:3]]
    if ranks != [4, 2, 1]:
        return Failure("the ranks of its operands are not known")
    if any(0 in (types.shape_of(value.type) or ()) for value in (*op.operands, *op.results)):
        return Failure("it has no elements")
    return None


def _points(emit: LiteRTBuilder, edges: tuple[Formula, Formula], pixels: Scalar, samples: Scalar) -> _Points:
    """Returns where an axis is sampled.

    Args:
        emit: Emits ops.
        edges: Columns of where boxes begin and end, as parts of the image.
        pixels: The image's size.
        samples: How many samples are taken.
    """
    start, end = edges
    last = number(emit, pixels) - 1
    middle = (start + end) * 0.5 * last
    at = middle
    if samples != 1:
        # A constant divisor would become a factor, which moves the last point beyond the edge now and then.
        gaps = start * 0 + (samples - 1 if isinstance(samples, int) else (number(emit, samples) - 1).maximum(1))
        numbers = count(emit, samples).reshape((1, samples if isinstance(samples, int) else -1))
        at = start * last + numbers * ((end - start) * last / gaps)
    if not isinstance(samples, int):
        at = at.where(number(emit, samples).compare("Greater", 1), middle)
    is_inside = both(emit, at.compare("GreaterEqual", 0), at.compare("LessEqual", last))
    return _Points(at.maximum(0).minimum(last), is_inside)


def _crop(op: Operation, emit: LiteRTBuilder) -> Value:
    image, boxes = op.operands[:2]
    sizes: list[Scalar] = [emit.size(image, axis) for axis in (1, 2)]
    if tensor_data.constant_of(op.operands[3]) is not None:
        samples: list[Scalar] = [*ints(op.operands[3])]
    else:
        wanted = emit.i32(op.operands[3])
        samples = [emit.pick(wanted, axis) for axis in (0, 1)]
    column = types.tensor(types.F32, ((types.shape_of(boxes.type) or (-1,))[0], 1))
    corners = emit.tf_op(
        "Split", (emit.number(1), emit.cast(boxes, types.F32)), (column,) * 4, {"num_split": 4}
    ).results
    top, left, bottom, right = (Formula(emit, corner) for corner in corners)
    down = _points(emit, (top, bottom), sizes[0], samples[0])
    across = _points(emit, (left, right), sizes[1], samples[1])
    pixels = _Pixels(op, emit, sizes)
    sample = _nearest if str(tf.get(op, "method", "bilinear")) == "nearest" else _bilinear
    sampled = sample(pixels, down.at, across.at)
    inside = both(emit, _spread(emit, down.is_inside, 2), _spread(emit, across.is_inside, 1))
    outside = float(tf.get(op, "extrapolation_value", 0.0))
    return emit.select(_spread(emit, inside, 3), sampled.value, outside)


def _spread(emit: LiteRTBuilder, value: Value, axis: int) -> Value:
    """Inserts a dimension of one."""
    shape = list(types.shape_of(value.type) or ())
    shape.insert(axis, 1)
    return emit.tf("ExpandDims", (value, emit.number(axis)), types.tensor(types.element_of(value.type), shape))


class _Pixels:
    """The pixels of a batch of images, one after the other."""

    __slots__ = ("_channels", "_emit", "_first", "_rows", "_width")

    def __init__(self, op: Operation, emit: LiteRTBuilder, sizes: list[Scalar]) -> None:
        image = emit.cast(op.operands[0], types.F32)
        channels = (types.shape_of(image.type) or (-1,))[-1]
        target = emit.pack((-1, emit.size(image, 3)))
        self._emit = emit
        self._channels = channels
        self._rows = emit.tf("Reshape", (image, target), types.tensor(types.F32, (-1, channels)))
        self._width = emit.value(sizes[1])
        self._first = emit.binary("Mul", _spread(emit, emit.i32(op.operands[2]), 1), emit.value(sizes[0]))

    def at(self, row: Formula, column: Formula) -> Formula:
        """Returns the pixels of each box at whole rows and columns."""
        rows = self._emit.binary("Mul", self._emit.binary("AddV2", self._first, row.integers()), self._width)
        places = self._emit.binary("AddV2", _spread(self._emit, rows, 2), _spread(self._emit, column.integers(), 1))
        shape = (*(types.shape_of(places.type) or ()), self._channels)
        gathered = self._emit.tf("Gather", (self._rows, places), types.tensor(types.F32, shape))
        return Formula(self._emit, gathered)


def _nearest(pixels: _Pixels, down: Formula, across: Formula) -> Formula:
    # Ties go away from zero, as C rounds.
    return pixels.at((down + 0.5).apply("Floor"), (across + 0.5).apply("Floor"))


def _bilinear(pixels: _Pixels, down: Formula, across: Formula) -> Formula:
    top, left = down.apply("Floor"), across.apply("Floor")
    bottom, right = down.apply("Ceil"), across.apply("Ceil")
    emit = down.emit
    y = Formula(emit, _spread(emit, _spread(emit, (down - top).value, 2), 3))
    x = Formula(emit, _spread(emit, _spread(emit, (across - left).value, 1), 3))
    above, below = (
        near + (pixels.at(row, right) - near) * x for row in (top, bottom) for near in (pixels.at(row, left),)
    )
    return above + (below - above) * y


ENTRIES: tuple[Entry, ...] = (Lowering("CropAndResize", "Gather Floor Ceil SelectV2", _crop, _ELEMENTS, _constraint),)
