"""States of loops: written where accelerators write them right, and begun with constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.accelerators.builder import AcceleratorBuilder, form, static_shape
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.values import Value

_MAX_RANK = 4


def _write(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """`tfl.dynamic_update_slice`: in rank 4, with dimensions of 1 in front."""
    whole, part, start = op.operands
    shape, small = static_shape(whole), static_shape(part)
    need(0 < len(shape) < _MAX_RANK, "its rank is 4 or above")
    missing = _MAX_RANK - len(shape)
    front = (1,) * missing
    zeros = build.array(np.zeros(missing, np.int32), start)
    operands = [
        build.reshape(whole, (*front, *shape)),
        build.reshape(part, (*front, *small)),
        build.concatenation([zeros, start], 0),
    ]
    (value,) = build.again(op, operands, [(*front, *shape)]).results
    return build.reshape(value, shape)


def _zeros(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """`tfl.zeros_like`: zeros."""
    shape = static_shape(op.results[0])
    element = types.element_of(op.results[0].type)
    return build.constant(np.zeros(shape, types.numpy_dtype(element)), element)


PATTERNS: tuple[Pattern[Any], ...] = (
    form("update-in-rank-4", "dynamic_update_slice", _write),
    form("zeros-as-constant", "zeros_like", _zeros),
)
