"""Slices, padding, concatenations, gathers and scatters of computed sizes and places."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.targets.iree.rewrites.linalg_builder import (
    Index,
    LinalgBuilder,
    constant_ints,
    segments,
    split,
)
from tfconvert.converter.targets.iree.rewrites.loop_nests import is_computable
from tfconvert.converter.targets.iree.rewrites.numbers import Context, is_dynamic, shape_of
from tfconvert.converter.targets.iree.rewrites.shapes import reshape
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.stablehlo import GatherAttr, ScatterAttr
from tfconvert.schema.dialects.stablehlo_properties import integer, ints
from tfconvert.schema.ir.attributes import FALSE
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX
from tfconvert.schema.ir.values import Value

PAST_THE_END = "a slice reaches out of its operand"


def real_dynamic_slice(op: Operation, context: Context) -> Value:
    """Returns a slice with checks, since IREE reads past the end of a tensor."""
    value, *bounds = op.operands
    starts, limits, strides = (context.numbers.elements(bound) for bound in bounds)
    emit, result = context.emit, shape_of(op.results[0])
    sizes: list[Index] = []
    for start, limit, stride, size in zip(starts, limits, strides, context.numbers.sizes(value), strict=True):
        assert isinstance(stride, int)
        within(context, start, limit, size)
        is_whole = start == 0 and context.numbers.before(limit) is context.numbers.before(size)
        length = limit if is_whole else emit.compute("maximum", emit.compute("subtract", limit, start), 0)
        sizes.append(emit.compute("floor_divide", emit.compute("add", length, stride - 1), stride))
    return extract(emit, value, starts, _as_typed(emit, sizes, result), strides, result)


def _as_typed(emit: LinalgBuilder, sizes: Sequence[Index], shape: types.Shape) -> list[Index]:
    """Returns sizes as constants exactly where the type has them."""
    return [emit.index(size) if dim < 0 else dim for size, dim in zip(sizes, shape, strict=True)]


def within(context: Context, start: Index, limit: Index, size: Index) -> None:
    """Inserts a check that a range is inside a dimension, unless that is known."""
    emit = context.emit
    limit, size = map(context.numbers.before, (limit, size))
    tests: list[tuple[Index, Index]] = []
    if not isinstance(start, int) or start < 0:
        tests.append((0, start))
    if limit is not size and not (isinstance(limit, int) and isinstance(size, int) and limit <= size):
        tests.append((limit, size))
    for one, other in tests:
        early = _earliest(emit, one, other)
        is_inside = early.is_("LE", early.index(one), early.index(other))
        early.op("cf.assert", (is_inside,), (), {"msg": PAST_THE_END})


def _earliest(emit: LinalgBuilder, *numbers: Index) -> LinalgBuilder:
    """Returns a builder at the first place where all numbers are known.

    IREE 3.13 doesn't wait for a check among a loop's ops, see `Numbers.before`.
    """
    block = emit.block
    owners = [each.owner for each in numbers if isinstance(each, Value)]
    ops = [owner for owner in owners if isinstance(owner, Operation) and owner.parent is block]
    if len(ops) > 1:
        return emit
    first = ops[0].next_op if ops else block.first_op
    assert first is not None
    early = LinalgBuilder(first)
    early.location = emit.location
    return early


def extract(
    emit: LinalgBuilder,
    value: Value,
    starts: Sequence[Index],
    sizes: Sequence[Index],
    strides: Sequence[Index],
    shape: types.Shape,
) -> Value:
    (low, one), (count, other), (step, last) = map(split, (starts, sizes, strides))
    properties: dict[str, attrs.Value] = {
        "static_offsets": low,
        "static_sizes": count,
        "static_strides": step,
        "operandSegmentSizes": segments(1, len(one), len(other), len(last)),
    }
    kind = types.tensor(value.element, shape)
    return emit.one("tensor.extract_slice", (value, *one, *other, *last), kind, properties)


def dynamic_update_slice(op: Operation, context: Context) -> Value | None:
    """Returns an update whose start is clamped to the operand, as StableHLO specifies."""
    value, update, *indices = op.operands
    if not is_dynamic(value, update):
        return None
    emit, numbers = context.emit, context.numbers
    sizes, parts = numbers.sizes(value), numbers.sizes(update)
    starts = []
    for index, size, part in zip(indices, sizes, parts, strict=True):
        most = emit.compute("maximum", emit.compute("subtract", size, part), 0)
        starts.append(0 if most == 0 or size is part else emit.clamped(numbers.element(index), 0, most))
        within(context, 0, part, size)
    (low, one), (count, other) = split(starts), split(_as_typed(emit, parts, shape_of(update)))
    properties: dict[str, attrs.Value] = {
        "static_offsets": low,
        "static_sizes": count,
        "static_strides": (1,) * len(sizes),
        "operandSegmentSizes": segments(1, 1, len(one), len(other), 0),
    }
    return emit.one("tensor.insert_slice", (update, value, *one, *other), value.type, properties)


def dynamic_pad(op: Operation, context: Context) -> Value | None:
    """Returns a padding by computed amounts; interior padding must be constant."""
    value, filling, *amounts = op.operands
    emit = context.emit
    low, high, interior = (context.numbers.elements(amount) for amount in amounts)
    between = [each for each in interior if isinstance(each, int)]
    if len(between) < len(interior):
        return None
    value = pad_interior(emit, value, filling, between)
    return pad(value, emit.element(filling), low, high, shape_of(op.results[0]), context)


def static_pad(op: Operation, context: Context) -> Value | None:
    """Returns a padding with negative amounts, as a padded slice."""
    value, filling = op.operands
    low, high, between = (ints(op, f"{name}_padding{end}") for name, end in _AMOUNTS)
    if not is_dynamic(value) or min((*low, *high), default=0) >= 0:
        return None
    value = pad_interior(context.emit, value, filling, between)
    return pad(value, context.emit.element(filling), low, high, shape_of(op.results[0]), context)


_AMOUNTS = (("edge", "_low"), ("edge", "_high"), ("interior", ""))


def pad_interior(emit: LinalgBuilder, value: Value, filling: Value, between: Sequence[int]) -> Value:
    """Returns a value with elements inserted between its own along each axis."""
    if not any(between):
        return value
    none = (0,) * len(between)
    shape = tuple(
        [dim if dim <= 0 else dim + (dim - 1) * more for dim, more in zip(shape_of(value), between, strict=True)]
    )
    kind = types.tensor(value.element, shape)
    properties = {"edge_padding_low": none, "edge_padding_high": none, "interior_padding": tuple(between)}
    return emit.one("stablehlo.pad", (value, filling), kind, properties)


def pad(
    value: Value, filling: Value, low: Sequence[Index], high: Sequence[Index], shape: types.Shape, context: Context
) -> Value:
    """Returns a value padded with a scalar; negative amounts remove elements."""
    emit = context.emit
    value = _cut(value, low, high, context)
    low, high = ([emit.compute("maximum", each, 0) for each in amounts] for amounts in (low, high))
    return grown(emit, value, filling, low, high, shape)


def grown(
    emit: LinalgBuilder, value: Value, filling: Value, low: Sequence[Index], high: Sequence[Index], shape: types.Shape
) -> Value:
    """Returns a value padded by nonnegative amounts."""
    rank = len(low)
    block = Block(arg_types=(INDEX,) * rank)
    LinalgBuilder.at_block_end(block, emit.location).op("tensor.yield", (filling,), ())
    (first, one), (last, other) = split(low), split(high)
    properties: dict[str, attrs.Value] = {
        "static_low": first,
        "static_high": last,
        "operandSegmentSizes": segments(1, len(one), len(other)),
    }
    own = shape_of(value)
    found = tuple(
        [
            -1 if dim < 0 or not isinstance(before, int) or not isinstance(after, int) else dim + before + after
            for dim, before, after in zip(own, low, high, strict=True)
        ]
    )
    kind = types.tensor(value.element, found)
    value = emit.one("tensor.pad", (value, *one, *other), kind, properties, (Region(block),))
    return value if found == shape else emit.one("tensor.cast", (value,), types.tensor(kind.element_type, shape))


def _cut(value: Value, low: Sequence[Index], high: Sequence[Index], context: Context) -> Value:
    """Returns a value without the elements that negative padding removes."""
    if all(isinstance(each, int) and each >= 0 for each in (*low, *high)):
        return value
    emit = context.emit
    starts = [emit.compute("maximum", emit.compute("subtract", 0, each), 0) for each in low]
    ends = [emit.compute("maximum", emit.compute("subtract", 0, each), 0) for each in high]
    sizes = []
    for size, start, end in zip(context.numbers.sizes(value), starts, ends, strict=True):
        sizes.append(emit.compute("maximum", emit.compute("subtract", emit.compute("subtract", size, start), end), 0))
    shape = tuple([size if isinstance(size, int) else -1 for size in sizes])
    return extract(emit, value, starts, sizes, (1,) * len(sizes), shape)


# The maximum number of columns to choose from; of more, writing them one after another is cheaper.
_MAX_COLUMNS = 16


def concatenate(op: Operation, context: Context) -> Value | None:
    """Returns vectors or columns of one element, as a loop nest that chooses by the index along the axis."""
    axis, shape = integer(op, "dimension"), shape_of(op.results[0])
    element = op.results[0].element
    if not is_dynamic(op.results[0]) or not 1 < len(op.operands) <= _MAX_COLUMNS or not is_computable(element):
        return None
    if len(shape) == 1:
        return _vectors(op, context)
    if any(shape_of(each)[axis] != 1 for each in op.operands):
        return None
    others = [each for each in range(len(shape)) if each != axis]
    narrow = []
    for operand in op.operands:
        sizes, dims = context.numbers.sizes(operand), shape_of(operand)
        column = reshape(operand, [sizes[each] for each in others], tuple([dims[each] for each in others]), context)
        if column is None:
            return None
        narrow.append(column)
    emit = context.emit

    def body(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
        *columns, chosen, _ = arguments
        place = inside.loop(axis)
        for number in reversed(range(len(columns))):
            chosen = inside.choose(inside.is_("EQ", place, inside.index(number)), columns[number], chosen)
        return chosen

    sizes = [*context.numbers.sizes(op.operands[0])]
    sizes[axis] = len(narrow)
    into = emit.empty(element, sizes, shape)
    everything = list(range(len(shape)))
    return emit.loops([(each, others) for each in narrow], (into, everything), "p" * len(shape), body)


def _vectors(op: Operation, context: Context) -> Value:
    """Returns vectors, each padded to the total length, as a loop that chooses among them."""
    emit = context.emit
    element = op.results[0].element
    lengths = [context.numbers.size(operand, 0) for operand in op.operands]
    ends: list[Index] = []
    for length in lengths:
        ends.append(emit.compute("add", ends[-1], length) if ends else length)
    total = ends[-1]
    filling = emit.element(emit.scalar(0, element))
    whole = []
    for operand, length, end in zip(op.operands, lengths, ends, strict=True):
        low = [emit.compute("subtract", end, length)]
        whole.append(grown(emit, operand, filling, low, [emit.compute("subtract", total, end)], (-1,)))

    def body(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
        *parts, chosen, _ = arguments
        place = inside.loop(0)
        for part, end in zip(reversed(parts), reversed(ends[:-1]), strict=True):
            chosen = inside.choose(inside.is_("LT", place, inside.index(end)), part, chosen)
        return chosen

    into = emit.empty(element, [total], (-1,))
    return emit.loops([(each, [0]) for each in whole], (into, [0]), "p", body)


def gather(op: Operation, context: Context) -> Value | None:
    """Returns a gather as a loop nest; starts are clamped to the operand, as StableHLO specifies."""
    table, starts, *slice_sizes = op.operands
    if not is_dynamic(table, starts, op.results[0]):
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
    extents = context.numbers.elements(slice_sizes[0]) if slice_sizes else ints(op, "slice_sizes")
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

    into = emit.empty(table.element, sizes, result)
    return emit.loops([], (into, list(range(len(result)))), "p" * len(result), body)


def scatter(op: Operation, context: Context) -> Value | None:
    """Returns a scatter into a tensor with a margin behind its end, which receives the updates to drop.

    StableHLO drops updates whose index is out of range; IREE writes them to foreign memory. Only the first of the
    scattered dimensions has a margin, and an index out of range becomes the first index in it.
    """
    if len(op.operands) != 3:
        return None  # No lowering scatters into several tensors at once.
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
    wide = _with_margin(value, high, shape, context)
    body = op.regions[0].detach_block(op.regions[0].block)
    properties = {**op.properties, "unique_indices": FALSE, "indices_are_sorted": FALSE}
    found = emit.one("stablehlo.scatter", (wide, moved, update), wide.type, properties, (Region(body),))
    kept = [dim if dim >= 0 else emit.index(size) for dim, size in zip(own, sizes, strict=True)]
    return extract(emit, found, (0,) * len(sizes), kept, (1,) * len(sizes), own)


def _with_margin(value: Value, high: Sequence[Index], shape: types.Shape, context: Context) -> Value:
    """Returns a tensor with a margin behind its end; one of equal elements is created again in its final size."""
    emit, element = context.emit, value.element
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


def _moved(places: Value, last: Sequence[Index], margin: Index, dims: ScatterAttr, context: Context) -> Value:
    """Returns indices, those out of range replaced by the start of the margin of the first dimension."""
    emit, shape = context.emit, shape_of(places)
    at = dims.dims[-1]
    assert isinstance(at, int)
    element = places.element
    bounds = [emit.index(each) for each in last]
    behind, none = emit.index(margin), emit.index(0)

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
