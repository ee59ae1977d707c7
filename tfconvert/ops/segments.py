"""Reductions of rows by segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tfconvert.ops.call import (
    Array,
    Call,
    Dtype,
    Function,
    Kernel,
    Results,
    highest,
    is_float,
    is_integer,
    lowest,
    scalar,
    typed,
    wide,
)
from tfconvert.ops.declaration import Decomposition, OpDeclaration, op
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands
from tfconvert.ops.requirements import rank_is_known
from tfconvert.ops.shape_functions import Shapes
from tfconvert.schema.dialects.dims import dim_of_element, merge, with_rank, with_rank_at_least
from tfconvert.schema.dialects.relations.rules import at_least, is_scalar


def _segment_shape(operands: Operands) -> Shapes:
    """How many segments there are is known only once the ids are, and those are sorted: the last one determines it."""
    shape = operands.shape(0)
    with_rank(operands.shape(1), 1, "the segment ids")
    if shape is None:
        return (None,)
    with_rank_at_least(shape, 1)
    ids = operands.ints(1)
    return ((ids[-1] + 1 if ids else -1, *shape[1:]),)


def _unsorted_segment_shape(operands: Operands) -> Shapes:
    shape, ids = operands.shape(0), operands.shape(1)
    if shape is None or ids is None:
        return (None,)
    with_rank_at_least(shape, len(ids))
    merge(shape[: len(ids)], ids)
    found = operands.partial(2)
    return ((dim_of_element(found[0]) if found else -1, *shape[len(ids) :]),)


def _picked_segment_shape(operands: Operands) -> Shapes:
    shape = with_rank_at_least(operands.shape(0), 1)
    merge(with_rank(operands.shape(1), 1), with_rank(operands.shape(2), 1))
    count = operands.ints(2)
    height = count[-1] + 1 if count else -1
    return (None if shape is None else (height, *shape[1:]),)


def _counted_segment_shape(operands: Operands) -> Shapes:
    """The same where the number of segments is an operand."""
    shape = with_rank_at_least(operands.shape(0), 1)
    merge(with_rank(operands.shape(1), 1), with_rank(operands.shape(2), 1))
    found = operands.partial(3)
    return (None if shape is None else (dim_of_element(found[0]) if found else -1, *shape[1:]),)


def _unique_rows_shape(operands: Operands) -> Shapes:
    """How many rows were picked is known only once the indices are."""
    (shape,) = _counted_segment_shape(operands)
    return (None if shape is None else (-1, *shape[1:]), (-1,))


def _reduce_picked(divisor: Callable[[Array], Array], call: Call) -> Results:
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


def _unsorted(function: Function, neutral: Function, call: Call) -> Results:
    """Combines the rows of each segment into a row, in any order; negative segments are dropped."""
    data, segments, count = call.inputs
    rows = data.reshape(-1, *data.shape[segments.ndim :])
    at = segments.reshape(-1)
    kept = at >= 0
    result = np.full((scalar(count), *rows.shape[1:]), neutral(data.dtype), wide(data).dtype)
    function.at(result, at[kept], wide(rows)[kept])  # type: ignore[attr-defined]
    return (typed(result, data.dtype),)


def _sorted(function: Function, neutral: int, call: Call) -> Results:
    """Combines runs of rows; a segment without rows is the neutral element, for extremes 0."""
    data, segments = call.inputs
    return (typed(_combine(function, neutral, wide(data), segments), data.dtype),)


def _combine(function: Function, neutral: int, rows: Array, segments: Array) -> Array:
    count = int(segments[-1]) + 1 if segments.size else 0
    result = np.full((count, *rows.shape[1:]), neutral, rows.dtype)
    if function in (np.maximum, np.minimum):
        present, starts = np.unique(segments, return_index=True)
        result[present] = rows[starts]
    function.at(result, segments, rows)  # type: ignore[attr-defined]
    return result


def _sorted_mean(call: Call) -> Results:
    data, segments = call.inputs
    total = _combine(np.add, 0, wide(data), segments)
    counts = np.maximum(np.bincount(segments, minlength=len(total)), 1).reshape(-1, *[1] * (data.ndim - 1))
    mean = np.trunc(total / counts) if is_integer(total.dtype) else total / counts.astype(total.dtype)
    return (typed(mean, data.dtype),)


def _lowest_finite(dtype: Dtype) -> Any:
    return np.nextafter(lowest(dtype), typed(0, dtype)) if is_float(dtype) else lowest(dtype)


def _highest_finite(dtype: Dtype) -> Any:
    return np.nextafter(highest(dtype), typed(0, dtype)) if is_float(dtype) else highest(dtype)


def segment_count(ids: Tensor) -> Tensor:
    """Returns the number of segments that ids require: one more than the largest id, 0 without ids."""
    return ids.reduce("Max", [0]).maximum(-1) + 1


def segment_sum(data: Tensor, ids: Tensor, count: Tensor | int) -> Tensor:
    """Returns the sums of the rows of each segment."""
    return data.op("UnsortedSegmentSum", data, ids, count)  # type: ignore[no-any-return]


def segment_sizes(ids: Tensor, count: Tensor | int, dtype: Any) -> Tensor:
    """Returns how many rows each segment has."""
    return segment_sum(ids.op("Fill", ids.sizes(), np.ones((), dtype)), ids, count)


def _by_any_order(how: str, data: Tensor, ids: Tensor, count: Tensor | None = None) -> Tensor:
    """Combines rows; segments without any are zeros, or ones where rows are multiplied.

    Args:
        how: `Max`, `Mean`, `Min`, `Prod`, `SqrtN` or `Sum`.
        data: The rows.
        ids: The segment of each row.
        count: The number of segments, by default as many as the ids require.
    """
    ids = ids.cast(np.int32)
    segments = segment_count(ids) if count is None else count.cast(np.int32)

    def combined(how: str) -> Tensor:
        return data.op(f"UnsortedSegment{how}", data, ids, segments)  # type: ignore[no-any-return]

    if how in ("Sum", "Prod"):
        return combined(how)
    sizes = segment_sizes(ids, segments, data.dtype).reshape([-1, *[1] * (data.rank - 1)])
    if how in ("Max", "Min"):
        found = combined(how)
        if is_float(data.dtype):
            # Of infinities only, the extreme is no less than the number that each segment starts with.
            start, other = (_lowest_finite, "Min") if how == "Max" else (_highest_finite, "Max")
            found = found.equal(float(start(data.dtype))).where(combined(other), found)
        return (sizes > 0).where(found, 0)
    divisor = sizes.maximum(1).sqrt() if how == "SqrtN" else sizes.maximum(1)
    return data.op("Div", combined("Sum"), divisor)  # type: ignore[no-any-return]


def _of_picked_rows(how: str, data: Tensor, picked: Tensor, ids: Tensor, count: Tensor | None = None) -> Tensor:
    return _by_any_order(how, data.gather(picked), ids, count)


def _gradient_of_picked_rows(how: str, gradient: Tensor, picked: Tensor, ids: Tensor, count: Tensor) -> Tensor:
    """Adds up, for each row, the gradients of the segments that it was picked for."""
    return segment_sum(_parts_of_gradients(how, gradient, ids), picked.cast(np.int32), count.cast(np.int32))


def _gradient_of_unique_rows(
    how: str, gradient: Tensor, picked: Tensor, ids: Tensor, count: Tensor
) -> Sequence[Tensor]:
    """Returns the gradients of the rows that were picked only, and their indices, in order."""
    places = picked.cast(np.int32)
    is_picked = segment_sizes(places, count, np.int32) > 0
    numbers = is_picked.cast(np.int32)
    unique = is_picked.op("Where", is_picked).reshape([-1])
    compact = (numbers.op("Cumsum", numbers, 0) - 1).gather(places)
    found = segment_sum(_parts_of_gradients(how, gradient, ids), compact, numbers.sum([0]))
    return found, unique.cast(picked.dtype)


def _parts_of_gradients(how: str, gradient: Tensor, ids: Tensor) -> Tensor:
    """Returns what each row that was picked gets of the gradient of its segment."""
    ids = ids.cast(np.int32)
    if how != "Sum":
        sizes = segment_sizes(ids, gradient.size(0), gradient.dtype).maximum(1)
        divisor = (sizes.sqrt() if how == "SqrtN" else sizes).reshape([-1, *[1] * (gradient.rank - 1)])
        gradient = gradient.op("Div", gradient, divisor)
    return gradient.gather(ids)


def _ordered(how: str, compute: Kernel) -> OpDeclaration:
    example = ((4, 3), (4,))
    forms = (Decomposition(partial(_by_any_order, how), "number", rank_is_known, example=example),)
    return op(f"Segment{how}", shape=_segment_shape, compute=compute, decompose=forms)


def _unordered(name: str, function: Function, neutral: Function) -> OpDeclaration:
    return op(
        name,
        shape=_unsorted_segment_shape,
        compute=partial(_unsorted, function, neutral),
        relations=(is_scalar("num_segments"), at_least("num_segments", 0)),
        verified=True,
    )


def _picked(how: str, divisor: Callable[[Array], Array]) -> tuple[OpDeclaration, ...]:
    """Declares a reduction of the rows that indices pick, and its form with the number of segments as an operand."""
    example = ((4, 3), (4,), (4,), ())
    forms = (Decomposition(partial(_of_picked_rows, how), "float", rank_is_known, example=example),)
    declare = partial(op, compute=partial(_reduce_picked, divisor), decompose=forms)
    return (
        declare(f"SparseSegment{how}", shape=_picked_segment_shape),
        declare(f"SparseSegment{how}WithNumSegments", shape=_counted_segment_shape),
        op(
            f"SparseSegment{how}Grad",
            shape=_counted_segment_shape,
            decompose=(Decomposition(partial(_gradient_of_picked_rows, how), "float", rank_is_known, example=example),),
        ),
        op(
            f"SparseSegment{how}GradV2",
            shape=_unique_rows_shape,
            decompose=(Decomposition(partial(_gradient_of_unique_rows, how), "float", rank_is_known, example=example),),
        ),
    )


OPS = (
    _ordered("Max", partial(_sorted, np.maximum, 0)),
    _ordered("Mean", _sorted_mean),
    _ordered("Min", partial(_sorted, np.minimum, 0)),
    _ordered("Prod", partial(_sorted, np.multiply, 1)),
    _ordered("Sum", partial(_sorted, np.add, 0)),
    *_picked("Mean", np.asarray),
    *_picked("SqrtN", np.sqrt),
    *_picked("Sum", np.ones_like),
    _unordered("UnsortedSegmentMax", np.maximum, _lowest_finite),
    _unordered("UnsortedSegmentMin", np.minimum, _highest_finite),
    _unordered("UnsortedSegmentProd", np.multiply, lambda dtype: 1),
    _unordered("UnsortedSegmentSum", np.add, lambda dtype: 0),
)
