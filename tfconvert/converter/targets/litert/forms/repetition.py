"""Repetitions, and concatenations of many parts.

    reshape(tile(reshape(x)))           ->  resize_nearest_neighbor(x)             where rows and columns are repeated
    reshape(tile(reshape(x)))           ->  reshape(tile(reshape(x)))              of rank 3

By default; on a processor also

    resize_nearest_neighbor(x)          ->  reshape(concatenation(r, r)), r = reshape(x), of few channels
    resize_nearest_neighbor(x)          ->  gather(gather(x, rows), columns)              of more
    tile(x)                             ->  reshape(concatenation(r, r)), r = reshape(x), for each dimension

The rest is for accelerators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, Rewrite, planned, worth
from tfconvert.converter.targets.litert.forms.questions import (
    MAX_RANK,
    MOVED,
    ints_of,
    is_float,
    large,
    like,
    option,
    producer,
    shape_of,
    sized,
    static_shape,
    target_of,
)
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# The maximum number of parts that all runtimes join at once, and that a repetition may be joined of.
_MAX_PARTS = 10
_MAX_COPIES = 100

# Pixels of fewer floats are repeated faster by two TILEs.
_MIN_FLOATS = 64


def _joined(parts: list[Value], axis: int, build: FormBuilder) -> Value:
    """Joins parts along an axis, at most `_MAX_PARTS` at once."""
    while len(parts) > 1:
        groups = [parts[start : start + _MAX_PARTS] for start in range(0, len(parts), _MAX_PARTS)]
        parts = [build.concatenation(group, axis) for group in groups]
    return parts[0]


def _concatenation(op: tfl.TFLOp, build: FormBuilder) -> Value:
    need(len(op.operands) > _MAX_PARTS, "it has few parts")
    need(option(op, "fused_activation_function") == "NONE", "an activation is fused")
    return _joined(list(op.operands), int(option(op, "axis")), build)


def _tile(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A repetition along axes as a concatenation along each."""
    value = op.operands[0]
    multiples = ints_of(op.operands[1])
    need(math.prod(multiples) <= _MAX_COPIES, "it repeats often")
    need(all(multiples), "it has no elements")
    # The small ones first: what is repeated last is joined of large parts.
    for axis in sorted(range(len(multiples)), key=lambda at: multiples[at]):
        value = _joined([value] * multiples[axis], axis, build)
    return value


