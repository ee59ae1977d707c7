"""The largest or smallest elements of rows, distinct elements, and what is among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.ops.call import Array, Call, Results, scalar
from tfconvert.ops.declaration import Decomposition, op, ops_like
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands
from tfconvert.ops.requirements import all_of, rank_is_known
from tfconvert.ops.segments import segment_sizes
from tfconvert.ops.shape_functions import Shapes
from tfconvert.schema.dialects import tf
from tfconvert.schema.dialects.dims import (
    MismatchError,
    axis_of,
    dim_of_element,
    merge,
    text,
    with_rank,
    with_rank_at_least,
)
from tfconvert.schema.dialects.relations.rules import is_scalar, rank_at_least
from tfconvert.schema.ir.operation import Operation


def _top_k_shape(operands: Operands) -> Shapes:
    shape = with_rank_at_least(operands.shape(0), 1)
    found = operands.partial(1) if operands.count > 1 else (operands.integer("k"),)
    if shape is None:
        return (None, None)
    k = dim_of_element(found[0]) if found else -1
    if 0 <= shape[-1] < k:
        raise MismatchError(f"the top {k} are more than shape {text(shape)} has")
    return ((*shape[:-1], k),) * 2


def _approximate_top_k_shape(operands: Operands) -> Shapes:
    shape, k = operands.shape(0), operands.integer("k")
    if shape is None or operands.attribute("aggregate_to_topk", True) is False:
        return (None, None)
    place = axis_of(operands.integer("reduction_dimension", -1), len(shape))
    return ((*shape[:place], k, *shape[place + 1 :]),) * 2


def _nth_element_shape(operands: Operands) -> Shapes:
    shape = with_rank_at_least(operands.shape(0), 1)
    return (None if shape is None else shape[:-1],)


def _unique_shape(operands: Operands) -> Shapes:
    shape = with_rank(operands.shape(0), 1)
    counts = len(operands.op.results) - 2
    return ((-1,), shape, *((-1,),) * counts)


def _unique_along_shape(operands: Operands) -> Shapes:
    """`UniqueV2`: along an axis, or of a vector where there is no axis."""
    shape, axes = operands.shape(0), operands.ints(1)
    counts = ((-1,),) * (len(operands.op.results) - 2)
    if shape is None or axes is None:
        return (None if shape is None else (-1,) * len(shape), (-1,), *counts)
    place = axis_of(axes[0], len(shape)) if axes else 0
    with_rank_at_least(shape, 1)
    return ((*shape[:place], -1, *shape[place + 1 :]), (shape[place],), *counts)


def _list_diff_shape(operands: Operands) -> Shapes:
    with_rank(operands.shape(0), 1)
    return ((-1,), (-1,))


def _in_top_k_shape(operands: Operands) -> Shapes:
    predictions, targets = with_rank(operands.shape(0), 2), with_rank(operands.shape(1), 1)
    return (merge(predictions[:1], targets),)


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


def _list_diff(call: Call) -> Results:
    x, y = call.inputs
    kept = np.flatnonzero(~np.isin(x, y))
    return x[kept], kept.astype(call.dtype("out_idx", np.int32))


def _approximate(call: Call) -> Results:
    """Finds exactly what may be approximated, as TensorFlow does on a processor."""
    (x,) = call.inputs
    axis, count = call.integer("reduction_dimension", -1), call.integer("k")
    if not call.flag("aggregate_to_topk", True):
        raise call.bad("how many candidates it leaves depends on the device it runs on")
    if not -x.ndim <= axis < x.ndim or not 0 <= count <= x.shape[axis]:
        raise call.bad(f"there are no {count} elements along axis {axis} of {x.shape}")
    keys = -x if call.flag("is_max_k", True) else x
    indices = np.argsort(keys, axis=axis, kind="stable").take(range(count), axis)
    return np.take_along_axis(x, indices, axis), indices.astype(np.int32)


def _in_top_k(call: Call) -> Results:
    """A row with an element that is not finite has no top, and a target that isn't a class is not in it."""
    predictions, targets = call.inputs[:2]
    count = scalar(call.inputs[2]) if len(call.inputs) > 2 else call.integer("k")
    classes = predictions.shape[-1]
    valid = (targets >= 0) & (targets < classes) & np.isfinite(predictions).all(-1)
    if not classes:
        return (valid,)
    own = np.take_along_axis(predictions, np.where(valid, targets, 0)[:, None].astype(np.int64), -1)
    return (valid & ((predictions > own).sum(-1) < count),)


def _nth(call: Call) -> Results:
    x, place = call.inputs[0], scalar(call.inputs[1])
    if not 0 <= place < x.shape[-1]:
        raise call.bad(f"there is no element {place} in a row of {x.shape[-1]}")
    ordered: Array = np.sort(x, axis=-1)
    return (ordered[..., -1 - place if call.flag("reverse") else place],)


