"""Ragged tensors, represented by all values and the bounds between rows; sparse ones, by the indices of elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.computed_sizes import places_of
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite, axes_of
from tfconvert.converter.targets.stablehlo.legalize.gathering import counted, gather_at, inverse, rows_at, scatter
from tfconvert.converter.targets.stablehlo.legalize.regions import sort
from tfconvert.converter.targets.stablehlo.legalize.scans import ADD, scan
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, part, pick, requested_size, sizes_in
from tfconvert.converter.targets.stablehlo.legalize.slicing import from_to
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.dims import UNKNOWN
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class Rows(NamedTuple):
    """A dimension of rows.

    Attributes:
        height: The number of rows.
        starts: Where each row starts, as `i32`.
        lengths: How long each row is, as `i32`.
        numbers: Which row each value is in, as `i32`.
        places: The position of each value in its row, as `i32`.
    """

    height: int
    starts: Value
    lengths: Value
    numbers: Value
    places: Value


def _numbered(emit: StableHLOBuilder, starts: Value, total: int) -> Value:
    """Emits the row of each value: the number of rows after the first one that have started."""
    # Empty rows at the end start behind all values, which is nowhere.
    return emit.binary("subtract", scan(emit, counted(emit, starts, total), 0, ADD), 1)


def _of_starts(emit: StableHLOBuilder, starts: Value, lengths: Value, total: int) -> Rows:
    numbers = _numbered(emit, starts, total)
    places = emit.binary("subtract", emit.iota((total,), 0, types.I32), rows_at(emit, starts, numbers))
    return Rows(emit.dims(starts)[0], starts, lengths, numbers, places)


def _between(emit: StableHLOBuilder, splits: Value) -> tuple[Value, Value]:
    """Emits where rows start, and how long they are."""
    bounds = emit.convert(splits, types.I32)
    size = emit.size(emit.dims(bounds)[0])
    starts = from_to(emit, bounds, 0, 0, emit.compute("subtract", size, 1))
    ends = from_to(emit, bounds, 0, 1, size)
    return starts, emit.binary("subtract", ends, starts)


def _of_splits(emit: StableHLOBuilder, splits: Value, total: int) -> Rows:
    return _of_starts(emit, *_between(emit, splits), total)


def _of_lengths(emit: StableHLOBuilder, lengths: Value) -> tuple[Rows, Value]:
    """Emits rows and their bounds from their lengths; the number of values is their sum."""
    sums = scan(emit, lengths, 0, ADD)
    total = emit.sizes.fresh(emit.reduce("add", lengths, (0,), 0))
    splits = concatenate(emit, [emit.ints([0]), sums], 0)
    return _of_starts(emit, emit.binary("subtract", sums, lengths), lengths, total), splits


def _of_numbers(emit: StableHLOBuilder, count: int, numbers: Value) -> Rows:
    """Emits rows from the number of each value's row."""
    numbers = emit.convert(numbers, types.I32)
    (total,) = emit.dims(numbers)
    lengths = counted(emit, numbers, count)
    starts = emit.binary("subtract", scan(emit, lengths, 0, ADD), lengths)
    places = emit.binary("subtract", emit.iota((total,), 0, types.I32), rows_at(emit, starts, numbers))
    return Rows(count, starts, lengths, numbers, places)


def _partitions(op: Operation, emit: StableHLOBuilder) -> list[Rows]:
    """Returns the ragged dimensions, the outermost first.

    Raises:
        Declined: One is represented in a way that is not known.
    """
    names = [each.decode() if isinstance(each, bytes) else str(each) for each in tf.get(op, "row_partition_types")]
    parts = list(op.operands[3:])
    rows: list[Rows] = []
    inner = emit.dims(op.operands[1])[0]
    count = requested_size(emit, parts.pop(0)) if names[0] == "FIRST_DIM_SIZE" else 0
    names = names[1:] if names[0] == "FIRST_DIM_SIZE" else names
    for name, given, after in zip(names, parts, [*parts[1:], None], strict=True):
        if name == "ROW_SPLITS":
            total = inner if after is None else _rows_in(emit, after)
            rows.append(_of_splits(emit, given, total))
        elif name == "VALUE_ROWIDS" and not rows:
            rows.append(_of_numbers(emit, count, given))
        elif name == "VALUE_ROWIDS":
            rows.append(_of_numbers(emit, emit.dims(rows[-1].numbers)[0], given))
        else:
            raise Declined(f"its rows are represented as {name}")
    return rows


def _rows_in(emit: StableHLOBuilder, splits: Value) -> int:
    """Returns the number of rows between bounds."""
    return emit.size_of(emit.compute("subtract", emit.size(emit.dims(splits)[0]), 1))


def _wanted(emit: StableHLOBuilder, op: Operation, rank: int) -> list[Value | int]:
    """Returns the requested sizes, -1 for those of the values."""
    shape = op.operands[0]
    if not emit.dims(shape):
        return [-1] * rank
    elements = emit.sizes.elements(shape) or (UNKNOWN,) * rank
    return [each if each > UNKNOWN else pick(emit, shape, at) for at, each in enumerate(elements)] or [-1] * rank


