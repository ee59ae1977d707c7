"""Slices, gathers and scatters, and ops whose result is indices."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from tfconvert.ops.call import Array, Call, Function, Kernel, Results, ints, scalar


def _slice(call: Call) -> Results:
    x, begin, size = call.inputs
    spans = []
    for dim, start, length in zip(x.shape, ints(begin), ints(size), strict=True):
        stop = dim if length == -1 else start + length
        if not 0 <= start <= stop <= dim:
            raise call.bad(f"a slice from {ints(begin)} of size {ints(size)} is not within shape {list(x.shape)}")
        spans.append(slice(start, stop))
    return (x[tuple(spans)],)


def _clamped_slice(call: Call) -> Results:
    """`XlaDynamicSlice` moves a slice that doesn't fit to where it does."""
    x, begin, size = call.inputs
    lengths = ints(size)
    if any(length > dim for dim, length in zip(x.shape, lengths, strict=True)):
        raise call.bad(f"a slice of size {lengths} is larger than shape {list(x.shape)}")
    starts = [
        min(max(start, 0), dim - length) for dim, start, length in zip(x.shape, ints(begin), lengths, strict=True)
    ]
    return (x[tuple(slice(start, start + length) for start, length in zip(starts, lengths, strict=True))],)


def strided_index(call: Call, rank: int, begin: Array, end: Array, strides: Array) -> tuple[Any, ...]:
    """Returns the numpy index that a strided slice with its five masks means.

    Args:
        call: The op, for its masks.
        rank: Rank of the sliced tensor.
        begin: First index of each entry.
        end: Index after the last.
        strides: Steps.
    """
    masks = {name: call.integer(f"{name}_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    index: list[Any] = []
    for i, (start, stop, step) in enumerate(zip(ints(begin), ints(end), ints(strides), strict=True)):
        on = {name: bool(mask >> i & 1) for name, mask in masks.items()}
        if step == 0:
            raise call.bad("a stride is 0")
        if on["shrink_axis"] and step < 0:
            raise call.bad("a single index has a negative stride")
        if on["ellipsis"]:
            index.append(Ellipsis)
        elif on["new_axis"]:
            index.append(np.newaxis)
        elif on["shrink_axis"]:
            index.append(start)
        else:
            index.append(slice(None if on["begin"] else start, None if on["end"] else stop, step))
    if sum(entry is not Ellipsis and entry is not np.newaxis for entry in index) > rank:
        raise call.bad(f"a slice of {len(index)} entries is too many for rank {rank}")
    return tuple(index)


def _strided_slice(call: Call) -> Results:
    x, begin, end, strides = call.inputs
    return (np.asarray(x[strided_index(call, x.ndim, begin, end, strides)]),)


def _strided_update(call: Call) -> Results:
    x, begin, end, strides, value = call.inputs
    result = x.copy()
    result[strided_index(call, x.ndim, begin, end, strides)] = value
    return (result,)


def _check(call: Call, indices: Array, dim: int) -> None:
    if indices.size and (indices.min() < 0 or indices.max() >= dim):
        raise call.bad(f"an index is outside of the dimension of {dim}")


def _gather(call: Call) -> Results:
    params, indices = call.inputs
    _check(call, indices, params.shape[0])
    return (params[indices],)


def _gather_v2(call: Call) -> Results:
    params, indices, axis = call.inputs
    at = scalar(axis) % params.ndim
    batch = call.integer("batch_dims")
    batch += indices.ndim if batch < 0 else 0
    _check(call, indices, params.shape[at])
    if batch == 0:
        flat = np.take(params, indices.reshape(-1), axis=at)
        return (flat.reshape((*params.shape[:at], *indices.shape, *params.shape[at + 1 :])),)
    grids = [np.arange(indices.shape[i]).reshape(-1, *[1] * (indices.ndim - i - 1)) for i in range(batch)]
    gathered = np.moveaxis(params, at, batch)[(*grids, indices)]
    outer = range(at - batch)
    return (np.moveaxis(gathered, [indices.ndim + i for i in outer], [batch + i for i in outer]),)


def _nd_index(call: Call, indices: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
    index = tuple(np.moveaxis(indices, -1, 0))
    for entry, dim in zip(index, shape, strict=False):
        _check(call, entry, dim)
    return index


def _gather_nd(call: Call) -> Results:
    params, indices = call.inputs
    if indices.shape[-1] == 0:
        return (np.broadcast_to(params, (*indices.shape[:-1], *params.shape)),)
    return (params[_nd_index(call, indices, params.shape)],)


def _scatter(function: Function | None, call: Call) -> Results:
    tensor, indices, updates = call.inputs
    result = tensor.copy()
    index = _nd_index(call, indices, tensor.shape)
    if function is None:
        result[index] = updates
    else:
        function.at(result, index, updates)  # type: ignore[attr-defined]
    return (result,)


def _scatter_nd(call: Call) -> Results:
    indices, updates, shape = call.inputs
    dims = ints(shape)
    result = np.full(dims, b"" if updates.dtype == object else 0, updates.dtype)
    np.add.at(result, _nd_index(call, indices, dims), updates)
    return (result,)


def _one_hot(call: Call) -> Results:
    indices, depth, on, off = call.inputs
    axis = call.integer("axis", -1)
    if scalar(depth) < 0:
        raise call.bad(f"the depth {scalar(depth)} is negative")
    hot = np.expand_dims(indices, axis) == np.arange(scalar(depth)).reshape(
        -1, *[1] * (0 if axis == -1 else indices.ndim - axis)
    )
    return (np.where(hot, on, off),)


def _where(call: Call) -> Results:
    (x,) = call.inputs
    return (np.argwhere(x).astype(np.int64),)


def _unique(call: Call) -> Results:
    x = call.inputs[0]
    if x.ndim != 1:
        raise call.bad("only vectors' elements are compared")
    _, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    # numpy sorts by value, TensorFlow keeps the order of first appearance.
    order = np.argsort(first, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    dtype = call.dtype("out_idx", np.int32)
    results = (x[first[order]], place[inverse.reshape(-1)].astype(dtype), counts[order].astype(dtype))
    return results if "Counts" in call.op else results[:2]


def _top_k(call: Call) -> Results:
    x = call.inputs[0]
    count = scalar(call.inputs[1]) if len(call.inputs) > 1 else call.integer("k")
    size = x.shape[-1]
    if not 0 <= count <= size:
        raise call.bad(f"the largest {count} of {size} elements")
    # Sorted backwards, so that among equals the first comes first.
    ascending = np.argsort(x[..., ::-1], axis=-1, kind="stable")
    indices = (size - 1 - ascending[..., ::-1])[..., :count]
    return np.take_along_axis(x, indices, -1), indices.astype(call.dtype("index_type", np.int32))


def _reverse(call: Call) -> Results:
    x, axes = call.inputs
    return (np.flip(x, ints(axes)),)


def _reverse_sequence(call: Call) -> Results:
    x, lengths = call.inputs
    batch, sequence = call.integer("batch_dim"), call.integer("seq_dim")
    result = np.moveaxis(x, (batch, sequence), (0, 1)).copy()
    for row, length in zip(result, ints(lengths), strict=True):
        row[:length] = row[:length][::-1].copy()
    return (np.moveaxis(result, (0, 1), (batch, sequence)),)


def _invert_permutation(call: Call) -> Results:
    (x,) = call.inputs
    _check(call, x, x.size)
    result = np.full_like(x, -1)
    result[x] = np.arange(x.size)
    if (result < 0).any():
        raise call.bad("the indices are not a permutation")
    return (result,)


def _dynamic_partition(call: Call) -> Results:
    data, partitions = call.inputs
    count = call.integer("num_partitions")
    _check(call, partitions, count)
    return tuple(data[partitions == i] for i in range(count))


def _dynamic_stitch(call: Call) -> Results:
    half = len(call.inputs) // 2
    indices, data = call.inputs[:half], call.inputs[half:]
    count = max((int(index.max()) + 1 for index in indices if index.size), default=0)
    result = np.zeros((count, *data[0].shape[indices[0].ndim :]), data[0].dtype)
    for index, values in zip(indices, data, strict=True):
        result[index] = values
    return (result,)


def _list_diff(call: Call) -> Results:
    x, y = call.inputs
    kept = np.flatnonzero(~np.isin(x, y))
    return x[kept], kept.astype(call.dtype("out_idx", np.int32))


def _bound(side: Any, call: Call) -> Results:
    rows, values = call.inputs
    found = [np.searchsorted(row, wanted, side=side) for row, wanted in zip(rows, values, strict=True)]
    return (np.array(found).reshape(values.shape).astype(call.dtype("out_type", np.int32)),)


def _sparse_to_dense(call: Call) -> Results:
    indices, shape, values, default = call.inputs
    dims = ints(shape)
    result = np.full(dims, default.reshape(())[()], default.dtype)
    result[_nd_index(call, indices.reshape(-1, len(dims)), dims)] = values
    return (result,)


KERNELS: Mapping[str, Kernel] = {
    "DynamicPartition": _dynamic_partition,
    "DynamicStitch": _dynamic_stitch,
    "Gather": _gather,
    "GatherNd": _gather_nd,
    "GatherV2": _gather_v2,
    "InvertPermutation": _invert_permutation,
    "ListDiff": _list_diff,
    "LowerBound": partial(_bound, "left"),
    "OneHot": _one_hot,
    "ParallelDynamicStitch": _dynamic_stitch,
    "ReverseSequence": _reverse_sequence,
    "ReverseV2": _reverse,
    "ScatterNd": _scatter_nd,
    "ScatterNdNonAliasingAdd": partial(_scatter, np.add),
    "Slice": _slice,
    "XlaDynamicSlice": _clamped_slice,
    "SparseToDense": _sparse_to_dense,
    "StridedSlice": _strided_slice,
    "TensorScatterAdd": partial(_scatter, np.add),
    "TensorScatterMax": partial(_scatter, np.maximum),
    "TensorScatterMin": partial(_scatter, np.minimum),
    "TensorScatterSub": partial(_scatter, np.subtract),
    "TensorScatterUpdate": partial(_scatter, None),
    "TensorStridedSliceUpdate": _strided_update,
    "TopK": _top_k,
    "TopKV2": _top_k,
    **dict.fromkeys(("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2"), _unique),
    "UpperBound": partial(_bound, "right"),
    "Where": _where,
}
"""Op name -> kernel."""
