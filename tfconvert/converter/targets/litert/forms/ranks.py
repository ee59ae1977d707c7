"""Operators in ranks that accelerators take.

reshape(tile(reshape(x)))           ->  resize_nearest_neighbor(x)             where rows and columns are repeated
reshape(tile(reshape(x)))           ->  reshape(tile(reshape(x)))              of rank 3
reshape(transpose(reshape(x)))      ->  reshape(transpose(reshape(x)))         of rank 4, by merged dimensions
reduce_max(pack(x, y), axis)        ->  maximum(x, y)                          reduce_min as well
softmax(x)                          ->  reshape(softmax(reshape(x, [1, N])))   of a vector
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.forms.form import (
    Emit,
    again,
    element_of,
    form,
    ints_of,
    producer,
    reshaped,
    shape_of,
    target_of,
    tensor_like,
)
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.converter.targets.litert.legalize.rearrange import merged
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_MAX_RANK = 4
# Pixels of fewer floats are repeated faster by two TILEs.
_MIN_FLOATS = 64
_RESIZED = frozenset(("f32", "i8", "ui8"))


def _repeat(op: Operation) -> tuple[Value, int, int]:
    """Returns what is repeated, the dimension, and how often; for a reshape that ends such a repetition."""
    tile = producer(op.operands[0], "tile")
    before = producer(tile.operands[0], "reshape")
    times = ints_of(tile.operands[1])
    axes = [axis for axis, each in enumerate(times) if each != 1]
    shape = shape_of(before.results[0])
    need(len(axes) == 1 and axes[0] > 0 and shape[axes[0]] == 1, "it doesn't repeat elements of one dimension")
    axis, count = axes[0] - 1, times[axes[0]]
    short = shape[: axis + 1] + shape[axis + 2 :]
    long = tuple(dim * count if at == axis and dim > 0 else dim for at, dim in enumerate(short))
    need(shape_of(op.results[0]) == long, "the repeated elements don't end in one dimension")
    return before.results[0], axis, count


def _as_resize(min_channels: int, op: Operation) -> Emit:
    """Repeats rows, then columns, or the other way round."""
    last, axis, count = _repeat(op)
    inner = last.owner
    assert isinstance(inner, tfl.TFLOp)
    middle = inner.operands[0]
    first, other, often = _repeat_before(middle, shape_of(op.results[0]), axis, count)
    need({axis, other} == {1, 2}, "it doesn't repeat rows and columns")
    shape, result = shape_of(first), shape_of(op.results[0])
    need(len(shape) == _MAX_RANK and shape[1] > 0 and shape[2] > 0, "it isn't an image of known size")
    need(shape[3] >= min_channels and element_of(first) in _RESIZED, "the pixels are small")
    is_exact = all(each & (each - 1) == 0 for each in (count, often))
    options = {"align_corners": False, "half_pixel_centers": not is_exact}

    def emit_resize(emit: LiteRTBuilder) -> Value:
        return emit.tfl("resize_nearest_neighbor", (first, emit.ints(result[1:3])), op.results[0].type, options)

    return emit_resize


def _repeat_before(value: Value, result: Shape, axis: int, count: int) -> tuple[Value, int, int]:
    """Returns the repetition that comes before another one, whose first reshape follows without one in between."""
    tile = producer(value, "tile")
    before = producer(tile.operands[0], "reshape")
    times, shape = ints_of(tile.operands[1]), shape_of(before.results[0])
    axes = [at for at, each in enumerate(times) if each != 1]
    need(len(axes) == 1 and axes[0] > 0 and shape[axes[0]] == 1, "it doesn't repeat elements of one dimension")
    other, often = axes[0] - 1, times[axes[0]]
    short = shape[: other + 1] + shape[other + 2 :]
    source = before.operands[0]
    need(shape_of(source) == short and len(short) == len(result), "another shape is repeated")
    factor = {axis: count}
    factor[other] = factor.get(other, 1) * often
    long = tuple(dim * factor.get(at, 1) if dim > 0 else dim for at, dim in enumerate(short))
    need(long == result, "the repeated elements don't end in one dimension each")
    return source, other, often


def _in_rank_3(op: Operation) -> Emit:
    """Repeats in three dimensions: what is before the repeated one, that, and what is after it."""
    tile = producer(op.operands[0], "tile")
    before = producer(tile.operands[0], "reshape")
    shape, times = shape_of(before.results[0]), ints_of(tile.operands[1])
    axes = [axis for axis, each in enumerate(times) if each != 1]
    need(len(axes) == 1 and len(shape) > _MAX_RANK, "accelerators take it, or it repeats several dimensions")
    need(not _is_repeated(op.results[0]), "what repeats it comes first")
    at = axes[0]
    need(shape.count(-1) < 2 and shape[at] > 0 and 0 not in shape, "several sizes are unknown")
    outer, inner = (-1 if -1 in part else math.prod(part) for part in (shape[:at], shape[at + 1 :]))
    target_of(op.results[0])

    def emit_tile(emit: LiteRTBuilder) -> Value:
        value = emit.reshape(before.operands[0], (outer, shape[at], inner))
        kind = tensor_like(value, (outer, shape[at] * times[at], inner))
        return reshaped(emit, emit.tfl("tile", (value, emit.ints((1, times[at], 1))), kind), op.results[0])

    return emit_tile


def _is_repeated(value: Value) -> bool:
    """Returns whether a value is repeated in too many dimensions."""
    users = [use.operation for use in value.uses]
    return [each.name for each in users] == ["tfl.tile"] and len(shape_of(value)) > _MAX_RANK


def _transposed(op: Operation) -> Emit:
    transpose = producer(op.operands[0], "transpose")
    before = producer(transpose.operands[0], "reshape")
    shape, permutation = shape_of(before.results[0]), ints_of(transpose.operands[1])
    need(len(shape) > _MAX_RANK and 0 not in shape and shape.count(-1) < 2, "accelerators take it")
    sizes, order = merged(shape, [axis % len(shape) for axis in permutation])
    need(1 < len(sizes) <= _MAX_RANK, "too many dimensions go apart")
    target_of(op.results[0])

    def emit_transpose(emit: LiteRTBuilder) -> Value:
        value = emit.reshape(before.operands[0], sizes)
        kind = tensor_like(value, [sizes[axis] for axis in order])
        return reshaped(emit, emit.tfl("transpose", (value, emit.ints(order)), kind), op.results[0])

    return emit_transpose


def _of_pack(op: Operation) -> Emit:
    pack = producer(op.operands[0], "pack")
    rank = len(shape_of(pack.results[0]))
    axes = [axis % rank for axis in ints_of(op.operands[1])]
    need(axes == [tfl.attribute(pack, "axis") % rank], "it doesn't reduce what is packed")
    need(not tfl.attribute(op, "keep_dims") and len(pack.operands) in (2, 3), "it keeps the dimension, or packs many")

    def emit_pairs(emit: LiteRTBuilder) -> Value:
        value, name = pack.operands[0], "maximum" if op.name == "tfl.reduce_max" else "minimum"
        for other in pack.operands[1:]:
            value = emit.tfl(name, (value, other), op.results[0].type)
        return value

    return emit_pairs


def _of_vector(op: Operation) -> Emit:
    value, result = op.operands[0], op.results[0]
    shape = shape_of(value)
    need(len(shape) == 1, "it isn't a vector")
    target_of(result)

    def emit_rows(emit: LiteRTBuilder) -> Value:
        rows = emit.reshape(value, (1, *shape))
        return reshaped(emit, again(emit, op, (rows,), rows.type), result)

    return emit_rows


PATTERNS: tuple[Pattern[Any], ...] = (
    form("repeat-in-rank-3", "reshape", _in_rank_3, benefit=2, depth=3),
    form("transpose-in-rank-4", "reshape", _transposed, benefit=2, depth=3),
    form("maximum-of-pack", "reduce_max", _of_pack),
    form("minimum-of-pack", "reduce_min", _of_pack),
    form("softmax-of-row", "softmax", _of_vector, is_longer=True),
)

OF_FLOATS: tuple[Pattern[Any], ...] = (
    form("repeat-as-resize", "reshape", partial(_as_resize, _MIN_FLOATS), benefit=14, depth=5),
)
"""Patterns for models whose activations stay floats."""

OF_INTEGERS: tuple[Pattern[Any], ...] = (
    form("repeat-as-resize", "reshape", partial(_as_resize, 1), benefit=14, depth=5),
)
"""Patterns for models whose activations become integers."""
