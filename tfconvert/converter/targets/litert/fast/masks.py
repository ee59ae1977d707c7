"""Masks of attention by minimums, which XNNPACK runs, instead of choices, which it doesn't.

    softmax(select_v2(m, x, c))  ->  softmax(minimum(x, select_v2(m, huge, c)))       where c is very negative
    select_v2(m & n, huge, c)    ->  minimum(select_v2(m, huge, c), select_v2(n, huge, c))

The second choice has the size of the mask, which is one for all heads and often for all layers. The minimum is `c` or
`x` exactly, as long as `x` isn't below `c`: then the softmax has next to nothing there either way.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_array
from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.fast.fast_form import FastBuilder, fast, is_float, large
from tfconvert.converter.targets.litert.forms.form import Emit, static_shape, tensor_like
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# The numbers up to which a masked score is taken for minus infinity.
_MAX_MASKED = -1e4

_HUGE = float(np.finfo(np.float32).max)


def _masked(op: Operation) -> Emit:
    mask, chosen, other = op.operands
    is_other = constant_array(other) is not None
    x, filler = (chosen, other) if is_other else (other, chosen)
    shape = large(op.results[0])
    values = constant_array(filler)
    if values is None or values.size != 1:
        need(False, "nothing is masked by one number")
    assert values is not None
    number = float(values.ravel()[0])
    need(is_float(x) and number <= _MAX_MASKED, "the number isn't very negative")
    need(static_shape(x) == shape and math.prod(static_shape(mask)) * 2 <= math.prod(shape), "the mask is as large")
    users = [use.operation for use in op.results[0].uses]
    need(all(user.name == "tfl.softmax" for user in users) and bool(users), "something else uses it than a softmax")

    def emit_minimum(emit: LiteRTBuilder) -> Value:
        limits = _limits(emit, mask, number, is_kept=is_other)
        return FastBuilder(emit).binary("minimum", x, limits, shape)

    return emit_minimum


def _limits(emit: LiteRTBuilder, mask: Value, number: float, *, is_kept: bool) -> Value:
    """Inserts the largest numbers that may stay: huge ones, and the number where something is masked."""
    joint, done, waiting = "tfl.logical_and" if is_kept else "tfl.logical_or", list[Value](), [mask]
    while waiting:
        part = waiting.pop()
        owner = part.owner
        if isinstance(owner, tfl.TFLOp) and owner.name == joint:
            waiting += owner.operands[::-1]
            continue
        huge, low = (emit.scalar(each, types.F32) for each in (_HUGE, number))
        kind = types.tensor(types.F32, static_shape(part))
        done.append(emit.tfl("select_v2", (part, huge, low) if is_kept else (part, low, huge), kind))
    result = done[0]
    for each in done[1:]:
        shape = np.broadcast_shapes(static_shape(result), static_shape(each))
        result = emit.tfl("minimum", (result, each), tensor_like(result, shape))
    return result


PATTERNS: tuple[Pattern[Any], ...] = (fast("mask-by-minimum", "select_v2", _masked),)
