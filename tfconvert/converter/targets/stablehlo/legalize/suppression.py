"""Non-maximum suppression: a loop chooses the box with the best score, and lowers the scores of those that overlap it.

Chosen boxes are written into a buffer of the maximum size, which is sliced to their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.ir.constants import constant_number
from tfconvert.converter.targets.stablehlo.legalize.constraints import require_equal
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite, number
from tfconvert.converter.targets.stablehlo.legalize.gathering import gather
from tfconvert.converter.targets.stablehlo.legalize.regions import loop, sort
from tfconvert.converter.targets.stablehlo.legalize.scans import first
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, padded, part, requested_size
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

Overlap = Callable[[StableHLOBuilder, Value], Value]
"""Emits how much the chosen box overlaps each one, from a mask with one true element in each row."""


class _Terms(NamedTuple):
    """When a box is chosen.

    Attributes:
        overlap: More than this much drops a box, unless there is a sigma.
        score: Only boxes with better scores are chosen.
        sigma: How much overlaps lower scores; 0, or `None`, if they don't.
    """

    overlap: Value
    score: Value
    sigma: Value | None = None


class _Chosen(NamedTuple):
    """The choices of a loop: its steps, the boxes' indices, and their scores or the lowest number."""

    steps: Value
    indices: Value
    scores: Value


def _choose(emit: StableHLOBuilder, scores: Value, overlap: Overlap, room: int, terms: _Terms) -> _Chosen:
    """Emits the loop; all dimensions of the scores but the last are apart from each other."""
    dims = emit.dims(scores)
    outer, last = dims[:-1], len(dims) - 1
    element = scores.element
    nothing = emit.scalar(-math.inf, element)
    wide = (*outer, room)
    # Boxes that may not be chosen have the lowest score.
    scores = emit.select(emit.compare("GT", scores, terms.score), scores, nothing)
    indices = emit.filled(0, types.I32, wide)
    found = emit.broadcast(nothing, wide, ())
    most = emit.size(room)

    def condition(inner: StableHLOBuilder, args: Sequence[Value]) -> Sequence[Value]:
        is_left = inner.reduce("or", inner.compare("GT", args[1], terms.score), range(len(dims)), 0)
        return (inner.binary("and", inner.compare("LT", args[0], inner.value(most)), is_left),)

    def body(inner: StableHLOBuilder, args: Sequence[Value]) -> Sequence[Value]:
        step, left, places, best = args
        highest = inner.reduce("maximum", left, (last,), -math.inf)
        counted = inner.iota(dims, last, types.I32)
        is_highest = inner.compare("EQ", left, inner.broadcast(highest, dims, range(last)))
        size = inner.value(inner.size(dims[-1]))
        place = inner.reduce("minimum", inner.select(is_highest, counted, size), (last,), (1 << 31) - 1)
        is_it = inner.compare("EQ", counted, inner.broadcast(place, dims, range(last)))
        lowered = _lowered(inner, left, overlap(inner, is_it), terms)
        return (
            inner.binary("add", step, 1),
            inner.select(is_it, nothing, lowered),
            _written(inner, places, place, step),
            _written(inner, best, highest, step),
        )

    carried = (emit.scalar(0, types.I32), scores, indices, found)
    steps, _, places, best = loop(emit, carried, condition, body)
    return _Chosen(steps, places, best)


def _written(emit: StableHLOBuilder, room: Value, column: Value, step: Value) -> Value:
    """Emits an update of one element of each row.

    The room is small: to choose from it again costs little, and there is no slice that could reach out of it.
    """
    dims = emit.dims(room)
    last = len(dims) - 1
    is_there = emit.compare("EQ", emit.iota(dims, last, types.I32), step)
    return emit.select(is_there, emit.broadcast(column, dims, range(last)), room)


def _lowered(emit: StableHLOBuilder, scores: Value, overlaps: Value, terms: _Terms) -> Value:
    """Emits the scores after a box was chosen; scores that are too low now are out."""
    is_much = emit.compare("GT", overlaps, terms.overlap)
    nothing = emit.scalar(-math.inf, scores.element)
    hard = emit.select(is_much, nothing, scores)
    known = 0 if terms.sigma is None else constant_number(terms.sigma)
    if terms.sigma is None or known == 0:
        return hard
    exponent = emit.binary(
        "divide", emit.binary("multiply", emit.binary("multiply", overlaps, overlaps), -0.5), terms.sigma
    )
    soft = emit.binary("multiply", scores, emit.select(is_much, 0, emit.unary("exponential", exponent)))
    # Infinity times 0 is not a number.
    soft = emit.select(emit.compare("GT", scores, terms.score), soft, nothing)
    soft = emit.select(emit.compare("GT", soft, terms.score), soft, nothing)
    return soft if known is not None else emit.select(emit.compare("GT", terms.sigma, 0), soft, hard)


def _of_corners(emit: StableHLOBuilder, corners: Sequence[Value]) -> Overlap:
    """Returns how boxes overlap, as parts of their unions; any two opposite corners make a box."""
    top, left, bottom, right = corners
    near = emit.binary("minimum", top, bottom), emit.binary("minimum", left, right)
    far = emit.binary("maximum", top, bottom), emit.binary("maximum", left, right)
    sides = [emit.binary("subtract", *each) for each in zip(far, near, strict=True)]
    area = emit.binary("multiply", *sides)
    last = len(emit.dims(area)) - 1

    def overlap(inner: StableHLOBuilder, is_it: Value) -> Value:
        dims = inner.dims(is_it)

        def own(value: Value) -> Value:
            chosen = inner.reduce("add", inner.select(is_it, value, 0), (last,), 0)
            return inner.broadcast(chosen, dims, range(last))

        common: Value | None = None
        for low, high in zip(near, far, strict=True):
            begin, end = inner.binary("maximum", own(low), low), inner.binary("minimum", own(high), high)
            side = inner.binary("maximum", inner.binary("subtract", end, begin), 0)
            common = side if common is None else inner.binary("multiply", common, side)
        assert common is not None
        own_area = own(area)
        union = inner.binary("subtract", inner.binary("add", own_area, area), common)
        is_empty = inner.binary("or", inner.compare("LE", own_area, 0), inner.compare("LE", area, 0))
        return inner.select(is_empty, 0, inner.binary("divide", common, union))

    return overlap


