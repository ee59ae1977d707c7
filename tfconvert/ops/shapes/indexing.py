"""Shapes of ops that pick elements or put them somewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.ops.operands import Operands, ShapeFunction
from tfconvert.ops.shapes.strided_slice import sliced
from tfconvert.schema.dialects.dims import (
    MismatchError,
    axis_of,
    dim_of_element,
    merge,
    text,
    with_rank,
    with_rank_at_least,
)
from tfconvert.schema.dialects.types import Shape

Shapes = Sequence[Shape | None]


def _gather(operands: Operands) -> Shapes:
    shape, indices = operands.shape(0), operands.shape(1)
    with_rank_at_least(shape, 1)
    return (None if shape is None or indices is None else indices + shape[1:],)


def _gather_v2(operands: Operands) -> Shapes:
    shape, indices, axis = operands.shape(0), operands.shape(1), operands.scalar(2)
    if shape is None or indices is None:
        return (None,)
    with_rank_at_least(shape, 1)
    batch = operands.integer("batch_dims")
    batch += len(indices) if batch < 0 else 0
    if not 0 <= batch <= min(len(indices), len(shape)):
        raise MismatchError(f"{batch} batch dimensions are too many for {text(shape)} and {text(indices)}")
    if axis is None:
        return ((-1,) * (len(shape) + len(indices) - 1 - batch),)
    place = axis_of(axis, len(shape))
    if place < batch:
        raise MismatchError(f"axis {axis} is one of {batch} batch dimensions")
    common = merge(shape[:batch], indices[:batch])
    assert common is not None
    return ((*common, *shape[batch:place], *indices[batch:], *shape[place + 1 :]),)


def _gather_nd(operands: Operands) -> Shapes:
    shape, indices = operands.shape(0), operands.shape(1)
    with_rank_at_least(indices, 1)
    if shape is None or indices is None or indices[-1] < 0:
        return (None,)
    if indices[-1] > len(shape):
        raise MismatchError(f"indices of {indices[-1]} elements are too long for shape {text(shape)}")
    return (indices[:-1] + shape[indices[-1] :],)


def _scatter_nd(operands: Operands) -> Shapes:
    target = operands.elements(2)
    if target is None:
        return (None,)
    shape = tuple(map(dim_of_element, target))
    indices, updates = operands.shape(0), operands.shape(1)
    if indices is not None and updates is not None and indices and 0 <= indices[-1] <= len(shape) and 0 not in shape:
        merge(updates, indices[:-1] + shape[indices[-1] :])
    return (shape,)


def _tensor_scatter(operands: Operands) -> Shapes:
    shape, indices, updates = operands.shape(0), operands.shape(1), operands.shape(2)
    if shape is not None and indices and updates is not None and 0 not in shape:
        if indices[-1] > len(shape):
            raise MismatchError(f"indices of {indices[-1]} elements are too long for shape {text(shape)}")
        if indices[-1] >= 0:
            merge(updates, indices[:-1] + shape[indices[-1] :])
    return (shape,)


def _slice(operands: Operands) -> Shapes:
    shape, begin, size = operands.shape(0), operands.elements(1), operands.elements(2)
    known = [spec for spec in (shape, begin, size) if spec is not None]
    if not known:
        return (None,)
    rank = len(known[0])
    if any(len(spec) != rank for spec in known):
        raise MismatchError("its begin and size should have an element a dimension")
    shape = with_rank(shape, rank)
    if begin is None or size is None:
        return (tuple(map(dim_of_element, size)) if size is not None else (-1,) * rank,)
    return (tuple(map(_slice_length, shape, begin, size)),)


def _slice_length(dim: int, begin: int, size: int) -> int:
    if size == -1:
        if begin == 0:
            return dim
        if dim < 0 or begin < 0:
            return -1
        size = dim - begin
    if (size >= 0 and begin >= 0 and 0 <= dim < begin + size) or (dim >= 0 and size == dim - begin < 0):
        raise MismatchError(f"{size} elements from {begin} are more than a dimension of {dim} has")
    return dim_of_element(size)


def _one_hot(operands: Operands) -> Shapes:
    indices, depth = operands.shape(0), operands.partial(1)
    if indices is None:
        return (None,)
    if depth and -(1 << 63) <= depth[0] < 0:
        raise MismatchError(f"its depth {depth[0]} is negative")
    place = axis_of(operands.integer("axis", -1), len(indices) + 1)
    return ((*indices[:place], dim_of_element(depth[0]) if depth else -1, *indices[place:]),)


def _top_k(operands: Operands) -> Shapes:
    shape = with_rank_at_least(operands.shape(0), 1)
    found = operands.partial(1) if operands.count > 1 else (operands.integer("k"),)
    if shape is None:
        return (None, None)
    k = dim_of_element(found[0]) if found else -1
    if 0 <= shape[-1] < k:
        raise MismatchError(f"the top {k} are more than shape {text(shape)} has")
    return ((*shape[:-1], k),) * 2


def _approximate_top_k(operands: Operands) -> Shapes:
    shape, k = operands.shape(0), operands.integer("k")
    if shape is None or operands.attribute("aggregate_to_topk", True) is False:
        return (None, None)
    place = axis_of(operands.integer("reduction_dimension", -1), len(shape))
    return ((*shape[:place], k, *shape[place + 1 :]),) * 2


def _nth_element(operands: Operands) -> Shapes:
    shape = with_rank_at_least(operands.shape(0), 1)
    return (None if shape is None else shape[:-1],)


def _where(operands: Operands) -> Shapes:
    shape = operands.shape(0)
    return ((-1, -1 if shape is None else len(shape)),)


def _unique(operands: Operands) -> Shapes:
    shape = with_rank(operands.shape(0), 1)
    counts = len(operands.op.results) - 2
    return ((-1,), shape, *((-1,),) * counts)


def _unique_along(operands: Operands) -> Shapes:
    """`UniqueV2`: along an axis, or of a vector where there is no axis."""
    shape, axes = operands.shape(0), operands.ints(1)
    counts = ((-1,),) * (len(operands.op.results) - 2)
    if shape is None or axes is None:
        return (None if shape is None else (-1,) * len(shape), (-1,), *counts)
    place = axis_of(axes[0], len(shape)) if axes else 0
    with_rank_at_least(shape, 1)
    return ((*shape[:place], -1, *shape[place + 1 :]), (shape[place],), *counts)


def _list_diff(operands: Operands) -> Shapes:
    with_rank(operands.shape(0), 1)
    return ((-1,), (-1,))


def _dynamic_partition(operands: Operands) -> Shapes:
    shape, parts = operands.shape(0), operands.shape(1)
    count = len(operands.op.results)
    if shape is None or parts is None:
        return (None,) * count
    with_rank_at_least(shape, len(parts))
    merge(shape[: len(parts)], parts)
    return ((-1, *shape[len(parts) :]),) * count


def _dynamic_stitch(operands: Operands) -> Shapes:
    half = operands.count // 2
    rest: Shape | None = None
    largest, is_known = -1, True
    for index in range(half):
        places, data = operands.shape(index), operands.shape(half + index)
        if places is not None and data is not None:
            with_rank_at_least(data, len(places))
            rest = merge(rest, data[len(places) :])
        value = operands.value(index)
        is_known = is_known and value is not None
        if value is not None and value.size:
            largest = max(largest, int(value.max()))
    if rest is None:
        return (None,)
    return ((largest + 1 if is_known else -1, *rest),)


def _sparse_to_dense(operands: Operands) -> Shapes:
    target = operands.elements(1)
    return (None if target is None else tuple(map(dim_of_element, target)),)


def _search(operands: Operands) -> Shapes:
    return (operands.shape(1),)


def _in_top_k(operands: Operands) -> Shapes:
    predictions, targets = with_rank(operands.shape(0), 2), with_rank(operands.shape(1), 1)
    return (merge(predictions[:1], targets),)


def _read_variable(operands: Operands) -> Shapes:
    producer = operands.producer(0)
    if producer is None or producer.name != "tf.VarHandleOp":
        return (None,)
    return (operands.declared_shape("shape", producer),)


SHAPES: Mapping[str, ShapeFunction] = {
    **dict.fromkeys(("LowerBound", "UpperBound"), _search),
    **dict.fromkeys(("InTopK", "InTopKV2"), _in_top_k),
    **dict.fromkeys(("DynamicStitch", "ParallelDynamicStitch"), _dynamic_stitch),
    **dict.fromkeys(("TopK", "TopKV2"), _top_k),
    **dict.fromkeys(("Unique", "UniqueWithCounts"), _unique),
    **dict.fromkeys(("UniqueV2", "UniqueWithCountsV2"), _unique_along),
    "ApproxTopK": _approximate_top_k,
    "DynamicPartition": _dynamic_partition,
    "Gather": _gather,
    "GatherNd": _gather_nd,
    "GatherV2": _gather_v2,
    "ListDiff": _list_diff,
    "NthElement": _nth_element,
    "OneHot": _one_hot,
    "ReadVariableOp": _read_variable,
    "ScatterNd": _scatter_nd,
    **dict.fromkeys(
        ("TensorScatterAdd", "TensorScatterMax", "TensorScatterMin", "TensorScatterSub", "TensorScatterUpdate"),
        _tensor_scatter,
    ),
    "Slice": _slice,
    "SparseToDense": _sparse_to_dense,
    "StridedSlice": sliced,
    "Where": _where,
}
"""Op name -> shape function."""
