"""Sparse tensors, represented by the indices of their elements, these elements and a shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.complex_numbers import conjugated
from tfconvert.converter.targets.stablehlo.legalize.computed_sizes import places_of
from tfconvert.converter.targets.stablehlo.legalize.entry import Lowering, attribute, axes_of
from tfconvert.converter.targets.stablehlo.legalize.gathering import gather_at, rows_at, scatter
from tfconvert.converter.targets.stablehlo.legalize.products import dot
from tfconvert.converter.targets.stablehlo.legalize.regions import sort
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, part, sizes_in
from tfconvert.converter.targets.stablehlo.legalize.slicing import from_to
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _columns(emit: StableHLOBuilder, indices: Value) -> list[Value]:
    """Returns the indices along each dimension.

    Raises:
        Declined: How many dimensions there are is not known.
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
    """Emits each element's index along dimensions of which the last varies fastest."""
    first, *others = _columns(emit, indices)
    for column, size in zip(others, _elements(emit, shape)[1:], strict=True):
        first = emit.binary("add", emit.binary("multiply", first, size), column)
    return first


def _reshape(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    indices, old, new = op.operands
    element = types.element_of(new.type)
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
    seen = emit.broadcast(emit.scalar(0, types.I32), (height,), ())
    ones = emit.broadcast(emit.scalar(1, types.I32), (count,), ())
    is_empty = emit.compare("EQ", scatter(emit, "add", emit.reshape(rows, (count, 1)), ones, seen), 0)
    empty = emit.convert(places_of(emit, is_empty), types.element_of(indices.type))
    (added,) = emit.dims(empty)
    all_rows = concatenate(emit, [rows, empty], 0)
    order = _ordered(emit, all_rows)
    (total,) = emit.dims(order)
    zeros = emit.broadcast(emit.scalar(0, types.element_of(indices.type)), (added,), ())
    columns = [all_rows, *(concatenate(emit, [other, zeros], 0) for other in others)]
    filled = concatenate(emit, [values, emit.broadcast(default, (added,), ())], 0)
    counted = emit.iota((total,), 0, types.I32)
    room = emit.broadcast(emit.scalar(0, types.I32), (total,), ())
    inverse = scatter(emit, "", emit.reshape(order, (total, 1)), counted, room)
    back = from_to(emit, inverse, 0, 0, emit.size(count), count=count)
    return (
        rows_at(emit, _joined(emit, columns), order),
        rows_at(emit, filled, order),
        is_empty,
        emit.convert(back, types.element_of(op.results[3].type)),
    )


def _times_dense(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits for each element the row of the other matrix that it is multiplied by, and adds up by its own row."""
    indices, values, shape, matrix = op.operands
    own = int(bool(attribute(op, "adjoint_a", False)))
    if own:
        values = conjugated(emit, values)
    if attribute(op, "adjoint_b", False):
        matrix = conjugated(emit, emit.transpose(matrix, (1, 0)))
    columns = _columns(emit, indices)
    rows = rows_at(emit, matrix, columns[1 - own])
    dims = emit.dims(rows)
    products = emit.binary("multiply", rows, emit.broadcast(values, dims, (0,)))
    into = emit.broadcast(emit.scalar(0, types.element_of(matrix.type)), (sizes_in(emit, shape)[own], dims[1]), ())
    return scatter(emit, "add", emit.reshape(columns[own], (dims[0], 1)), products, into)


def _dense_product(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits a product of matrices that are said to have many zeros."""
    one, other = (emit.convert(operand, types.F32) for operand in op.operands)
    contracted = (int(not attribute(op, "transpose_a", False)), int(attribute(op, "transpose_b", False)))
    return dot(emit, one, other, (), [contracted])


def _reduce_sum(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits the sums of the elements with equal indices along the dimensions that are left."""
    indices, values, shape, _ = op.operands
    dims = sizes_in(emit, shape)
    axes = axes_of(op, 3, len(dims))
    columns = _columns(emit, indices)
    left = [axis for axis in range(len(dims)) if axis not in axes]
    zero = emit.scalar(0, types.element_of(values.type))
    if left:
        into = emit.broadcast(zero, [dims[axis] for axis in left], ())
        found = scatter(emit, "add", _joined(emit, [columns[axis] for axis in left]), values, into)
    else:
        found = emit.reduce("add", values, (0,), 0)
    if not attribute(op, "keep_dims", False):
        return found
    return emit.reshape(found, [1 if axis in axes else dim for axis, dim in enumerate(dims)])


def _with_dense(name: str) -> Lowering:
    """Returns a lowering of an op on the elements and those of a dense tensor, which may have sizes of 1 or less."""

    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        indices, values, _, dense = op.operands
        columns, dims = _columns(emit, indices), emit.dims(dense)
        if min(dims, default=0) < 0 and 1 not in dims and len(dims) < len(columns):
            raise Declined("the shape of its dense operand is not known")
        own = columns[len(columns) - len(dims) :]
        zero = emit.scalar(0, types.element_of(indices.type))
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


LOWERINGS: Mapping[str, Lowering] = {
    "SparseDenseCwiseAdd": _with_dense("add"),
    "SparseDenseCwiseDiv": _with_dense("divide"),
    "SparseDenseCwiseMul": _with_dense("multiply"),
    "SparseFillEmptyRows": _fill_empty_rows,
    "SparseMatMul": _dense_product,
    "SparseReduceSum": _reduce_sum,
    "SparseReorder": _reorder,
    "SparseReshape": _reshape,
    "SparseTensorDenseAdd": _add_to_dense,
    "SparseTensorDenseMatMul": _times_dense,
}
