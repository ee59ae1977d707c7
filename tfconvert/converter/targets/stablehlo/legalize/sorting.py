"""The greatest elements, sorted ones, and where numbers belong among sorted ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.ir.constants import constant_number
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite
from tfconvert.converter.targets.stablehlo.legalize.regions import sort
from tfconvert.converter.targets.stablehlo.legalize.shaping import part, requested_size
from tfconvert.converter.targets.stablehlo.legalize.sizes import static_shape
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _top_k(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    value = op.operands[0]
    *outer, last = emit.dims(value)
    count = requested_size(emit, op.operands[1])
    element = types.element_of(value.type)
    if count >= 0:
        dims = (*outer, count)
        kinds = [types.tensor(each, static_shape(dims)) for each in (element, types.I32)]
        found: Sequence[Value] = emit.op("chlo.top_k", (value,), kinds, {"k": count}).results
        for result in found:
            emit.sizes.note(result, dims)
    else:
        places = emit.iota((*outer, last), len(outer), types.I32)
        found = sort(emit, (value, places), len(outer), "GT")
        if count != last:
            found = [first(emit, each, len(outer), count) for each in found]
    return found[0], emit.convert(found[1], types.element_of(op.results[1].type))


def first(emit: StableHLOBuilder, value: Value, axis: int, count: int) -> Value:
    """Emits a slice of the first elements along an axis, as many as a size says."""
    dims = list(emit.dims(value))
    dims[axis] = count
    operands = (value, emit.ints([0] * len(dims)), emit.shape(dims), emit.ints([1] * len(dims)))
    return emit.one("real_dynamic_slice", operands, types.element_of(value.type), dims)


def _approximate_top_k(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    """Emits exact results, which approximate ones may be."""
    value = op.operands[0]
    dims = emit.dims(value)
    axis = int(tf.get(op, "reduction_dimension", -1)) % len(dims)
    order = [*(at for at in range(len(dims)) if at != axis), axis]
    moved = emit.transpose(value, order)
    direction = "GT" if tf.get(op, "is_max_k", True) else "LT"
    places = emit.iota(emit.dims(moved), len(dims) - 1, types.I32)
    found = sort(emit, (moved, places), len(dims) - 1, direction)
    back = [order.index(at) for at in range(len(dims))]
    count = int(tf.get(op, "k"))
    return [emit.transpose(part(emit, each, len(dims) - 1, 0, count), back) for each in found]


def _nth_element(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    dims = emit.dims(value)
    last = len(dims) - 1
    direction = "GT" if tf.get(op, "reverse", False) else "LT"
    (ordered,) = sort(emit, (value,), last, direction)
    index = constant_number(op.operands[1])
    if index is not None:
        return emit.reshape(part(emit, ordered, last, int(index), int(index) + 1), dims[:last])
    is_it = emit.compare("EQ", emit.iota(dims, last, types.I32), emit.convert(op.operands[1], types.I32))
    return emit.reduce("add", emit.select(is_it, ordered, 0), (last,), 0)


def _in_top_k(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits whether fewer than k predictions are above the target's, all of them finite."""
    predictions, targets = op.operands[:2]
    dims, index = emit.dims(predictions), types.element_of(targets.type)
    count = op.operands[2] if len(op.operands) > 2 else emit.scalar(int(tf.get(op, "k")), index)
    is_target = emit.compare("EQ", emit.iota(dims, 1, index), emit.broadcast(targets, dims, (0,)))
    of_target = emit.reduce("add", emit.select(is_target, predictions, 0), (1,), 0)
    is_above = emit.compare("GT", predictions, emit.broadcast(of_target, dims, (0,)))
    above = emit.reduce("add", emit.convert(is_above, types.element_of(count.type)), (1,), 0)
    finite = emit.reduce("and", emit.one("is_finite", (predictions,), types.I1, dims), (1,), 1)
    known = emit.binary("and", finite, emit.reduce("or", is_target, (1,), 0))
    return emit.binary("and", known, emit.compare("LT", above, count))


def _bound(direction: str) -> Rewrite:
    """Returns a lowering that counts, for each value, the sorted numbers that are below it."""

    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        numbers, values = op.operands
        rows, size = emit.dims(numbers)
        count = emit.dims(values)[1]
        dims = (rows, count, size)
        pair = emit.broadcast(numbers, dims, (0, 2)), emit.broadcast(values, dims, (0, 1))
        is_below = emit.convert(emit.compare(direction, *pair), types.element_of(op.results[0].type))
        return emit.reduce("add", is_below, (2,), 0)

    return lower


def _bucketize(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    dims, element = emit.dims(value), types.element_of(value.type)
    boundaries = [float(each) for each in tf.get(op, "boundaries", ())]
    if not boundaries:
        return emit.broadcast(emit.scalar(0, types.I32), dims)
    # Integers are compared as floats: boundaries need not be integers.
    if types.numpy_dtype(element).kind in "iu":
        value, element = emit.convert(value, types.F64), types.F64
    wide = (*dims, len(boundaries))
    limits = emit.broadcast(emit.constant_of(boundaries, element), wide)
    is_reached = emit.compare("GE", emit.broadcast(value, wide, range(len(dims))), limits)
    return emit.reduce("add", emit.convert(is_reached, types.I32), (len(dims),), 0)


LOWERINGS: Mapping[str, Rewrite] = {
    "ApproxTopK": _approximate_top_k,
    "Bucketize": _bucketize,
    "InTopK": _in_top_k,
    "InTopKV2": _in_top_k,
    "LowerBound": _bound("LT"),
    "NthElement": _nth_element,
    "TopKV2": _top_k,
    "UpperBound": _bound("LE"),
}
