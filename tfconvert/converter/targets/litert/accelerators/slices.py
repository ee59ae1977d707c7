"""Slices, reversals and rotations, in the forms that accelerators take and XNNPACK runs.

    fully_connected(strided_slice{shrink}(x))  ->  fully_connected(slice(x))
    strided_slice(x, ...)                      ->  reverse_v2(x, axis)          where all is reversed
    concatenation(reversed(split(x)))          ->  gather(x, places)            of blocks of some size

By default; the rest is for accelerators. A split whose parts are joined in another order along the same axis is taken
for the identity by the GPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.accelerators.builder import (
    MAX_RANK,
    MOVED,
    AcceleratorBuilder,
    Rewrite,
    around,
    ints_of,
    option,
    producer,
    shape_of,
    static_shape,
    target_of,
)
from tfconvert.converter.targets.litert.accelerators.pieces import backwards, gather, of_copies, part, parted
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.values import OpResult, Value

# The number of channels that the GPU reverses at a time.
_LANES = 4
# The minimum number of neighbouring elements that GATHER moves as fast as slices do.
_MIN_BLOCK = 8


def ranges_of(op: tfl.TFLOp) -> list[range | None]:
    """Returns the places that a strided slice takes along each axis of its operand.

    `None` is all of an axis whose size is unknown; the function declines if a part of one is taken, but the first ones
    and a single one.
    """
    shape = shape_of(op.operands[0])
    stated = list(zip(*map(ints_of, op.operands[1:4]), strict=True))
    masks = {name: option(op, f"{name}_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    found: list[range | None] = []

    def all_of(dims: Sequence[int]) -> list[range | None]:
        return [range(dim) if dim >= 0 else None for dim in dims]

    for at, (begin, end, stride) in enumerate(stated):
        if masks["ellipsis"] >> at & 1:
            later = sum(1 for each in range(at + 1, len(stated)) if not masks["new_axis"] >> each & 1)
            found += all_of(shape[len(found) : len(shape) - later])
        elif not masks["new_axis"] >> at & 1:
            dim = shape[len(found)]
            start = None if masks["begin"] >> at & 1 else begin
            stop = None if masks["end"] >> at & 1 else end
            if masks["shrink_axis"] >> at & 1:
                need(begin >= 0 or dim >= 0, "the dimension's size is unknown")
                place = begin if begin >= 0 else begin + dim
                found.append(range(place, place + 1))
            elif dim >= 0:
                found.append(range(dim)[start:stop:stride])
            else:
                need(not start and stop is None and stride == 1, "the dimension's size is unknown")
                found.append(None)
    found += all_of(shape[len(found) :])
    need(all(each is None or len(each) for each in found), "it takes nothing")
    return found


def _in_order(build: AcceleratorBuilder, value: Value, ranges: Sequence[range]) -> Value:
    """Inserts the slice that takes ranges with positive steps, unless they are all."""
    sizes = tuple(len(each) for each in ranges)
    starts = [each.start for each in ranges]
    if sizes == shape_of(value):
        return value
    if all(each.step == 1 or len(each) == 1 for each in ranges):
        return build.slice(value, starts, sizes)
    return build.strided(value, starts, [each[-1] + 1 for each in ranges], [each.step for each in ranges], sizes)


def _strided_slice(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A strided slice: without masks, and forwards; axes that are whole are merged if there are many."""
    value, ranges = op.operands[0], ranges_of(op)
    if not types.is_static(shape_of(value)):
        return _of_open_sizes(op, build, ranges)
    known = [each for each in ranges if each is not None]
    turned = [axis for axis, each in enumerate(known) if each.step < 0 and len(each) > 1]
    known = [each if each.step > 0 else each[::-1] for each in known]
    if len(known) > MAX_RANK or not turned:
        value, known = _merged(build, value, known)
    value = _in_order(build, value, known)
    if turned:
        value = build.reshape(value, [len(each) for each in ranges if each is not None])
        for axis in turned:
            value = backwards(build, value, axis)
    return build.reshape(value, static_shape(op.results[0]))


