"""Looking things up: gathers, one-hot vectors, scatters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.constraints import (
    require_equal,
    require_index_vectors,
    require_indices,
)
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite, axis_of, ints
from tfconvert.converter.targets.stablehlo.legalize.shaping import requested, requested_size
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.stablehlo import DimensionNumbersAttr, GatherAttr, ScatterAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _gather(op: Operation, emit: StableHLOBuilder) -> Value:
    table, indices = op.operands[:2]
    dims, places = emit.dims(table), emit.dims(indices)
    axis = axis_of(ints(op, 2, "the axis")[0], len(dims)) if len(op.operands) > 2 else 0
    batch = int(tf.get(op, "batch_dims", 0) or 0)
    require_indices(emit, indices, dims[axis])
    return gather(emit, table, indices, axis, batch + len(places) if batch < 0 else batch)


def gather(emit: StableHLOBuilder, table: Value, indices: Value, axis: int, batch: int) -> Value:
    """Emits what a tensor has at indices along an axis.

    Args:
        emit: The emitter.
        table: The tensor.
        indices: The indices.
        axis: The axis.
        batch: How many dimensions the tensor and the indices have in common.
    """
    dims, places = emit.dims(table), emit.dims(indices)
    result = [*dims[:axis], *places[batch:], *dims[axis + 1 :]]
    inner = len(places) - batch
    numbers = GatherAttr.get(
        offset_dims=[*range(batch, axis), *range(axis + inner, len(result))],
        collapsed_slice_dims=[axis],
        operand_batching_dims=list(range(batch)),
        start_indices_batching_dims=list(range(batch)),
        start_index_map=[axis],
        index_vector_dim=len(places),
    )
    whole = [1 if at == axis or at < batch else dim for at, dim in enumerate(dims)]
    return _gathered(emit, table, indices, numbers, whole, result)


def _gathered(
    emit: StableHLOBuilder,
    table: Value,
    indices: Value,
    numbers: DimensionNumbersAttr,
    whole: Sequence[int],
    dims: Sequence[int],
) -> Value:
    """Inserts a gather of slices, of the static form if their sizes are known."""
    properties: dict[str, attrs.Value] = {"dimension_numbers": numbers, "indices_are_sorted": False}
    if min(whole, default=0) >= 0:
        return emit.one("gather", (table, indices), {**properties, "slice_sizes": tuple(whole)})
    sizes = emit.convert(emit.shape(whole), indices.element)
    return emit.one("dynamic_gather", (table, indices, sizes), properties, dims=dims)


def rows_at(emit: StableHLOBuilder, table: Value, indices: Value) -> Value:
    return gather(emit, table, indices, 0, 0)


def _gather_nd(op: Operation, emit: StableHLOBuilder) -> Value:
    table, indices = op.operands
    _require_vectors(emit, indices, emit.dims(table))
    return gather_at(emit, table, indices)


def _require_vectors(emit: StableHLOBuilder, indices: Value, dims: Sequence[int]) -> None:
    """Asserts that index vectors are in range; how many numbers each has must be known."""
    depth = emit.dims(indices)[-1]
    if depth >= 0:
        require_index_vectors(emit, indices, dims[:depth])


def gather_at(emit: StableHLOBuilder, table: Value, indices: Value) -> Value:
    """Gathers elements at index vectors, which are in the last dimension of the indices."""
    dims, (*places, depth) = emit.dims(table), emit.dims(indices)
    if depth < 0:
        raise Declined("the number of indices is not known")
    rest = dims[depth:]
    numbers = GatherAttr.get(
        offset_dims=list(range(len(places), len(places) + len(rest))),
        collapsed_slice_dims=list(range(depth)),
        start_index_map=list(range(depth)),
        index_vector_dim=len(places),
    )
    return _gathered(emit, table, indices, numbers, [*[1] * depth, *rest], [*places, *rest])


def _one_hot(op: Operation, emit: StableHLOBuilder) -> Value:
    indices, _, on, off = op.operands
    dims = list(emit.dims(indices))
    axis = tf.get(op, "axis", -1)
    axis = len(dims) if axis == -1 else axis_of(axis, len(dims) + 1)
    size = requested_size(emit, op.operands[1])
    result = [*dims[:axis], size, *dims[axis:]]
    places = emit.broadcast(indices, result, [at for at in range(len(result)) if at != axis])
    is_on = emit.compare("EQ", places, emit.iota(result, axis, indices.element))
    return emit.select(is_on, on, off)


def scatter(emit: StableHLOBuilder, body: str, indices: Value, updates: Value, into: Value) -> Value:
    """Inserts a scatter of slices to index vectors, which are in the last dimension of the indices."""
    dims, (*places, depth) = emit.dims(into), emit.dims(indices)
    if depth < 0:
        raise Declined("the number of indices is not known")
    found = emit.dims(updates)
    for place, update in zip(places, found, strict=False):
        require_equal(emit, place, update, "there must be as many updates as indices")
    if len(found) == len(places) + len(dims) - depth:
        # A size that only one of the two knows holds for both.
        indices = emit.reshape(indices, (*map(_told, places, found), depth))
        updates = emit.reshape(updates, (*map(_told, found, places), *found[len(places) :]))
    element = into.element
    numbers = ScatterAttr.get(
        update_window_dims=list(range(len(places), len(places) + len(dims) - depth)),
        inserted_window_dims=list(range(depth)),
        scatter_dims_to_operand_dims=list(range(depth)),
        index_vector_dim=len(places),
    )
    properties: dict[str, attrs.Value] = {
        "scatter_dimension_numbers": numbers,
        "indices_are_sorted": False,
        "unique_indices": False,
    }
    return emit.one("scatter", (into, indices, updates), properties, (emit.body(body, element),))


def counted(emit: StableHLOBuilder, numbers: Value, count: int) -> Value:
    """Emits how often each number below a count is in a vector."""
    dims = emit.dims(numbers)
    into, ones = emit.filled(0, types.I32, (count,)), emit.filled(1, types.I32, dims)
    return scatter(emit, "add", emit.reshape(numbers, (*dims, 1)), ones, into)


def inverse(emit: StableHLOBuilder, permutation: Value) -> Value:
    """Emits where each number is in a permutation of them."""
    (size,), element = emit.dims(permutation), permutation.element
    places, into = emit.iota((size,), 0, element), emit.filled(0, element, (size,))
    return scatter(emit, "", emit.reshape(permutation, (size, 1)), places, into)


def _told(own: int, other: int) -> int:
    """Returns a size, the one that it equals if only that is known."""
    return other if own < 0 <= other else own


def _scatter_nd(op: Operation, emit: StableHLOBuilder) -> Value:
    indices, updates, _ = op.operands
    zero = emit.scalar(0, updates.element)
    dims = requested(emit, op, 2)
    _require_vectors(emit, indices, dims)
    return scatter(emit, "add", indices, updates, emit.broadcast(zero, dims))


def _tensor_scatter(body: str) -> Rewrite:
    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        into, indices, updates = op.operands
        _require_vectors(emit, indices, emit.dims(into))
        return scatter(emit, body, indices, updates, into)

    return lower


def _in_place(body: str) -> Rewrite:
    """Returns a lowering that writes rows, which have the numbers that a vector holds."""

    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        into, rows, updates = op.operands
        return scatter(emit, body, emit.reshape(rows, (*emit.dims(rows), 1)), updates, into)

    return lower


LOWERINGS: Mapping[str, Rewrite] = {
    "Gather": _gather,
    "GatherNd": _gather_nd,
    "GatherV2": _gather,
    "InplaceAdd": _in_place("add"),
    "InplaceSub": _in_place("subtract"),
    "InplaceUpdate": _in_place(""),
    "OneHot": _one_hot,
    "ScatterNd": _scatter_nd,
    "ScatterNdNonAliasingAdd": _tensor_scatter("add"),
    "TensorScatterAdd": _tensor_scatter("add"),
    "TensorScatterMax": _tensor_scatter("maximum"),
    "TensorScatterMin": _tensor_scatter("minimum"),
    "TensorScatterSub": _tensor_scatter("subtract"),
    "TensorScatterUpdate": _tensor_scatter(""),
}
