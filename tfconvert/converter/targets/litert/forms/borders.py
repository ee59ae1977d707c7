"""Borders around tensors, and batches that are made of spatial blocks.

    pad(x, p)                        ->  concatenation(zeros, x, zeros)         below rank 3, and along the batch
    padv2(x, p, -inf)                ->  padv2(x, p, the smallest number)
    mirror_pad(x, p)                 ->  gather(gather(x, rows), columns)

By default; on a processor also

    mirror_pad(x, p)                 ->  concatenation(slices of x), for each dimension       of few channels

The rest is for accelerators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.forms.builder import MAX_RUNS, FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, Rewrite, planned
from tfconvert.converter.targets.litert.forms.questions import (
    MAX_RANK,
    around,
    array_of,
    elements,
    ints_of,
    is_float,
    large,
    need_element,
    need_floats,
    option,
    static_shape,
)
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _pairs(op: Operation) -> list[tuple[int, int]]:
    found = ints_of(op.operands[1])
    return list(zip(found[::2], found[1::2], strict=True))


def _pad_in_rank_4(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A border of a tensor of a lower rank: with the axes after a batch of one."""
    shape = static_shape(op.operands[0])
    need(len(shape) < 4, "its rank is 4 already")
    missing = (0,) * (3 - len(shape))
    pairs = [(0, 0), *_pairs(op), *((0, 0) for _ in missing)]
    return _bordered(op, build, op.operands[0], (1, *shape, *(1 for _ in missing)), pairs, static_shape(op.results[0]))


