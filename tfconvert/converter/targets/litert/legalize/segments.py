"""Segments: rows that are combined with those of the same number, whether the numbers are sorted or not.

LiteRT's kernel for sorted numbers requires that none is left out, so that it is used for constants only; others
go to the kernels for numbers in any order, with as many segments as the largest number requires.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering, Row, rank_is_known
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# Element types that LiteRT combines.
_NUMBERS = "f32 i32"

# The initial value of LiteRT's kernel for minima; negated, that of the kernel for maxima.
_LIMIT = float(np.finfo(np.float32).max)


def segment_count(emit: LiteRTBuilder, ids: Value) -> Value:
    """Returns how many segments numbers require: one more than the largest, none if there are none.

    Args:
        emit: Inserts the ops.
        ids: A vector of `i32`.
    """
    constant = tensor_data.constant_of(ids)
    if constant is not None:
        return emit.scalar(int(tensor_data.to_array(constant).max(initial=-1)) + 1, types.I32)
    largest = emit.binary("Maximum", emit.reduce("Max", ids, (0,)), -1)
    return emit.binary("AddV2", largest, 1)


def segment_sizes(emit: LiteRTBuilder, ids: Value, count: Value, element: Attribute) -> Value:
    """Returns how many rows each segment has, a vector.

    Args:
        emit: Inserts the ops.
        ids: A vector of `i32`.
        count: How many segments there are, a scalar.
        element: Element type of the result, `f32` or `i32`.
    """
    numbers, size = tensor_data.constant_of(ids), tensor_data.constant_of(count)
    if numbers is not None and size is not None:
        length = int(tensor_data.to_array(size))
        sizes = np.bincount(tensor_data.to_array(numbers).astype(np.int64), minlength=length)
        return emit.constant(sizes.astype(types.numpy_dtype(element)))
    ones = emit.tf("Fill", (emit.shape(ids), emit.scalar(1, element)), types.tensor(element, types.shape_of(ids.type)))
    return _combined(emit, "Sum", ones, ids, count)


def _combined(emit: LiteRTBuilder, how: str, data: Value, ids: Value, count: Value) -> Value:
    """Combines rows in any order."""
    size = tensor_data.constant_of(count)
    length = -1 if size is None else int(tensor_data.to_array(size).reshape(-1)[0])
    shape = types.shape_of(data.type)
    result = types.tensor(types.element_of(data.type), None if shape is None else (length, *shape[1:]))
    return emit.tf(f"UnsortedSegment{how}", (data, ids, count), result)


def _along(emit: LiteRTBuilder, numbers: Value, rows: Value) -> Value:
    """Returns one number per row, in the shape in which it is broadcast along the rows."""
    rank = len(types.shape_of(rows.type) or ())
    length = (types.shape_of(numbers.type) or (-1,))[0]
    return emit.reshape(numbers, (length, *[1] * (rank - 1))) if rank > 1 else numbers


def _is_dense(op: Operation) -> Failure | None:
    constant = tensor_data.constant_of(op.operands[1])
    if constant is None:
        return Failure("the segments are not known")
    ids = tensor_data.to_array(constant)
    steps = np.diff(ids, prepend=-1)
    return (
        None if ids.size and (steps >= 0).all() and (steps <= 1).all() else Failure("there are segments without rows")
    )


def _sorted(how: str, op: Operation, emit: LiteRTBuilder) -> Value:
    ids = emit.i32(op.operands[1])
    return _reduced(emit, how, op.operands[0], ids, segment_count(emit, ids))


def _reduced(emit: LiteRTBuilder, how: str, data: Value, ids: Value, count: Value) -> Value:
    """Combines rows; segments without any are zeros, or ones where rows are multiplied."""
    if how in ("Sum", "Prod"):
        return _combined(emit, how, data, ids, count)
    element = types.element_of(data.type)
    sizes = segment_sizes(emit, ids, count, element)
    if how in ("Max", "Min"):
        found = _extremes(emit, how, data, ids, count)
        return emit.select(_along(emit, emit.compare("Greater", sizes, 0), found), found, 0)
    total = _combined(emit, "Sum", data, ids, count)
    divisor = emit.binary("Maximum", sizes, 1)
    if how == "SqrtN":
        divisor = emit.unary("Sqrt", divisor)
    return emit.binary("Div", total, _along(emit, divisor, total))


def _extremes(emit: LiteRTBuilder, how: str, data: Value, ids: Value, count: Value) -> Value:
    """Finds extremes; where LiteRT returns its finite initial value, of infinities only, it is the other extreme."""
    found = _combined(emit, how, data, ids, count)
    if types.element_of(data.type) != types.F32:
        return found
    least, opposite = (-_LIMIT, "Min") if how == "Max" else (_LIMIT, "Max")
    return emit.select(emit.compare("Equal", found, least), _combined(emit, opposite, data, ids, count), found)


def _sparse(how: str, op: Operation, emit: LiteRTBuilder) -> Value:
    """Combines rows that are picked first; the number of segments may be an operand."""
    data, picked, ids = op.operands[:3]
    chosen = types.shape_of(picked.type) or (-1,)
    shape = types.shape_of(data.type) or ()
    rows = types.tensor(types.element_of(data.type), (*chosen, *shape[1:]))
    gathered = emit.tf("GatherV2", (data, picked, emit.scalar(0, types.I32)), rows)
    ids = emit.i32(ids)
    count = emit.i32(op.operands[3]) if len(op.operands) > 3 else segment_count(emit, ids)
    return _reduced(emit, how, gathered, ids, count)


def _unsorted_sum_of_longs(op: Operation, emit: LiteRTBuilder) -> Value:
    """Scatters, which adds up the updates of one place; a row before all others takes those that are dropped."""
    data, ids, count = op.operands
    rank = len(types.shape_of(ids.type) or ())
    shape = types.shape_of(data.type) or ()
    places = emit.binary("AddV2", emit.binary("Maximum", emit.i32(ids), -1), 1)
    indices = types.tensor(types.I32, (*shape[:rank], 1))
    places = emit.tf("ExpandDims", (places, emit.scalar(-1, types.I32)), indices)
    height = emit.reshape(emit.binary("AddV2", emit.i32(count), 1), (1,))
    width = shape[rank:]
    target = height
    if width:
        target = emit.tf(
            "ConcatV2",
            (height, emit.ints(width), emit.scalar(0, types.I32)),
            types.tensor(types.I32, (1 + len(width),)),
        )
    summed = emit.tf("ScatterNd", (places, data, target), types.tensor(types.I64, (-1, *width)))
    begin, size = emit.ints([1, *[0] * len(width)]), emit.ints([-1] * (1 + len(width)))
    return emit.tf("Slice", (summed, begin, size), op.results[0].type)


def _longs_constraint(op: Operation) -> Failure | None:
    shape, ids = (types.shape_of(operand.type) for operand in op.operands[:2])
    if shape is None or ids is None:
        return Failure("the operands' ranks are not known")
    return None if types.is_static(shape[len(ids) :]) else Failure("the size of the summed rows is not known")


_EXTREME = "Max", "Min"
_BECOMES = {
    "Sum": "UnsortedSegmentSum",
    "Prod": "UnsortedSegmentProd",
    "Mean": "UnsortedSegmentSum Div",
    "SqrtN": "UnsortedSegmentSum Sqrt Div",
    "Max": "UnsortedSegmentMax SelectV2",
    "Min": "UnsortedSegmentMin SelectV2",
}
_UNSORTED = ("Sum", "Prod", "Max", "Min")

ENTRIES: tuple[Entry, ...] = (
    Row("SegmentSum", "segment_sum", _NUMBERS, narrow=(1,), constraint=_is_dense),
    *(
        Lowering(f"Segment{how}", _BECOMES[how], partial(_sorted, how), _NUMBERS, rank_is_known)
        for how in ("Sum", "Prod", "Mean", "Max", "Min")
    ),
    *(
        Lowering(f"SparseSegment{how}{count}", f"GatherV2 {_BECOMES[how]}", partial(_sparse, how), "f32", rank_is_known)
        for how in ("Sum", "Mean", "SqrtN")
        for count in ("", "WithNumSegments")
    ),
    *(Row(f"UnsortedSegment{how}", f"unsorted_segment_{how.lower()}", _NUMBERS, narrow=(1, 2)) for how in _UNSORTED),
    Lowering("UnsortedSegmentSum", "ScatterNd Slice", _unsorted_sum_of_longs, "i64", _longs_constraint),
)
