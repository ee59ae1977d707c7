"""A few updates of a large tensor by LiteRT's `STABLEHLO_SCATTER`, instead of operators that visit all of its rows.

    gather(concat(x, updates), maximum(unsorted_segment_max(numbers, ids), rows))  ->  scatter(x, ids, updates)
    gather(concat(x, updates), places)                                             ->  scatter(x, places, updates)
    select(unsorted_segment_max(ones, ids) > 0, value, x)                          ->  scatter(x, ids, fill(value))
    select(numbers == index, update, x)                                            ->  scatter(x, index, update)

The operator applies the updates one by one, in order, and skips those that are outside: so checks that make such a row
-1 become needless. It takes about 80 ns for each element of the updates, so long rows, or many, keep their form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_array, constant_number
from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import is_plain, like, shape_of
from tfconvert.converter.targets.litert.forms.scatter_operator import BODIES, SET, scatter, scatter_rows, whole
from tfconvert.converter.targets.litert.forms.scatter_places import (
    Indices,
    counts,
    is_height,
    known_places,
    places_of,
    source_of,
)
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# The number of elements of constant places up to which they are read.
_MAX_READ = 1 << 22

# Checks of indices are ten operators above what uses the rows.
_DEPTH = 16


def _replaced(op: Operation) -> Emit:
    """Rows of a tensor or, behind it, of updates: those that the last update of each row names."""
    joined = op.operands[0].sole_producer("tfl.concatenation")
    need(joined is not None and len(joined.operands) == 2 and is_plain(joined), "it isn't of a tensor and its updates")
    assert isinstance(joined, tfl.TFLOp)
    assert isinstance(op, tfl.TFLOp)
    is_first = tfl.attribute(joined, "axis") == tfl.attribute(op, "axis") == tfl.attribute(op, "batch_dims") == 0
    need(is_first, "it is along other dimensions than the first")
    rows, updates = joined.operands
    need(shape_of(op.results[0]) == shape_of(rows), "it isn't of all rows")
    constant = tensor_data.constant_of(op.operands[1])
    if constant is not None:
        return _replaced_at(op, rows, updates, constant)
    last = op.operands[1].sole_producer("tfl.maximum")
    need(last is not None, "it isn't of the last updates")
    assert last is not None
    for found, own in (last.operands, last.operands[::-1]):
        segment = found.sole_producer("tfl.unsorted_segment_max")
        if segment is not None and _is_own(own, segment, rows) and _is_numbered(segment, rows):
            return scatter_rows(rows, segment.operands[1], updates, "set", SET, op)
    need(False, "it isn't of the last updates")
    raise AssertionError


def _is_own(own: Value, segment: Operation, rows: Value) -> bool:
    """Returns whether numbers are those of the rows, as many as there are segments."""
    counted = own.producer("tfl.range")
    is_whole = counts(own) and (shape_of(own)[0] >= 0 or (counted is not None and is_height(counted.operands[1], rows)))
    return is_whole and is_height(segment.operands[2], rows)


def _is_numbered(segment: Operation, rows: Value) -> bool:
    """Returns whether the updates have the numbers that follow those of the rows."""
    numbers = segment.operands[0]
    constant = tensor_data.constant_of(numbers)
    if constant is not None:
        array, height = tensor_data.to_array(constant), shape_of(rows)[0]
        return array.ndim == 1 and np.array_equal(array, np.arange(height, height + array.size))
    counted = numbers.producer("tfl.range")
    return counted is not None and is_height(counted.operands[0], rows) and constant_number(counted.operands[2]) == 1


def _replaced_at(op: Operation, rows: Value, updates: Value, constant: tensor_data.Constant) -> Emit:
    """Rows of which known ones are replaced."""
    height, count = shape_of(rows)[0], shape_of(updates)[0]
    need(0 <= height <= _MAX_READ and count >= 0, "a size is unknown")
    taken = tensor_data.to_array(constant)
    is_new = taken >= height
    need(bool((is_new | (taken == np.arange(height))).all()), "rows are moved")
    need(np.unique(taken[is_new]).size == is_new.sum(), "an update replaces several rows")
    ids = np.full(count, -1, np.int32)
    ids[taken[is_new] - height] = np.flatnonzero(is_new)
    return scatter(
        "place", SET, known_places(rows, source_of(rows, "tfl.reshape"), ids), lambda build: updates, count, op
    )


def _filled(op: Operation) -> Emit:
    """One value in all rows that are named."""
    mask, value, rows = op.operands
    hit = mask.producer("tfl.greater")
    need(hit is not None and constant_number(hit.operands[1]) == 0, "it isn't of rows that are named")
    assert hit is not None
    segment = source_of(hit.operands[0], "tfl.reshape").producer("tfl.unsorted_segment_max")
    need(segment is not None and is_height(segment.operands[2], rows), "it isn't of rows that are named")
    assert segment is not None
    ones, ids, _ = segment.operands
    array = constant_array(ones)
    need(array is not None and bool((array > 0).all()), "it isn't of rows that are named")
    shape = shape_of(rows)
    named = [shape[0], *[1] * (len(shape) - 1)]
    need(set(shape_of(value)) <= {1} and list(shape_of(mask)) == named, "it isn't one value in whole rows")
    need(len(shape_of(ids)) == 1 and shape_of(op.results[0]) == shape, "the rows are broadcast")
    count = shape_of(ids)[0]
    need(count >= 0, "the number of updates is unknown")
    kind, places = like(value, (count, *shape[1:])), places_of(rows, ids)

    def fill(build: FormBuilder) -> Value:
        number = constant_array(value)
        if number is not None:
            return build.constant(np.full((count, *shape[1:]), number.reshape(())), value.element)
        return build.tfl("fill", (build.ints((count, *shape[1:])), build.reshape(value, ())), kind)

    return scatter("fill", SET, places, fill, count, op)


def _where_equal(op: Operation) -> Emit:
    """One update, or one for each index of some dimensions: where the number of an element is an index."""
    mask, chosen, kept = op.operands
    shape = shape_of(op.results[0])
    x = whole(kept, op.results[0].type)
    indices: dict[int, Value] = {}
    waiting = [mask]
    while waiting:
        owner = waiting.pop().owner
        need(isinstance(owner, Operation) and owner.name in ("tfl.equal", "tfl.logical_and"), "it isn't of numbers")
        assert isinstance(owner, Operation)
        if owner.name == "tfl.logical_and":
            waiting += owner.operands
            continue
        axis, index = _compared(owner, shape)
        need(axis not in indices, "a dimension is indexed twice")
        indices[axis] = index
    batch = [axis for axis, size in enumerate(shape) if any(_along(each, shape, axis) for each in indices.values())]
    need(not set(batch) & set(indices), "an index depends on its own dimension")
    named = [1 if axis in indices else size for axis, size in enumerate(shape)]
    update, body = _update(chosen, kept)
    rest = [axis for axis in range(len(shape)) if axis not in batch and axis not in indices]
    count = math.prod(shape[axis] for axis in batch)
    of_batch = [shape[axis] if axis in batch else 1 for axis in range(len(shape))]
    for each in indices.values():
        need(math.prod(shape_of(each)) == count, "indices are broadcast")
    number = constant_array(update)
    is_same = number is not None and number.size == 1
    is_ordered = is_same or not rest or not batch or batch[-1] < rest[0]
    need(is_ordered and (is_same or _aligned(update, len(shape)) == tuple(named)), "the updates are broadcast")

    def updates(build: FormBuilder) -> Value:
        if number is None or not is_same:
            return update
        return build.constant(np.full((count, *(shape[axis] for axis in rest)), number.reshape(())))

    def insert(build: FormBuilder) -> Value:
        columns = [build.reshape(each, (count,)) for each in indices.values()]
        if not batch and len(columns) == 1:
            return build.reshape(columns[0], (1, 1))
        element = columns[0].element
        for axis in batch:
            along = [-1 if each == axis else 1 for each in range(len(shape))]
            numbers = np.broadcast_to(np.arange(shape[axis]).reshape(along), of_batch).reshape(-1)
            columns.append(build.constant(numbers.astype(types.numpy_dtype(element))))
        kind = types.tensor(element, (count, len(columns)))
        return build.tfl("pack", columns, kind, {"axis": 1, "values_count": len(columns)})

    return scatter("where", body, Indices(x, (*indices, *batch), insert), updates, count, op)


def _aligned(value: Value, rank: int) -> tuple[int, ...]:
    """Returns a value's shape with dimensions of size 1 before it, as broadcasting adds them."""
    shape = shape_of(value)
    need(len(shape) <= rank, "the rank is larger")
    return (*[1] * (rank - len(shape)), *shape)


