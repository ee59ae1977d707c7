"""Repetitions, and concatenations of many parts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.accelerators.builder import (
    AcceleratorBuilder,
    form,
    ints_of,
    option,
    static_shape,
)
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.values import Value

# The maximum number of parts that all runtimes join at once, and that a repetition may be joined of.
_MAX_PARTS = 10
_MAX_COPIES = 100

_NEAREST = {"align_corners": False, "half_pixel_centers": False}


def _joined(parts: list[Value], axis: int, build: AcceleratorBuilder) -> Value:
    """Joins parts along an axis, at most `_MAX_PARTS` at once."""
    while len(parts) > 1:
        groups = [parts[start : start + _MAX_PARTS] for start in range(0, len(parts), _MAX_PARTS)]
        parts = [build.concatenation(group, axis) for group in groups]
    return parts[0]


def _concatenation(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    need(len(op.operands) > _MAX_PARTS, "it has few parts")
    need(option(op, "fused_activation_function") == "NONE", "an activation is fused")
    return _joined(list(op.operands), int(option(op, "axis")), build)


def _tile(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A repetition along axes as a concatenation along each."""
    value = op.operands[0]
    multiples = ints_of(op.operands[1])
    need(math.prod(multiples) <= _MAX_COPIES, "it repeats often")
    need(all(multiples), "it has no elements")
    # The small ones first: what is repeated last is joined of large parts.
    for axis in sorted(range(len(multiples)), key=lambda at: multiples[at]):
        value = _joined([value] * multiples[axis], axis, build)
    return value


def _repeat(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """Pixels that are repeated along an inner axis of 1 as an image of nearest neighbours.

    `[1, h, 1, w, c]` or `[1, h, w, 1, c]`, repeated along the 1, is an image that is higher or wider.
    """
    value = op.operands[0]
    shape, multiples = static_shape(value), ints_of(op.operands[1])
    axes = [axis for axis, times in enumerate(multiples) if times > 1]
    need(len(axes) == 1 and shape[axes[0]] == 1, "it repeats more than an axis of 1")
    (axis,) = axes
    times = multiples[axis]
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    need(outer > 1 and inner > 1, "it repeats whole tensors")
    places = np.arange(outer * times, dtype=np.float32)
    need(np.array_equal(np.floor(places * np.float32(1 / times)), places // times), "the kernel rounds its places")
    image = build.reshape(value, (1, outer, 1, inner))
    kind = types.tensor(types.element_of(value.type), (1, outer * times, 1, inner))
    options: dict[str, Any] = _NEAREST
    larger = build.tfl("resize_nearest_neighbor", (image, build.ints((outer * times, 1))), kind, options)
    return build.reshape(larger, static_shape(op.results[0]))


PATTERNS = (
    form("repetition-as-image", "tile", _repeat, 2),
    form("repetition-by-concatenation", "tile", _tile),
    form("concatenation-in-steps", "concatenation", _concatenation),
)
