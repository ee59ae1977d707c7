"""Convolutions: without what accelerators don't know, such as a third dimension or groups of any size.

On a processor, a transposed one as a convolution whose channels become pixels:

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
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, Rewrite, planned
from tfconvert.converter.targets.litert.forms.questions import (
    constant_of,
    is_float,
    large,
    like,
    option,
    shape_of,
    sized,
    static_shape,
)
from tfconvert.schema.dialects import quant, tensor_data, tfl, types
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_ACTIVATION = "fused_activation_function"

# The maximum number of elements of filters that are written out with zeros.
_MAX_DENSE = 1 << 20


def _unfused(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """An operator with a fused activation: the operator, then the activation."""
    need(option(op, _ACTIVATION) != "NONE", "no activation is fused")
    (value,) = build.again(op, op.operands, options={_ACTIVATION: "NONE"}).results
    return build.activated(op, value)


def _cropped(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """`tfl.transpose_conv` with the padding SAME: the whole result, a slice of it, and the activation."""
    need(option(op, "padding") == "SAME", "it is not padded")
    _, weights, value, *_ = op.operands
    shape, kernel, result = static_shape(value), static_shape(weights), static_shape(op.results[0])
    strides = option(op, "stride_h"), option(op, "stride_w")
    pairs = list(zip(shape[1:3], strides, kernel[1:3], strict=True))
    whole = [(size - 1) * stride + taps for size, stride, taps in pairs]
    # The gradient of a convolution with the padding SAME: the larger half of the padding is behind.
    cut = [
        max((size - 1) * stride + taps - after, 0)
        for (size, stride, taps), after in zip(pairs, result[1:3], strict=True)
    ]
    need(all(one >= after for one, after in zip(whole, result[1:3], strict=True)), "its windows leave gaps at the end")
    full = (result[0], *whole, result[3])
    new = build.again(op, [build.ints(full), *op.operands[1:]], [full], {"padding": "VALID", _ACTIVATION: "NONE"})
    return build.activated(op, build.slice(new.results[0], [0, *(each // 2 for each in cut), 0], result))


def _frames(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """`tfl.conv_3d`: frames as a batch, each with those that it is computed from as channels; then one `conv_2d`."""
    value, weights, *bias = op.operands
    batch, _, height, width, channels = static_shape(value)
    taps, *window, _, filters = static_shape(weights)
    after = static_shape(op.results[0])
    frames = _shifted(op, build, value, taps, after[1])
    value = build.concatenation(
        [build.reshape(each, (batch * after[1], height, width, channels)) for each in frames], 3
    )
    weights = build.transpose(weights, (4, 1, 2, 0, 3))
    weights = build.reshape(weights, (filters, *window, taps * channels))
    names = ("padding", _ACTIVATION, "stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor")
    shape = (batch * after[1], *after[2:])
    operands = [value, weights, *(each for each in bias if not tfl.is_absent(each))]
    if len(operands) < 3:
        operands.append(build.constant(np.zeros(filters, np.float32)))
    kind = types.tensor(op.results[0].element, shape)
    new = build.tfl("conv_2d", operands, kind, {name: option(op, name) for name in names})
    return build.reshape(new, after)


def _shifted(op: tfl.TFLOp, build: FormBuilder, value: Value, taps: int, after: int) -> list[Value]:
    """Returns for each tap of a filter the frames that it is applied to."""
    batch, depth, height, width, channels = static_shape(value)
    stride, dilation = option(op, "stride_d"), option(op, "dilation_d_factor")
    reach = (taps - 1) * dilation + 1
    missing = max((after - 1) * stride + reach - depth, 0) if option(op, "padding") == "SAME" else 0
    value = build.reshape(value, (batch, depth, height, width * channels))
    if missing:
        value = build.pad(value, [(0, 0), (missing // 2, missing - missing // 2), (0, 0), (0, 0)])
    size = (batch, (after - 1) * stride + 1, height, width * channels)
    parts = [
        value if size == static_shape(value) else build.slice(value, (0, tap * dilation, 0, 0), size)
        for tap in range(taps)
    ]
    return [build.every(part, 1, stride) for part in parts]


def _ungrouped(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A `tfl.conv_2d` in groups: each output gets all inputs, with zeros for those of other groups."""
    value, weights, *bias = op.operands
    channels, shape = static_shape(value)[3], static_shape(weights)
    filters, *window, taken = shape
    groups = channels // taken
    need(groups > 1, "it has one group")
    need(filters * window[0] * window[1] * channels <= _MAX_DENSE, "it is large")
    dense = build.mapped(weights, lambda given: _dense(given, groups))
    (result,) = build.again(op, [value, dense, *bias]).results
    return result


