"""Slices, updates of slices and padding whose bounds are computed."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.targets.iree.rewrites.broadcasts import axes
from tfconvert.converter.targets.iree.rewrites.context import Context, is_open, shape_of
from tfconvert.converter.targets.iree.rewrites.linalg_builder import Index, LinalgBuilder, segments, split
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX
from tfconvert.schema.ir.values import Value

PAST_THE_END = "a slice reaches out of its operand"


def real_dynamic_slice(op: Operation, context: Context) -> Value:
    """Returns a slice that is checked, since IREE reads whatever lies past the end."""
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
    """Returns sizes, as numbers where the type tells them and only there."""
    return [emit.index(size) if dim < 0 else dim for size, dim in zip(sizes, shape, strict=True)]


def within(context: Context, start: Index, limit: Index, size: Index) -> None:
    """Inserts a check that a part of a dimension is inside it, unless that is known."""
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
    """Returns what inserts where all numbers are known first.

    A check among a loop's ops is one that IREE 3.13 doesn't wait for, see `Numbers.before`.
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
    """Inserts a slice."""
    (low, one), (count, other), (step, last) = map(split, (starts, sizes, strides))
    properties: dict[str, attrs.Value] = {
        "static_offsets": low,
        "static_sizes": count,
        "static_strides": step,
        "operandSegmentSizes": segments(1, len(one), len(other), len(last)),
    }
    kind = types.tensor(types.element_of(value.type), shape)
    return emit.one("tensor.extract_slice", (value, *one, *other, *last), kind, properties)


def dynamic_update_slice(op: Operation, context: Context) -> Value | None:
    """Returns an update whose start is moved into the operand, as StableHLO says."""
    value, update, *indices = op.operands
    if not is_open(value, update):
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
    """Returns a padding by amounts that are computed; those between elements must be known."""
    value, filling, *amounts = op.operands
    emit = context.emit
    low, high, interior = (context.numbers.elements(amount) for amount in amounts)
    between = [each for each in interior if isinstance(each, int)]
    if len(between) < len(interior):
        return None
    value = spread(emit, value, filling, between)
    return pad(value, emit.element(filling), low, high, shape_of(op.results[0]), context)


def static_pad(op: Operation, context: Context) -> Value | None:
    """Returns a padding by amounts of which some are negative, as a slice that is padded."""
    value, filling = op.operands
    low, high, between = (axes(op, f"{name}_padding{end}") for name, end in _AMOUNTS)
    if not is_open(value) or min((*low, *high), default=0) >= 0:
        return None
    value = spread(context.emit, value, filling, between)
    return pad(value, context.emit.element(filling), low, high, shape_of(op.results[0]), context)


_AMOUNTS = (("edge", "_low"), ("edge", "_high"), ("interior", ""))


def spread(emit: LinalgBuilder, value: Value, filling: Value, between: Sequence[int]) -> Value:
    """Returns a value with a number of elements put between its own along each axis."""
    if not any(between):
        return value
    none = (0,) * len(between)
    shape = tuple(
        [dim if dim <= 0 else dim + (dim - 1) * more for dim, more in zip(shape_of(value), between, strict=True)]
    )
    kind = types.tensor(types.element_of(value.type), shape)
    properties = {"edge_padding_low": none, "edge_padding_high": none, "interior_padding": tuple(between)}
    return emit.one("stablehlo.pad", (value, filling), kind, properties)


def pad(
    value: Value, filling: Value, low: Sequence[Index], high: Sequence[Index], shape: types.Shape, context: Context
) -> Value:
    """Returns a value with a scalar put around it; less than none takes elements away."""
    emit = context.emit
    value = _cut(value, low, high, context)
    low, high = ([emit.compute("maximum", each, 0) for each in amounts] for amounts in (low, high))
    return grown(emit, value, filling, low, high, shape)


def grown(
    emit: LinalgBuilder, value: Value, filling: Value, low: Sequence[Index], high: Sequence[Index], shape: types.Shape
) -> Value:
    """Returns a value with no less than no elements put around it."""
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
    kind = types.tensor(types.element_of(value.type), found)
    value = emit.one("tensor.pad", (value, *one, *other), kind, properties, (Region(block),))
    return value if found == shape else emit.one("tensor.cast", (value,), types.tensor(kind.element_type, shape))


def _cut(value: Value, low: Sequence[Index], high: Sequence[Index], context: Context) -> Value:
    """Returns a value without what negative amounts of padding take away."""
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
