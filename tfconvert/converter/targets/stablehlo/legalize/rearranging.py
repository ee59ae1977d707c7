"""Elements in other places: rolled, reversed by row, moved by permutations, in blocks and patches of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.constraints import require_indices
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite, axis_of, ints
from tfconvert.converter.targets.stablehlo.legalize.gathering import gather, inverse, scatter
from tfconvert.converter.targets.stablehlo.legalize.reductions import permuted
from tfconvert.converter.targets.stablehlo.legalize.shaping import (
    concatenate,
    part,
    pick,
    requested_size,
    sizes_in,
    times,
)
from tfconvert.converter.targets.stablehlo.legalize.slicing import from_to
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.converter.targets.stablehlo.legalize.windows import Amounts, Axis, amounts_of, pad_around, same, slid
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _transpose(op: Operation, emit: StableHLOBuilder) -> Value:
    value, permutation = op.operands
    known = constant_ints(permutation)
    return permuted(emit, value, permutation) if known is None else emit.transpose(value, known)


def _roll(op: Operation, emit: StableHLOBuilder) -> Value:
    value, amounts = op.operands[:2]
    dims = emit.dims(value)
    axes, known = constant_ints(op.operands[2]), constant_ints(amounts)
    if axes is None:
        for at, dim in enumerate(dims):
            value = _rolled_at_run_time(emit, value, at, _amount_along(at, op, emit)) if dim != 1 else value
        return value
    for number, axis in enumerate(axes):
        at = axis_of(axis, len(dims))
        if known is not None and dims[at] >= 0:
            value = _rolled(emit, value, at, known[number] % max(dims[at], 1))
            continue
        amount: Value | int
        if known is not None:
            amount = known[number]
        else:
            amount = pick(emit, amounts, number) if emit.dims(amounts) else emit.convert(amounts, types.I32)
        value = _rolled_at_run_time(emit, value, at, amount)
    return value


def _amount_along(axis: int, op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits the sum of the amounts for an axis, where the axes are known at run time only."""
    amounts, axes = (emit.convert(operand, types.I32) for operand in op.operands[1:3])
    rank = len(emit.dims(op.operands[0]))
    (count,) = emit.dims(axes) or (1,)
    amounts, axes = (emit.reshape(each, (count,)) for each in (amounts, axes))
    is_it = emit.binary("or", emit.compare("EQ", axes, axis), emit.compare("EQ", axes, axis - rank))
    return emit.reduce("add", emit.select(is_it, amounts, 0), (0,), 0)


def _rolled(emit: StableHLOBuilder, value: Value, axis: int, amount: int) -> Value:
    size = emit.dims(value)[axis]
    if not amount:
        return value
    pieces = part(emit, value, axis, size - amount, size), part(emit, value, axis, 0, size - amount)
    return concatenate(emit, pieces, axis)


def _rolled_at_run_time(emit: StableHLOBuilder, value: Value, axis: int, amount: Value | int) -> Value:
    size = emit.size(emit.dims(value)[axis])
    places = emit.binary("subtract", emit.iota((emit.dims(value)[axis],), 0, types.I32), amount)
    return gather(emit, value, _modulo(emit, places, size), axis, 0)


def _modulo(emit: StableHLOBuilder, value: Value, divisor: Value | int) -> Value:
    """Emits remainders that are not negative."""
    rest = emit.binary("remainder", value, divisor)
    return emit.select(emit.compare("LT", rest, 0), emit.binary("add", rest, divisor), rest)


def _reverse_sequence(op: Operation, emit: StableHLOBuilder) -> Value:
    value, lengths = op.operands
    dims = emit.dims(value)
    along = axis_of(int(tf.get(op, "seq_dim")), len(dims))
    batch = axis_of(int(tf.get(op, "batch_dim", 0)), len(dims))
    places = emit.iota((dims[batch], dims[along]), 1, types.I32)
    last = emit.broadcast(emit.convert(lengths, types.I32), (dims[batch], dims[along]), (0,))
    turned = emit.binary("subtract", emit.binary("subtract", last, 1), places)
    indices = emit.select(emit.compare("LT", places, last), turned, places)
    order = [batch, along, *(axis for axis in range(len(dims)) if axis not in (batch, along))]
    found = gather(emit, emit.transpose(value, order), indices, 1, 1)
    return emit.transpose(found, [order.index(axis) for axis in range(len(dims))])


