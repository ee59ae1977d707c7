"""Ragged tensors of rows of different lengths, represented by all their values and the bounds between rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.targets.stablehlo.legalize.emit import DeclinedError, Emit
from tfconvert.converter.targets.stablehlo.legalize.entry import Lowering, attribute
from tfconvert.converter.targets.stablehlo.legalize.gathering import rows_at, scatter
from tfconvert.converter.targets.stablehlo.legalize.scans import ADD, scan
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, pick, requested_size
from tfconvert.converter.targets.stablehlo.legalize.slicing import from_to
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.dims import UNKNOWN
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class Rows(NamedTuple):
    """A dimension of rows.

    Attributes:
        height: How many rows there are.
        starts: Where each row starts, as `i32`.
        lengths: How long each row is, as `i32`.
        numbers: Which row each value is in, as `i32`.
        places: Where in its row each value is, as `i32`.
    """

    height: int
    starts: Value
    lengths: Value
    numbers: Value
    places: Value


def _numbered(starts: Value, total: int, emit: Emit) -> Value:
    """Emits which row each value is in: how many rows after the first one have started by then."""
    (count,) = emit.dims(starts)
    into = emit.broadcast(emit.scalar(0, types.I32), (total,), ())
    ones = emit.broadcast(emit.scalar(1, types.I32), (count,), ())
    # Empty rows at the end start behind all values, which is nowhere.
    begun = scatter("add", emit.reshape(starts, (count, 1)), ones, into, emit)
    return emit.binary("subtract", scan(begun, 0, ADD, emit), 1)


def _of_starts(starts: Value, lengths: Value, total: int, emit: Emit) -> Rows:
    numbers = _numbered(starts, total, emit)
    places = emit.binary("subtract", emit.iota((total,), 0, types.I32), rows_at(starts, numbers, emit))
    return Rows(emit.dims(starts)[0], starts, lengths, numbers, places)


def _between(splits: Value, emit: Emit) -> tuple[Value, Value]:
    """Emits where rows start, and how long they are."""
    bounds = emit.convert(splits, types.I32)
    size = emit.size(emit.dims(bounds)[0])
    starts = from_to(bounds, 0, 0, emit.compute("subtract", size, 1), emit)
    ends = from_to(bounds, 0, 1, size, emit)
    return starts, emit.binary("subtract", ends, starts)


def _of_splits(splits: Value, total: int, emit: Emit) -> Rows:
    return _of_starts(*_between(splits, emit), total, emit)


def _of_lengths(lengths: Value, emit: Emit) -> tuple[Rows, Value]:
    """Emits rows from their lengths, and the bounds between them; how many values there are is counted."""
    sums = scan(lengths, 0, ADD, emit)
    total = emit.sizes.fresh(emit.reduce("add", lengths, (0,), 0))
    splits = concatenate([emit.ints([0]), sums], 0, emit)
    return _of_starts(emit.binary("subtract", sums, lengths), lengths, total, emit), splits


def _of_numbers(count: int, numbers: Value, emit: Emit) -> Rows:
    """Emits rows from the number of each value's row."""
    numbers = emit.convert(numbers, types.I32)
    (total,) = emit.dims(numbers)
    into = emit.broadcast(emit.scalar(0, types.I32), (count,), ())
    ones = emit.broadcast(emit.scalar(1, types.I32), (total,), ())
    lengths = scatter("add", emit.reshape(numbers, (total, 1)), ones, into, emit)
    starts = emit.binary("subtract", scan(lengths, 0, ADD, emit), lengths)
    places = emit.binary("subtract", emit.iota((total,), 0, types.I32), rows_at(starts, numbers, emit))
    return Rows(count, starts, lengths, numbers, places)


def _partitions(op: Operation, emit: Emit) -> list[Rows]:
    """Returns the ragged dimensions, the outermost first.

    Raises:
        DeclinedError: One is represented in a way that is not known.
    """
    names = [each.decode() if isinstance(each, bytes) else str(each) for each in attribute(op, "row_partition_types")]
    parts = list(op.operands[3:])
    rows: list[Rows] = []
    inner = emit.dims(op.operands[1])[0]
    count = requested_size(parts.pop(0), emit) if names[0] == "FIRST_DIM_SIZE" else 0
    names = names[1:] if names[0] == "FIRST_DIM_SIZE" else names
    for name, part, after in zip(names, parts, [*parts[1:], None], strict=True):
        if name == "ROW_SPLITS":
            total = inner if after is None else _rows_in(after, emit)
            rows.append(_of_splits(part, total, emit))
        elif name == "VALUE_ROWIDS" and not rows:
            rows.append(_of_numbers(count, part, emit))
        elif name == "VALUE_ROWIDS":
            rows.append(_of_numbers(emit.dims(rows[-1].numbers)[0], part, emit))
        else:
            raise DeclinedError(f"its rows are represented as {name}")
    return rows


def _rows_in(splits: Value, emit: Emit) -> int:
    """Returns how many rows bounds are between."""
    return emit.size_of(emit.compute("subtract", emit.size(emit.dims(splits)[0]), 1))


def _wanted(op: Operation, rank: int, emit: Emit) -> list[Value | int]:
    """Returns the sizes that are asked for, -1 those that the values have."""
    shape = op.operands[0]
    if not emit.dims(shape):
        return [-1] * rank
    elements = emit.sizes.elements(shape) or (UNKNOWN,) * rank
    return [each if each > UNKNOWN else pick(shape, at, emit) for at, each in enumerate(elements)] or [-1] * rank


