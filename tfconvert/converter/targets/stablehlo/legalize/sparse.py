"""Sparse tensors, represented by the indices of their elements, these elements and a shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.targets.stablehlo.legalize.complex_numbers import conjugated
from tfconvert.converter.targets.stablehlo.legalize.computed_sizes import places_of
from tfconvert.converter.targets.stablehlo.legalize.emit import DeclinedError, Emit
from tfconvert.converter.targets.stablehlo.legalize.entry import Lowering, attribute, axes_of
from tfconvert.converter.targets.stablehlo.legalize.gathering import gather_at, rows_at, scatter
from tfconvert.converter.targets.stablehlo.legalize.regions import sort
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, part, sizes_in
from tfconvert.converter.targets.stablehlo.legalize.slicing import from_to
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _columns(indices: Value, emit: Emit) -> list[Value]:
    """Returns the indices along each dimension.

    Raises:
        DeclinedError: How many dimensions there are is not known.
    """
    count, rank = emit.dims(indices)
    if rank < 0:
        raise DeclinedError("the rank of a sparse tensor is not known")
    return [emit.reshape(part(indices, 1, at, at + 1, emit), (count,)) for at in range(rank)]


def _elements(shape: Value, emit: Emit) -> list[Value]:
    """Returns a shape's sizes, as scalars of its type."""
    (rank,) = emit.dims(shape)
    if rank < 0:
        raise DeclinedError("the rank of a sparse tensor is not known")
    return [emit.reshape(part(shape, 0, at, at + 1, emit), ()) for at in range(rank)]


def _joined(columns: Sequence[Value], emit: Emit) -> Value:
    """Emits index vectors of their columns."""
    return concatenate([emit.reshape(each, (*emit.dims(each), 1)) for each in columns], 1, emit)


def _linear(indices: Value, shape: Value, emit: Emit) -> Value:
    """Emits each element's index along dimensions of which the last varies fastest."""
    first, *others = _columns(indices, emit)
    for column, size in zip(others, _elements(shape, emit)[1:], strict=True):
        first = emit.binary("add", emit.binary("multiply", first, size), column)
    return first


def _reshape(op: Operation, emit: Emit) -> Sequence[Value]:
    indices, old, new = op.operands
    element = types.element_of(new.type)
    total, others = (emit.reduce("multiply", each, (0,), 1) for each in (old, new))
    # The product with -1 for the size to find is minus that of the others.
    guess = emit.binary("divide", total, emit.binary("maximum", emit.unary("negate", others), 1))
    shape = emit.select(emit.compare("EQ", new, -1), guess, new)
    rest, places = _linear(indices, old, emit), []
    for size in reversed(_elements(shape, emit)[1:]):
        # An empty dimension has no elements, but nothing may be divided by it.
        divisor = emit.binary("maximum", size, emit.scalar(1, element))
        places.append(emit.binary("remainder", rest, divisor))
        rest = emit.binary("divide", rest, divisor)
    return _joined([rest, *reversed(places)], emit), shape


def _ordered(keys: Value, emit: Emit) -> Value:
    """Emits the permutation that sorts numbers; equal ones keep their order."""
    return sort((keys, emit.iota(emit.dims(keys), 0, types.I32)), 0, "LT", emit)[1]


def _reorder(op: Operation, emit: Emit) -> Sequence[Value]:
    indices, values, shape = op.operands
    order = _ordered(_linear(indices, shape, emit), emit)
    return rows_at(indices, order, emit), rows_at(values, order, emit)


