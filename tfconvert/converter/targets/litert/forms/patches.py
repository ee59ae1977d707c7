"""Convolutions of few channels: neighboring pixels as channels.

    conv_2d{VALID, stride (h, n*s)}(x, w)  ->  conv_2d{VALID, stride (h, s)}(reshape(x), reshape(w))

The width, the stride and the width of the filter are multiples of n. Only reshapes are new: n pixels of a row become
one with n times as many channels. These are the convolutions that cut images into patches, and sound into windows.

XNNPACK's kernels of integers multiply eight channels at once, and fill up fewer with zeros. In the mode `dynamic`, the
filters of one or two channels even stay floats. In microseconds, before and after:

    image or sound  filters           floats        dynamic       int8
    1x576x1         258 of 1x256       4.7   4.3     4.7   1.6     9.0   1.5
    1x1600x1        257 of 1x400      13.5  12.4    13.1   2.8    28.1   3.6
    1x4096x1        128 of 1x16       10.0   9.5    10.1   9.7    21.8   6.7
    64x64x3         64 of 8x8          7.0   7.4     6.1   3.1     5.6   2.5
    224x224x3       192 of 16x16     221.7 225.2   188.2  73.4   177.7  55.4
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import constant_of, is_float, large, option, sized
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# The number of channels from which on kernels of integers fill up none.
_FULL = 8


def _joined(op: Operation, *, most: int) -> Emit:
    """Plans pixels as channels where there are at most so many channels."""
    x, filters, *bias = op.operands
    large(op.results[0])
    weights, (batch, height, width, channels) = constant_of(filters), sized(x)
    outputs, rows, columns, inputs = weights.shape
    stride = option(op, "stride_w")
    need(is_float(x) and is_float(filters), "it isn't of 32-bit floats")
    need(inputs == channels <= most, "it has many channels, or groups")
    need(width > 0 and option(op, "dilation_w_factor") == 1, "the width is unknown, or the filter is dilated")
    missing = (-(-width // stride) - 1) * stride + columns - width
    need(option(op, "padding") == "VALID" or missing <= 0, "rows are padded")
    count = math.gcd(width, columns, stride)
    need(count > 1, "windows begin at any pixel")

    def emit_joined(build: FormBuilder) -> Value:
        value = build.reshape(x, (batch, height, width // count, count * channels))
        moved = build.reshape(filters, (outputs, rows, columns // count, count * channels))
        options = {name: tfl.attribute(op, name) for name in _OPTIONS} | {"stride_w": stride // count}
        return build.tfl("conv_2d", (value, moved, *bias), op.results[0].type, options)

    return emit_joined


_OPTIONS = ("padding", "stride_h", "dilation_h_factor", "dilation_w_factor", questions.ACTIVATION)

FAST_BYTES: tuple[Pattern[Any], ...] = (planned("samples-as-channels", "conv_2d", partial(_joined, most=1)),)

FAST_PRODUCTS: tuple[Pattern[Any], ...] = (planned("pixels-as-channels", "conv_2d", partial(_joined, most=_FULL - 1)),)
