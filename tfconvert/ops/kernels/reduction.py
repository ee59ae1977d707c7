"""Sums, products, extremes and means over axes or segments; running sums and products."""

from __future__ import annotations

from collections.abc import Mapping
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
    ints,
    is_float,
    is_integer,
    lowest,
    scalar,
    typed,
    wide,
)


def _axes(call: Call, rank: int) -> tuple[int, ...]:
    """Returns the reduced axes, from 0, each once."""
    axes = ints(call.inputs[1])
    if any(not -rank <= axis < rank for axis in axes):
        raise call.bad(f"axes {list(axes)} don't exist in a tensor of rank {rank}")
    return tuple(sorted({axis % rank for axis in axes}))


def _reduce(function: Function, call: Call) -> Results:
    x = call.inputs[0]
    result = function(wide(x), _axes(call, x.ndim), call.flag("keep_dims"))
    return (typed(result, x.dtype),)


def _sum(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return np.asarray(np.sum(x, axis=axes, keepdims=keep, dtype=x.dtype))


def _product(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return np.asarray(np.prod(x, axis=axes, keepdims=keep, dtype=x.dtype))


def _mean(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    if is_integer(x.dtype):
        # Summed up in 64 bits, and rounded towards zero, as C++ divides.
        total = np.sum(x, axis=axes, keepdims=keep, dtype=np.uint64 if x.dtype.kind == "u" else np.int64)
        return np.asarray((np.sign(total) * (np.abs(total) // max(count, 1))).astype(x.dtype))
    return np.asarray(_sum(x, axes, keep) / typed(count, x.dtype))


def _max(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return np.asarray(np.max(x, axis=axes, keepdims=keep, initial=lowest(x.dtype)))


def _min(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return np.asarray(np.min(x, axis=axes, keepdims=keep, initial=highest(x.dtype)))


def _norm(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return np.sqrt(_sum(np.square(np.abs(x)), axes, keep))


def _all(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return np.asarray(np.all(x, axis=axes, keepdims=keep))


def _any(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return np.asarray(np.any(x, axis=axes, keepdims=keep))


def _arg(function: Function, default: type, call: Call) -> Results:
    x, axis = call.inputs
    return (np.asarray(function(wide(x), axis=scalar(axis))).astype(call.dtype("output_type", default)),)


def _cumulative(function: Function, neutral: int, call: Call) -> Results:
    x, axis = call.inputs
    at = scalar(axis)
    values = np.moveaxis(wide(x), at, 0)
    if call.flag("reverse"):
        values = values[::-1]
    result = function(values, axis=0, dtype=values.dtype)
    if call.flag("exclusive") and len(values):
        result = np.concatenate([np.full_like(values[:1], neutral), result[:-1]])
    if call.flag("reverse"):
        result = result[::-1]
    return (typed(np.ascontiguousarray(np.moveaxis(result, 0, at)), x.dtype),)


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


def _zero(dtype: Dtype) -> int:
    return 0


def _one(dtype: Dtype) -> int:
    return 1


_REDUCTIONS: Mapping[str, Function] = {
    "All": _all,
    "Any": _any,
    "EuclideanNorm": _norm,
    "Max": _max,
    "Mean": _mean,
    "Min": _min,
    "Prod": _product,
    "Sum": _sum,
}

KERNELS: Mapping[str, Kernel] = {
    **{name: partial(_reduce, function) for name, function in _REDUCTIONS.items()},
    "ArgMax": partial(_arg, np.argmax, np.int64),
    "ArgMin": partial(_arg, np.argmin, np.int64),
    "Cumprod": partial(_cumulative, np.cumprod, 1),
    "Cumsum": partial(_cumulative, np.cumsum, 0),
    "SegmentMax": partial(_sorted, np.maximum, 0),
    "SegmentMean": _sorted_mean,
    "SegmentMin": partial(_sorted, np.minimum, 0),
    "SegmentProd": partial(_sorted, np.multiply, 1),
    "SegmentSum": partial(_sorted, np.add, 0),
    "UnsortedSegmentMax": partial(_unsorted, np.maximum, _lowest_finite),
    "UnsortedSegmentMin": partial(_unsorted, np.minimum, _highest_finite),
    "UnsortedSegmentProd": partial(_unsorted, np.multiply, _one),
    "UnsortedSegmentSum": partial(_unsorted, np.add, _zero),
}
"""Op name -> kernel."""