def _pad_by_axis(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A border of a batch, or of many axes: of each axis for itself, as that of the width."""
    value = op.operands[0]
    for axis, pair in enumerate(_pairs(op)):
        if any(pair):
            shape = list(static_shape(value))
            parts = (1, *around(static_shape(value), axis))
            shape[axis] += sum(pair)
            value = _bordered(op, build, value, parts, [(0, 0), (0, 0), pair, (0, 0)], shape)
    need(value is not op.operands[0], "it has no border")
    return value


def _bordered(
    op: tfl.TFLOp,
    build: FormBuilder,
    value: Value,
    shape: Sequence[int],
    pairs: Sequence[tuple[int, int]],
    result: Sequence[int],
) -> Value:
    """Emits a pad of a value in another shape, with the numbers that an op pads with."""
    low = [size + sum(pair) for size, pair in zip(shape, pairs, strict=True)]
    fill = [_finite(op, build, each) for each in op.operands[2:]]
    operands = (build.reshape(value, shape), build.constant(np.array(pairs, np.int32)), *fill)
    return build.reshape(build.again(op, operands, [tuple(low)]).results[0], result)


def _finite(op: tfl.TFLOp, build: FormBuilder, fill: Value) -> Value:
    """Returns the number of a border as shaders can state it: infinity as the largest one.

    In files for processors, only where no result shows the difference.
    """
    if not is_float(fill) or not math.isinf(array_of(fill)) or (build.is_default and not _is_hidden(op, fill)):
        return fill
    return build.array(np.array(math.copysign(np.finfo(np.float32).max, array_of(fill))), fill)


def _is_hidden(op: tfl.TFLOp, fill: Value) -> bool:
    """Returns whether every use takes the maximum of windows none of which lies within the border."""
    _, height, width, _ = _pairs(op) if len(_pairs(op)) == 4 else [(0, 0)] * 4
    users = [use.operation for use in op.results[0].uses]
    return bool(array_of(fill) < 0) and all(
        user.name == "tfl.max_pool_2d"
        and option(user, "padding") == "VALID"
        and max(height) < option(user, "filter_height")
        and max(width) < option(user, "filter_width")
        for user in users
    )


def _pad_with_finite(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A border of infinity: of the largest number."""
    need_floats(op.operands[0])
    fill = _finite(op, build, op.operands[2])
    need(fill is not op.operands[2], "its border is finite, or results show it")
    return build.again(op, (*op.operands[:2], fill)).results[0]


def _joined(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A border of elements that are no integers with scales: constants that are joined to it."""
    value, pairs = op.operands[0], _pairs(op)
    need_element(value, types.I32, types.I1, types.F32)
    fill = array_of(op.operands[2]).item() if op.op_name == "padv2" else 0
    axes = [axis for axis, pair in enumerate(pairs) if any(pair)]
    need(bool(axes) and all(number >= 0 for pair in pairs for number in pair), "it has no border")
    if build.is_default:
        shape = static_shape(value)
        is_refused = len(shape) < 3 or (len(shape) == 3 and shape[0] > 1) or axes == [0]
        is_refused = is_refused or value.element != types.F32
        need(is_refused and len(shape) <= MAX_RANK and not build.as_integers, "accelerators take it")
    for axis in axes:
        value = _along(build, value, axis, partial(_bordered_by, build, pairs[axis], fill))
    return value


def _bordered_by(build: FormBuilder, pair: tuple[int, int], fill: float, value: Value, axis: int) -> Value:
    return build.border(value, axis, *pair, fill)


def _along(build: FormBuilder, value: Value, axis: int, function: Callable[[Value, int], Value]) -> Value:
    """Emits what a function does along an axis, in rank 4 if the value's rank is higher."""
    shape = static_shape(value)
    if len(shape) <= MAX_RANK:
        return function(value, axis)
    new = function(build.parted(value, axis), 2)
    return build.reshape(new, (*shape[:axis], static_shape(new)[2], *shape[axis + 1 :]))


def _mirror_by_slices(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A mirrored border: rows that are joined."""

    def chosen(places: Sequence[int], value: Value, axis: int) -> Value:
        return build.runs(value, places, axis, MAX_RUNS, may_turn=True)

    return _mirror(op, build, chosen)


def _mirror_by_places(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A mirrored border: constant places of each axis."""
    return _mirror(op, build, lambda places, value, axis: build.gather(value, places, axis))


def _mirror(op: tfl.TFLOp, build: FormBuilder, chosen: Callable[[Sequence[int], Value, int], Value]) -> Value:
    value = op.operands[0]
    for axis, pair in enumerate(_pairs(op)):
        if any(pair):
            places = _mirrored_places(op, static_shape(value)[axis], pair)
            value = _along(build, value, axis, partial(chosen, places))
    need(value is not op.operands[0], "it has no border")
    return value


def _mirrored_places(op: Operation, size: int, pair: tuple[int, int]) -> list[int]:
    places: list[int] = np.pad(np.arange(size), pair, option(op, "mode").lower()).tolist()
    return places


def _blocks_to_batch(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """`tfl.space_to_batch_nd`: a border, and two transposes of rank 4."""
    value, sizes = op.operands[0], ints_of(op.operands[1])
    pads = ints_of(op.operands[2])
    for index in range(len(sizes)):
        if any(pads[2 * index : 2 * index + 2]):
            pairs = [(0, 0)] * len(static_shape(value))
            pairs[index + 1] = (pads[2 * index], pads[2 * index + 1])
            value = build.pad(value, pairs)
    batch, height, width, behind, rows, columns = _blocks(static_shape(value), sizes)
    tall, wide = height // rows, width // columns
    value = build.reshape(value, (batch * tall, rows, wide, columns * behind))
    value = build.reshape(build.transpose(value, (1, 0, 2, 3)), (rows, batch * tall * wide, columns, behind))
    return build.reshape(build.transpose(value, (0, 2, 1, 3)), static_shape(op.results[0]))


def _batch_to_blocks(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """`tfl.batch_to_space_nd`: two transposes of rank 4, and a slice."""
    value, sizes, crops = op.operands[0], ints_of(op.operands[1]), ints_of(op.operands[2])
    shape = static_shape(value)
    whole, height, width, behind, rows, columns = _blocks(shape, sizes)
    batch = whole // (rows * columns)
    value = build.reshape(value, (rows, columns, batch * height * width, behind))
    value = build.reshape(build.transpose(value, (0, 2, 1, 3)), (rows, batch * height, width, columns * behind))
    value = build.transpose(value, (1, 0, 2, 3))
    spatial = [size * block for size, block in zip(shape[1:], sizes, strict=False)]
    value = build.reshape(value, (batch, *spatial, *shape[len(sizes) + 1 :]))
    for index in range(len(sizes)):
        result = static_shape(op.results[0])[index + 1]
        value = build.cut(value, index + 1, crops[2 * index], result)
    return value


def _blocks(shape: tuple[int, ...], sizes: list[int]) -> tuple[int, int, int, int, int, int]:
    """Returns the batch, the height, the width, all behind, and the height and width of a block."""
    need(1 <= len(sizes) <= 2, "it has more than two spatial dimensions")
    spatial = [1] * (2 - len(sizes)) + list(shape[1 : len(sizes) + 1])
    blocks = [1] * (2 - len(sizes)) + sizes
    return (shape[0], *spatial, math.prod(shape[len(sizes) + 1 :]), *blocks)  # type: ignore[return-value]


def _depth_of_batch(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A rearrangement of depth and space with a batch: which is a part of the height."""
    (batch, height, *rest), result = static_shape(op.operands[0]), static_shape(op.results[0])
    need(batch > 1, "it has no batch")
    value = build.reshape(op.operands[0], (1, batch * height, *rest))
    new = build.again(op, (value,), [(1, batch * result[1], *result[2:])])
    return build.reshape(new.results[0], result)


def _depth_by_transpose(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A rearrangement of depth and space: a transpose of rank 4."""
    block, is_from_depth = option(op, "block_size"), op.op_name == "depth_to_space"
    batch, height, width, depth = static_shape(op.results[0] if is_from_depth else op.operands[0])
    apart = [batch * height // block, block, width // block, block * depth]
    if is_from_depth:
        apart[1], apart[2] = apart[2], apart[1]
    value = build.transpose(build.reshape(op.operands[0], apart), (0, 2, 1, 3))
    return build.reshape(value, static_shape(op.results[0]))


_JOINED = (types.F32, types.I32, types.I1)


# From so many elements behind a padded dimension on, gathering rows is as fast as joining slices.
_MIN_GATHERED = 24
# The maximum number of slices at a border.
_MAX_SLICES = 4


def _mirrored(op: Operation) -> Emit:
    x = op.operands[0]
    shape, pads = large(x), _pairs(op)
    offset = 1 if option(op, "mode") == "REFLECT" else 0
    padded = [axis for axis, pad in enumerate(pads) if pad != (0, 0)]
    need(all(0 <= count <= shape[axis] - offset for axis in padded for count in pads[axis]), "it pads too much")
    is_gathered = elements(shape[padded[-1] + 1 :]) >= _MIN_GATHERED if padded else False
    need(is_gathered or (is_float(x) and max(map(max, pads)) <= _MAX_SLICES), "many short rows would be copied")

    def emit_rows(build: FormBuilder) -> Value:
        value = x
        for axis in reversed(padded):
            places = _mirrored_places(op, shape[axis], pads[axis])
            if is_gathered:
                value = build.gather(value, places, axis)
            else:
                before, after = pads[axis]
                ends = [
                    [build.cut(value, axis, at, 1) for at in side]
                    for side in (places[:before], places[len(places) - after :])
                ]
                value = build.concatenation([*ends[0], value, *ends[1]], axis)
        return value

    return emit_rows


FAST: tuple[Pattern[Any], ...] = (planned("mirror-by-rows", "mirror_pad", _mirrored),)

REWRITES = (
    Rewrite("pad-with-finite-numbers", "padv2", _pad_with_finite, 4, (types.F32,)),
    *(Rewrite(f"{name}-in-rank-4", name, _pad_in_rank_4, 3) for name in ("pad", "padv2")),
    *(Rewrite(f"{name}-by-axis", name, _pad_by_axis, 0) for name in ("pad", "padv2")),
    *(Rewrite(f"{name}-as-concatenation", name, _joined, -1, _JOINED) for name in ("pad", "padv2")),
    Rewrite("mirror-as-slices", "mirror_pad", _mirror_by_slices, 2, only_for="gpu"),
    # Two GATHERs take 8 us instead of 26 for [1, 64, 64, 1], 3 instead of 23 for [1, 32, 32, 3], and 14 instead of 1510
    # for [1, 64, 64, 16].
    Rewrite(
        "mirror-as-gather",
        "mirror_pad",
        _mirror_by_places,
        1,
        (types.F32, types.I8, types.I32),
        adds=True,
        only_for="processors",
    ),
    Rewrite("blocks-to-batch", "space_to_batch_nd", _blocks_to_batch),
    Rewrite("batch-to-blocks", "batch_to_space_nd", _batch_to_blocks),
    *(Rewrite(f"{name}-of-batch", name, _depth_of_batch) for name in ("depth_to_space", "space_to_depth")),
    *(Rewrite(f"{name}-as-transpose", name, _depth_by_transpose, 0) for name in ("depth_to_space", "space_to_depth")),
)