def _fill_empty_rows(op: Operation, emit: Emit) -> Sequence[Value]:
    """Emits elements for the empty rows behind all others, and sorts by rows; those of one row keep their order."""
    indices, values, shape, default = op.operands
    height = sizes_in(shape, emit)[0]
    rows, *others = _columns(indices, emit)
    (count,) = emit.dims(rows)
    seen = emit.broadcast(emit.scalar(0, types.I32), (height,), ())
    ones = emit.broadcast(emit.scalar(1, types.I32), (count,), ())
    is_empty = emit.compare("EQ", scatter("add", emit.reshape(rows, (count, 1)), ones, seen, emit), 0)
    empty = emit.convert(places_of(is_empty, emit), types.element_of(indices.type))
    (added,) = emit.dims(empty)
    all_rows = concatenate([rows, empty], 0, emit)
    order = _ordered(all_rows, emit)
    (total,) = emit.dims(order)
    zeros = emit.broadcast(emit.scalar(0, types.element_of(indices.type)), (added,), ())
    columns = [all_rows, *(concatenate([other, zeros], 0, emit) for other in others)]
    filled = concatenate([values, emit.broadcast(default, (added,), ())], 0, emit)
    counted = emit.iota((total,), 0, types.I32)
    room = emit.broadcast(emit.scalar(0, types.I32), (total,), ())
    inverse = scatter("", emit.reshape(order, (total, 1)), counted, room, emit)
    back = from_to(inverse, 0, 0, emit.size(count), emit, count=count)
    return (
        rows_at(_joined(columns, emit), order, emit),
        rows_at(filled, order, emit),
        is_empty,
        emit.convert(back, types.element_of(op.results[3].type)),
    )


def _times_dense(op: Operation, emit: Emit) -> Value:
    """Emits for each element the row of the other matrix that it is multiplied by, and adds up by its own row."""
    indices, values, shape, matrix = op.operands
    own = int(bool(attribute(op, "adjoint_a", False)))
    if own:
        values = conjugated(values, emit)
    if attribute(op, "adjoint_b", False):
        matrix = conjugated(emit.transpose(matrix, (1, 0)), emit)
    columns = _columns(indices, emit)
    rows = rows_at(matrix, columns[1 - own], emit)
    dims = emit.dims(rows)
    products = emit.binary("multiply", rows, emit.broadcast(values, dims, (0,)))
    into = emit.broadcast(emit.scalar(0, types.element_of(matrix.type)), (sizes_in(shape, emit)[own], dims[1]), ())
    return scatter("add", emit.reshape(columns[own], (dims[0], 1)), products, into, emit)


def _reduce_sum(op: Operation, emit: Emit) -> Value:
    """Emits the sums of the elements with equal indices along the dimensions that are left."""
    indices, values, shape, _ = op.operands
    dims = sizes_in(shape, emit)
    axes = axes_of(op, 3, len(dims))
    columns = _columns(indices, emit)
    left = [axis for axis in range(len(dims)) if axis not in axes]
    zero = emit.scalar(0, types.element_of(values.type))
    if left:
        into = emit.broadcast(zero, [dims[axis] for axis in left], ())
        found = scatter("add", _joined([columns[axis] for axis in left], emit), values, into, emit)
    else:
        found = emit.reduce("add", values, (0,), 0)
    if not attribute(op, "keep_dims", False):
        return found
    return emit.reshape(found, [1 if axis in axes else dim for axis, dim in enumerate(dims)])


def _with_dense(name: str) -> Lowering:
    """Returns a lowering of an op on the elements and those of a dense tensor, which may have sizes of 1 or less."""

    def lower(op: Operation, emit: Emit) -> Value:
        indices, values, _, dense = op.operands
        columns, dims = _columns(indices, emit), emit.dims(dense)
        if min(dims, default=0) < 0 and 1 not in dims and len(dims) < len(columns):
            raise DeclinedError("the shape of its dense operand is not known")
        own = columns[len(columns) - len(dims) :]
        zero = emit.scalar(0, types.element_of(indices.type))
        placed = [
            emit.broadcast(zero, emit.dims(column), ()) if dim == 1 else column
            for column, dim in zip(own, dims, strict=True)
        ]
        found = gather_at(dense, _joined(placed, emit), emit) if placed else dense
        return emit.binary(name, values, found)

    return lower


def _add_to_dense(op: Operation, emit: Emit) -> Value:
    indices, values, _, dense = op.operands
    return scatter("add", indices, values, dense, emit)


LOWERINGS: Mapping[str, Lowering] = {
    "SparseDenseCwiseAdd": _with_dense("add"),
    "SparseDenseCwiseDiv": _with_dense("divide"),
    "SparseDenseCwiseMul": _with_dense("multiply"),
    "SparseFillEmptyRows": _fill_empty_rows,
    "SparseReduceSum": _reduce_sum,
    "SparseReorder": _reorder,
    "SparseReshape": _reshape,
    "SparseTensorDenseAdd": _add_to_dense,
    "SparseTensorDenseMatMul": _times_dense,
}
