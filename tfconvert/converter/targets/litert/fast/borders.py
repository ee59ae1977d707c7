"""Images that are mirrored at their borders or enlarged, by copies of rows.

mirror_pad(x)                ->  gather(gather(x, columns), rows)                 of many channels
mirror_pad(x)                ->  concatenation(slices of x), for each dimension   of few
resize_nearest_neighbor(x)   ->  reshape(concatenation(r, r)), r = reshape(x), for each dimension   of few channels
resize_nearest_neighbor(x)   ->  gather(gather(x, rows), columns)                 of more
tile(x)                      ->  the same
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_array, constant_ints
from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.accelerators.builder import like, shape_of
from tfconvert.converter.targets.litert.fast.fast_form import (
    Emit,
    FastBuilder,
    elements,
    fast,
    is_float,
    large,
    sized,
    worth,
)
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# From so many elements behind a padded dimension on, gathering rows is as fast as joining slices.
_MIN_GATHERED = 24
# The maximum number of slices at a border, or of copies.
_MAX_SLICES = 4
_MAX_COPIES = 5
_MAX_CHANNELS = 128
# The maximum number of channels for which joining copies of pixels is faster than gathering them.
_MAX_JOINED = 8
# The kernel of tile copies longer rows as fast.
_MAX_COPIED = 256


def _mirrored(op: Operation) -> Emit:
    x = op.operands[0]
    shape = large(x)
    amounts = constant_array(op.operands[1])
    need(amounts is not None and amounts.shape == (len(shape), 2), "the padding is computed")
    assert amounts is not None
    pads = [(int(before), int(after)) for before, after in amounts]
    offset = 1 if tfl.attribute(op, "mode") == "REFLECT" else 0
    padded = [axis for axis, pad in enumerate(pads) if pad != (0, 0)]
    need(all(0 <= count <= shape[axis] - offset for axis in padded for count in pads[axis]), "it pads too much")
    is_gathered = elements(shape[padded[-1] + 1 :]) >= _MIN_GATHERED if padded else False
    need(is_gathered or (is_float(x) and max(map(max, pads)) <= _MAX_SLICES), "many short rows would be copied")

    def emit_rows(emit: LiteRTBuilder) -> Value:
        build, value = FastBuilder(emit), x
        for axis in reversed(padded):
            dim, (before, after) = shape[axis], pads[axis]
            left = range(before - 1 + offset, offset - 1, -1)
            right = range(dim - 1 - offset, dim - 1 - offset - after, -1)
            if is_gathered:
                value = _gathered(emit, value, [*left, *range(dim), *right], axis)
            else:
                ends = [[_row(build, value, axis, at) for at in side] for side in (left, right)]
                value = build.concat([*ends[0], value, *ends[1]], axis)
        return value

    return emit_rows


def _gathered(emit: LiteRTBuilder, value: Value, rows: Sequence[int], axis: int) -> Value:
    shape = list(shape_of(value))
    shape[axis] = len(rows)
    operands = (value, emit.constant(np.array(rows, np.int32)))
    return emit.tfl("gather", operands, like(value, shape), {"axis": axis, "batch_dims": 0})


def _row(build: FastBuilder, value: Value, axis: int, index: int) -> Value:
    shape = shape_of(value)
    begin = [index if at == axis else 0 for at in range(len(shape))]
    return build.slice(value, begin, [1 if at == axis else dim for at, dim in enumerate(shape)])


def _repeated(emit: LiteRTBuilder, x: Value, copies: Sequence[int], block: Sequence[int]) -> Value:
    """Inserts copies along dimensions.

    Args:
        emit: The builder.
        x: The value.
        copies: How often each dimension is there.
        block: How many neighbours of a dimension stay together.
    """
    build, value, shape = FastBuilder(emit), x, list(shape_of(x))
    is_open = -1 in shape
    for axis in reversed(range(len(shape))):
        if copies[axis] > 1:
            inner = block[axis] * math.prod(shape[axis + 1 :])
            rows = build.reshape(value, (-1 if is_open else math.prod(shape) // inner, 1, inner))
            value = build.concat([rows] * copies[axis], 1)
            shape[axis] *= copies[axis]
    return build.reshape(value, shape)


def _image(op: Operation) -> tuple[Sequence[int], Sequence[int], bool]:
    """Returns the shapes of an image and of the resized one, and whether each pixel is repeated a few times."""
    x = op.operands[0]
    shape, target = large(x), sized(op.results[0])
    worth(shape[-1] <= _MAX_CHANNELS, "the kernel copies many channels fast")
    need(is_float(x) and len(shape) == 4 and min(shape[1:]) > 0, "it isn't an image of 32-bit floats")
    need(
        constant_ints(op.operands[1]) is not None and not tfl.attribute(op, "align_corners"), "the corners are aligned"
    )
    factors = [divmod(new, old) for new, old in zip(target[1:3], shape[1:3], strict=True)]
    is_exact = not any(rest for _, rest in factors) and 1 < max(times for times, _ in factors) <= _MAX_COPIES
    return shape, target, is_exact


def _enlarged(op: Operation) -> Emit:
    x = op.operands[0]
    shape, target, is_exact = _image(op)
    need(is_exact, "it doesn't repeat each pixel a few times")
    need(shape[-1] <= _MAX_JOINED, "gathering pixels of many channels is faster")
    copies = [1, *(new // old for new, old in zip(target[1:3], shape[1:3], strict=True)), 1]
    return lambda emit: _repeated(emit, x, copies, (1, 1, 1, 1))


def _resized(op: Operation) -> Emit:
    shape, target, is_exact = _image(op)
    need(shape[-1] > _MAX_JOINED or not is_exact, "joining copies of pixels of few channels is faster")
    offset = np.float32(0.5 if tfl.attribute(op, "half_pixel_centers") else 0)
    # What makes the image smallest comes first.
    axes = sorted((axis for axis in (1, 2) if shape[axis] != target[axis]), key=lambda axis: target[axis] / shape[axis])
    need(bool(axes), "it keeps the size")

    def emit_rows(emit: LiteRTBuilder) -> Value:
        value = op.operands[0]
        for axis in axes:
            scale = np.float32(shape[axis]) / np.float32(target[axis])
            at = np.floor((np.arange(target[axis], dtype=np.float32) + offset) * scale)
            value = _gathered(emit, value, np.minimum(at, shape[axis] - 1).astype(int).tolist(), axis)
        return value

    return emit_rows


def _tiled(op: Operation) -> Emit:
    x, copies = op.operands[0], constant_ints(op.operands[1])
    shape = sized(x)
    large(op.results[0])
    need(is_float(x) and copies is not None and len(copies) == len(shape), "it isn't of 32-bit floats")
    assert copies is not None
    repeated = [axis for axis, count in enumerate(copies) if count > 1]
    need(bool(repeated) and min(copies) > 0 and max(copies) <= _MAX_COPIES, "there are many copies, or none")
    need(min(shape[repeated[0] :]) > 0, "a size is unknown")
    need(all(shape[axis] == 1 for axis in repeated), "it doesn't repeat single rows")
    worth(math.prod(shape[repeated[-1] + 1 :]) <= _MAX_COPIED, "the kernel copies long rows fast")
    return lambda emit: _repeated(emit, x, copies, shape)


PATTERNS: tuple[Pattern[Any], ...] = (
    fast("mirror-by-rows", "mirror_pad", _mirrored),
    fast("enlarge-by-copies", "resize_nearest_neighbor", _enlarged),
    fast("resize-by-rows", "resize_nearest_neighbor", _resized),
    fast("tile-by-copies", "tile", _tiled),
)
