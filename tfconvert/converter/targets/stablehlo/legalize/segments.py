"""Segments: rows that are combined with those of the same number, histograms, and sparse tensors made dense."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.targets.stablehlo.legalize.entry import Lowering, attribute
from tfconvert.converter.targets.stablehlo.legalize.gathering import rows_at, scatter
from tfconvert.converter.targets.stablehlo.legalize.index_checks import require_index_vectors, require_indices
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, part, requested, requested_size
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder, greatest, least
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_BODIES = {"Sum": "add", "Prod": "multiply", "Max": "maximum", "Min": "minimum"}


def _initial(how: str, value: Value) -> float:
    """Returns what a segment without rows holds, where any number of segments is asked for."""
    element = types.element_of(value.type)
    return {"Sum": 0, "Prod": 1, "Max": least(element), "Min": greatest(element)}[how]


def _combined(emit: StableHLOBuilder, how: str, data: Value, ids: Value, count: int) -> Value:
    """Emits rows that are combined by their numbers; rows with numbers out of range are lost."""
    places = emit.dims(ids)
    rest = emit.dims(data)[len(places) :]
    empty = emit.scalar(_initial(how, data), types.element_of(data.type))
    into = emit.broadcast(empty, (count, *rest), ())
    return scatter(emit, _BODIES[how], emit.reshape(ids, (*places, 1)), data, into)


def _unsorted(how: str) -> Lowering:
    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        data, ids, count = op.operands
        segments = requested_size(emit, count)
        require_indices(emit, ids, segments, lowest=False)
        return _combined(emit, how, data, ids, segments)

    return lower


def _count_of(emit: StableHLOBuilder, op: Operation, ids: Value) -> int:
    """Returns the number of segments that sorted numbers require: one more than the last one."""
    declared = types.shape_of(op.results[0].type)
    if declared is not None and declared[0] >= 0:
        return declared[0]
    known = constant_ints(ids)
    if known is not None:
        return max(known, default=-1) + 1
    largest = emit.reduce("maximum", emit.convert(ids, types.I32), (0,), -1)
    return emit.sizes.fresh(emit.binary("add", largest, 1))


def _sizes_of(emit: StableHLOBuilder, ids: Value, count: int, data: Value) -> Value:
    """Emits how many rows each segment has, as numbers of the data's type, with the data's rank."""
    rank, element = len(emit.dims(data)), types.element_of(data.type)
    ones = emit.broadcast(emit.scalar(1, element), emit.dims(ids), ())
    return emit.reshape(_combined(emit, "Sum", ones, ids, count), (count, *[1] * (rank - 1)))


def _sorted(how: str) -> Lowering:
    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        data, ids = op.operands[:2]
        return _of_sorted(emit, how, data, ids, _count_of(emit, op, ids))

    return lower


def _of_sorted(emit: StableHLOBuilder, how: str, data: Value, ids: Value, count: int) -> Value:
    if how in ("Sum", "Prod"):
        return _combined(emit, how, data, ids, count)
    sizes = _sizes_of(emit, ids, count, data)
    if how in ("Max", "Min"):
        found = _combined(emit, how, data, ids, count)
        return emit.select(emit.compare("GT", sizes, 0), found, 0)
    divisor = emit.binary("maximum", sizes, 1)
    if how == "SqrtN":
        divisor = emit.unary("sqrt", divisor)
    return emit.binary("divide", _combined(emit, "Sum", data, ids, count), divisor)


def _with_count(how: str) -> Lowering:
    """Returns a lowering for segments whose number is an operand."""

    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        data, ids, count = op.operands
        return _combined(emit, how, data, ids, requested_size(emit, count))

    return lower


def _sparse(how: str) -> Lowering:
    """Returns a lowering that first gathers the rows; the number of segments may be an operand."""

    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        data, indices, ids = op.operands[:3]
        known = len(op.operands) > 3
        count = requested_size(emit, op.operands[3]) if known else _count_of(emit, op, ids)
        require_indices(emit, indices, emit.dims(data)[0])
        if known:
            require_indices(emit, ids, count)
        return _of_sorted(emit, how, rows_at(emit, data, indices), ids, count)

    return lower


def _bincount(op: Operation, emit: StableHLOBuilder) -> Value:
    values, size, weights = op.operands
    dims = emit.dims(values)
    count = requested_size(emit, size)
    element = types.element_of(op.results[0].type)
    is_binary = bool(attribute(op, "binary_output", False))
    if is_binary or emit.dims(weights) in ((0,), ()):
        weights = emit.broadcast(emit.scalar(1, element), dims, ())
    zero = emit.scalar(0, element)
    if len(dims) < 2 or op.name == "tf.Bincount":
        into = emit.broadcast(zero, (count,), ())
        return scatter(emit, "" if is_binary else "add", emit.reshape(values, (*dims, 1)), weights, into)
    into = emit.broadcast(zero, (dims[0], count), ())
    rows = emit.iota((*dims, 1), 0, types.element_of(values.type))
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
    result = types.element_of(op.results[0].type)
    into = emit.broadcast(emit.scalar(0, result), (count,), ())
    ones = emit.broadcast(emit.scalar(1, result), dims, ())
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


LOWERINGS: Mapping[str, Lowering] = {
    **{f"UnsortedSegment{how}": _unsorted(how) for how in _BODIES},
    **{f"Segment{how}": _sorted(how) for how in (*_BODIES, "Mean")},
    **{f"Segment{how}V2": _with_count(how) for how in _BODIES},
    **{f"SparseSegment{how}": _sparse(how) for how in ("Sum", "Mean", "SqrtN")},
    **{f"SparseSegment{how}WithNumSegments": _sparse(how) for how in ("Sum", "Mean", "SqrtN")},
    "Bincount": _bincount,
    "DenseBincount": _bincount,
    "HistogramFixedWidth": _histogram,
    "SparseToDense": _sparse_to_dense,
}
