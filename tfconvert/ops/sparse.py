"""Sparse tensors, represented by indices, elements and a shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from tfconvert.ops.call import Call, Results, ints, typed, wide
from tfconvert.ops.declaration import Decomposition, op
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands
from tfconvert.ops.requirements import Requirement
from tfconvert.ops.segments import segment_sizes, segment_sum
from tfconvert.ops.shape_functions import Shapes
from tfconvert.schema.dialects.dims import dim_of_element, merge, with_rank
from tfconvert.schema.ir.operation import Operation

T = TypeVar("T", bound=Tensor)


def _rank(operands: Operands, shape: int) -> int:
    """Returns the rank of a sparse tensor, from the operand that holds its shape."""
    return with_rank(operands.shape(shape), 1)[0]


def _fill_empty_rows_shape(operands: Operands) -> Shapes:
    indices = with_rank(operands.shape(0), 2)
    height = operands.partial(2)
    values = with_rank(operands.shape(1), 1)
    rank = merge((_rank(operands, 2),), indices[1:])
    assert rank is not None
    rows = dim_of_element(height[0]) if height else -1
    return ((-1, *rank), (-1,), (rows,), merge(indices[:1], values))


def _reshape_shape(operands: Operands) -> Shapes:
    indices = with_rank(operands.shape(0), 2)
    rank = _rank(operands, 2)
    return ((indices[0], rank), (rank,))


def _times_dense_shape(operands: Operands) -> Shapes:
    size, matrix = operands.elements(2), with_rank(operands.shape(3), 2)
    height = size[operands.attribute("adjoint_a", False) is True] if size is not None and len(size) == 2 else -1
    return ((dim_of_element(height), matrix[0 if operands.attribute("adjoint_b", False) is True else 1]),)


def _same_shape(operands: Operands) -> Shapes:
    return (operands.shape(0), operands.shape(1))


def _fill_empty_rows(call: Call) -> Results:
    """Adds an element to each empty row, and sorts by rows."""
    indices, values, shape, default = call.inputs
    rows, height = indices[:, 0], ints(shape)[0]
    if rows.size and not 0 <= rows.min() <= rows.max() < height:
        raise call.bad("an element is outside of the rows")
    is_empty = np.bincount(rows, minlength=height) == 0
    added = np.zeros((int(is_empty.sum()), indices.shape[1]), indices.dtype)
    added[:, 0] = np.flatnonzero(is_empty)
    places = np.concatenate([indices, added])
    elements = np.concatenate([values, np.full(len(added), default, values.dtype)])
    order = np.argsort(places[:, 0], kind="stable")
    back = np.argsort(order)[: len(values)]
    return places[order], elements[order], is_empty, back.astype(np.int64)


def _reshape(call: Call) -> Results:
    """Linearizes the indices, and computes the new ones from that."""
    indices, old, new = call.inputs
    known = new[new != -1]
    total = int(np.prod(old))
    shape = new.copy()
    if known.size < new.size:
        shape[new == -1] = total // max(int(np.prod(known)), 1)
    if int(np.prod(shape)) != total or (shape < 0).any():
        raise call.bad(f"{ints(old)} can't become {ints(new)}")
    if not total:
        return np.zeros((len(indices), new.size), np.int64), shape
    places = np.unravel_index(np.ravel_multi_index(tuple(indices.T), ints(old)), ints(shape))
    return np.stack(places, 1).astype(np.int64).reshape(-1, new.size), shape


def _times_dense(call: Call) -> Results:
    indices, values, shape, matrix = call.inputs
    dense = np.zeros(ints(shape), wide(values).dtype)
    if indices.size and not (indices.min() >= 0 and (indices.max(0) < shape).all()):
        raise call.bad("an element is outside of the matrix")
    np.add.at(dense, tuple(indices.T), wide(values))
    left = dense.T if call.flag("adjoint_a") else dense
    right = matrix.T if call.flag("adjoint_b") else matrix
    return (typed(left @ wide(right), values.dtype),)


def _reorder(call: Call) -> Results:
    indices, values, _ = call.inputs
    order = np.lexsort(indices.T[::-1])
    return indices[order], values[order]


def _axes(shape: Tensor) -> Sequence[int]:
    """Returns the dimensions of a sparse tensor, whose number must be known."""
    return range((shape.shape or ())[0])


def linear_indices(indices: T, shape: T, axes: Sequence[int]) -> T:
    """Returns each element's indices along some dimensions as one number; the last dimension varies fastest."""
    first, *others = axes
    number = indices.gather(first, 1)
    for axis in others:
        number = number * shape.gather(axis) + indices.gather(axis, 1)
    return number


