"""Scatters: what an index out of range brings is dropped, as StableHLO says; IREE writes it to foreign memory."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.targets.iree.rewrites.context import Context, shape_of
from tfconvert.converter.targets.iree.rewrites.linalg_builder import Index, LinalgBuilder, constant_ints
from tfconvert.converter.targets.iree.rewrites.slices import extract, pad
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.stablehlo import ScatterAttr
from tfconvert.schema.ir.attributes import FALSE
from tfconvert.schema.ir.block import Region
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX
from tfconvert.schema.ir.values import Value


def scatter(op: Operation, context: Context) -> Value | None:
    """Returns a scatter into a tensor with room behind its end, where everything goes that must be dropped.

    Only the first of the scattered dimensions has such room; a place out of range becomes its first one there.
    """
    if len(op.operands) != 3:
        return None  # Nothing of ours scatters into several tensors at once.
    value, places, update = op.operands
    dims = op.properties["scatter_dimension_numbers"]
    assert isinstance(dims, ScatterAttr)
    axes = dims.of("scatter_dims_to_operand_dims")
    numbers, emit = context.numbers, context.emit
    sizes = numbers.sizes(value)
    gone = (*dims.of("inserted_window_dims"), *dims.of("input_batching_dims"))
    windows = iter(dims.of("update_window_dims"))
    parts: list[Index] = [
        1 if axis in gone else numbers.size(update, next(windows)) for axis in range(len(shape_of(value)))
    ]
    last = [emit.compute("subtract", sizes[axis], parts[axis]) for axis in axes]
    if not axes or _are_inside(places, last):
        return None
    first = axes[0]
    moved = _moved(places, last, sizes[first], dims, context)
    high: list[Index] = [parts[axis] if axis == first else 0 for axis in range(len(sizes))]
    own = shape_of(value)
    shape = tuple(
        [
            dim if axis != first else dim + more if dim >= 0 and isinstance(more := high[axis], int) else -1
            for axis, dim in enumerate(own)
        ]
    )
    wide = _widened(value, high, shape, context)
    body = op.regions[0].detach_block(op.regions[0].block)
    properties = {**op.properties, "unique_indices": FALSE, "indices_are_sorted": FALSE}
    found = emit.one("stablehlo.scatter", (wide, moved, update), wide.type, properties, (Region(body),))
    kept = [dim if dim >= 0 else emit.index(size) for dim, size in zip(own, sizes, strict=True)]
    return extract(emit, found, (0,) * len(sizes), kept, (1,) * len(sizes), own)


def _widened(value: Value, high: Sequence[Index], shape: types.Shape, context: Context) -> Value:
    """Returns a tensor with room behind its end; one of equal elements is made again, in its final size."""
    emit, element = context.emit, types.element_of(value.type)
    owner = value.owner
    if isinstance(owner, Operation) and owner.name in _SPREAD and shape_of(owner.operands[0]) == ():
        sizes = [emit.compute("add", *pair) for pair in zip(context.numbers.sizes(value), high, strict=True)]
        return emit.filled(owner.operands[0], element, sizes, shape)
    return pad(value, emit.element(emit.scalar(0, element)), (0,) * len(high), high, shape, context)


_SPREAD = ("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim")


def _are_inside(places: Value, last: Sequence[Index]) -> bool:
    """Returns whether all indices are known to be in range."""
    known = constant_ints(places)
    if known is None or not all(isinstance(each, int) for each in last):
        return False
    most = [each for each in last if isinstance(each, int)]
    if len(most) > 1 and shape_of(places)[-1] != len(most):
        return False
    return all(0 <= each <= most[number % len(most)] for number, each in enumerate(known))


def _moved(places: Value, last: Sequence[Index], room: Index, dims: ScatterAttr, context: Context) -> Value:
    """Returns indices of which those out of range lead to the room behind the end of the first dimension."""
    emit, shape = context.emit, shape_of(places)
    at = dims.dims[-1]
    assert isinstance(at, int)
    element = types.element_of(places.type)
    bounds = [emit.index(each) for each in last]
    behind, none = emit.index(room), emit.index(0)

    def body(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
        loops = [inside.loop(axis) for axis in range(len(shape))]
        starts = []
        for number in range(len(bounds)):
            where: list[Index] = [inside.index(number) if axis == at else loop for axis, loop in enumerate(loops)]
            starts.append(inside.one("arith.index_cast", (inside.element(places, *where),), INDEX))
        tests = [inside.is_("LE", none, start) for start in starts]
        tests += [inside.is_("LE", start, bound) for start, bound in zip(starts, bounds, strict=True)]
        is_inside = tests[0]
        for test in tests[1:]:
            is_inside = inside.one("arith.andi", (is_inside, test), types.I1)
        found = inside.choose(is_inside, starts[0], behind)
        for number in range(1, len(starts)):
            other = inside.choose(is_inside, starts[number], none)
            found = inside.choose(inside.is_("LE", inside.index(number), loops[at]), other, found)
        return inside.one("arith.index_cast", (found,), element)

    into = emit.empty(element, context.numbers.sizes(places), shape)
    return emit.loops([], (into, list(range(len(shape)))), "p" * len(shape), body)
