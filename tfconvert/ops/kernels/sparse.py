"""Sparse tensors, represented by indices, elements and a shape, and sums of rows that indices pick."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from tfconvert.ops.call import Array, Call, Kernel, Results, ints, scalar, typed, wide


def _segment(divisor: Callable[[Array], Array], call: Call) -> Results:
    """Adds up the rows that are picked for each segment, and divides by a function of how many they are."""
    data, picked, segments = call.inputs[:3]
    if picked.size and not 0 <= picked.min() <= picked.max() < len(data):
        raise call.bad("an index is outside of the rows")
    needed = int(segments.max(initial=-1)) + 1
    count = scalar(call.inputs[3]) if len(call.inputs) > 3 else needed
    if count < needed or segments.min(initial=0) < 0 or (np.diff(segments) < 0).any():
        raise call.bad("the segments are not sorted, or there are too many")
    rows = wide(data)[picked]
    total = np.zeros((count, *data.shape[1:]), rows.dtype)
    np.add.at(total, segments, rows)
    sizes = divisor(np.maximum(np.bincount(segments, minlength=count), 1)).astype(rows.dtype)
    return (typed(total / sizes.reshape(-1, *[1] * (data.ndim - 1)), data.dtype),)


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


_DIVISORS: Mapping[str, Callable[[Array], Array]] = {"Sum": np.ones_like, "Mean": np.asarray, "SqrtN": np.sqrt}

KERNELS: Mapping[str, Kernel] = {
    **{
        f"SparseSegment{name}{count}": partial(_segment, divisor)
        for name, divisor in _DIVISORS.items()
        for count in ("", "WithNumSegments")
    },
    "SparseFillEmptyRows": _fill_empty_rows,
    "SparseReorder": _reorder,
    "SparseReshape": _reshape,
    "SparseTensorDenseMatMul": _times_dense,
}
"""Op name -> kernel."""
