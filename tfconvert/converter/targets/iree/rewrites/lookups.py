"""Gathers of slices whose sizes are computed."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.targets.iree.rewrites.broadcasts import axes
from tfconvert.converter.targets.iree.rewrites.context import Context, is_open, shape_of
from tfconvert.converter.targets.iree.rewrites.linalg_builder import LinalgBuilder
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.stablehlo import GatherAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX
from tfconvert.schema.ir.values import Value


def gather(op: Operation, context: Context) -> Value | None:
    """Returns a gather as a loop nest; starts are moved into the operand, as StableHLO says."""
    table, starts, *slice_sizes = op.operands
    if not is_open(table, starts, op.results[0]):
        return None
    numbers = op.properties["dimension_numbers"]
    assert isinstance(numbers, GatherAttr)
    emit, result = context.emit, shape_of(op.results[0])
    at = numbers.dims[-1]
    assert isinstance(at, int)
    offsets, collapsed = numbers.of("offset_dims"), numbers.of("collapsed_slice_dims")
    batching, batches = numbers.of("operand_batching_dims"), numbers.of("start_indices_batching_dims")
    starting = numbers.of("start_index_map")
    outer = [axis for axis in range(len(result)) if axis not in offsets]
    inner = [axis for axis in range(len(shape_of(table))) if axis not in (*collapsed, *batching)]
    extents = context.numbers.elements(slice_sizes[0]) if slice_sizes else axes(op, "slice_sizes")
    places = [axis for axis in range(len(shape_of(starts))) if axis != at]
    place_of = dict(zip(places, outer, strict=True))
    indices = context.numbers
    sizes = [
        extents[inner[offsets.index(axis)]] if axis in offsets else indices.size(starts, places[outer.index(axis)])
        for axis in range(len(result))
    ]
    most = {
        axis: emit.index(emit.compute("maximum", emit.compute("subtract", indices.size(table, axis), extents[axis]), 0))
        for axis in starting
    }

    def body(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
        loops = [inside.loop(axis) for axis in range(len(result))]
        found = []
        for axis in range(len(shape_of(table))):
            if axis in batching:
                found.append(loops[place_of[batches[batching.index(axis)]]])
                continue
            place: Value | int = loops[offsets[inner.index(axis)]] if axis in inner else 0
            if axis in starting:
                where: list[Value] = [loops[place_of[each]] for each in places]
                if at < len(shape_of(starts)):
                    where.insert(at, inside.index(starting.index(axis)))
                start = inside.one("arith.index_cast", (inside.element(starts, *where),), INDEX)
                place = inside.compute("add", inside.clamped(start, 0, most[axis]), place)
            found.append(inside.index(place))
        return inside.element(table, *found)

    into = emit.empty(types.element_of(table.type), sizes, result)
    return emit.loops([], (into, list(range(len(result)))), "p" * len(result), body)