def _merged(build: AcceleratorBuilder, value: Value, ranges: Sequence[range]) -> tuple[Value, list[range]]:
    """Returns a value with each axis that is whole merged with the one before, and the ranges along the new axes."""
    sizes, cuts = [1], [range(1)]
    for dim, cut in zip(static_shape(value), ranges, strict=True):
        if cut == range(dim):
            if cuts[-1].step != 1:
                sizes.append(1)
                cuts.append(range(1))
            sizes[-1] *= dim
            cuts[-1] = range(cuts[-1].start * dim, cuts[-1].stop * dim)
        else:
            sizes.append(dim)
            cuts.append(cut)
    if len(sizes) > MAX_RANK and sizes[0] == 1:
        sizes, cuts = sizes[1:], cuts[1:]
    return build.reshape(value, sizes), cuts


def _of_open_sizes(op: tfl.TFLOp, build: AcceleratorBuilder, ranges: Sequence[range | None]) -> Value:
    value, dims = op.operands[0], shape_of(op.operands[0])
    need(all(each is None or each.step == 1 or len(each) == 1 for each in ranges), "it leaves elements out")
    starts = [0 if each is None else each.start for each in ranges]
    sizes = [-1 if each is None else len(each) for each in ranges]
    shape = tuple(dim if size < 0 else size for dim, size in zip(dims, sizes, strict=True))
    return build.reshape(build.slice(value, starts, sizes, shape), target_of(op.results[0]))


