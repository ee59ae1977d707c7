"""Masks of attention by minimums, which XNNPACK runs, instead of choices, which it doesn't.

    softmax(select_v2(m, x, c))  ->  softmax(minimum(x, select_v2(m, huge, c)))       where c is very negative
    select_v2(m & n, huge, c)    ->  minimum(select_v2(m, huge, c), select_v2(n, huge, c))

The second choice has the size of the mask, which is one for all heads and often for all layers. The minimum is `c` or
`x` exactly, as long as `x` isn't below `c`: then the softmax has next to nothing there either way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_array
from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import elements, is_float, joint, large, shape_of, sized
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# The numbers up to which a masked score is taken for minus infinity.
_MAX_MASKED = -1e4

# The size of a constant mask up to which it is read, and up to which it is stored as numbers, which are larger. All
# layers share the numbers of larger ones.
_MAX_READ = 1 << 22
_MAX_STORED = 1 << 14

_HUGE = float(np.finfo(np.float32).max)


def _masked(op: Operation) -> Emit:
    mask, chosen, other = op.operands
    is_kept = constant_array(other) is not None
    x, filler = (chosen, other) if is_kept else (other, chosen)
    shape = large(op.results[0])
    values = constant_array(filler)
    if values is None or values.size != 1:
        need(False, "nothing is masked by one number")
    assert values is not None
    number = float(values.ravel()[0])
    need(is_float(x) and number <= _MAX_MASKED, "the number isn't very negative")
    need(shape_of(x) == shape, "the scores are broadcast")
    users = [use.operation for use in op.results[0].uses]
    need(all(user.name == "tfl.softmax" for user in users) and bool(users), "something else uses it than a softmax")
    parts = _parts(mask, "tfl.logical_and" if is_kept else "tfl.logical_or", is_kept=is_kept)
    size = elements(joint(*(part.shape if isinstance(part, np.ndarray) else part[1] for part in parts)))
    need(not parts or size * 2 <= elements(shape), "the mask is as large as the scores")

    def emit_minimum(build: FormBuilder) -> Value:
        if not parts:
            return x
        limits = [_limits(build, part, number, is_kept=is_kept) for part in parts]
        result = limits[0]
        for each in limits[1:]:
            result = build.binary("minimum", result, each)
        return build.binary("minimum", x, result)

    return emit_minimum


_Part = Array | tuple[Value, Shape]
"""A mask that is a constant, or a computed one with its shape."""


def _parts(mask: Value, connective: str, *, is_kept: bool) -> list[_Part]:
    """Returns the masks that others are made of, without constants that mask nothing."""
    parts: list[_Part] = []
    waiting = [mask]
    while waiting:
        value = waiting.pop()
        shape, constant = sized(value), tensor_data.constant_of(value)
        if constant is not None and elements(shape) <= _MAX_READ:
            array = _narrowed(tensor_data.to_array(constant))
            if not (array == is_kept).all():
                parts.append(array)
            continue
        owner = value.owner
        if isinstance(owner, tfl.TFLOp) and owner.name == connective:
            waiting += owner.operands[::-1]
        elif isinstance(owner, tfl.TFLOp) and owner.name == "tfl.fill" and _is_all(owner.operands[1], is_kept):
            continue
        else:
            parts.append((value, shape))
    return parts


def _is_all(value: Value, is_kept: bool) -> bool:
    """Returns whether a constant masks nothing."""
    array = constant_array(value)
    return array is not None and bool((array == is_kept).all())


def _narrowed(array: Array) -> Array:
    """Returns an array without the copies along a dimension that is the same throughout."""
    for axis in range(array.ndim):
        first = array.take([0], axis)
        if (array == first).all():
            array = first
    return array


def _limits(build: FormBuilder, part: _Part, number: float, *, is_kept: bool) -> Value:
    """Inserts the largest numbers that may stay: huge ones, and the number where something is masked."""
    if isinstance(part, np.ndarray) and part.size <= _MAX_STORED:
        return build.constant(np.where(part == is_kept, np.float32(_HUGE), np.float32(number)), types.F32)
    value, shape = (build.constant(part), part.shape) if isinstance(part, np.ndarray) else part
    huge, low = (build.scalar(each, types.F32) for each in (_HUGE, number))
    operands = (value, huge, low) if is_kept else (value, low, huge)
    return build.tfl("select_v2", operands, types.tensor(types.F32, shape))


FAST_FLOATS: tuple[Pattern[Any], ...] = (planned("mask-by-minimum", "select_v2", _masked),)
