"""Gathers and scatters, and ops whose result is indices."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tfconvert.ops.call import Array, Call, Function, Results, ints, scalar
from tfconvert.ops.declaration import Decomposition, OpDeclaration, op, ops_like
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands, Partials
from tfconvert.ops.requirements import rank_is_known
from tfconvert.ops.segments import segment_count
from tfconvert.ops.shape_functions import Shapes, same, same_with_rank
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.dims import MismatchError, axis_of, dim_of_element, merge, text, with_rank_at_least
from tfconvert.schema.dialects.relations.rules import is_scalar, is_vector, rank_at_least, rank_at_most
from tfconvert.schema.dialects.relations.view import View
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation


def _gather_shape(operands: Operands) -> Shapes:
    shape, indices = operands.shape(0), operands.shape(1)
    with_rank_at_least(shape, 1)
    return (None if shape is None or indices is None else indices + shape[1:],)


def _gather_v2_shape(operands: Operands) -> Shapes:
    return gathered(operands, operands.scalar(2))


def gathered(operands: Operands, axis: int | None) -> Shapes:
    """Returns the shape of what indices pick along an axis, which may be unknown."""
    shape, indices = operands.shape(0), operands.shape(1)
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


def _gather_nd_shape(operands: Operands) -> Shapes:
    shape, indices = operands.shape(0), operands.shape(1)
    with_rank_at_least(indices, 1)
    if shape is None or indices is None or indices[-1] < 0:
        return (None,)
    if indices[-1] > len(shape):
        raise MismatchError(f"indices of {indices[-1]} elements are too long for shape {text(shape)}")
    return (indices[:-1] + shape[indices[-1] :],)


def _scatter_nd_shape(operands: Operands) -> Shapes:
    target = operands.elements(2)
    if target is None:
        return (None,)
    shape = tuple(map(dim_of_element, target))
    indices, updates = operands.shape(0), operands.shape(1)
    if indices is not None and updates is not None and indices and 0 <= indices[-1] <= len(shape) and 0 not in shape:
        merge(updates, indices[:-1] + shape[indices[-1] :])
    return (shape,)


def _tensor_scatter_shape(operands: Operands) -> Shapes:
    shape, indices, updates = operands.shape(0), operands.shape(1), operands.shape(2)
    if shape is not None and indices and updates is not None and 0 not in shape:
        if indices[-1] > len(shape):
            raise MismatchError(f"indices of {indices[-1]} elements are too long for shape {text(shape)}")
        if indices[-1] >= 0:
            merge(updates, indices[:-1] + shape[indices[-1] :])
    return (shape,)


def _one_hot_shape(operands: Operands) -> Shapes:
    indices, depth = operands.shape(0), operands.partial(1)
    if indices is None:
        return (None,)
    if depth and -(1 << 63) <= depth[0] < 0:
        raise MismatchError(f"its depth {depth[0]} is negative")
    axis = operands.integer("axis", -1)
    if axis < -1:
        raise MismatchError(f"its axis {axis} is less than -1")
    place = axis_of(axis, len(indices) + 1)
    return ((*indices[:place], dim_of_element(depth[0]) if depth else -1, *indices[place:]),)


def _where_shape(operands: Operands) -> Shapes:
    shape = operands.shape(0)
    return ((-1, -1 if shape is None else len(shape)),)


def _dynamic_partition_shape(operands: Operands) -> Shapes:
    shape, parts = operands.shape(0), operands.shape(1)
    count = len(operands.op.results)
    if shape is None or parts is None:
        return (None,) * count
    with_rank_at_least(shape, len(parts))
    merge(shape[: len(parts)], parts)
    return ((-1, *shape[len(parts) :]),) * count


def _dynamic_stitch_shape(operands: Operands) -> Shapes:
    half = operands.count // 2
    rest: Shape | None = None
    largest, is_known = -1, True
    for index in range(half):
        places, data = operands.shape(index), operands.shape(half + index)
        if places is not None and data is not None:
            with_rank_at_least(data, len(places))
            merge(places, data[: len(places)])
            rest = merge(rest, data[len(places) :])
        value = operands.value(index)
        is_known = is_known and value is not None
        if value is not None and value.size:
            largest = max(largest, int(value.max()))
    if rest is None:
        return (None,)
    return ((largest + 1 if is_known else -1, *rest),)


def _sparse_to_dense_shape(operands: Operands) -> Shapes:
    target = operands.elements(1)
    return (None if target is None else tuple(map(dim_of_element, target)),)


def _search_shape(operands: Operands) -> Shapes:
    return (operands.shape(1),)


def _gather_elements(operands: Operands) -> Partials:
    found, places = operands.partial(0), operands.ints(1)
    if found is None or places is None or operands.shape(0) == () or operands.attribute("batch_dims", 0):
        return [None]
    if any(not 0 <= place < len(found) for place in places):
        return [None]
    return [tuple(found[place] for place in places)]


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


def _unravel(call: Call) -> Results:
    indices, dims = call.inputs
    sizes = ints(dims)
    if any(size < 1 for size in sizes) or not ((indices >= 0) & (indices < np.prod(sizes))).all():
        raise call.bad(f"an index is not in a tensor of shape {sizes}")
    return (np.array(np.unravel_index(indices, sizes)).astype(indices.dtype),)


def _stitched(view: View) -> None:
    """Refuses a stitch without dimensions, and constant indices that leave out a row."""
    if view.shape("merged") == ():
        view.fail(f"'merged' must not be a scalar, found {view.type('merged')}")
    places: set[int] = set()
    for index in view.values("indices"):
        array = View(view.op, {"": (index,)}).integers("")
        if array is None:
            return
        places.update(array)
    if min(places, default=0) < 0:
        view.fail(f"'indices' must not be negative, found {min(places)}")
    count = max(places, default=-1) + 1
    missing = set(range(count)) - places
    if missing:
        view.fail(f"'indices' must hold all from 0 to {count - 1}, {min(missing)} is missing")


def _scatter_depth(view: View) -> None:
    shape, length = view.shape("tensor"), view.dim("indices", -1)
    if shape is not None and length > len(shape):
        view.fail(f"the last dimension of 'indices' ({length}) must be at most the rank of 'tensor', {len(shape)}")


def dynamic_partition(data: Tensor, parts: Tensor, *, num_partitions: int = 1) -> Sequence[Tensor]:
    """Gathers the elements of each part."""
    if not parts.rank:
        data, parts = data.expand_dims(0), parts.expand_dims(0)
    places = [parts.op("Where", parts.equal(number)) for number in range(num_partitions)]
    return [data.op("GatherNd", data, each if each.constant is None else each.cast(np.int32)) for each in places]


def _parts_are_known(op: Operation) -> str | None:
    if op.operands[1].shape is None:
        return "the rank of the numbers is not known"
    return rank_is_known(op)


def dynamic_stitch(*operands: Tensor) -> Tensor:
    """Joins all rows and picks, for each place, the last one that goes there.

    A place that no row goes to gets a row of zeros, which comes before all others.
    """
    half = len(operands) // 2
    indices, data = operands[:half], operands[half:]
    rest = (data[0].shape or ())[indices[0].rank :]
    rows = [
        each if index.rank == 1 else each.reshape([-1 if types.is_static(rest) else _count(index), *rest])
        for index, each in zip(indices, data, strict=True)
    ]
    first, *others = (index.cast(np.int32).reshape([-1]) for index in indices)
    places = first.concat(others, 0)
    last = places.op("UnsortedSegmentMax", places.numbers(0), places, segment_count(places))
    if last.constant is None or (last.constant < 0).any():
        zero = np.zeros((), data[0].dtype)
        if types.is_static(rest):
            rows.insert(0, data[0].of(np.full((1, *rest), zero)))
        else:
            sizes = data[0].op("Slice", data[0].op("Shape", data[0]), [indices[0].rank], [-1])
            one = sizes.of(np.ones(1, np.int32))
            rows.insert(0, data[0].op("Fill", one.concat([sizes], 0), zero))
        last = last.maximum(-1) + 1
    return rows[0].concat(rows[1:], 0).gather(last)


def _count(tensor: Tensor) -> int:
    return math.prod(tensor.shape or ())


def _rows_are_known(op: Operation) -> str | None:
    half = len(op.operands) // 2
    for index, data in zip(op.operands[:half], op.operands[half:], strict=True):
        places, shape = index.shape, data.shape
        if places is None or shape is None:
            return "the operands' ranks are not known"
        rest = shape[len(places) :]
        if len(places) > 1 and not (types.is_static(rest) or (types.is_static(places) and rest.count(-1) == 1)):
            return "the shape that each index selects is not known"
    return None


def invert_permutation(x: Tensor) -> Tensor:
    """Scatters the positions to where the elements point."""
    indices = x.cast(np.int32).expand_dims(-1)
    return x.op("ScatterNd", indices, x.numbers(0).cast(x.dtype), x.sizes())  # type: ignore[no-any-return]


def scatter_by(combine: Callable[[Tensor, Tensor], Tensor], tensor: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Combines a tensor with the sums of the updates of each place."""
    return combine(tensor, tensor.op("ScatterNd", indices, updates, tensor.sizes()))