def _row_of_product(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A product with what a slice takes of one axis, which it drops: of the slice that keeps it."""
    cut = producer(op.operands[0], "strided_slice")
    ranges, mask, rank = ranges_of(cut), option(cut, "shrink_axis_mask"), len(shape_of(cut.operands[0]))
    need(mask in [1 << axis for axis in range(rank - 1)], "it drops no axis, or several, or the last one")
    need(not option(cut, "ellipsis_mask") and not option(cut, "new_axis_mask"), "it adds dimensions")
    need(not option(op, "keep_num_dims") or rank == 2, "the product has the operand's dimensions")
    need(all(each is None or each.step == 1 for each in ranges), "it leaves elements out")
    starts = [0 if each is None else each.start for each in ranges]
    sizes = [-1 if each is None else len(each) for each in ranges]
    value = build.slice(cut.operands[0], starts, sizes)
    return build.again(op, (value, *op.operands[1:])).results[0]


def _as_reversal(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A slice that takes all of an operand, backwards along one axis: a reversal, or a choice of channels."""
    value, shape = op.operands[0], static_shape(op.operands[0])
    need(static_shape(op.results[0]) == shape, "elements are left out")
    axes = [axis for axis, each in enumerate(ranges_of(op)) if each is not None and each.step < 0 and len(each) > 1]
    need(len(axes) == 1, "not one dimension is reversed")
    if axes[0] < len(shape) - 1 or shape[-1] % _LANES == 0:
        return build.tfl("reverse_v2", (value, build.ints(axes)), value.type)
    need_gathered(value)
    return gather(build, value, range(shape[-1] - 1, -1, -1), axes[0])


def need_gathered(value: Value) -> None:
    """Declines unless accelerators choose rows of a value by places."""
    need(types.element_of(value.type) in (types.F32, types.I32, types.I8), "accelerators don't take such tensors")


def _reverse(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A reversal: each axis for itself, in rank 4, where it is not the last one."""
    value = op.operands[0]
    for axis in ints_of(op.operands[1]):
        value = backwards(build, value, axis % len(static_shape(value)))
    return value


def _split_of(op: tfl.TFLOp) -> tuple[Value, int, list[int]]:
    """Returns what a split takes apart, the axis, and where its parts begin and the last one ends."""
    value, at = (op.operands[1], op.operands[0]) if op.op_name == "split" else (op.operands[0], op.operands[2])
    axis = ints_of(at)[0] % len(shape_of(value))
    sizes = [shape_of(result)[axis] for result in op.results]
    need(all(size >= 0 for size in sizes), "a size is unknown")
    return value, axis, [0, *np.cumsum(sizes).tolist()]


def _split(op: tfl.TFLOp, build: AcceleratorBuilder) -> Sequence[Value]:
    """A split: a slice for each part that is used; a single part is the whole."""
    value, axis, ends = _split_of(op)
    whole = parted(build, value, axis)
    parts = []
    for result, begin, end in zip(op.results, ends[:-1], ends[1:], strict=True):
        is_used = result.first_use is not None
        parts.append(
            build.reshape(part(build, whole, 2, begin, end - begin), static_shape(result)) if is_used else value
        )
    return parts


def _rotation_of(op: tfl.TFLOp) -> tuple[Value, int, list[range]]:
    """Returns the value that an op joins all parts of along the axis of their split, the axis, and the places."""
    split = op.operands[0].owner
    need(isinstance(split, tfl.TFLOp) and split.op_name in ("split", "split_v"), "it joins no parts of a split")
    assert isinstance(split, tfl.TFLOp)
    value, axis, ends = _split_of(split)
    need(option(op, "axis") % len(shape_of(value)) == axis, "the parts are joined along another axis")
    need(option(op, "fused_activation_function") == "NONE", "an activation is fused")
    order = [each.index if isinstance(each, OpResult) and each.op is split else -1 for each in op.operands]
    need(sorted(order) == list(range(len(split.results))) != order, "they aren't all parts, in another order")
    return value, axis, [range(ends[index], ends[index + 1]) for index in order]


def _rotation_by_places(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A rotation: a choice of places."""
    value, axis, order = _rotation_of(op)
    block = shape_of(value)[axis + 1 :]
    need(types.is_static(block) and math.prod(block) >= _MIN_BLOCK, "the elements are moved in small blocks")
    need_gathered(value)
    return gather(build, value, [place for each in order for place in each], axis)


def _rotation_by_slices(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A rotation: slices that are joined."""
    value, axis, order = _rotation_of(op)
    return build.concatenation([part(build, value, axis, each.start, len(each)) for each in order], axis)


def _single(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A join of one operand: a copy of it."""
    need(len(op.operands) == 1, "it joins several")
    need(option(op, "fused_activation_function") == "NONE", "an activation is fused")
    return build.copy(op.operands[0])


def _slice(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A slice of a high rank: a dimension that is cut takes those that follow and are not."""
    begins, sizes = ints_of(op.operands[1]), static_shape(op.results[0])
    ranges = [range(begin, begin + size) for begin, size in zip(begins, sizes, strict=True)]
    return build.reshape(_in_order(build, *_merged(build, op.operands[0], ranges)), sizes)


def _slice_by_places(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A slice that begins where an operand says: the places are chosen."""
    value, begin = op.operands[:2]
    need(not tfl.is_constant(begin), "its begin is a constant")
    begin = build.to(begin, types.I32)
    for axis, (dim, size) in enumerate(zip(static_shape(value), static_shape(op.results[0]), strict=True)):
        if size != dim:
            first = build.reshape(build.slice(begin, (axis,), (1,)), (1, 1, 1, 1))
            steps = build.constant(np.arange(size, dtype=np.int32).reshape(1, 1, 1, size))
            value = gather(build, value, build.reshape(build.binary("add", first, steps), (size,)), axis)
    return build.reshape(value, static_shape(op.results[0]))


def _unpack(op: tfl.TFLOp, build: AcceleratorBuilder) -> list[Value]:
    """Rows as tensors: a slice for each that is used."""
    value = parted(build, op.operands[0], option(op, "axis"))
    return [
        build.reshape(part(build, value, 2, at, 1), static_shape(result)) if result.first_use is not None else value
        for at, result in enumerate(op.results)
    ]


def _pack(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """Tensors as rows: a join."""
    result = static_shape(op.results[0])
    before, _, behind = around(result, option(op, "axis"))
    parts = [build.reshape(value, (1, before, 1, behind)) for value in op.operands]
    return build.reshape(build.concatenation(parts, 2), result)


REWRITES = (
    Rewrite("product-of-a-row", "fully_connected", _row_of_product, 9, (types.F32,)),
    Rewrite("slice-as-reversal", "strided_slice", _as_reversal, 9, MOVED),
    Rewrite("rotation-by-places", "concatenation", _rotation_by_places, 2, (types.F32, types.I8, types.I32)),
    Rewrite("rotation-by-slices", "concatenation", _rotation_by_slices, 3),
    Rewrite("concatenation-of-one", "concatenation", _single, 3),
    Rewrite("strided-slice-without-masks", "strided_slice", _strided_slice, 2),
    Rewrite("slice-by-places", "slice", _slice_by_places, 2),
    Rewrite("slice-in-fewer-dimensions", "slice", _slice),
    Rewrite("reverse-in-rank-4", "reverse_v2", _reverse, 2),
    *(Rewrite(f"{name}-as-slices", name, _split, 0) for name in ("split", "split_v")),
    Rewrite("unpack-as-slices", "unpack", _unpack),
    Rewrite("pack-of-copies", "pack", of_copies, 2),
    Rewrite("pack-as-concatenation", "pack", _pack),
)
