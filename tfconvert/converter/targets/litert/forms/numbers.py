"""Formulas, joins and padding by operators that accelerators take.

    neg(x)                           ->  mul(x, -1)
    add_n(x, y)                      ->  add(x, y)
    broadcast_to(x, s)               ->  mul(x, ones)                           of floats
    cumsum{reverse}(x)               ->  reverse_v2(cumsum(reverse_v2(x)))
    pad(x, p)                        ->  concatenation(zeros, x, zeros)         below rank 3, and along the batch
    padv2(x, p, -inf)                ->  padv2(x, p, the smallest number)
    mirror_pad{SYMMETRIC}(x, p)      ->  gather(gather(x, rows), columns)
    transpose_conv{RELU}(x, w)       ->  relu(transpose_conv(x, w))             of floats
    transpose_conv{RELU}(x, w)       ->  transpose_conv(x, w)                   of integers none of which is below zero

The CPU runs them at least as fast: XNNPACK has kernels for most of the right side and none for the left.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.forms.form import (
    PLAIN,
    Emit,
    constant_of,
    element_of,
    form,
    gathered,
    ints_of,
    is_small,
    joined,
    shape_of,
    static_shape,
    tensor_like,
)
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.quant import UniformType
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_MAX_RANK = 4
# The limits of activations, `None` for none.
_LIMITS = {"RELU": (0.0, None), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}
_ACTIVATIONS = {"RELU": "relu", "RELU6": "relu6", "RELU_N1_TO_1": "relu_n1_to_1"}


def _negated(op: Operation) -> Emit:
    value = op.operands[0]
    need(element_of(value) == "f32", "they aren't floats")
    return lambda emit: emit.tfl("mul", (value, emit.scalar(-1, types.F32)), op.results[0].type, PLAIN)


def _sum(op: Operation) -> Emit:
    need(element_of(op.results[0]) == "f32" and len(op.operands) == 2, "they aren't two tensors of floats")
    return lambda emit: emit.tfl("add", op.operands, op.results[0].type, PLAIN)


def _broadcast(op: Operation) -> Emit:
    value, result = op.operands[0], static_shape(op.results[0])
    need(element_of(value) == "f32" and len(result) <= 6, "they aren't floats")
    shape = static_shape(value)
    own = (1,) * (len(result) - len(shape)) + shape
    need(len(shape) in (0, len(result)), "it adds dimensions")
    ones = tuple(1 if dim == here else dim for dim, here in zip(result, own, strict=True))
    need(is_small(ones), "the ones would be many")

    return lambda emit: emit.tfl("mul", (value, emit.constant(np.ones(ones, np.float32))), op.results[0].type, PLAIN)


def _backwards(op: Operation) -> Emit:
    value, axis = op.operands
    need(bool(tfl.attribute(op, "reverse")) and element_of(value) == "f32", "it goes forwards")
    (at,) = ints_of(axis)
    rank = len(shape_of(value))
    options = {"exclusive": tfl.attribute(op, "exclusive"), "reverse": False}

    def emit_reversed(emit: LiteRTBuilder) -> Value:
        axes = emit.ints((at % rank,))
        sums = emit.tfl("cumsum", (emit.tfl("reverse_v2", (value, axes), value.type), axis), value.type, options)
        return emit.tfl("reverse_v2", (sums, axes), op.results[0].type)

    return emit_reversed


def _joined_pad(op: Operation) -> Emit:
    value, result = op.operands[0], op.results[0]
    shape, pads = static_shape(value), np.array(ints_of(op.operands[1])).reshape(-1, 2)
    axes = [axis for axis, pair in enumerate(pads) if pair.any()]
    need(len(axes) == 1 and bool((pads >= 0).all()), "it pads several dimensions")
    axis = axes[0]
    is_refused = len(shape) < 3 or (len(shape) == 3 and shape[0] > 1) or axis == 0
    is_refused = is_refused or element_of(value) in ("i32", "i1")
    need(len(shape) <= _MAX_RANK and is_refused and element_of(value) in ("f32", "i32", "i1"), "accelerators take it")
    fill = tensor_data.to_array(constant_of(op.operands[2])).item() if op.name == "tfl.padv2" else 0
    sides = [tuple(int(each) if at == axis else dim for at, dim in enumerate(shape)) for each in pads[axis]]
    need(is_small((sum(map(math.prod, sides)),)), "the added elements would be many")

    def emit_joined(emit: LiteRTBuilder) -> Value:
        element = types.element_of(value.type)
        both = [emit.constant(np.full(side, fill, types.numpy_dtype(element)), element) for side in sides]
        parts = [part for part in (both[0], value, both[1]) if shape_of(part)[axis]]
        return joined(emit, parts, axis, result.type)

    return emit_joined


def _finite(op: Operation) -> Emit:
    value, pads, fill = op.operands
    number = tensor_data.to_array(constant_of(fill))
    need(element_of(value) == "f32" and bool(np.isinf(number).all()), "it pads with a finite number")

    def emit_finite(emit: LiteRTBuilder) -> Value:
        bound = emit.constant(np.array(np.nan_to_num(number.astype(np.float32))))
        return emit.tfl("padv2", (value, pads, bound), op.results[0].type)

    return emit_finite


def _mirrored(op: Operation) -> Emit:
    value, result = op.operands[0], static_shape(op.results[0])
    shape, pads = static_shape(value), np.array(ints_of(op.operands[1])).reshape(-1, 2)
    need(tfl.attribute(op, "mode") == "SYMMETRIC" and len(shape) <= _MAX_RANK, "it doesn't repeat the edges")
    need(element_of(value) in ("f32", "i8", "i32"), "accelerators don't take such tensors")
    axes = [axis for axis, pair in enumerate(pads) if pair.any()]
    need(bool(axes), "it pads nothing")

    def emit_gathers(emit: LiteRTBuilder) -> Value:
        padded, dims = value, list(shape)
        for axis in axes:
            places = np.pad(np.arange(shape[axis], dtype=np.int32), tuple(map(int, pads[axis])), "symmetric")
            dims[axis] = result[axis]
            padded = gathered(emit, padded, places, axis, tensor_like(value, dims))
        return padded

    return emit_gathers


def _is_misread(op: Operation) -> bool:
    """Returns whether the GPU would compute a transposed convolution wrongly, if it took it."""
    if tfl.attribute(op, "padding") != "SAME":
        return False
    window, image, result = (shape_of(value)[1:3] for value in (op.operands[1], op.operands[2], op.results[0]))
    strides = (tfl.attribute(op, "stride_h"), tfl.attribute(op, "stride_w"))
    return any(
        step > 1 and (size % step != 0 or (length % 2 and width % 2))
        for step, size, length, width in zip(strides, result, image, window, strict=True)
    )


def _apart(op: Operation) -> Emit:
    activation = str(tfl.attribute(op, "fused_activation_function"))
    need(activation in _ACTIVATIONS and element_of(op.results[0]) == "f32", "no activation follows")
    need(not _is_misread(op), "the GPU should leave it to the CPU")
    fields = ("padding", "stride_w", "stride_h")

    def emit_both(emit: LiteRTBuilder) -> Value:
        options = {**{name: tfl.attribute(op, name) for name in fields}, **PLAIN}
        value = emit.tfl("transpose_conv", op.operands, op.results[0].type, options)
        return emit.tfl(_ACTIVATIONS[activation], (value,), op.results[0].type)

    return emit_both


def _implied(op: Operation) -> Emit:
    """Drops an activation whose limits the integers of the result have anyway."""
    activation = str(tfl.attribute(op, "fused_activation_function"))
    element = types.element_of(op.results[0].type)
    need(activation in _LIMITS and not _is_misread(op), "no activation follows, or the GPU should leave it to the CPU")
    if not isinstance(element, UniformType):
        need(False, "they aren't integers")
    assert isinstance(element, UniformType)
    (scale, *others), (zero, *_), bounds = element.data.scales, element.data.zero_points, element.data.range
    need(not others, "there are several scales")
    limits = (round(each / scale) + zero if each is not None else bounds[1] for each in _LIMITS[activation])
    low, high = limits
    need(low <= bounds[0] and bounds[1] <= high, "some integers are beyond the activation's limits")
    fields = ("padding", "stride_w", "stride_h")
    options = {**{name: tfl.attribute(op, name) for name in fields}, **PLAIN}
    return lambda emit: emit.tfl("transpose_conv", op.operands, op.results[0].type, options)


PATTERNS: tuple[Pattern[Any], ...] = (
    form("negated-by-product", "neg", _negated),
    form("sum-by-pairs", "add_n", _sum),
    form("cumsum-of-reversed", "cumsum", _backwards, is_longer=True),
    form("finite-padv2", "padv2", _finite, benefit=2),
    form("symmetric-by-places", "mirror_pad", _mirrored),
    form("activation-implied", "transpose_conv", _implied),
)

OF_FLOATS: tuple[Pattern[Any], ...] = (
    form("activation-apart", "transpose_conv", _apart, is_longer=True),
    form("broadcast-by-product", "broadcast_to", _broadcast),
    form("pad-by-joining", "pad", _joined_pad),
    form("padv2-by-joining", "padv2", _joined_pad),
)
"""Patterns for models whose activations stay floats."""
