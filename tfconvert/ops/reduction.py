"""Sums, products, extremes and means over axes; running sums and products."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from tfconvert.ops.call import (
    Array,
    Call,
    Dtype,
    Function,
    Results,
    highest,
    ints,
    is_integer,
    lowest,
    scalar,
    typed,
    wide,
)
from tfconvert.ops.declaration import Decomposition, OpDeclaration, op
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands, Partials, ValueFunction
from tfconvert.ops.requirements import rank_is_known
from tfconvert.ops.shape_functions import Shapes, same_with_axes, scalars
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.dims import (
    UNKNOWN,
    Partial,
    add_elements,
    axis_of,
    multiply_elements,
    with_rank_at_least,
)
from tfconvert.schema.dialects.relations.rules import constant_axis_of, is_scalar, rank_at_most
from tfconvert.schema.ir.operation import Operation


def _reduce_shape(operands: Operands) -> Shapes:
    shape, keep = operands.shape(0), operands.attribute("keep_dims", False)
    if shape is None:
        return (None,)
    axes = operands.ints(1)
    if axes is None:
        places = operands.shape(1)
        if keep:
            return ((-1,) * len(shape),)
        # Unknown axes may be repeated, so only a single axis determines the rank.
        is_single = places is not None and (len(places) == 0 or places == (1,))
        return ((-1,) * (len(shape) - 1) if is_single and shape else None,)
    reduced = {axis_of(axis, len(shape)) for axis in axes}
    if keep:
        return (tuple([1 if index in reduced else dim for index, dim in enumerate(shape)]),)
    return (tuple([dim for index, dim in enumerate(shape) if index not in reduced]),)


def _arg_shape(operands: Operands) -> Shapes:
    shape, axis = operands.shape(0), operands.scalar(1)
    if shape is None:
        return (None,)
    with_rank_at_least(shape, 1)
    if axis is None:
        return ((-1,) * (len(shape) - 1),)
    place = axis_of(axis, len(shape))
    return (shape[:place] + shape[place + 1 :],)


def _product_elements(elements: Partial) -> int:
    return reduce(multiply_elements, elements, 1)


def _reduced_elements(operation: Callable[[Partial], int], operands: Operands) -> Partials:
    found, axes = operands.partial(0), operands.ints(1)
    if found is None or axes is None:
        return [None]
    if operands.shape(0) == () or not axes:
        return [found]
    axis_of(axes[0], 1)
    return [(operation(found),)]


def _sum_elements(elements: Partial) -> int:
    return reduce(add_elements, elements, 0)


def _extreme(function: Callable[[Partial], int], elements: Partial) -> int:
    return function(elements) if elements and all(element > UNKNOWN for element in elements) else UNKNOWN


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


# The lowest float.
_LOWEST = float(np.finfo(np.float32).min)


def _accumulated_logs(x: Array, axis: int, dtype: Dtype) -> Array:
    return np.asarray(np.logaddexp.accumulate(x, axis=axis, dtype=dtype))


def _cumulative(function: Function, neutral: float, call: Call) -> Results:
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


def l2_loss(x: Tensor) -> Tensor:
    return x.square().sum(range(x.rank)) * 0.5


def _scanned(
    combine: Callable[[Tensor, Tensor], Tensor],
    neutral: float,
    x: Tensor,
    axis: Tensor,
    *,
    exclusive: bool,
    reverse: bool,
) -> Tensor:
    """Doubling: after step k, every element combines up to 2^k elements before it."""
    along = 0 if axis.constant is None else int(axis.constant.reshape(())) % x.rank
    size = (x.shape or ())[along]
    filler = np.array(neutral, x.dtype)

    def shifted(value: Tensor, by: int) -> Tensor:
        """Returns the value moved along the axis, neutral elements moving in."""
        begin, kept = [0] * x.rank, [-1] * x.rank
        begin[along], kept[along] = by if reverse else 0, max(size - by, 0)
        pads = np.zeros((x.rank, 2), np.int32)
        pads[along, int(reverse)] = by
        return x.op("PadV2", x.op("Slice", value, begin, kept), pads, filler)  # type: ignore[no-any-return]

    found = shifted(x, 1) if exclusive else x
    for exponent in range(math.ceil(math.log2(size)) if size > 1 else 0):
        found = combine(found, shifted(found, 1 << exponent))
    return found


def cumulative_product(x: Tensor, axis: Tensor, *, exclusive: bool = False, reverse: bool = False) -> Tensor:
    return _scanned(lambda one, other: one * other, 1, x, axis, exclusive=exclusive, reverse=reverse)


def _log_add_exp(one: Tensor, other: Tensor) -> Tensor:
    # The difference of equal infinities is NaN.
    distance = one.equal(other).where(0, -abs(one - other))
    return one.maximum(other) + distance.exp().log1p()


def cumulative_logsumexp(x: Tensor, axis: Tensor, *, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """The lowest number moves in, since accelerators pad with finite ones; in its place there is infinity at last."""
    found = _scanned(_log_add_exp, _LOWEST, x.wide(), axis, exclusive=exclusive, reverse=reverse)
    return (found <= _LOWEST).where(-math.inf, found).cast(x.dtype)


def _axis_is_known(op: Operation) -> str | None:
    shape, axis = op.operands[0].shape, tensor_data.constant_of(op.operands[1])
    if axis is None:
        return "the axis is not a constant"
    is_known = shape is not None and shape[int(tensor_data.to_array(axis).reshape(-1)[0]) % len(shape)] >= 0
    return None if is_known else "the size of the axis is not known"


def euclidean_norm(x: Tensor, axes: Tensor, *, keep_dims: bool = False) -> Tensor:
    """TensorFlow computes the norm of integers in doubles, and cuts it off."""
    squares = x * x.conj() if x.dtype.kind == "c" else x.square()
    total: Tensor = x.op("Sum", squares, axes, keep_dims=keep_dims)
    return (total.cast(np.float64) if is_integer(x.dtype) else total).sqrt().cast(x.dtype)


def _reduction(name: str, function: Function, **more: Any) -> OpDeclaration:
    """Declares a reduction, computed in float32 where the dtype is narrower."""
    return op(name, shape=_reduce_shape, compute=partial(_reduce, function), **more)


def _elements(operation: Callable[[Partial], int]) -> ValueFunction:
    """Returns the value function of a reduction."""
    return partial(_reduced_elements, operation)


_AXES = (rank_at_most("reduction_indices", 1), constant_axis_of("reduction_indices", "input"))

OPS = (
    _reduction("All", _all, relations=_AXES),
    _reduction("Any", _any, relations=_AXES),
    op("ArgMax", shape=_arg_shape, compute=partial(_arg, np.argmax, np.int64)),
    op("ArgMin", shape=_arg_shape, compute=partial(_arg, np.argmin, np.int64)),
    op(
        "CumulativeLogsumexp",
        shape=same_with_axes,
        compute=partial(_cumulative, _accumulated_logs, -math.inf),
        decompose=(Decomposition(cumulative_logsumexp, "f32 f16 bf16", _axis_is_known, example=((4,), ())),),
        relations=(is_scalar("axis"),),
        verified=True,
    ),
    op(
        "Cumprod",
        shape=same_with_axes,
        compute=partial(_cumulative, np.cumprod, 1),
        decompose=(Decomposition(cumulative_product, "f32 i32 i64", _axis_is_known, example=((4,), ())),),
        relations=(is_scalar("axis"),),
        verified=True,
    ),
    op(
        "Cumsum",
        shape=same_with_axes,
        compute=partial(_cumulative, np.cumsum, 0),
        relations=(is_scalar("axis"),),
        verified=True,
    ),
    _reduction("EuclideanNorm", _norm, decompose=(Decomposition(euclidean_norm, "number", example=((2, 4), (1,))),)),
    op("L2Loss", shape=scalars, decompose=(Decomposition(l2_loss, requires=rank_is_known),)),
    _reduction("Max", _max, values=_elements(partial(_extreme, max))),
    _reduction("Mean", _mean),
    _reduction("Min", _min, values=_elements(partial(_extreme, min))),
    _reduction("Prod", _product, values=_elements(_product_elements)),
    op("ReduceJoin", shape=_reduce_shape),
    _reduction("Sum", _sum, values=_elements(_sum_elements)),
)