def _by_resizing(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """Pixels that are repeated along an inner axis of 1 as an image of nearest neighbours.

    `[1, h, 1, w, c]` or `[1, h, w, 1, c]`, repeated along the 1, is an image that is higher or wider.
    """
    value = op.operands[0]
    axis, times = _axis_of(op, static_shape(value))
    shape = static_shape(value)
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    need(outer > 1 and inner > 1, "it repeats whole tensors")
    places = np.arange(outer * times, dtype=np.float32)
    need(np.array_equal(np.floor(places * np.float32(1 / times)), places // times), "the kernel rounds its places")
    image = build.reshape(value, (1, outer, 1, inner))
    larger = _resized(build, image, (1, outer * times, 1, inner), is_exact=True)
    return build.reshape(larger, static_shape(op.results[0]))


def _resized(build: FormBuilder, image: Value, shape: Shape, *, is_exact: bool) -> Value:
    options: dict[str, Any] = {"align_corners": False, "half_pixel_centers": not is_exact}
    return build.tfl("resize_nearest_neighbor", (image, build.ints(shape[1:3])), like(image, shape), options)


def _axis_of(tile: tfl.TFLOp, shape: Shape) -> tuple[int, int]:
    """Returns the only axis that a repetition is along, which has the size 1, and how often it repeats."""
    found = [(axis, times) for axis, times in enumerate(ints_of(tile.operands[1])) if times != 1]
    need(len(found) == 1 and shape[found[0][0]] == 1, "it repeats more than an axis of 1")
    return found[0]


def _repetition_before(value: Value) -> tuple[Value, Shape, int, int]:
    """Returns what a repetition of elements repeats, in which shape, along which dimension, and how often.

    A reshape adds a dimension of 1 behind the repeated one before they are repeated along that.
    """
    tile = producer(value, "tile")
    before = producer(tile.operands[0], "reshape")
    shape = shape_of(before.results[0])
    axis, times = _axis_of(tile, shape)
    need(axis > 0, "it repeats whole tensors")
    return before.operands[0], shape[:axis] + shape[axis + 1 :], axis - 1, times


def _pixels(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """Repeated rows of repeated columns, or the other way round: an image of nearest neighbours."""
    middle, _, axis, times = _repetition_before(op.operands[0])
    first, shape, other, often = _repetition_before(middle)
    need({axis, other} == {1, 2}, "it doesn't repeat rows and columns")
    need(shape_of(first) == shape and len(shape) == MAX_RANK, "another shape is repeated")
    factors = {axis: times, other: often}
    large = tuple(dim * factors.get(at, 1) if dim > 0 else dim for at, dim in enumerate(shape))
    need(large == shape_of(op.results[0]), "the repeated elements don't end in one dimension each")
    need(shape[1] > 0 < shape[2] and shape[3] >= (1 if build.as_integers else _MIN_FLOATS), "the pixels are small")
    return _resized(build, first, large, is_exact=all(each & (each - 1) == 0 for each in (times, often)))


def _in_rank_3(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """Elements that are repeated: in three dimensions, what is before the repeated one, that, and what is after it."""
    source, short, axis, times = _repetition_before(op.operands[0])
    need(
        len(short) >= MAX_RANK and not _is_repeated(op.results[0]), "accelerators take it, or what repeats it is first"
    )
    need(short.count(-1) < 2 and 0 not in short, "several sizes are unknown")
    outer, inner = (-1 if -1 in each else math.prod(each) for each in (short[: axis + 1], short[axis + 1 :]))
    value = build.reshape(source, (outer, 1, inner))
    value = build.tfl("tile", (value, build.ints((1, times, 1))), like(value, (outer, times, inner)))
    return build.reshape(value, target_of(op.results[0]))


def _is_repeated(value: Value) -> bool:
    """Returns whether a value is repeated in too many dimensions."""
    users = [use.operation.name for use in value.uses]
    return users == ["tfl.tile"] and len(shape_of(value)) > MAX_RANK


def _tile_in_fewer_dimensions(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A repetition: a dimension that is repeated takes those that follow and are not along."""
    shape, multiples = static_shape(op.operands[0]), ints_of(op.operands[1])
    return _repeated(build, op.operands[0], shape, multiples, static_shape(op.results[0]))


def _broadcast(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A broadcast: a repetition."""
    shape, result = static_shape(op.operands[0]), static_shape(op.results[0])
    shape = (*[1] * (len(result) - len(shape)), *shape)
    multiples = [after // before for before, after in zip(shape, result, strict=True)]
    return _repeated(build, op.operands[0], shape, multiples, result)


def _repeated(build: FormBuilder, value: Value, shape: Shape, multiples: Sequence[int], result: Shape) -> Value:
    sizes: list[int] = []
    counts: list[int] = []
    for size, count in zip(shape, multiples, strict=True):
        if sizes and count == 1:
            sizes[-1] *= size
        elif sizes and sizes[-1] == 1:
            sizes[-1], counts[-1] = size, counts[-1] * count
        else:
            sizes.append(size)
            counts.append(count)
    missing = MAX_RANK - len(sizes)
    tiled = build.tile(build.reshape(value, (*[1] * missing, *sizes)), (*[1] * missing, *counts))
    return build.reshape(tiled, result)


# The maximum number of copies that are joined faster, and of channels that are joined, or gathered, faster.
_MAX_JOINED = 5
_MAX_JOINED_CHANNELS = 8
_MAX_CHANNELS = 128
# The kernel of tile copies longer rows as fast.
_MAX_COPIED = 256


def _copied(build: FormBuilder, x: Value, copies: Sequence[int], block: Sequence[int]) -> Value:
    """Inserts copies along dimensions.

    Args:
        build: The builder.
        x: The value.
        copies: How often each dimension is there.
        block: How many neighbours of a dimension stay together.
    """
    value, shape = x, list(shape_of(x))
    is_open = -1 in shape
    for axis in reversed(range(len(shape))):
        if copies[axis] > 1:
            inner = block[axis] * math.prod(shape[axis + 1 :])
            rows = build.reshape(value, (-1 if is_open else math.prod(shape) // inner, 1, inner))
            value = build.concatenation([rows] * copies[axis], 1)
            shape[axis] *= copies[axis]
    return build.reshape(value, shape)


def _image(op: Operation) -> tuple[Shape, Shape, bool]:
    """Returns the shapes of an image and of the resized one, and whether each pixel is repeated a few times."""
    x = op.operands[0]
    shape, target = large(x), sized(op.results[0])
    worth(shape[-1] <= _MAX_CHANNELS, "the kernel copies many channels fast")
    need(is_float(x) and len(shape) == 4 and min(shape[1:]) > 0, "it isn't an image of 32-bit floats")
    need(constant_ints(op.operands[1]) is not None and not option(op, "align_corners"), "the corners are aligned")
    factors = [divmod(new, old) for new, old in zip(target[1:3], shape[1:3], strict=True)]
    is_exact = not any(rest for _, rest in factors) and 1 < max(times for times, _ in factors) <= _MAX_JOINED
    return shape, target, is_exact


def _enlarged(op: Operation) -> Emit:
    shape, target, is_exact = _image(op)
    need(is_exact, "it doesn't repeat each pixel a few times")
    need(shape[-1] <= _MAX_JOINED_CHANNELS, "gathering pixels of many channels is faster")
    copies = [1, *(new // old for new, old in zip(target[1:3], shape[1:3], strict=True)), 1]
    return lambda build: _copied(build, op.operands[0], copies, (1, 1, 1, 1))


def _nearest(op: Operation) -> Emit:
    shape, target, is_exact = _image(op)
    need(shape[-1] > _MAX_JOINED_CHANNELS or not is_exact, "joining copies of pixels of few channels is faster")
    offset = np.float32(0.5 if option(op, "half_pixel_centers") else 0)
    # What makes the image smallest comes first.
    axes = sorted((axis for axis in (1, 2) if shape[axis] != target[axis]), key=lambda axis: target[axis] / shape[axis])
    need(bool(axes), "it keeps the size")

    def emit_rows(build: FormBuilder) -> Value:
        value = op.operands[0]
        for axis in axes:
            scale = np.float32(shape[axis]) / np.float32(target[axis])
            at = np.floor((np.arange(target[axis], dtype=np.float32) + offset) * scale)
            value = build.gather(value, np.minimum(at, shape[axis] - 1).astype(int).tolist(), axis)
        return value

    return emit_rows


def _tiled(op: Operation) -> Emit:
    x, copies = op.operands[0], constant_ints(op.operands[1])
    shape = sized(x)
    large(op.results[0])
    need(is_float(x) and copies is not None and len(copies) == len(shape), "it isn't of 32-bit floats")
    assert copies is not None
    repeated = [axis for axis, count in enumerate(copies) if count > 1]
    need(bool(repeated) and min(copies) > 0 and max(copies) <= _MAX_JOINED, "there are many copies, or none")
    need(min(shape[repeated[0] :]) > 0, "a size is unknown")
    need(all(shape[axis] == 1 for axis in repeated), "it doesn't repeat single rows")
    worth(math.prod(shape[repeated[-1] + 1 :]) <= _MAX_COPIED, "the kernel copies long rows fast")
    return lambda build: _copied(build, x, copies, shape)


FAST: tuple[Pattern[Any], ...] = (
    planned("enlarge-by-copies", "resize_nearest_neighbor", _enlarged),
    planned("resize-by-rows", "resize_nearest_neighbor", _nearest),
    planned("tile-by-copies", "tile", _tiled),
)

NEEDS_BY_DEFAULT = "tile"
"""The operators without any of which there is nothing to rewrite by default."""

REWRITES = (
    Rewrite("repetition-of-pixels", "reshape", _pixels, 14, MOVED[:3]),
    Rewrite("repetition-in-rank-3", "reshape", _in_rank_3, 2, MOVED),
    Rewrite("repetition-as-image", "tile", _by_resizing, 2),
    Rewrite("repetition-by-concatenation", "tile", _tile),
    Rewrite("tile-in-fewer-dimensions", "tile", _tile_in_fewer_dimensions, 1),
    Rewrite("broadcast-as-tile", "broadcast_to", _broadcast),
    Rewrite("concatenation-in-steps", "concatenation", _concatenation),
)
