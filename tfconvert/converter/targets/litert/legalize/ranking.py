"""Ranking, searches in sorted rows, and sets: the different elements of a vector, and how often each occurs."""

from __future__ import annotations

from functools import partial

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import (
    BuiltinRow,
    Entry,
    Lowering,
    ResultType,
    all_of,
    ints,
    rank_is_known,
)
from tfconvert.converter.targets.litert.legalize.indexing import size_of
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.converter.targets.litert.legalize.scatter import segment_sizes
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _reduces_to_k(op: Operation) -> Failure | None:
    if tf.get(op, "aggregate_to_topk", True):
        return None
    return Failure("how many candidates it leaves depends on the device it runs on")


def _last(op: Operation) -> tuple[int, list[int]]:
    """Returns the axis that is searched, counted from the front, and the permutation that swaps it with the last."""
    rank = len(types.shape_of(op.operands[0].type) or ())
    axis = tf.get(op, "reduction_dimension", -1) % rank
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    return axis, order


def _approximate(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    """Computes the exact result, where an approximation would be allowed."""
    _, order = _last(op)
    x = emit.transpose(op.operands[0], order)
    is_largest = tf.get(op, "is_max_k", True)
    if not is_largest:
        x = emit.unary("Neg", x)
    k = tf.get(op, "k")
    shape = (*(types.shape_of(x.type) or ())[:-1], k)
    found_types = [types.tensor(types.element_of(result.type), shape) for result in op.results]
    found = emit.tf_op("TopKV2", (x, emit.scalar(k, types.I32)), found_types, {"sorted": True}).results
    values = found[0] if is_largest else emit.unary("Neg", found[0])
    return [emit.transpose(value, order) for value in (values, found[1])]


def _in_top_k(op: Operation, emit: LiteRTBuilder) -> Value:
    """Counts the predictions above the target's; among none that is finite, or out of range, no target is."""
    predictions, targets = op.operands[:2]
    rows, classes = types.shape_of(predictions.type) or (-1, -1)
    width = emit.reshape(emit.slice(emit.shape(predictions), (1,), (1,)), ())
    ids = emit.limited_i32(targets)
    columns = emit.tf(
        "Range", (emit.scalar(0, types.I32), width, emit.scalar(1, types.I32)), types.tensor(types.I32, (classes,))
    )
    column = emit.tf("ExpandDims", (ids, emit.scalar(1, types.I32)), types.tensor(types.I32, (rows, 1)))
    is_own = emit.compare("Equal", columns, column)
    own = emit.reduce("Sum", emit.select(is_own, predictions, 0.0), (1,), keep_dims=True)
    above = emit.reduce("Sum", emit.cast(emit.compare("Greater", predictions, own), types.I32), (1,))
    finite = emit.tf("IsFinite", (predictions,), types.tensor(types.I1, (rows, classes)))
    conditions = [
        emit.reduce("All", finite, (1,)),
        emit.reduce("Any", is_own, (1,)),
        emit.compare("Less", above, _limit(op, emit)),
    ]
    both = emit.tf("LogicalAnd", conditions[:2], conditions[0].type)
    return emit.tf("LogicalAnd", (both, conditions[2]), op.results[0].type)


def _limit(op: Operation, emit: LiteRTBuilder) -> Value:
    if len(op.operands) > 2:
        return emit.limited_i32(op.operands[2])
    return emit.i32(emit.scalar(tf.get(op, "k"), types.I64))


def _nth(op: Operation, emit: LiteRTBuilder) -> Value:
    """Sorts as far as needed: the last of the `n + 1` largest, or smallest."""
    x = op.operands[0]
    shape = types.shape_of(x.type) or ()
    is_largest = tf.get(op, "reverse", False)
    count = emit.binary("AddV2", emit.reshape(emit.i32(op.operands[1]), ()), 1)
    found_types = [types.tensor(element, (*shape[:-1], -1)) for element in (types.element_of(x.type), types.I32)]
    rows = x if is_largest else emit.unary("Neg", x)
    found = emit.tf_op("TopKV2", (rows, count), found_types, {"sorted": True}).results[0]
    nth = emit.tf("GatherV2", (found, emit.binary("Sub", count, 1), emit.scalar(-1, types.I32)), op.results[0].type)
    return nth if is_largest else emit.unary("Neg", nth)


def _dims_are_known(op: Operation) -> Failure | None:
    constant = tensor_data.constant_of(op.operands[1])
    dims = [] if constant is None else tensor_data.to_array(constant).reshape(-1).tolist()
    return None if dims and min(dims) > 0 else Failure("the dimensions are not constants")


def _unravel(op: Operation, emit: LiteRTBuilder) -> Value:
    """Each place is a remainder of the index divided by the size of the dimensions after it."""
    dims = ints(op.operands[1])
    places: list[Value] = []
    size = 1
    for dim in reversed(dims):
        quotient = emit.binary("FloorDiv", op.operands[0], size) if size > 1 else op.operands[0]
        places.append(emit.binary("FloorMod", quotient, dim) if len(places) < len(dims) - 1 else quotient)
        size *= dim
    return emit.tf("Pack", places[::-1], op.results[0].type, {"axis": 0})


_BECOMES = "Equal SelectV2 Greater Sum Less LogicalAnd"


def _bound(comparison: str, op: Operation, emit: LiteRTBuilder) -> Value:
    """Counts the elements of a row that come before a value."""
    rows, values = op.operands
    (height, length), (_, count) = (types.shape_of(operand.type) or (-1, -1) for operand in op.operands)
    element, axis = types.element_of(rows.type), emit.scalar(1, types.I32)
    across = emit.tf("ExpandDims", (rows, axis), types.tensor(element, (height, 1, length)))
    last = emit.scalar(2, types.I32)
    down = emit.tf("ExpandDims", (values, last), types.tensor(element, (height, count, 1)))
    before = emit.cast(emit.compare(comparison, across, down), types.I32)
    return emit.cast(emit.reduce("Sum", before, (2,)), types.element_of(op.results[0].type))


_ELEMENTS = "f32 i32 i64 ui8 i8 i16"


def _unique(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    """Finds the different elements; counting them is adding up ones by their numbers."""
    x, (values, places, *counts) = op.operands[0], op.results
    found = emit.tf_op("Unique", (x,), (values.type, places.type))
    results: list[Value] = [*found.results]
    for count in counts:
        number = emit.reshape(size_of(emit, results[0], 0), ())
        sizes = segment_sizes(emit, emit.i32(results[1]), number, types.I32)
        results.append(emit.cast(sizes, types.element_of(count.type)))
    return results


def _is_vector(op: Operation) -> Failure | None:
    """Requires a vector: an op that may compare slices along an axis compares its elements then."""
    shape = types.shape_of(op.operands[0].type)
    if shape is None or len(shape) != 1:
        return Failure("only a vector's elements are compared, not slices of higher ranks")
    return None


def _list_diff(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    """Keeps the elements that differ from all of the others, by comparing each pair."""
    x, y = op.operands
    axis = emit.scalar(1, types.I32)
    sizes = [(types.shape_of(value.type) or (-1,))[0] for value in (x, y)]
    column = emit.tf("ExpandDims", (x, axis), types.tensor(types.element_of(x.type), (sizes[0], 1)))
    found = emit.reduce("Any", emit.compare("Equal", column, y), (1,))
    kept = emit.tf("Where", (emit.unary("LogicalNot", found),), types.tensor(types.I64, (-1, 1)))
    places = emit.reshape(kept, (-1,))
    values = emit.tf("GatherV2", (x, places, emit.scalar(0, types.I32)), op.results[0].type)
    return [values, emit.cast(places, types.element_of(op.results[1].type))]


ENTRIES: tuple[Entry, ...] = (
    Lowering("ApproxTopK", "TopKV2", _approximate, "f32", all_of(rank_is_known, _reduces_to_k)),
    Lowering("InTopK", _BECOMES, _in_top_k, "f32"),
    Lowering("InTopKV2", _BECOMES, _in_top_k, "f32"),
    Lowering("NthElement", "TopKV2 GatherV2", _nth, "f32", rank_is_known),
    Lowering("UnravelIndex", "FloorDiv FloorMod Pack", _unravel, "i32 i64", _dims_are_known),
    Lowering("LowerBound", "Less Sum", partial(_bound, "Less"), "f32 i32 i64 ui8 i8"),
    Lowering("UpperBound", "LessEqual Sum", partial(_bound, "LessEqual"), "f32 i32 i64 ui8 i8"),
    BuiltinRow("Unique", "unique", _ELEMENTS, options={"idx_out_type": ResultType(1)}),
    Lowering("UniqueV2", "Unique", _unique, _ELEMENTS, _is_vector),
    *(
        Lowering(op, "Unique UnsortedSegmentSum", _unique, _ELEMENTS, _is_vector)
        for op in ("UniqueWithCounts", "UniqueWithCountsV2")
    ),
    Lowering("ListDiff", "Equal Any Where GatherV2", _list_diff, "f32 i32 i64 ui8 i8"),
)