def _dense(weights: tensor_data.Array, groups: int) -> tensor_data.Array:
    filters, height, width, taken = weights.shape
    dense = np.zeros((groups, filters // groups, height, width, groups, taken), weights.dtype)
    parts = weights.reshape(groups, filters // groups, height, width, taken)
    for group in range(groups):
        dense[group, :, :, :, group] = parts[group]
    return dense.reshape(filters, height, width, groups * taken)


def _bias_after(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A convolution with a computed bias: the sum after it."""
    at = 3 if op.op_name == "transpose_conv" else 2
    need(tfl.has_operand(op, at) and not tfl.is_constant(op.operands[at]), "it has no computed bias")
    depth = static_shape(op.results[0])[-1]
    zeros = build.array(np.zeros(depth), op.operands[at])
    (value,) = build.again(op, (*op.operands[:at], zeros), options={_ACTIVATION: "NONE"}).results
    bias = build.reshape(op.operands[at], (1, 1, 1, depth))
    return build.tfl("add", (value, bias), value.type, {_ACTIVATION: option(op, _ACTIVATION)})


def _implied(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """`tfl.transpose_conv` of integers that are within the limits of its fused activation anyway: without that."""
    limits, element = _LIMITS.get(option(op, _ACTIVATION)), op.results[0].element
    need(limits is not None and not _is_misread(op), "no activation follows, or the GPU should leave it to the CPU")
    need(isinstance(element, quant.UniformType), "they aren't integers")
    assert limits is not None
    assert isinstance(element, quant.UniformType)
    (scale, *others), (zero, *_), (least, most) = element.data.scales, element.data.zero_points, element.data.range
    low, high = (most if each is None else round(each / scale) + zero for each in limits)
    need(not others and low <= least and most <= high, "some integers are beyond the activation's limits")
    return build.again(op, op.operands, options={_ACTIVATION: "NONE"}).results[0]


# The limits of activations, `None` for none.
_LIMITS = {"RELU": (0.0, None), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}


def _is_misread(op: tfl.TFLOp) -> bool:
    """Returns whether the GPU would compute a transposed convolution wrongly, if it took it."""
    if option(op, "padding") != "SAME":
        return False
    window, image, result = (shape_of(value)[1:3] for value in (op.operands[1], op.operands[2], op.results[0]))
    strides = (option(op, "stride_h"), option(op, "stride_w"))
    return any(
        step > 1 and (size % step != 0 or (length % 2 and width % 2))
        for step, size, length, width in zip(strides, result, image, window, strict=True)
    )


_CONVOLUTIONS = ("conv_2d", "depthwise_conv_2d", "transpose_conv")
_FUSED = ("add", *_CONVOLUTIONS, "div", "fully_connected", "mul", "sub")


_MAX_STRIDE = 4

# The bytes of zeros that a filter may get.
_MAX_ZEROS = 1 << 16


def _by_convolution(op: Operation) -> Emit:
    _, filters, x, *bias = op.operands
    shape, image = large(op.results[0]), sized(x)
    need(not bias or tfl.is_absent(bias[0]) or constant_of(bias[0]) is not None, "the bias is computed")
    weights, strides = constant_of(filters), (option(op, "stride_h"), option(op, "stride_w"))
    need(is_float(x) and is_float(filters), "it isn't of 32-bit floats")
    need(1 < strides[1] <= _MAX_STRIDE and strides[0] in (1, strides[1]), "the strides aren't small and equal")
    need(min(*shape[1:], *image[1:]) > 0, "a size is unknown")
    outputs, *kernel, inputs = weights.shape
    padding = [0, 0]
    if option(op, "padding") == "SAME":
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

    def emit_convolution(build: FormBuilder) -> Value:
        value = x
        if any(map(any, pads)):
            value = build.pad(value, [(0, 0), *pads, (0, 0)])
        moved = build.constant(_rearranged(weights, taps, strides))
        options = {
            "padding": "VALID",
            **{f"stride_{side}": 1 for side in "hw"},
            **{f"dilation_{side}_factor": 1 for side in "hw"},
            _ACTIVATION: option(op, _ACTIVATION),
        }
        shifts = build.constant(_repeated(bias, outputs, copies))
        value = build.tfl("conv_2d", (value, moved, shifts), like(x, [image[0], *blocks, outputs * copies]), options)
        full = [shape[0], *(block * stride for block, stride in zip(blocks, strides, strict=True)), outputs]
        if strides[0] == 1:
            value = build.reshape(value, full)
        else:
            value = build.tfl("depth_to_space", (value,), like(x, full), {"block_size": strides[0]})
        if tuple(full) == tuple(shape):
            return value
        return build.slice(value, (0, *padding, 0), shape)

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


FAST_BYTES: tuple[Pattern[Any], ...] = (planned("transpose-by-convolution", "transpose_conv", _by_convolution),)

REWRITES = (
    *(Rewrite(f"{name}-then-activation", name, _unfused, 4) for name in _FUSED),
    Rewrite("activation-implied", "transpose_conv", _implied, 5, (quant.UniformType,)),
    Rewrite("transpose-conv-then-slice", "transpose_conv", _cropped),
    *(Rewrite(f"{name}-then-bias", name, _bias_after, 3) for name in _CONVOLUTIONS),
    Rewrite("frames-as-batch", "conv_3d", _frames),
    Rewrite("conv-without-groups", "conv_2d", _ungrouped),
)
