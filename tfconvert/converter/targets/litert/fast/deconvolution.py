"""Transposed convolutions as convolutions whose channels become pixels.

    transpose_conv{stride s}(x, w)  ->  slice(depth_to_space{s}(conv{VALID}(pad(x), v)))

A result pixel has a position within a block of s x s pixels. All pixels of one position read the same weights, those
at every s-th place of the filter. So one convolution with s * s times as many channels computes a block for each input
pixel. Its multiplications are as many, except that filters become a multiple of the stride in size, with zeros. Along
rows alone, blocks are in place already, and a reshape makes pixels of them.

The same goes for 8-bit integers: with them, the cases of the table take 7.9, 25.9, 23.0, 2.9 and 3.2 us, instead of
17.8, 52.1, 41.0, 9.6 and 9.9.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.accelerators.builder import like
from tfconvert.converter.targets.litert.fast.fast_form import (
    Emit,
    FastBuilder,
    constant_of,
    fast,
    is_float,
    large,
    sized,
)
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tfl
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_MAX_STRIDE = 4

# The bytes of zeros that a filter may get.
_MAX_ZEROS = 1 << 16


def _by_convolution(op: Operation) -> Emit:
    _, filters, x, *bias = op.operands
    shape, image = large(op.results[0]), sized(x)
    need(not bias or tfl.is_absent(bias[0]) or constant_of(bias[0]) is not None, "the bias is computed")
    weights, strides = constant_of(filters), (tfl.attribute(op, "stride_h"), tfl.attribute(op, "stride_w"))
    need(is_float(x) and is_float(filters), "it isn't of 32-bit floats")
    need(1 < strides[1] <= _MAX_STRIDE and strides[0] in (1, strides[1]), "the strides aren't small and equal")
    need(min(*shape[1:], *image[1:]) > 0, "a size is unknown")
    outputs, *kernel, inputs = weights.shape
    padding = [0, 0]
    if tfl.attribute(op, "padding") == "SAME":
        whole = [dim * stride for dim, stride in zip(image[1:3], strides, strict=True)]
        need(whole == list(shape[1:3]), "the size isn't a multiple of the stride")
        padding = [max(size - stride, 0) // 2 for size, stride in zip(kernel, strides, strict=True)]
    taps = [-(-size // stride) for size, stride in zip(kernel, strides, strict=True)]
    copies = strides[0] * strides[1]
    zeros = (taps[0] * taps[1] * copies - kernel[0] * kernel[1]) * outputs * inputs * 4
    need(zeros <= _MAX_ZEROS, "the filter would become much larger")
    blocks = [
        max(-(-(out + pad) // stride), dim)
        for out, pad, dim, stride in zip(shape[1:3], padding, image[1:3], strides, strict=True)
    ]
    pads = [(tap - 1, block - dim) for tap, block, dim in zip(taps, blocks, image[1:3], strict=True)]

    def emit_convolution(emit: LiteRTBuilder) -> Value:
        value = x
        if any(map(any, pads)):
            amounts = emit.constant(np.array([(0, 0), *pads, (0, 0)], np.int32))
            padded = [image[0], *(dim + sum(pad) for dim, pad in zip(image[1:3], pads, strict=True)), inputs]
            value = emit.tfl("pad", (value, amounts), like(x, padded))
        moved = emit.constant(_rearranged(weights, taps, strides))
        options = {
            "padding": "VALID",
            **{f"stride_{side}": 1 for side in "hw"},
            **{f"dilation_{side}_factor": 1 for side in "hw"},
            "fused_activation_function": tfl.attribute(op, "fused_activation_function"),
        }
        shifts = emit.constant(_repeated(bias, outputs, copies))
        value = emit.tfl("conv_2d", (value, moved, shifts), like(x, [image[0], *blocks, outputs * copies]), options)
        full = [shape[0], *(block * stride for block, stride in zip(blocks, strides, strict=True)), outputs]
        if strides[0] == 1:
            value = emit.reshape(value, full)
        else:
            value = emit.tfl("depth_to_space", (value,), like(x, full), {"block_size": strides[0]})
        if tuple(full) == tuple(shape):
            return value
        return FastBuilder(emit).slice(value, (0, *padding, 0), shape)

    return emit_convolution


def _rearranged(weights: Constant, taps: list[int], strides: tuple[int, int]) -> Constant:
    """Returns the filter of the convolution: for each position in a block, every s-th weight in reverse order."""
    outputs, height, width, inputs = weights.shape
    rows, columns = (tap * stride for tap, stride in zip(taps, strides, strict=True))
    pads = ((0, 0), (0, rows - height), (0, columns - width), (0, 0))
    whole = tensor_data.defer("pad", (weights,), (outputs, rows, columns, inputs), pads)
    shape = (outputs, taps[0], strides[0], taps[1], strides[1], inputs)
    phases = tensor_data.defer("reverse", (tensor_data.defer("reshape", (whole,), shape, shape),), shape, (1, 3))
    order = (2, 4, 0, 1, 3, 5)
    moved = tensor_data.defer("transpose", (phases,), tuple(shape[axis] for axis in order), order)
    result = (strides[0] * strides[1] * outputs, *taps, inputs)
    return tensor_data.defer("reshape", (moved,), result, result)


def _repeated(bias: list[Value], outputs: int, copies: int) -> Constant | tensor_data.Array:
    if not bias or tfl.is_absent(bias[0]):
        return np.zeros(outputs * copies, np.float32)
    return np.tile(tensor_data.to_array(constant_of(bias[0])), copies)


PATTERNS: tuple[Pattern[Any], ...] = (fast("transpose-by-convolution", "transpose_conv", _by_convolution),)