def _invert_permutation(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    require_indices(emit, value, emit.dims(value)[0])
    return inverse(emit, value)


def _concat(op: Operation, emit: StableHLOBuilder) -> Value:
    values = op.operands[1:]
    return concatenate(emit, values, axis_of(ints(op, 0, "the axis")[0], len(emit.dims(values[0]))))


def _broadcast_args(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits the shape that two shapes are broadcast to; a 1 gives way to what the other one has."""
    one, other = op.operands
    element = one.element
    counts = emit.dims(one)[0], emit.dims(other)[0]
    if min(counts) < 0:
        raise Declined("the rank of a shape is not known")
    longest = max(counts)
    wide = []
    for vector, count in zip((one, other), counts, strict=True):
        ones = emit.broadcast(emit.scalar(1, element), (longest - count,)) if count < longest else None
        wide.append(vector if ones is None else concatenate(emit, [ones, vector], 0))
    return emit.select(emit.compare("EQ", wide[0], 1), wide[1], wide[0])


def _lin_space(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits numbers of equal distances; the last one is what was asked for, whatever rounding made of it."""
    start, stop, _ = op.operands
    known = constant_ints(op.operands[2])
    if known is None:
        return _open_lin_space(op, emit)
    (count,) = known
    counted = emit.iota((count,), 0, start.element)
    step = emit.binary("divide", emit.binary("subtract", stop, start), max(count - 1, 1))
    numbers = emit.binary("add", emit.binary("multiply", counted, step), start)
    return emit.select(emit.compare("EQ", counted, count - 1), stop, numbers) if count > 1 else numbers


def _open_lin_space(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits the same for a count that is known at run time only."""
    start, stop, size = op.operands
    element, count = start.element, requested_size(emit, size)
    last = emit.binary("maximum", emit.convert(emit.value(emit.size(count)), element), 1)
    last = emit.binary("maximum", emit.binary("subtract", last, 1), 1)
    counted = emit.iota((count,), 0, element)
    step = emit.binary("divide", emit.binary("subtract", stop, start), last)
    numbers = emit.binary("add", emit.binary("multiply", counted, step), start)
    return emit.select(emit.compare("EQ", counted, last), stop, numbers)


def _unravel_index(op: Operation, emit: StableHLOBuilder) -> Value:
    indices, shape = op.operands
    (rank,), places = emit.dims(shape), emit.dims(indices)
    if rank < 0:
        raise Declined("the rank of a shape is not known")
    element, rows, left = indices.element, [], indices
    for axis in reversed(range(rank)):
        size = emit.reshape(part(emit, shape, 0, axis, axis + 1), ())
        rows.append(emit.reshape(emit.binary("remainder", left, size), (1, *places)))
        left = emit.binary("divide", left, size)
    assert shape.element == element
    return concatenate(emit, rows[::-1], 0)


def _data_format(op: Operation) -> tuple[str, str]:
    return str(tf.get(op, "src_format", "NHWC")), str(tf.get(op, "dst_format", "NCHW"))


def _permute_by_format(op: Operation, emit: StableHLOBuilder) -> Value:
    source, target = _data_format(op)
    value = op.operands[0]
    if emit.dims(value)[0] == len(source) - 2:
        source, target = (format_.replace("N", "").replace("C", "") for format_ in (source, target))
    return gather(emit, value, emit.ints([source.index(letter) for letter in target]), 0, 0)


def _axis_by_format(op: Operation, emit: StableHLOBuilder) -> Value:
    source, target = _data_format(op)
    value = op.operands[0]
    places = _modulo(emit, value, emit.scalar(len(source), value.element))
    table = emit.convert(emit.ints([target.index(letter) for letter in source]), value.element)
    return gather(emit, table, places, 0, 0)


def _dynamic_stitch(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits rows at their indices; of several for one index the last counts, as updates in order make it."""
    half = len(op.operands) // 2
    indices, rows = op.operands[:half], op.operands[half:]
    known = [constant_ints(each) for each in indices]
    declared = op.results[0].shape
    rest = emit.dims(rows[0])[len(emit.dims(indices[0])) :]
    if None not in known:
        count = max((max(each, default=-1) for each in known if each is not None), default=-1) + 1
    elif declared is not None and declared[0] >= 0:
        count = declared[0]
    else:
        largest: Value = emit.scalar(-1, types.I32)
        for each in indices:
            here = emit.reduce("maximum", each, range(len(emit.dims(each))), -1)
            largest = emit.binary("maximum", largest, here)
        count = emit.sizes.fresh(emit.binary("add", largest, 1))
    into = emit.filled(0, rows[0].element, (count, *rest))
    for each, values in zip(indices, rows, strict=True):
        into = scatter(emit, "", emit.reshape(each, (*emit.dims(each), 1)), values, into)
    return into


def _population_count(op: Operation, emit: StableHLOBuilder) -> Value:
    return emit.convert(emit.unary("popcnt", op.operands[0]), op.results[0].element)


def _cross(op: Operation, emit: StableHLOBuilder) -> Value:
    """Multiplies slices: IREE's compiler fails on the decomposition's gathers of strided slices."""
    last = len(emit.dims(op.operands[0])) - 1
    one, other = ([part(emit, value, last, at, at + 1) for at in range(3)] for value in op.operands)

    def element(at: int) -> Value:
        after, before = (at + 1) % 3, (at + 2) % 3
        first = emit.binary("multiply", one[after], other[before])
        return emit.binary("subtract", first, emit.binary("multiply", one[before], other[after]))

    return concatenate(emit, [element(at) for at in range(3)], last)


REARRANGEMENTS: Mapping[str, Rewrite] = {
    "BroadcastArgs": _broadcast_args,
    "Concat": _concat,
    "Cross": _cross,
    "DataFormatDimMap": _axis_by_format,
    "DataFormatVecPermute": _permute_by_format,
    "DynamicStitch": _dynamic_stitch,
    "InvertPermutation": _invert_permutation,
    "LinSpace": _lin_space,
    "ParallelDynamicStitch": _dynamic_stitch,
    "PopulationCount": _population_count,
    "ReverseSequence": _reverse_sequence,
    "Roll": _roll,
    "Transpose": _transpose,
    "UnravelIndex": _unravel_index,
}


def _divided(emit: StableHLOBuilder, dim: int, divisor: int) -> int:
    return emit.size_of(emit.compute("divide", emit.size(dim), emit.size(divisor)))


def _batch_blocks(op: Operation, emit: StableHLOBuilder) -> tuple[Sequence[int], list[Amounts]]:
    """Returns the blocks' size, and what is padded or cut off each spatial axis."""
    block = sizes_in(emit, op.operands[1])
    return block, amounts_of(emit, op, 2, len(block))


def _space_to_batch(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    block, amounts = _batch_blocks(op, emit)
    rank, count = len(emit.dims(value)), len(block)
    every: list[Amounts] = [(0, 0), *amounts, *[(0, 0)] * (rank - 1 - count)]
    value = pad_around(emit, value, every, emit.scalar(0, value.element))
    batch, *spatial = emit.dims(value)[: count + 1]
    rest = emit.dims(value)[count + 1 :]
    counts = [_divided(emit, dim, size) for dim, size in zip(spatial, block, strict=True)]
    split = [each for pair in zip(counts, block, strict=True) for each in pair]
    value = emit.reshape(value, (batch, *split, *rest))
    order = [
        *range(2, 2 * count + 2, 2),
        0,
        *range(1, 2 * count + 1, 2),
        *range(2 * count + 1, len(rest) + 2 * count + 1),
    ]
    value = emit.transpose(value, order)
    total = batch
    for size in block:
        total = times(emit, total, size)
    return emit.reshape(value, (total, *counts, *rest))


def _batch_to_space(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    block, cuts = _batch_blocks(op, emit)
    count = len(block)
    total, *spatial = emit.dims(value)[: count + 1]
    rest = emit.dims(value)[count + 1 :]
    batch = total
    for size in block:
        batch = _divided(emit, batch, size)
    value = emit.reshape(value, (*block, batch, *spatial, *rest))
    order = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    value = emit.transpose(value, [*order, *range(2 * count + 1, 2 * count + 1 + len(rest))])
    wide = [times(emit, dim, size) for dim, size in zip(spatial, block, strict=True)]
    value = emit.reshape(value, (batch, *wide, *rest))
    for axis, (low, high) in enumerate(cuts, 1):
        value = from_to(emit, value, axis, low, emit.compute("subtract", emit.size(emit.dims(value)[axis]), high))
    return value


def _depth_layout(op: Operation, emit: StableHLOBuilder) -> tuple[Value, tuple[int, ...], int, bool]:
    value, form = op.operands[0], tf.get(op, "data_format", "NHWC")
    dims = emit.dims(value)
    if len(dims) != 4:
        raise Declined("its layout is not one of four dimensions")
    return value, dims, int(tf.get(op, "block_size", 1)), form == "NCHW"


def _space_to_depth(op: Operation, emit: StableHLOBuilder) -> Value:
    value, dims, block, is_first = _depth_layout(op, emit)
    batch, channels = dims[0], dims[1] if is_first else dims[3]
    height, width = (_divided(emit, dim, block) for dim in (dims[2:] if is_first else dims[1:3]))
    deep = times(emit, channels, block * block)
    if is_first:
        value = emit.reshape(value, (batch, channels, height, block, width, block))
        return emit.reshape(emit.transpose(value, (0, 3, 5, 1, 2, 4)), (batch, deep, height, width))
    value = emit.reshape(value, (batch, height, block, width, block, channels))
    return emit.reshape(emit.transpose(value, (0, 1, 3, 2, 4, 5)), (batch, height, width, deep))


def _depth_to_space(op: Operation, emit: StableHLOBuilder) -> Value:
    value, dims, block, is_first = _depth_layout(op, emit)
    batch, deep = dims[0], dims[1] if is_first else dims[3]
    height, width = dims[2:] if is_first else dims[1:3]
    channels = _divided(emit, deep, block * block)
    tall, wide = times(emit, height, block), times(emit, width, block)
    if is_first:
        value = emit.reshape(value, (batch, block, block, channels, height, width))
        return emit.reshape(emit.transpose(value, (0, 3, 4, 1, 5, 2)), (batch, channels, tall, wide))
    value = emit.reshape(value, (batch, height, width, block, block, channels))
    return emit.reshape(emit.transpose(value, (0, 1, 3, 2, 4, 5)), (batch, tall, wide, channels))


# The most pixels of a patch, each of which is cut out of all patches at once.
_MAX_PARTS = 1024


def _patches(op: Operation, emit: StableHLOBuilder) -> Value:
    """Cuts out each pixel of a patch from all patches, with a step, and puts those side by side as channels."""
    value = op.operands[0]
    dims = emit.dims(value)
    rates = tf.get(op, "rates", ()) or (1,) * len(dims)
    axes = [
        Axis(axis, tf.get(op, "ksizes")[axis], tf.get(op, "strides")[axis], rates[axis])
        for axis in range(1, len(dims) - 1)
    ]
    amounts: list[Amounts] = [(0, 0)] * len(dims)
    counts = []
    for axis in axes:
        if tf.get(op, "padding", "VALID") == "SAME":
            amounts[axis.number] = same(emit, dims[axis.number], axis)
        counts.append(slid(emit, op, dims[axis.number], axis, (0, 0)))
    value = pad_around(emit, value, amounts, emit.scalar(0, value.element))
    parts = [value]
    for axis, count in zip(axes, counts, strict=True):
        if len(parts) * axis.size > _MAX_PARTS:
            raise Declined(f"a patch has more than {_MAX_PARTS} pixels")
        # The last element that is taken is the one behind which a whole window still ends.
        reach = emit.compute("add", emit.compute("multiply", emit.size(count), axis.stride), 1 - axis.stride)
        parts = [
            from_to(emit, part, axis.number, at, emit.compute("add", reach, at), axis.stride, count)
            for part in parts
            for at in range(0, axis.extent, axis.dilation)
        ]
    return concatenate(emit, parts, len(dims) - 1)


BLOCKS: Mapping[str, Rewrite] = {
    "BatchToSpaceND": _batch_to_space,
    "DepthToSpace": _depth_to_space,
    "ExtractImagePatches": _patches,
    "ExtractVolumePatches": _patches,
    "SpaceToBatchND": _space_to_batch,
    "SpaceToDepth": _space_to_depth,
}
