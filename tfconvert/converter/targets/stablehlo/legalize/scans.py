"""Scans (running sums, products and the like), sorting, and searches in sorted rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.ir.constants import constant_number
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite, axis_of, ints
from tfconvert.converter.targets.stablehlo.legalize.regions import loop, sort
from tfconvert.converter.targets.stablehlo.legalize.shaping import padded, part, requested_size
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.attributes import DictionaryAttr, IntegerAttr, StringAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

SCAN = "tfconvert.scan"
"""The attribute that describes a loop: `{axis = 1 : i64, combine = "add"}`.

Engines that have an op for it may put that in the loop's place; the scanned value is the second one that it carries.
"""


class Combination(NamedTuple):
    """The combining function of a scan.

    Attributes:
        name: Its name.
        emit: Emits the associative op on two values of one shape.
        initial: The neutral element.
    """

    name: str
    emit: Callable[[StableHLOBuilder, Value, Value], Value]
    initial: float


def _add(emit: StableHLOBuilder, one: Value, other: Value) -> Value:
    return emit.binary("add", one, other)


def _multiply(emit: StableHLOBuilder, one: Value, other: Value) -> Value:
    return emit.binary("multiply", one, other)


def _add_powers(emit: StableHLOBuilder, one: Value, other: Value) -> Value:
    """Emits the logarithm of a sum of exponentials; neither of them overflows."""
    # Two infinities have no distance.
    distance = emit.select(emit.compare("EQ", one, other), 0, emit.unary("abs", emit.binary("subtract", one, other)))
    rest = emit.unary("log_plus_one", emit.unary("exponential", emit.unary("negate", distance)))
    return emit.binary("add", emit.binary("maximum", one, other), rest)


ADD = Combination("add", _add, 0)
MULTIPLY = Combination("multiply", _multiply, 1)
ADD_POWERS = Combination("add_powers", _add_powers, -math.inf)


def scan(emit: StableHLOBuilder, value: Value, axis: int, combine: Combination) -> Value:
    """Emits a running combination along an axis, with each element the last of its own.

    Args:
        emit: The emitter.
        value: The value.
        axis: The axis.
        combine: How two elements are combined.
    """
    dim = emit.dims(value)[axis]
    if dim < 0:
        return _scan_open(emit, value, axis, combine)
    distance = 1
    while distance < dim:
        value = combine.emit(emit, shifted(emit, value, axis, distance, combine.initial), value)
        distance *= 2
    return value


def shifted(emit: StableHLOBuilder, value: Value, axis: int, distance: int, initial: float) -> Value:
    """Shifts along an axis towards its end, dropping the last elements."""
    rank = len(emit.dims(value))
    low = [distance if at == axis else 0 for at in range(rank)]
    return padded(emit, value, low, [-each for each in low], emit.scalar(initial, value.element))


def _scan_open(emit: StableHLOBuilder, value: Value, axis: int, combine: Combination) -> Value:
    """Emits a loop over the distances, whose number is known at run time only."""
    dims = emit.dims(value)
    rank, element = len(dims), value.element

    def condition(inner: StableHLOBuilder, args: Sequence[Value]) -> Sequence[Value]:
        return (inner.compare("LT", args[0], inner.value(inner.size(dims[axis]))),)

    def body(inner: StableHLOBuilder, args: Sequence[Value]) -> Sequence[Value]:
        distance, found = args
        double = inner.sizes.fresh(inner.value(inner.compute("multiply", inner.size(dims[axis]), 2)))
        room = inner.broadcast(
            inner.scalar(combine.initial, element), [double if at == axis else dim for at, dim in enumerate(dims)]
        )
        zero = inner.scalar(0, types.I32)
        starts = [distance if at == axis else zero for at in range(rank)]
        moved = inner.one("dynamic_update_slice", (room, found, *starts))
        operands = (moved, inner.ints([0] * rank), inner.shape(dims), inner.ints([1] * rank))
        before = inner.one("real_dynamic_slice", operands, dims=dims)
        return inner.binary("multiply", distance, 2), combine.emit(inner, before, found)

    found = loop(emit, (emit.scalar(1, types.I32), value), condition, body)[1]
    told = {"axis": IntegerAttr.get(axis, types.I64), "combine": StringAttr.get(combine.name)}
    found.op.attributes[SCAN] = DictionaryAttr.get(told)
    return found


def _scanning(combine: Combination) -> Rewrite:
    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        value = op.operands[0]
        axis = axis_of(ints(op, 1, "the axis")[0], len(emit.dims(value)))
        turn = {"dimensions": (axis,)} if tf.get(op, "reverse", False) else None
        if turn:
            value = emit.one("reverse", (value,), turn)
        if tf.get(op, "exclusive", False):
            value = shifted(emit, value, axis, 1, combine.initial)
        value = scan(emit, value, axis, combine)
        return emit.one("reverse", (value,), turn) if turn else value

    return lower


SCANS: Mapping[str, Rewrite] = {
    "Cumprod": _scanning(MULTIPLY),
    "Cumsum": _scanning(ADD),
    "CumulativeLogsumexp": _scanning(ADD_POWERS),
}


def _top_k(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    value = op.operands[0]
    *outer, last = emit.dims(value)
    count = requested_size(emit, op.operands[1])
    if count >= 0:
        found: Sequence[Value] = emit.several("chlo.top_k", (value,), (value.element, types.I32), {"k": count})
    else:
        places = emit.iota((*outer, last), len(outer), types.I32)
        found = sort(emit, (value, places), len(outer), "GT")
        if count != last:
            found = [first(emit, each, len(outer), count) for each in found]
    return found[0], emit.convert(found[1], op.results[1].element)


def first(emit: StableHLOBuilder, value: Value, axis: int, count: int) -> Value:
    """Emits a slice of the first elements along an axis, as many as a size says."""
    dims = list(emit.dims(value))
    dims[axis] = count
    operands = (value, emit.ints([0] * len(dims)), emit.shape(dims), emit.ints([1] * len(dims)))
    return emit.one("real_dynamic_slice", operands, dims=dims)


def _approximate_top_k(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    """Emits the exact result, where an approximation would be allowed."""
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
    dims, index = emit.dims(predictions), targets.element
    count = op.operands[2] if len(op.operands) > 2 else emit.scalar(int(tf.get(op, "k")), index)
    is_target = emit.compare("EQ", emit.iota(dims, 1, index), emit.broadcast(targets, dims, (0,)))
    of_target = emit.reduce("add", emit.select(is_target, predictions, 0), (1,), 0)
    is_above = emit.compare("GT", predictions, emit.broadcast(of_target, dims, (0,)))
    above = emit.reduce("add", emit.convert(is_above, count.element), (1,), 0)
    finite = emit.reduce("and", emit.one("is_finite", (predictions,)), (1,), 1)
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
        is_below = emit.convert(emit.compare(direction, *pair), op.results[0].element)
        return emit.reduce("add", is_below, (2,), 0)

    return lower


def _bucketize(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    dims, element = emit.dims(value), value.element
    boundaries = [float(each) for each in tf.get(op, "boundaries", ())]
    if not boundaries:
        return emit.filled(0, types.I32, dims)
    # Integers are compared as floats: boundaries need not be integers.
    if types.numpy_dtype(element).kind in "iu":
        value, element = emit.convert(value, types.F64), types.F64
    wide = (*dims, len(boundaries))
    limits = emit.broadcast(emit.constant_of(boundaries, element), wide)
    is_reached = emit.compare("GE", emit.broadcast(value, wide, range(len(dims))), limits)
    return emit.reduce("add", emit.convert(is_reached, types.I32), (len(dims),), 0)


SORTING: Mapping[str, Rewrite] = {
    "ApproxTopK": _approximate_top_k,
    "Bucketize": _bucketize,
    "InTopK": _in_top_k,
    "InTopKV2": _in_top_k,
    "LowerBound": _bound("LT"),
    "NthElement": _nth_element,
    "TopKV2": _top_k,
    "UpperBound": _bound("LE"),
}
