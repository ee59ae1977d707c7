"""Crops of images, resized to one size: the pixels around each sampled point are gathered and weighed.

Matrices as for whole images would need a copy of the image for each crop, of which detectors take hundreds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfconvert.converter.ir.constants import Scalar
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering, ints
from tfconvert.converter.targets.litert.legalize.formulas import count, number
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

    at: EmittedTensor
    is_inside: EmittedTensor


def _constraint(op: Operation) -> Failure | None:
    ranks = [len(types.shape_of(operand.type) or ()) for operand in op.operands[:3]]
    if ranks != [4, 2, 1]:
        return Failure("the ranks of its operands are not known")
    if any(0 in (types.shape_of(value.type) or ()) for value in (*op.operands, *op.results)):
        return Failure("it has no elements")
    return None


def _points(
    emit: LiteRTBuilder, edges: tuple[EmittedTensor, EmittedTensor], pixels: Scalar, samples: Scalar
) -> _Points:
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
        at = (number(emit, samples) > 1).where(at, middle)
    return _Points(at.maximum(0).minimum(last), (at >= 0) & (at <= last))


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
    top, left, bottom, right = (EmittedTensor(emit, corner) for corner in corners)
    down = _points(emit, (top, bottom), sizes[0], samples[0])
    across = _points(emit, (left, right), sizes[1], samples[1])
    pixels = _Pixels(op, emit, sizes)
    sample = _nearest if str(tf.get(op, "method", "bilinear")) == "nearest" else _bilinear
    sampled = sample(pixels, down.at, across.at)
    inside = down.is_inside.expand_dims(2) & across.is_inside.expand_dims(1)
    outside = float(tf.get(op, "extrapolation_value", 0.0))
    return inside.expand_dims(3).where(sampled, outside).value


class _Pixels:
    """The pixels of a batch of images, one after the other."""

    __slots__ = ("_first", "_rows", "_width")

    def __init__(self, op: Operation, emit: LiteRTBuilder, sizes: list[Scalar]) -> None:
        image = emit.cast(op.operands[0], types.F32)
        channels = (types.shape_of(image.type) or (-1,))[-1]
        target = emit.pack((-1, emit.size(image, 3)))
        rows = emit.tf("Reshape", (image, target), types.tensor(types.F32, (-1, channels)))
        self._rows = EmittedTensor(emit, rows)
        self._width = EmittedTensor(emit, emit.value(sizes[1]))
        owners = EmittedTensor(emit, emit.i32(op.operands[2]))
        self._first = owners.expand_dims(1) * EmittedTensor(emit, emit.value(sizes[0]))

    def at(self, row: EmittedTensor, column: EmittedTensor) -> EmittedTensor:
        """Returns the pixels of each box at whole rows and columns."""
        rows = (self._first + row.cast(np.int32)) * self._width
        places = rows.expand_dims(2) + column.cast(np.int32).expand_dims(1)
        return self._rows.op("Gather", self._rows, places)  # type: ignore[no-any-return]


def _nearest(pixels: _Pixels, down: EmittedTensor, across: EmittedTensor) -> EmittedTensor:
    # Ties go away from zero, as C rounds.
    return pixels.at((down + 0.5).floor(), (across + 0.5).floor())


def _bilinear(pixels: _Pixels, down: EmittedTensor, across: EmittedTensor) -> EmittedTensor:
    top, left, bottom, right = down.floor(), across.floor(), down.ceil(), across.ceil()
    y, x = (down - top).expand_dims(2).expand_dims(3), (across - left).expand_dims(1).expand_dims(3)
    above, below = (
        near + (pixels.at(row, right) - near) * x for row in (top, bottom) for near in (pixels.at(row, left),)
    )
    return above + (below - above) * y


ENTRIES: tuple[Entry, ...] = (Lowering("CropAndResize", "Gather Floor Ceil SelectV2", _crop, _ELEMENTS, _constraint),)