def _along(value: Value, shape: Sequence[int], axis: int) -> bool:
    """Returns whether a value differs along a dimension of a shape."""
    return shape[axis] != 1 and _aligned(value, len(shape))[axis] != 1


def _compared(op: Operation, shape: Sequence[int]) -> tuple[int, Value]:
    """Returns the dimension whose numbers are compared with an index, and the index."""
    for numbers, index in (op.operands, op.operands[::-1]):
        own = _aligned(numbers, len(shape))
        axes = [axis for axis, size in enumerate(own) if size != 1]
        is_index = index.element in (types.I32, types.I64)
        is_counted = len(axes) == 1 and own[axes[0]] == shape[axes[0]] and counts(source_of(numbers, "tfl.reshape"))
        if is_index and is_counted:
            return axes[0], index
    need(False, "it isn't of numbers and an index")
    raise AssertionError


def _update(chosen: Value, x: Value) -> tuple[Value, str]:
    """Returns the update that elements are replaced by, or combined with, and the body that does it."""
    owner = chosen.owner
    if isinstance(owner, tfl.TFLOp) and owner.op_name in BODIES and x in owner.operands and is_plain(owner):
        first, second = owner.operands
        return (second if first is x else first), BODIES[owner.op_name]
    return chosen, SET


NEEDS = "equal gather unsorted_segment_max"
"""The operators without any of which no pattern matches."""

FAST_FLOATS: tuple[Pattern[Any], ...] = (
    planned("scatter-rows", "gather", _replaced, depth=_DEPTH),
    planned("scatter-value", "select_v2", _filled, depth=_DEPTH),
    planned("scatter-where", "select_v2", _where_equal, depth=_DEPTH),
)