def _resolved(wanted: Value | int, own: Value | int, emit: Emit) -> int:
    if isinstance(wanted, int):
        return wanted if wanted >= 0 else emit.size_of(own)
    return emit.size_of(emit.select(emit.compare("LT", wanted, 0), emit.value(own), wanted))


def _to_tensor(op: Operation, emit: Emit) -> Value:
    """Emits an update of what is filled with the default; values behind the end of a row that is cut are lost."""
    values, default = op.operands[1:3]
    rows = _partitions(op, emit)
    inner = emit.dims(values)[1:]
    wanted = _wanted(op, 1 + len(rows) + len(inner), emit)
    if any(want not in (-1, dim) for want, dim in zip(wanted[1 + len(rows) :], inner, strict=False)):
        raise DeclinedError("it is cut or padded along dimensions other than those of the rows' lengths")
    own: list[Value | int] = [emit.size(rows[0].height)]
    own += [emit.reduce("maximum", each.lengths, (0,), 0) for each in rows]
    dims = [_resolved(want, size, emit) for want, size in zip(wanted, own, strict=False)]
    columns = [rows[0].numbers, rows[0].places]
    for each in rows[1:]:
        columns = [*(rows_at(column, each.numbers, emit) for column in columns), each.places]
    count = emit.dims(values)[0]
    indices = concatenate([emit.reshape(column, (count, 1)) for column in columns], 1, emit)
    return scatter("", indices, values, emit.broadcast(default, (*dims, *inner)), emit)


def _to_sparse(op: Operation, emit: Emit) -> Sequence[Value]:
    *splits, values = op.operands
    if len(splits) != 1 or len(emit.dims(values)) != 1:
        raise DeclinedError("it has other dimensions than rows of numbers")
    (count,) = emit.dims(values)
    rows = _of_splits(splits[0], count, emit)
    columns = [emit.reshape(each, (count, 1)) for each in (rows.numbers, rows.places)]
    longest = emit.reduce("maximum", rows.lengths, (0,), 0)
    shape = emit.vector([emit.size(rows.height), longest])
    return emit.convert(concatenate(columns, 1, emit), types.I64), values, emit.convert(shape, types.I64)


def _gather(op: Operation, emit: Emit) -> Sequence[Value]:
    """Emits the rows at indices, those in them one dimension after the other."""
    *splits, values, indices = op.operands
    if len(emit.dims(indices)) != 1:
        raise DeclinedError("its indices are not a vector")
    wanted = emit.convert(indices, types.I32)
    results: list[Value] = []
    for each, result in zip(splits, op.results, strict=False):
        starts, lengths = (rows_at(bounds, wanted, emit) for bounds in _between(each, emit))
        rows, found = _of_lengths(lengths, emit)
        results.append(emit.convert(found, types.element_of(result.type)))
        wanted = emit.binary("add", rows_at(starts, rows.numbers, emit), rows.places)
    return *results, rows_at(values, wanted, emit)


def _range(op: Operation, emit: Emit) -> Sequence[Value]:
    element = types.element_of(op.operands[0].type)
    shapes = [emit.dims(operand) for operand in op.operands]
    count = next((dims[0] for dims in shapes if dims), 1)
    starts, limits, steps = (emit.broadcast(operand, (count,)) for operand in op.operands)
    distance = emit.binary("multiply", emit.binary("subtract", limits, starts), emit.unary("sign", steps))
    width = emit.unary("abs", steps)
    if types.numpy_dtype(element).kind in "iu":
        reached = emit.binary("divide", emit.binary("subtract", emit.binary("add", distance, width), 1), width)
    else:
        reached = emit.unary("ceil", emit.binary("divide", distance, width))
    lengths = emit.convert(emit.binary("maximum", reached, 0), types.I32)
    rows, splits = _of_lengths(lengths, emit)
    start, step = (rows_at(each, rows.numbers, emit) for each in (starts, steps))
    numbers = emit.binary("add", start, emit.binary("multiply", emit.convert(rows.places, element), step))
    return emit.convert(splits, types.element_of(op.results[0].type)), numbers


def _bincount(op: Operation, emit: Emit) -> Value:
    splits, values, size, weights = op.operands
    (count,) = emit.dims(values)
    rows = _of_splits(splits, count, emit)
    element = types.element_of(op.results[0].type)
    is_binary = bool(attribute(op, "binary_output", False))
    if is_binary or emit.dims(weights) == (0,):
        weights = emit.broadcast(emit.scalar(1, element), (count,), ())
    into = emit.broadcast(emit.scalar(0, element), (rows.height, requested_size(size, emit)), ())
    columns = [emit.reshape(each, (count, 1)) for each in (rows.numbers, emit.convert(values, types.I32))]
    return scatter("" if is_binary else "add", concatenate(columns, 1, emit), weights, into, emit)


LOWERINGS: Mapping[str, Lowering] = {
    "RaggedBincount": _bincount,
    "RaggedGather": _gather,
    "RaggedRange": _range,
    "RaggedTensorToSparse": _to_sparse,
    "RaggedTensorToTensor": _to_tensor,
}