def _resolved(emit: StableHLOBuilder, wanted: Value | int, own: Value | int) -> int:
    if isinstance(wanted, int):
        return wanted if wanted >= 0 else emit.size_of(own)
    return emit.size_of(emit.select(emit.compare("LT", wanted, 0), emit.value(own), wanted))


def _to_tensor(op: Operation, emit: StableHLOBuilder) -> Value:
    """Writes values over the defaults; values past the end of a shortened row are dropped."""
    values, default = op.operands[1:3]
    rows = _partitions(op, emit)
    inner = emit.dims(values)[1:]
    wanted = _wanted(emit, op, 1 + len(rows) + len(inner))
    if any(want not in (-1, dim) for want, dim in zip(wanted[1 + len(rows) :], inner, strict=False)):
        raise Declined("it is cut or padded along dimensions other than those of the rows' lengths")
    own: list[Value | int] = [emit.size(rows[0].height)]
    own += [emit.reduce("maximum", each.lengths, (0,), 0) for each in rows]
    dims = [_resolved(emit, want, size) for want, size in zip(wanted, own, strict=False)]
    columns = [rows[0].numbers, rows[0].places]
    for each in rows[1:]:
        columns = [*(rows_at(emit, column, each.numbers) for column in columns), each.places]
    count = emit.dims(values)[0]
    indices = concatenate(emit, [emit.reshape(column, (count, 1)) for column in columns], 1)
    return scatter(emit, "", indices, values, emit.broadcast(default, (*dims, *inner)))