def _corners(emit: StableHLOBuilder, boxes: Value) -> list[Value]:
    """Returns the four numbers of each box."""
    dims = emit.dims(boxes)
    return [emit.reshape(part(emit, boxes, len(dims) - 1, at, at + 1), dims[:-1]) for at in range(4)]


def _of_table(table: Value) -> Overlap:
    def overlap(emit: StableHLOBuilder, is_it: Value) -> Value:
        row = emit.broadcast(is_it, emit.dims(table), (0,))
        return emit.reduce("add", emit.select(row, table, 0), (0,), 0)

    return overlap


def _terms(op: Operation, emit: StableHLOBuilder) -> _Terms:
    """Returns the terms; thresholds that an op doesn't have let everything pass."""
    element = op.operands[1].element
    numbers = [emit.convert(emit.reshape(each, ()), element) for each in op.operands[3:]]
    if not numbers:
        numbers = [emit.scalar(float(getattr(op.properties.get("iou_threshold"), "value", 0.5)), element)]
    if len(numbers) == 1:
        numbers.append(emit.scalar(types.lowest_finite(element), element))
    return _Terms(*numbers[:3])


def _suppress(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    boxes, scores = op.operands[:2]
    wanted = requested_size(emit, op.operands[2])
    is_padded = bool(tf.get(op, "pad_to_max_output_size", False))
    (size,) = emit.dims(scores)
    own = emit.dims(boxes)
    require_equal(emit, own[0], size, "there must be as many scores as boxes")
    room = wanted if is_padded else emit.size_of(emit.compute("minimum", emit.size(wanted), emit.size(size)))
    if op.name == "tf.NonMaxSuppressionWithOverlaps":
        require_equal(emit, own[1], size, "there must be as many scores as boxes")
        overlap = _of_table(emit.reshape(boxes, (size, size)))
    else:
        overlap = _of_corners(emit, _corners(emit, emit.reshape(boxes, (size, 4))))
    found = _choose(emit, scores, overlap, room, _terms(op, emit))
    is_taken = emit.compare("LT", emit.iota((room,), 0, types.I32), found.steps)
    results = [found.indices]
    if op.name == "tf.NonMaxSuppressionV5":
        results.append(emit.select(is_taken, found.scores, 0))
    if not is_padded:
        count = emit.sizes.fresh(found.steps)
        results = [first(emit, each, 0, count) for each in results]
    return [*results, found.steps][: len(op.results)]


def _combined(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    """Chooses boxes for each class of each image, and merges the best of all classes."""
    boxes, scores = op.operands[:2]
    each, total = (int(number(op, at, "the number of boxes")) for at in (2, 3))
    terms = _Terms(*(emit.reshape(operand, ()) for operand in op.operands[4:6]))
    batch, size, classes = emit.dims(scores)
    dims = (batch, classes, size)
    turned = emit.transpose(boxes, (3, 0, 2, 1))
    corners = [
        emit.broadcast(emit.reshape(part(emit, turned, 0, at, at + 1), (batch, emit.dims(boxes)[2], size)), dims)
        for at in range(4)
    ]
    chosen = _choose(emit, emit.transpose(scores, (0, 2, 1)), _of_corners(emit, corners), each, terms)
    count = emit.size_of(emit.compute("multiply", emit.size(classes), each))
    # The chosen boxes are grouped by class.
    places = [gather(emit, edge, chosen.indices, 2, 2) for edge in corners]
    numbers = emit.convert(emit.iota((batch, classes, each), 1, types.I32), types.F32)
    flat = [emit.reshape(value, (batch, count)) for value in (chosen.scores, numbers, *places)]
    room = min(total, count) if tf.get(op, "pad_per_class", False) and count >= 0 else total
    if count < 0 or room > count:
        flat = [
            padded(emit, value, (0, 0), (0, room), emit.scalar(fill, types.F32))
            for value, fill in zip(flat, (-math.inf, *[0.0] * 5), strict=True)
        ]
    best, *others = (part(emit, value, 1, 0, room) for value in sort(emit, flat, 1, "GT"))
    is_there = emit.compare("GT", best, terms.score)
    best, number_of, *edges = (emit.select(is_there, value, 0) for value in (best, *others))
    if tf.get(op, "clip_boxes", True):
        edges = [emit.binary("minimum", emit.binary("maximum", edge, 0), 1) for edge in edges]
    taken = emit.reduce("add", emit.convert(is_there, types.I32), (1,), 0)
    columns = [emit.reshape(edge, (*emit.dims(edge), 1)) for edge in edges]
    return concatenate(emit, columns, 2), best, number_of, taken


LOWERINGS: Mapping[str, Rewrite] = {
    "CombinedNonMaxSuppression": _combined,
    **{f"NonMaxSuppression{version}": _suppress for version in ("", "V2", "V3", "V4", "V5", "WithOverlaps")},
}