def unravel(indices: Tensor, dims: Tensor) -> Tensor:
    """Each place is a remainder of the index divided by the size of the dimensions after it."""
    sizes = (2, 2) if dims.constant is None else dims.constant.tolist()
    places: list[Tensor] = []
    step = 1
    for size in reversed(sizes):
        quotient = indices // step if step > 1 else indices
        places.insert(0, quotient % size if len(places) < len(sizes) - 1 else quotient)
        step *= size
    return indices.op("Pack", *places, axis=0, N=len(places))  # type: ignore[no-any-return]


def _dims_are_known(op: Operation) -> str | None:
    constant = tensor_data.constant_of(op.operands[1])
    dims = [] if constant is None else tensor_data.to_array(constant).reshape(-1).tolist()
    return None if dims and min(dims) > 0 else "the dimensions are not constants"


def count_before(
    is_before: Callable[[Tensor, Tensor], Tensor], rows: Tensor, values: Tensor, *, out_type: Any = np.int32
) -> Tensor:
    """Counts the elements of a row that come before a value."""
    before = is_before(rows.expand_dims(1), values.expand_dims(2))
    return before.cast(np.int32).sum([2]).cast(out_type)


def _search(name: str, side: str, is_before: Callable[[Tensor, Tensor], Tensor]) -> OpDeclaration:
    forms = (Decomposition(partial(count_before, is_before), "f32 i32 i64 ui8 i8", example=((2, 4), (2, 3))),)
    return op(name, shape=_search_shape, compute=partial(_bound, side), decompose=forms)


