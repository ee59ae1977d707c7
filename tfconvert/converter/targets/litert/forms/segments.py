"""Updates that are combined with each other, and with the rows of a tensor, by LiteRT's operators for scatters.

LiteRT's operators for segments take a nanosecond for each element of the result.

    unsorted_segment_sum(updates, ids)       ->  scatter_nd(indices, updates)
    x + unsorted_segment_sum(updates, ids)   ->  x + scatter_nd(indices, updates)
    x + unsorted_segment_sum(updates, ids)   ->  scatter(x, ids, updates){add}
    x + scatter_nd(indices, updates)         ->  scatter(x, indices, updates){add}
    unsorted_segment_prod(updates, ids)      ->  scatter(fill(1), ids, updates){multiply}

It is the same for extremes, which are combined like products. `STABLEHLO_SCATTER` skips updates that are outside, and
is for few of them; `SCATTER_ND` requires that all are inside, so that 0 is added to some row instead of the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_array, constant_number
from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, planned, worth
from tfconvert.converter.targets.litert.forms.questions import shape_of, static_shape
from tfconvert.converter.targets.litert.forms.scatter_operator import ADD, BODIES, FILLED, scatter, scatter_rows, whole
from tfconvert.converter.targets.litert.forms.scatter_places import (
    Filled,
    Indices,
    Insert,
    counts,
    dtype_of,
    is_height,
    known_places,
    numbered_together,
    places_of,
    source_of,
)
from tfconvert.converter.targets.litert.forms.scatter_speed import Sizes, is_faster
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_DEPTH = 16

_SEGMENT = "tfl.unsorted_segment_"
_EXTREMES = frozenset(("tfl.maximum", "tfl.minimum"))
_SEGMENT_EXTREMES = frozenset((f"{_SEGMENT}max", f"{_SEGMENT}min"))

# Operators that combine rows with what was combined before of their updates -> how that was done.
_SEGMENTS: Mapping[str, str] = {"add": "sum", "maximum": "max", "minimum": "min", "mul": "prod"}

# Operators that combine what was combined of the updates with other rows.
_COMBINING = frozenset(f"tfl.{name}" for name in (*_SEGMENTS, "equal", "greater"))


def _combined(op: Operation) -> Emit:
    name = op.name.removeprefix(tfl.PREFIX)
    for rows, found in (op.operands, op.operands[::-1]):
        segment = found.sole_producer(_SEGMENT + _SEGMENTS[name])
        if segment is not None and shape_of(rows) == shape_of(op.results[0]) and is_height(segment.operands[2], rows):
            need(not counts(rows), "it is of the numbers of rows")
            updates, ids, _ = segment.operands
            return scatter_rows(rows, ids, updates, "add" if name == "add" else "combine", BODIES[name], op)
    need(False, "it isn't of rows and their updates")
    raise AssertionError


def _segments(op: Operation) -> Emit:
    """The updates of each row, combined with each other."""
    updates, ids, _ = _of_segments(op)
    need(not _COMBINING.intersection(_users(op.results[0])), "it is combined with other rows")
    points = _points(op, _NEUTRAL[op.name.removeprefix(_SEGMENT)](dtype_of(op.results[0])))
    places = places_of(op.results[0], ids, points)
    if places.x is op.results[0]:
        places = places._replace(x=points._replace(type=op.results[0].type))
    name = next(name for name, segments in _SEGMENTS.items() if op.name == _SEGMENT + segments)
    return scatter("segments", BODIES[name], places, lambda build: updates, shape_of(updates)[0], op)


def _of_segments(op: Operation) -> tuple[Value, Value, Shape]:
    """Returns the updates, the numbers of their rows and the shape of the rows; declines others than rows."""
    updates, ids = op.operands[:2]
    shape = static_shape(op.results[0])
    need(op.results[0].element in FILLED, "LiteRT doesn't fill tensors of its elements")
    need(len(shape_of(ids)) == 1 and shape_of(updates)[1:] == shape[1:], "the rows of updates have several dimensions")
    return updates, ids, shape


def _users(value: Value) -> set[str]:
    """Returns the names of the ops that use a value, behind reshapes."""
    found = [use.operation for use in value.uses]
    return {name for op in found for name in (_users(op.results[0]) if op.name == "tfl.reshape" else {op.name})}


def _points(op: Operation, number: float) -> Filled:
    """Returns a tensor of one number, in the shape that rows will get."""
    users = [use.operation for use in op.results[0].uses]
    kind = op.results[0].type
    if len(users) == 1 and users[0].name == "tfl.reshape" and types.is_static(users[0].results[0].shape):
        kind = users[0].results[0].type
    return Filled(number, kind)


def _sums(op: Operation) -> Emit:
    """The sums of the updates of each row."""
    _, ids, shape = _of_segments(op)
    need(not (op.results[0].has_one_use() and _users(op.results[0]) == {"tfl.add"}), "it is added to other rows")
    sizes = Sizes(shape[0], math.prod(shape[1:]), static_shape(ids)[0])
    worth(is_faster("sums", sizes), "LiteRT isn't faster with other operators")
    _, insert = _summed(op, _points(op, 0))
    return lambda build: build.reshape(insert(build), shape)


def _summed(op: Operation, points: Value | Filled) -> tuple[Attribute, Insert]:
    """Returns the type of the sums of the updates of each row, and what inserts them.

    The operator requires indices that are inside: instead of those that aren't, 0 is added to some row.

    Args:
        op: The sums.
        points: A tensor in whose order the rows are.
    """
    updates, ids, shape = _of_segments(op)
    count, constant = static_shape(ids)[0], constant_array(ids)
    together = numbered_together(op.results[0], points, ids)
    if constant is not None and bool((constant >= 0).all()):
        together = known_places(op.results[0], points, constant)
    depth = 1 if together is None else len(together.axes)
    kind = op.results[0].type if together is None else together.x.type
    target = types.shape_of(kind) or ()

    def insert(build: FormBuilder) -> Value:
        if together is not None:
            places, check = together.inside or together.insert(build), together.check
        else:
            places = build.tfl("maximum", (build.scalar(0, types.I32), ids), ids.type)
            check = build.tfl("equal", (places, ids), types.tensor(types.I1, (count,)))
        added = updates
        if check is not None:
            check = build.reshape(check, (count, *[1] * (len(shape) - 1)))
            nothing = build.scalar(0, updates.element)
            added = build.tfl("select_v2", (check, updates, nothing), updates.type)
        operands = (build.reshape(places, (count, depth)), build.reshape(added, (count, *target[depth:])))
        return build.tfl("scatter_nd", (*operands, build.ints(target)), kind)

    return kind, insert


def _added_sums(op: Operation) -> Emit:
    """Rows and the sums of their updates."""
    for rows, found in (op.operands, op.operands[::-1]):
        segment = found.sole_producer("tfl.unsorted_segment_sum")
        if segment is not None and shape_of(rows) == shape_of(op.results[0]):
            return _plus_sums(op, rows, segment)
    need(False, "it isn't of rows and their updates")
    raise AssertionError


def _plus_sums(op: Operation, rows: Value, segment: Operation) -> Emit:
    _, ids, shape = _of_segments(segment)
    sizes = Sizes(shape[0], math.prod(shape[1:]), static_shape(ids)[0])
    need(not is_faster("add", sizes), "LiteRT is faster with one scatter")
    worth(is_faster("sums", sizes), "LiteRT isn't faster with other operators")
    points = source_of(rows, "tfl.reshape")
    kind, insert = _summed(segment, points)
    x = points if points.type == kind else rows
    return lambda build: build.reshape(build.tfl("add", (x, insert(build)), kind, dict(op.properties)), shape)


# The values of rows without updates.
_NEUTRAL: Mapping[str, Callable[[Any], float]] = {
    "max": lambda dtype: float(np.finfo(dtype).min) if dtype.kind == "f" else int(np.iinfo(dtype).min),
    "min": lambda dtype: float(np.finfo(dtype).max) if dtype.kind == "f" else int(np.iinfo(dtype).max),
    "prod": lambda dtype: 1,
    "sum": lambda dtype: 0,
}


def _extreme(op: Operation) -> Emit:
    """The extremes of rows and their updates, but the rows as they are where the limit says that no update is there."""
    check, rows, changed = op.operands
    equal, both = check.producer("tfl.equal"), changed.sole_producer(_EXTREMES)
    need(equal is not None, "it isn't of rows and their updates")
    assert equal is not None
    found, limit = equal.operands[0], constant_number(equal.operands[1])
    segment = found.producer(_SEGMENT_EXTREMES)
    need(segment is not None, "it isn't of rows and their updates")
    assert segment is not None
    name = segment.name[-3:]
    neutral = _NEUTRAL[name](np.dtype(np.float32))
    need(limit == neutral, "it isn't of rows and their updates")
    is_neutral = changed is found and constant_number(rows) == neutral * math.inf
    is_both = both is not None and both.name == f"tfl.{name}imum" and {*both.operands} == {found, rows}
    need(is_neutral or is_both, "it isn't of rows and their updates")
    x, (updates, ids, height) = whole(rows, op.results[0].type), segment.operands
    need(is_height(height, found) and len(shape_of(ids)) == 1, "its rows have several dimensions")
    need(shape_of(updates)[1:] == shape_of(found)[1:], "the updates aren't rows")
    places = places_of(found, ids, x if isinstance(x, Filled) else source_of(x, "tfl.reshape"))
    if places.x is found:
        places = places._replace(x=x)
    return scatter("extreme", BODIES[f"{name}imum"], places, lambda build: updates, shape_of(updates)[0], op)


def _added(sign: int, op: Operation) -> Emit:
    """A tensor with the sums of the updates of each place."""
    for x, found in (op.operands, op.operands[::-1]) if sign > 0 else (op.operands,):
        summed = found.sole_producer("tfl.scatter_nd")
        if summed is not None and shape_of(x) == shape_of(found) == shape_of(op.results[0]):
            return _added_to(x, summed, sign, op)
    need(False, "it isn't of a tensor and its updates")
    raise AssertionError


def _added_to(x: Value, summed: Operation, sign: int, op: Operation) -> Emit:
    indices, updates, _ = summed.operands
    shape, own = static_shape(x), static_shape(indices)
    count, depth = math.prod(own[:-1]), own[-1]
    need(depth > 0, "nothing is indexed")

    def insert(build: FormBuilder) -> Value:
        moved = build.reshape(updates, (count, *shape[depth:]))
        return moved if sign > 0 else build.tfl("neg", (moved,), moved.type)

    places = Indices(x, range(depth), lambda build: build.reshape(indices, (count, depth)))
    return scatter("add", ADD, places, insert, count, op)


NEEDS = "scatter_nd unsorted_segment_max unsorted_segment_min unsorted_segment_prod unsorted_segment_sum"
"""The operators without any of which no pattern matches."""

FAST_FLOATS: tuple[Pattern[Any], ...] = (
    planned("scatter-extremes", "select_v2", _extreme, depth=_DEPTH),
    *(planned(f"scatter-by-{name}", name, _combined, benefit=2, depth=_DEPTH) for name in _SEGMENTS),
    *(
        planned(f"scatter-segments-{name}", f"unsorted_segment_{name}", _segments, depth=_DEPTH)
        for name in ("max", "min", "prod")
    ),
    planned("segment-sums", "unsorted_segment_sum", _sums, depth=_DEPTH),
    planned("segment-sums-added", "add", _added_sums, benefit=3, depth=_DEPTH),
    planned("scatter-sums", "add", partial(_added, 1), depth=_DEPTH),
    planned("scatter-differences", "sub", partial(_added, -1), depth=_DEPTH),
)
