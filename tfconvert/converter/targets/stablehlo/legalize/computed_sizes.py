"""Ops with data-dependent result sizes: results are written into buffers of the maximum size, and then sliced.

The count is computed with the elements; it is the limit of a `real_dynamic_slice`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.constraints import require_indices
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite
from tfconvert.converter.targets.stablehlo.legalize.gathering import rows_at, scatter
from tfconvert.converter.targets.stablehlo.legalize.scans import ADD, first, scan
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _flat_size(emit: StableHLOBuilder, dims: Sequence[int]) -> int:
    """Returns the number of elements of a shape."""
    return dims[0] if len(dims) == 1 else emit.size_of(emit.product(dims))


def places_of(emit: StableHLOBuilder, mask: Value) -> Value:
    """Emits the indices of a vector's true elements, in order, as `i32`."""
    (size,) = emit.dims(mask)
    numbers = scan(emit, emit.convert(mask, types.I32), 0, ADD)
    count = emit.sizes.fresh(emit.reduce("add", emit.convert(mask, types.I32), (0,), 0))
    # Indices of false elements are past the end, so nothing is written.
    targets = emit.select(mask, emit.binary("subtract", numbers, 1), emit.value(emit.size(size)))
    room = emit.filled(0, types.I32, (size,))
    counted = emit.iota((size,), 0, types.I32)
    return first(emit, scatter(emit, "", emit.reshape(targets, (size, 1)), counted, room), 0, count)


def _where(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    dims = emit.dims(value)
    if not dims:
        raise Declined("its operand is a scalar")
    mask = value if value.element == types.I1 else emit.compare("NE", value, 0)
    found = places_of(emit, emit.reshape(mask, (_flat_size(emit, dims),)))
    (count,) = emit.dims(found)
    columns = []
    for dim in reversed(dims):
        size = emit.value(emit.size(dim))
        columns.append(emit.reshape(emit.binary("remainder", found, size), (count, 1)))
        found = emit.binary("divide", found, size)
    return emit.convert(concatenate(emit, columns[::-1], 1), op.results[0].element)


def _unique(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    """Emits the different elements in the order of their first occurrence.

    Each pair of elements is compared. An element is new if the first one equal to it is itself.
    """
    value = op.operands[0]
    dims = emit.dims(value)
    if len(dims) != 1:
        raise Declined("its operand is not a vector")
    (size,) = dims
    square = (size, size)
    counted = emit.iota(square, 1, types.I32)
    is_equal = emit.compare("EQ", emit.broadcast(value, square, (0,)), emit.broadcast(value, square, (1,)))
    own = emit.iota((size,), 0, types.I32)
    found = emit.select(is_equal, counted, emit.value(emit.size(size)))
    # NaN, which isn't equal to itself, counts as its own first occurrence.
    earliest = emit.binary("minimum", emit.reduce("minimum", found, (1,), (1 << 31) - 1), own)
    is_new = emit.compare("EQ", earliest, own)
    places = places_of(emit, is_new)
    numbers = emit.binary("subtract", scan(emit, emit.convert(is_new, types.I32), 0, ADD), 1)
    indices = rows_at(emit, numbers, earliest)
    return rows_at(emit, value, places), emit.convert(indices, op.results[1].element)


def _list_diff(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    """Emits the elements of a vector that another one doesn't have, and where they are."""
    value, others = op.operands
    dims = (*emit.dims(value), *emit.dims(others))
    is_equal = emit.compare("EQ", emit.broadcast(value, dims, (0,)), emit.broadcast(others, dims, (1,)))
    places = places_of(emit, emit.unary("not", emit.reduce("or", is_equal, (1,), 0)))
    return rows_at(emit, value, places), emit.convert(places, op.results[1].element)


def _partition(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    """Emits the rows of each number."""
    value, numbers = op.operands
    places = emit.dims(numbers)
    rest = emit.dims(value)[len(places) :]
    size = _flat_size(emit, places)
    require_indices(emit, numbers, len(op.results))
    rows = emit.reshape(value, (size, *rest))
    flat = emit.reshape(numbers, (size,))
    return [rows_at(emit, rows, places_of(emit, emit.compare("EQ", flat, index))) for index in range(len(op.results))]


def _gradient_axes(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    """Emits along which axes the gradients of two operands that were broadcast to each other are summed."""
    ranks = [emit.dims(shape)[0] for shape in op.operands]
    if min(ranks) < 0:
        raise Declined("the rank of a shape is not known")
    element = op.operands[0].element
    wide = [
        concatenate(emit, [emit.broadcast(emit.scalar(1, element), (max(ranks) - rank,)), shape], 0)
        for shape, rank in zip(op.operands, ranks, strict=True)
    ]
    # Equal shapes need no sums, not even along axes of size 1.
    differs = emit.reduce("or", emit.compare("NE", *wide), (0,), int(ranks[0] != ranks[1]))
    masks = [emit.binary("and", emit.compare("EQ", shape, 1), differs) for shape in wide]
    return [emit.convert(places_of(emit, mask), element) for mask in masks]


COMPUTED_SIZES: Mapping[str, Rewrite] = {
    "BroadcastGradientArgs": _gradient_axes,
    "DynamicPartition": _partition,
    "ListDiff": _list_diff,
    "Unique": _unique,
    "Where": _where,
}