def _scatter_of_sums(name: str, function: Function, **more: Any) -> OpDeclaration:
    combine = operator.sub if function is np.subtract else operator.add
    forms = (Decomposition(partial(scatter_by, combine), "number", example=((4, 3), (2, 1), (2, 3))),)
    return op(name, compute=partial(_scatter, function), decompose=forms, **more)


_STITCH = (Decomposition(dynamic_stitch, "", _rows_are_known, example=((4,), (4, 3))),)

OPS = (
    op(
        "DynamicPartition",
        shape=_dynamic_partition_shape,
        compute=_dynamic_partition,
        decompose=(Decomposition(dynamic_partition, "", _parts_are_known, example=((4, 3), (4,))),),
    ),
    op(
        "DynamicStitch",
        shape=_dynamic_stitch_shape,
        compute=_dynamic_stitch,
        decompose=_STITCH,
        relations=(_stitched,),
        verified=True,
    ),
    op("Gather", shape=_gather_shape, values=_gather_elements, compute=_gather),
    op("GatherNd", shape=_gather_nd_shape, compute=_gather_nd),
    op(
        "GatherV2",
        shape=_gather_v2_shape,
        values=_gather_elements,
        compute=_gather_v2,
        relations=(rank_at_most("axis", 1),),
        verified=True,
    ),
    op("InplaceAdd", shape=same, verified=True),
    *ops_like("InplaceSub InplaceUpdate", shape=same),
    op(
        "InvertPermutation",
        shape=same_with_rank(1),
        compute=_invert_permutation,
        decompose=(Decomposition(invert_permutation, "", rank_is_known, example=((4,),)),),
        relations=(is_vector("x"),),
    ),
    _search("LowerBound", "left", operator.lt),
    op(
        "OneHot",
        shape=_one_hot_shape,
        compute=_one_hot,
        relations=(is_scalar("depth", "on_value", "off_value"),),
        verified=True,
    ),
    op("ParallelDynamicStitch", shape=_dynamic_stitch_shape, compute=_dynamic_stitch, decompose=_STITCH),
    op("ScatterNd", shape=_scatter_nd_shape, compute=_scatter_nd),
    _scatter_of_sums("ScatterNdNonAliasingAdd", np.add),
    op("SparseToDense", shape=_sparse_to_dense_shape, compute=_sparse_to_dense),
    _scatter_of_sums("TensorScatterAdd", np.add, shape=_tensor_scatter_shape),
    op("TensorScatterMax", shape=_tensor_scatter_shape, compute=partial(_scatter, np.maximum)),
    op("TensorScatterMin", shape=_tensor_scatter_shape, compute=partial(_scatter, np.minimum)),
    _scatter_of_sums("TensorScatterSub", np.subtract, shape=_tensor_scatter_shape),
    op(
        "TensorScatterUpdate",
        shape=_tensor_scatter_shape,
        compute=partial(_scatter, None),
        relations=(rank_at_least("tensor", 1), rank_at_least("indices", 1), _scatter_depth),
    ),
    op(
        "UnravelIndex",
        compute=_unravel,
        decompose=(Decomposition(unravel, "integer", _dims_are_known, example=((4,), (2,))),),
    ),
    _search("UpperBound", "right", operator.le),
    op("Where", shape=_where_shape, compute=_where),
)
