"""Reductions along axes and of segments, indices of the maximum and minimum elements, and histograms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.constraints import require_index_vectors, require_indices
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite, axes_of, axis_of, ints
from tfconvert.converter.targets.stablehlo.legalize.gathering import gather_at, scatter
from tfconvert.converter.targets.stablehlo.legalize.scans import first
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, part, pick, requested, requested_size
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import stablehlo, tf, types
from tfconvert.schema.dialects.stablehlo import EnumeratorAttr
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def are_computed(op: Operation) -> bool:
    """Returns whether the axes of a reduction, its second operand, are not constant."""
    return constant_ints(op.operands[1]) is None


def _flags(emit: StableHLOBuilder, op: Operation, rank: int) -> list[Value]:
    """Returns whether each axis is among those that are reduced."""
    if not tf.get(op, "keep_dims", False):
        raise Declined("the axes must be constant, unless reduced dimensions are kept")
    axes = op.operands[1]
    (count,) = emit.dims(axes) or (1,)
    axes = emit.reshape(axes, (count,))
    found = []
    for axis in range(rank):
        is_it = emit.binary("or", emit.compare("EQ", axes, axis), emit.compare("EQ", axes, axis - rank))
        found.append(emit.reduce("or", is_it, (0,), 0))
    return found


def reduced(emit: StableHLOBuilder, name: str, op: Operation, initial: float) -> Value:
    """Emits a reduction; each axis is reduced, spread again, and cut to one element if it is among those meant."""
    value = op.operands[0]
    rank = len(emit.dims(value))
    for axis, flag in enumerate(_flags(emit, op, rank)):
        dims = emit.dims(value)
        spread = emit.broadcast(
            emit.reduce(name, value, (axis,), initial), dims, [at for at in range(rank) if at != axis]
        )
        chosen = emit.select(flag, spread, value)
        size = emit.sizes.fresh(emit.select(flag, 1, emit.value(emit.size(dims[axis]))))
        value = first(emit, chosen, axis, size)
    return value


def count_reduced(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits how many elements each one of the result is made of, as `i32`."""
    dims = emit.dims(op.operands[0])
    count = emit.scalar(1, types.I32)
    for flag, dim in zip(_flags(emit, op, len(dims)), dims, strict=True):
        count = emit.binary("multiply", count, emit.select(flag, emit.value(emit.size(dim)), 1))
    return count


def permuted(emit: StableHLOBuilder, value: Value, permutation: Value) -> Value:
    """Emits each element from where its indices, permuted, say."""
    dims = emit.dims(value)
    rank = len(dims)
    axes = [pick(emit, permutation, at) for at in range(rank)]
    if not rank:
        return value
    result = []
    for axis in axes:
        size = emit.value(emit.size(dims[-1]))
        for at in reversed(range(rank - 1)):
            size = emit.select(emit.compare("EQ", axis, at), emit.value(emit.size(dims[at])), size)
        result.append(emit.sizes.fresh(size))
    return gather_at(emit, value, concatenate(emit, _coordinates(emit, axes, result), rank))


def _coordinates(emit: StableHLOBuilder, axes: Sequence[Value], dims: Sequence[int]) -> list[Value]:
    """Emits, for each element of a permutation's result, its index along each axis of the operand."""
    columns = []
    for axis in range(len(axes)):
        index = emit.iota(dims, len(axes) - 1, types.I32)
        for at, moved in enumerate(axes[:-1]):
            index = emit.select(emit.compare("EQ", moved, axis), emit.iota(dims, at, types.I32), index)
        columns.append(emit.reshape(index, (*dims, 1)))
    return columns


def kept(emit: StableHLOBuilder, value: Value, dims: Sequence[int], axes: Sequence[int]) -> Value:
    """Returns a reduced value with dimensions of size 1 where axes were reduced."""
    return emit.reshape(value, [1 if axis in axes else dim for axis, dim in enumerate(dims)])


def _finish(emit: StableHLOBuilder, value: Value, op: Operation, axes: Sequence[int]) -> Value:
    if not tf.get(op, "keep_dims", False):
        return value
    return kept(emit, value, emit.dims(op.operands[0]), axes)


