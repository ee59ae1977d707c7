"""Rows and elements that are chosen by places, masks or slopes.

    gather(x, i)                    ->  reshape(gather(x, reshape(i, [-1])), s)
    gather(x, a constant)           ->  reshape(slice(x), s)
    select_v2(mask, x, y)           ->  select_v2(reshape(mask, [1, ..., T, T]), x, y)
    select_v2(mask, x, c)           ->  select_v2(mask, x, c in full)
    prelu(x, one slope)             ->  prelu(x, a slope for each channel)

Accelerators take vectors of places only, masks of the rank of the result, and slopes for each channel.
"""

from __future__ import annotations

import math
from typing import Any

from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.forms.form import (
    Emit,
    again,
    constant_of,
    element_of,
    form,
    in_full,
    ints_of,
    is_small,
    leading,
    reshaped,
    shape_of,
    static_shape,
    target_of,
    tensor_like,
)
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tfl
from tfconvert.schema.dialects.dims import constant_target
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_ELEMENTS = frozenset(("f32", "i8", "i32"))
_CHOSEN = frozenset(("f32", "i8", "i32", "i1"))
_MAX_RANK = 4


def _by_vector(op: Operation) -> Emit:
    (value, places), result = op.operands, op.results[0]
    shape, chosen = shape_of(value), shape_of(places)
    need(len(chosen) != 1 and not tfl.attribute(op, "batch_dims"), "the places are a vector, or others for each batch")
    need(element_of(value) in _ELEMENTS and element_of(places) == "i32", "accelerators don't take such tensors")
    need(len(target_of(result)) > 0, "the result is a scalar")
    flat = constant_target((-1 if -1 in chosen else math.prod(chosen),) if chosen.count(-1) < 2 else None)
    need(flat is not None, "several sizes are unknown")
    axis = tfl.attribute(op, "axis") % len(shape)
    cut = tensor_like(value, [*shape[:axis], *(flat or ()), *shape[axis + 1 :]])

    def emit_gather(emit: LiteRTBuilder) -> Value:
        vector = emit.reshape(places, flat or ())
        return reshaped(emit, again(emit, op, (value, vector), cut), result)

    return emit_gather


def _by_slice(op: Operation) -> Emit:
    (value, places), result = op.operands, op.results[0]
    shape = shape_of(value)
    need(shape_of(places) == () and element_of(value) in _ELEMENTS, "several places, or accelerators don't take it")
    need(0 < len(shape) <= _MAX_RANK and len(target_of(result)) > 0, "the result is a scalar")
    (place,), axis = ints_of(places), tfl.attribute(op, "axis") % len(shape)
    need(0 <= place < shape[axis], "the place may be outside")
    cut = tensor_like(value, [1 if at == axis else dim for at, dim in enumerate(shape)])

    def emit_slice(emit: LiteRTBuilder) -> Value:
        begin = emit.ints([place if at == axis else 0 for at in range(len(shape))])
        size = emit.ints([1 if at == axis else -1 for at in range(len(shape))])
        return reshaped(emit, emit.tfl("slice", (value, begin, size), cut), result)

    return emit_slice


def _mask_of_rank(op: Operation) -> Emit:
    mask, *choices = op.operands
    rank, shape = len(shape_of(op.results[0])), static_shape(mask)
    need(0 < len(shape) < rank <= _MAX_RANK, "the mask has the rank of the result, or is one number")
    constant_of(mask)

    def emit_mask(emit: LiteRTBuilder) -> Value:
        return again(emit, op, (emit.reshape(mask, leading(shape, rank)), *choices), op.results[0].type)

    return emit_mask


def _choice_in_full(op: Operation) -> Emit:
    result = static_shape(op.results[0])
    need(is_small(result) and element_of(op.results[0]) in _CHOSEN, "the constant would be large")
    partial = [
        index
        for index, each in enumerate(op.operands[1:], 1)
        if tensor_data.constant_of(each) is not None and shape_of(each) not in ((), result)
    ]
    need(bool(partial), "no constant is broadcast")

    def emit_choice(emit: LiteRTBuilder) -> Value:
        operands = list(op.operands)
        for index in partial:
            operands[index] = in_full(emit, operands[index], result)
        return again(emit, op, operands, op.results[0].type)

    return emit_choice


def _slopes(op: Operation) -> Emit:
    value, slope = op.operands
    shape = shape_of(value)
    need(math.prod(constant_of(slope).shape) == 1 and len(shape) in (3, 4), "there are several slopes")
    need(shape[-1] > 0 and shape_of(slope) != shape[-1:], "the number of channels is unknown")

    def emit_prelu(emit: LiteRTBuilder) -> Value:
        flat = emit.reshape(slope, (1,))
        return again(emit, op, (value, in_full(emit, flat, (1,) * (len(shape) - 2) + shape[-1:])), op.results[0].type)

    return emit_prelu


PATTERNS: tuple[Pattern[Any], ...] = (
    form("gather-by-vector", "gather", _by_vector, is_longer=True),
    form("gather-as-slice", "gather", _by_slice, benefit=2, is_longer=True),
    form("mask-of-full-rank", "select_v2", _mask_of_rank),
    form("choice-in-full", "select_v2", _choice_in_full),
    form("slope-for-each-channel", "prelu", _slopes),
)
