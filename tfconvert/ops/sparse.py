"""Sparse tensors, represented by indices, elements and a shape."""

from __future__ import annotations

import numpy as np

from tfconvert.ops.call import Call, Results, ints, typed, wide
from tfconvert.ops.declaration import op
from tfconvert.ops.operands import Operands
from tfconvert.ops.shape_functions import Shapes
from tfconvert.schema.dialects.dims import dim_of_element, merge, with_rank


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


OPS = (
    op("SparseFillEmptyRows", shape=_fill_empty_rows_shape, compute=_fill_empty_rows),
    op("SparseReorder", shape=_same_shape, compute=_reorder),
    op("SparseReshape", shape=_reshape_shape, compute=_reshape),
    op("SparseTensorDenseMatMul", shape=_times_dense_shape, compute=_times_dense),
)