def _to_sparse(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    *splits, values = op.operands
    if len(splits) != 1 or len(emit.dims(values)) != 1:
        raise Declined("it has other dimensions than rows of numbers")
    (count,) = emit.dims(values)
    rows = _of_splits(emit, splits[0], count)
    columns = [emit.reshape(each, (count, 1)) for each in (rows.numbers, rows.places)]
    longest = emit.reduce("maximum", rows.lengths, (0,), 0)
    shape = emit.vector([emit.size(rows.height), longest])
    return emit.convert(concatenate(emit, columns, 1), types.I64), values, emit.convert(shape, types.I64)


def _gather(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    """Emits the rows at indices, those in them one dimension after the other."""
    *splits, values, indices = op.operands
    if len(emit.dims(indices)) != 1:
        raise Declined("its indices are not a vector")
    wanted = emit.convert(indices, types.I32)
    results: list[Value] = []
    for each, result in zip(splits, op.results, strict=False):
        starts, lengths = (rows_at(emit, bounds, wanted) for bounds in _between(emit, each))
        rows, found = _of_lengths(emit, lengths)
        results.append(emit.convert(found, result.element))
        wanted = emit.binary("add", rows_at(emit, starts, rows.numbers), rows.places)
    return *results, rows_at(emit, values, wanted)


def _range(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    element = op.operands[0].element
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
    rows, splits = _of_lengths(emit, lengths)
    start, step = (rows_at(emit, each, rows.numbers) for each in (starts, steps))
    numbers = emit.binary("add", start, emit.binary("multiply", emit.convert(rows.places, element), step))
    return emit.convert(splits, op.results[0].element), numbers


def _bincount(op: Operation, emit: StableHLOBuilder) -> Value:
    splits, values, size, weights = op.operands
    (count,) = emit.dims(values)
    rows = _of_splits(emit, splits, count)
    element = op.results[0].element
    is_binary = bool(tf.get(op, "binary_output", False))
    if is_binary or emit.dims(weights) == (0,):
        weights = emit.filled(1, element, (count,))
    into = emit.broadcast(emit.scalar(0, element), (rows.height, requested_size(emit, size)), ())
    columns = [emit.reshape(each, (count, 1)) for each in (rows.numbers, emit.convert(values, types.I32))]
    return scatter(emit, "" if is_binary else "add", concatenate(emit, columns, 1), weights, into)


RAGGED: Mapping[str, Rewrite] = {
    "RaggedBincount": _bincount,
    "RaggedGather": _gather,
    "RaggedRange": _range,
    "RaggedTensorToSparse": _to_sparse,
    "RaggedTensorToTensor": _to_tensor,
}


def _columns(emit: StableHLOBuilder, indices: Value) -> list[Value]:
    """Returns the indices along each dimension.

    Raises:
        Declined: The number of dimensions is not known.
    """
    count, rank = emit.dims(indices)
    if rank < 0:
        raise Declined("the rank of a sparse tensor is not known")
    return [emit.reshape(part(emit, indices, 1, at, at + 1), (count,)) for at in range(rank)]


def _elements(emit: StableHLOBuilder, shape: Value) -> list[Value]:
    """Returns a shape's sizes, as scalars of its type."""
    (rank,) = emit.dims(shape)
    if rank < 0:
        raise Declined("the rank of a sparse tensor is not known")
    return [emit.reshape(part(emit, shape, 0, at, at + 1), ()) for at in range(rank)]


def _joined(emit: StableHLOBuilder, columns: Sequence[Value]) -> Value:
    """Emits index vectors of their columns."""
    return concatenate(emit, [emit.reshape(each, (*emit.dims(each), 1)) for each in columns], 1)


def _linear(emit: StableHLOBuilder, indices: Value, shape: Value) -> Value:
    """Emits each element's linear index; the last dimension varies fastest."""
    first, *others = _columns(emit, indices)
    for column, size in zip(others, _elements(emit, shape)[1:], strict=True):
        first = emit.binary("add", emit.binary("multiply", first, size), column)
    return first


def _reshape(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    indices, old, new = op.operands
    element = new.element
    total, others = (emit.reduce("multiply", each, (0,), 1) for each in (old, new))
    # The product with -1 for the size to find is minus that of the others.
    guess = emit.binary("divide", total, emit.binary("maximum", emit.unary("negate", others), 1))
    shape = emit.select(emit.compare("EQ", new, -1), guess, new)
    rest, places = _linear(emit, indices, old), []
    for size in reversed(_elements(emit, shape)[1:]):
        # An empty dimension has no elements, but nothing may be divided by it.
        divisor = emit.binary("maximum", size, emit.scalar(1, element))
        places.append(emit.binary("remainder", rest, divisor))
        rest = emit.binary("divide", rest, divisor)
    return _joined(emit, [rest, *reversed(places)]), shape


def _ordered(emit: StableHLOBuilder, keys: Value) -> Value:
    """Emits the permutation that sorts numbers; equal ones keep their order."""
    return sort(emit, (keys, emit.iota(emit.dims(keys), 0, types.I32)), 0, "LT")[1]


def _reorder(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    indices, values, shape = op.operands
    order = _ordered(emit, _linear(emit, indices, shape))
    return rows_at(emit, indices, order), rows_at(emit, values, order)


def _fill_empty_rows(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    """Emits elements for the empty rows behind all others, and sorts by rows; those of one row keep their order."""
    indices, values, shape, default = op.operands
    height = sizes_in(emit, shape)[0]
    rows, *others = _columns(emit, indices)
    (count,) = emit.dims(rows)
    is_empty = emit.compare("EQ", counted(emit, rows, height), 0)
    empty = emit.convert(places_of(emit, is_empty), indices.element)
    (added,) = emit.dims(empty)
    all_rows = concatenate(emit, [rows, empty], 0)
    order = _ordered(emit, all_rows)
    zeros = emit.filled(0, indices.element, (added,))
    columns = [all_rows, *(concatenate(emit, [other, zeros], 0) for other in others)]
    filled = concatenate(emit, [values, emit.broadcast(default, (added,), ())], 0)
    back = from_to(emit, inverse(emit, order), 0, 0, emit.size(count), count=count)
    return (
        rows_at(emit, _joined(emit, columns), order),
        rows_at(emit, filled, order),
        is_empty,
        emit.convert(back, op.results[3].element),
    )


def _reduce_sum(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits the sums of the elements with equal indices along the dimensions that are left."""
    indices, values, shape, _ = op.operands
    dims = sizes_in(emit, shape)
    axes = axes_of(op, 3, len(dims))
    columns = _columns(emit, indices)
    left = [axis for axis in range(len(dims)) if axis not in axes]
    zero = emit.scalar(0, values.element)
    if left:
        into = emit.broadcast(zero, [dims[axis] for axis in left], ())
        found = scatter(emit, "add", _joined(emit, [columns[axis] for axis in left]), values, into)
    else:
        found = emit.reduce("add", values, (0,), 0)
    if not tf.get(op, "keep_dims", False):
        return found
    return emit.reshape(found, [1 if axis in axes else dim for axis, dim in enumerate(dims)])


def _with_dense(name: str) -> Rewrite:
    """Returns a lowering of an op on the elements and those of a dense tensor, which may have sizes of 1 or less."""

    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        indices, values, _, dense = op.operands
        columns, dims = _columns(emit, indices), emit.dims(dense)
        if min(dims, default=0) < 0 and 1 not in dims and len(dims) < len(columns):
            raise Declined("the shape of its dense operand is not known")
        own = columns[len(columns) - len(dims) :]
        zero = emit.scalar(0, indices.element)
        placed = [
            emit.broadcast(zero, emit.dims(column), ()) if dim == 1 else column
            for column, dim in zip(own, dims, strict=True)
        ]
        found = gather_at(emit, dense, _joined(emit, placed)) if placed else dense
        return emit.binary(name, values, found)

    return lower


def _add_to_dense(op: Operation, emit: StableHLOBuilder) -> Value:
    indices, values, _, dense = op.operands
    return scatter(emit, "add", indices, values, dense)


SPARSE: Mapping[str, Rewrite] = {
    "SparseDenseCwiseAdd": _with_dense("add"),
    "SparseDenseCwiseDiv": _with_dense("divide"),
    "SparseDenseCwiseMul": _with_dense("multiply"),
    "SparseFillEmptyRows": _fill_empty_rows,
    "SparseReduceSum": _reduce_sum,
    "SparseReorder": _reorder,
    "SparseReshape": _reshape,
    "SparseTensorDenseAdd": _add_to_dense,
}