def _stable_order(rows: Tensor) -> Tensor:
    """Returns the permutation that sorts numbers in ascending order; equal ones keep their order."""
    return rows.op("TopKV2", -rows, rows.size(0), results=2, sorted=True)[1]  # type: ignore[no-any-return]


def fill_empty_rows(indices: Tensor, values: Tensor, shape: Tensor, default: Tensor) -> Sequence[Tensor]:
    """Puts elements for the empty rows after all others, and sorts by rows; those of one row keep their order."""
    rows = indices.gather(0, 1).cast(np.int32)
    is_empty = segment_sizes(rows, shape.gather(0).cast(np.int32), np.int32).equal(0)
    empty = is_empty.op("Where", is_empty)
    added = empty.reshape([-1]).cast(np.int32)
    filled = values.op("Fill", added.sizes(), default)
    order = _stable_order(rows.concat([added], 0))
    places = indices.concat([empty.op("Pad", empty, np.array([[0, 0], [0, indices.size(1) - 1]], np.int32))], 0)
    back = order.op("Slice", order.op("InvertPermutation", order), [0], values.sizes())
    return places.gather(order), values.concat([filled], 0).gather(order), is_empty, back.cast(np.int64)


def reorder(indices: Tensor, values: Tensor, shape: Tensor) -> Sequence[Tensor]:
    """Sorts by the elements' linear indices."""
    order = _stable_order(linear_indices(indices, shape, _axes(shape)))
    return indices.gather(order), values.gather(order)


def reshape(indices: Tensor, old: Tensor, new: Tensor) -> Sequence[Tensor]:
    """Computes the elements' linear indices, and the new indices from these."""
    shape = new
    if new.constant is None or -1 in new.constant:
        # The product with -1 for the size to find is minus that of the others.
        total, others = (each.reduce("Prod", [0]) for each in (old, new))
        shape = new.equal(-1).where(total.op("FloorDiv", total, (-others).maximum(1)), new)
    # The indices of an empty dimension don't matter, but nothing may be divided by its size.
    sizes = shape.maximum(1)
    number = linear_indices(indices, old, _axes(old))
    places: list[Tensor] = []
    for axis in reversed(_axes(new)[1:]):
        size = sizes.gather(axis)
        places.insert(0, number % size)
        number = number.op("FloorDiv", number, size)
    return number.op("Pack", number, *places, axis=1, N=len(places) + 1), shape


def times_dense(
    indices: Tensor, values: Tensor, shape: Tensor, matrix: Tensor, *, adjoint_a: bool = False, adjoint_b: bool = False
) -> Tensor:
    """Gathers for each element the row of the other matrix that it is multiplied by, and sums by its own row."""
    own = int(adjoint_a)
    if adjoint_a:
        values = values.conj()
    if adjoint_b:
        matrix = matrix.op("Transpose", matrix, [1, 0]).conj()
    products = matrix.gather(indices.gather(1 - own, 1)) * values.reshape([-1, 1])
    return segment_sum(products, indices.gather(own, 1), shape.gather(own))


def _has_ranks(*ranks: int) -> Requirement:
    """Returns the requirement that operands have ranks, the last dimension of each one that is known and not empty."""

    def check(op: Operation) -> str | None:
        shapes = [operand.shape for operand in op.operands]
        is_known = all(
            shape is not None and len(shape) == rank and shape[-1] > 0
            for shape, rank in zip(shapes, ranks, strict=False)
            if rank
        )
        return None if is_known else "the sparse tensor's rank is not known"

    return check


OPS = (
    op(
        "SparseFillEmptyRows",
        shape=_fill_empty_rows_shape,
        compute=_fill_empty_rows,
        decompose=(
            Decomposition(
                fill_empty_rows, "f32 i32 i64 ui8 i8 i16 i1", _has_ranks(2), typed=1, example=((4, 2), (4,), (2,), ())
            ),
        ),
    ),
    op(
        "SparseReorder",
        shape=_same_shape,
        compute=_reorder,
        decompose=(Decomposition(reorder, "", _has_ranks(0, 0, 1), example=((4, 2), (4,), (2,))),),
    ),
    op(
        "SparseReshape",
        shape=_reshape_shape,
        compute=_reshape,
        decompose=(Decomposition(reshape, "", _has_ranks(2, 1, 1), example=((4, 2), (2,), (2,))),),
    ),
    op(
        "SparseTensorDenseMatMul",
        shape=_times_dense_shape,
        compute=_times_dense,
        decompose=(
            Decomposition(times_dense, "number", _has_ranks(2, 0, 1), typed=1, example=((4, 2), (4,), (2,), (4, 3))),
        ),
    ),
)