def top_k(x: Tensor, *, k: int = 1, sorted: bool = True) -> Sequence[Tensor]:
    return x.op("TopKV2", x, k, results=2, sorted=sorted)  # type: ignore[no-any-return]


def approximate_top_k(
    x: Tensor, *, k: int = 0, reduction_dimension: int = -1, is_max_k: bool = True
) -> Sequence[Tensor]:
    """Computes the exact result, where an approximation would be allowed."""
    order = list(range(x.rank))
    order[reduction_dimension], order[-1] = order[-1], order[reduction_dimension]
    moved = x.transpose(order)
    values, places = top_k(moved if is_max_k else -moved, k=k)
    return (values if is_max_k else -values).transpose(order), places.transpose(order)


def _reduces_to_k(op: Operation) -> str | None:
    if tf.get(op, "aggregate_to_topk", True):
        return None
    return "how many candidates it leaves depends on the device it runs on"


def in_top_k(predictions: Tensor, targets: Tensor, *count: Tensor, k: int = 0) -> Tensor:
    """Counts the predictions above the target's; among none that is finite, or out of range, no target is."""
    is_own = predictions.numbers(1).cast(targets.dtype).equal(targets.expand_dims(1))
    own = is_own.where(predictions, 0).sum([1], keep_dims=True)
    above = (predictions > own).cast(np.int32).sum([1])
    is_few = above.cast(count[0].dtype) < count[0] if count else above < min(k, (1 << 31) - 1)
    finite = predictions.op("IsFinite", predictions)
    return finite.reduce("All", [1]) & is_own.reduce("Any", [1]) & is_few  # type: ignore[no-any-return]


def nth_element(x: Tensor, n: Tensor, *, reverse: bool = False) -> Tensor:
    """Sorts as far as needed: the last of the `n + 1` largest, or smallest."""
    rows = x if reverse else -x
    found: Tensor = rows.op("TopKV2", rows, n + 1, results=2, sorted=True)[0].gather(n, -1)
    return found if reverse else -found


def unique(x: Tensor, *axis: Tensor, out_idx: Any = np.int32) -> Sequence[Tensor]:
    return x.op("Unique", x, results=2, out_idx=np.dtype(out_idx))  # type: ignore[no-any-return]


def unique_with_counts(x: Tensor, *axis: Tensor, out_idx: Any = np.int32) -> Sequence[Tensor]:
    """Counts the different elements: adds up ones by their numbers."""
    values, places = unique(x, out_idx=out_idx)
    return values, places, segment_sizes(places, values.size(0), np.int32).cast(out_idx)


def _is_vector(op: Operation) -> str | None:
    """Requires a vector: an op that may compare slices along an axis compares its elements then."""
    shape = op.operands[0].shape
    if shape is None or len(shape) != 1:
        return "only a vector's elements are compared, not slices of higher ranks"
    return None


def list_diff(x: Tensor, y: Tensor, *, out_idx: Any = np.int32) -> Sequence[Tensor]:
    """Keeps the elements that differ from all of the others, by comparing each pair."""
    found = x.expand_dims(1).equal(y).reduce("Any", [1])
    places = found.op("Where", ~found).reshape([-1])
    return x.gather(places), places.cast(out_idx)


_UNIQUE = (Decomposition(unique, "", _is_vector, example=((4,), ())),)
_COUNTED = (Decomposition(unique_with_counts, "", _is_vector, example=((4,), ())),)
_IN_TOP_K = (Decomposition(in_top_k, example=((2, 4), (2,), ())),)

OPS = (
    op(
        "ApproxTopK",
        shape=_approximate_top_k_shape,
        compute=_approximate,
        decompose=(Decomposition(approximate_top_k, requires=all_of(rank_is_known, _reduces_to_k)),),
    ),
    *ops_like("InTopK InTopKV2", shape=_in_top_k_shape, compute=_in_top_k, decompose=_IN_TOP_K),
    op(
        "ListDiff",
        shape=_list_diff_shape,
        compute=_list_diff,
        decompose=(Decomposition(list_diff, "f32 i32 i64 ui8 i8", example=((4,), (2,))),),
    ),
    op(
        "NthElement",
        shape=_nth_element_shape,
        compute=_nth,
        decompose=(Decomposition(nth_element, requires=rank_is_known, example=((2, 4), ())),),
    ),
    op("TopK", shape=_top_k_shape, compute=_top_k, decompose=(Decomposition(top_k, ""),)),
    op("TopKV2", shape=_top_k_shape, compute=_top_k, relations=(rank_at_least("input", 1), is_scalar("k"))),
    op("Unique", shape=_unique_shape, compute=_unique),
    op("UniqueV2", shape=_unique_along_shape, compute=_unique, decompose=_UNIQUE),
    op("UniqueWithCounts", shape=_unique_shape, compute=_unique, decompose=_COUNTED),
    op("UniqueWithCountsV2", shape=_unique_along_shape, compute=_unique, decompose=_COUNTED),
)