def _reduction(name: str, initial: float) -> Rewrite:
    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        value = op.operands[0]
        if are_computed(op):
            return reduced(emit, name, op, initial)
        axes = axes_of(op, 1, len(emit.dims(value)))
        return _finish(emit, emit.reduce(name, value, axes, initial), op, axes)

    return lower


def _max(op: Operation, emit: StableHLOBuilder) -> Value | Sequence[Value]:
    return _reduction("maximum", types.lowest(op.operands[0].element))(op, emit)


def _min(op: Operation, emit: StableHLOBuilder) -> Value | Sequence[Value]:
    return _reduction("minimum", types.highest(op.operands[0].element))(op, emit)


def _mean(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    dims = emit.dims(value)
    element = value.element
    if are_computed(op):
        count = emit.convert(count_reduced(op, emit), element)
        return emit.binary("divide", reduced(emit, "add", op, 0), count)
    axes = axes_of(op, 1, len(dims))
    # Halves are summed as floats, as TensorFlow does.
    is_half = element in (types.F16, types.BF16)
    total = emit.reduce("add", emit.convert(value, types.F32) if is_half else value, axes, 0)
    sizes = [dims[axis] for axis in axes]
    if min(sizes, default=0) >= 0:
        mean = emit.binary("divide", total, math.prod(sizes))
    else:
        count = emit.convert(emit.value(emit.product(sizes)), total.element)
        mean = emit.binary("divide", total, count)
    return _finish(emit, emit.convert(mean, element), op, axes)


def _arg(direction: str) -> Rewrite:
    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        value = op.operands[0]
        dims = emit.dims(value)
        axis = axis_of(ints(op, 1, "the axis")[0], len(dims))
        element, index = value.element, op.results[0].element
        initial = types.lowest(element) if direction == "GT" else types.highest(element)
        operands = (value, emit.iota(dims, axis, index), emit.scalar(initial, element), emit.scalar(0, index))
        region = arg_body(emit, direction, element, index)
        return emit.several("reduce", operands, (element, index), {"dimensions": (axis,)}, (region,))[1]

    return lower


def arg_body(emit: StableHLOBuilder, direction: str, element: Attribute, index: Attribute) -> Region:
    """Returns the choice between two elements with their indices; of equal ones the lower index counts."""
    value, place, bit = (types.tensor(each, ()) for each in (element, index, types.I1))
    block = Block(arg_types=(value, place, value, place))
    first, at, second, other = block.args

    def add(name: str, operands: Sequence[Value], kind: Attribute, direction: str = "") -> Value:
        properties = (
            {"comparison_direction": EnumeratorAttr.get("comparison_direction", direction)} if direction else {}
        )
        op = stablehlo.build(f"stablehlo.{name}", operands, (kind,), properties, location=emit.location)
        block.add_op(op)
        return op.results[0]

    is_better = add("compare", (first, second), bit, direction)
    is_equal = add("compare", (first, second), bit, "EQ")
    is_before = add("compare", (at, other), bit, "LT")
    # The initial value is of no element: its index 0 must not count, unless it is equal to an element.
    chosen = add("or", (is_better, add("and", (is_equal, is_before), bit)), bit)
    results = add("select", (chosen, first, second), value), add("select", (chosen, at, other), place)
    block.add_op(stablehlo.build(stablehlo.RETURN, results, (), location=emit.location))
    return Region(block)


REDUCTIONS: Mapping[str, Rewrite] = {
    "All": _reduction("and", 1),
    "Any": _reduction("or", 0),
    "ArgMax": _arg("GT"),
    "ArgMin": _arg("LT"),
    "Max": _max,
    "Mean": _mean,
    "Min": _min,
    "Prod": _reduction("multiply", 1),
    "Sum": _reduction("add", 0),
}


_BODIES = {"Sum": "add", "Prod": "multiply", "Max": "maximum", "Min": "minimum"}


def _initial(how: str, value: Value) -> float:
    """Returns what a segment without rows holds, where any number of segments is asked for."""
    element = value.element
    return {"Sum": 0, "Prod": 1, "Max": types.lowest_finite(element), "Min": types.highest_finite(element)}[how]


def _combined(emit: StableHLOBuilder, how: str, data: Value, ids: Value, count: int) -> Value:
    """Emits rows that are combined by their numbers; rows with numbers out of range are lost."""
    places = emit.dims(ids)
    rest = emit.dims(data)[len(places) :]
    empty = emit.scalar(_initial(how, data), data.element)
    into = emit.broadcast(empty, (count, *rest), ())
    return scatter(emit, _BODIES[how], emit.reshape(ids, (*places, 1)), data, into)


def _unsorted(how: str) -> Rewrite:
    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        data, ids, count = op.operands
        segments = requested_size(emit, count)
        require_indices(emit, ids, segments, lowest=False)
        return _combined(emit, how, data, ids, segments)

    return lower


def _with_count(how: str) -> Rewrite:
    """Returns a lowering for segments whose number is an operand."""

    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        data, ids, count = op.operands
        return _combined(emit, how, data, ids, requested_size(emit, count))

    return lower


def _bincount(op: Operation, emit: StableHLOBuilder) -> Value:
    values, size, weights = op.operands
    dims = emit.dims(values)
    count = requested_size(emit, size)
    element = op.results[0].element
    is_binary = bool(tf.get(op, "binary_output", False))
    if is_binary or emit.dims(weights) in ((0,), ()):
        weights = emit.filled(1, element, dims)
    zero = emit.scalar(0, element)
    if len(dims) < 2 or op.name == "tf.Bincount":
        into = emit.broadcast(zero, (count,), ())
        return scatter(emit, "" if is_binary else "add", emit.reshape(values, (*dims, 1)), weights, into)
    into = emit.broadcast(zero, (dims[0], count), ())
    rows = emit.iota((*dims, 1), 0, values.element)
    pairs = concatenate(emit, [rows, emit.reshape(values, (*dims, 1))], 2)
    return scatter(emit, "" if is_binary else "add", pairs, weights, into)


def _histogram(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits how many numbers are in each of equal parts of a range; those beyond its ends are in the outermost."""
    values, ends, size = op.operands
    dims, count = emit.dims(values), requested_size(emit, size)
    low, high = (emit.reshape(part(emit, ends, 0, at, at + 1), ()) for at in range(2))
    # TensorFlow computes places in doubles.
    wide, low, high = (emit.convert(each, types.F64) for each in (values, low, high))
    parts = emit.convert(emit.value(emit.size(count)), types.F64)
    width = emit.binary("divide", emit.binary("subtract", high, low), parts)
    at = emit.unary("floor", emit.binary("divide", emit.binary("subtract", wide, low), width))
    at = emit.binary("maximum", emit.binary("minimum", at, emit.binary("subtract", parts, 1)), 0)
    result = op.results[0].element
    into = emit.filled(0, result, (count,))
    ones = emit.filled(1, result, dims)
    return scatter(emit, "add", emit.reshape(emit.convert(at, types.I32), (*dims, 1)), ones, into)


def _sparse_to_dense(op: Operation, emit: StableHLOBuilder) -> Value:
    indices, _, values, default = op.operands
    places = emit.dims(indices)
    count = places[0] if places else 1
    indices = indices if len(places) == 2 else emit.reshape(indices, (count, 1))
    dims = requested(emit, op, 1)
    require_index_vectors(emit, indices, dims)
    into = emit.broadcast(default, dims, ())
    return scatter(emit, "", indices, emit.broadcast(values, (count,)), into)


SEGMENTS: Mapping[str, Rewrite] = {
    **{f"UnsortedSegment{how}": _unsorted(how) for how in _BODIES},
    **{f"Segment{how}V2": _with_count(how) for how in _BODIES},
    "Bincount": _bincount,
    "DenseBincount": _bincount,
    "HistogramFixedWidth": _histogram,
    "SparseToDense": _sparse_to_dense,
}
