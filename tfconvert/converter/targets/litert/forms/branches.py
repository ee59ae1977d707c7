"""Sums of convolutions of one image by one convolution.

    add(conv_2d(x, w), conv_2d(x, v))      ->  conv_2d(x, w + v)            where v is as large as w, or smaller
    add(conv_2d(x, w), add(mul(x, c), d))  ->  conv_2d(x, w + diagonal(c))  and d goes into the bias

RepVGG, MobileOne and others are trained with such branches. The convolutions may be depthwise. The weights of one
branch may be much smaller than those of another, and 8 bits would lose them. So if weights become integers, rounding
may change no channel of the sum by more than 1 %. Those with up to 19 weights, as depthwise filters have them, always
pass.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.rewrite.pattern import Failure, Pattern, attempt, need
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import is_float, large, option, shape_of, sized
from tfconvert.converter.targets.litert.optimize import fold_into_weights
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# The largest 8-bit integer of weights, and how much rounding to such may change a channel.
_LARGEST = 127
_ROUNDED = 0.01

_CONVOLUTIONS = frozenset(("tfl.conv_2d", "tfl.depthwise_conv_2d"))


class _Branch(NamedTuple):
    """A convolution of a value, or a product with a constant as one of a pixel.

    Attributes:
        x: The value.
        filter: The filter.
        bias: The bias, `None` without one.
        strides: The strides.
        dilations: The dilations.
        padding: The rows and columns of zeros before the image.
        kernel: The filter's height and width.
    """

    x: Value
    filter: Constant
    bias: Constant | None
    strides: tuple[int, int]
    dilations: tuple[int, int]
    padding: tuple[int, int]
    kernel: tuple[int, int]


def _convolution(value: Value) -> Operation | None:
    """Returns the convolution without an activation that computes a value with no other use."""
    op = value.sole_producer(_CONVOLUTIONS)
    if op is None or not questions.is_plain(op) or fold_into_weights.float_filter(op) is None:
        return None
    return None if isinstance(attempt(fold_into_weights.bias_of, op), Failure) else op


def _branch(op: Operation) -> _Branch:
    """Returns a convolution found by `_convolution`."""
    x, weights, bias = op.operands[0], fold_into_weights.float_filter(op), fold_into_weights.bias_of(op)
    assert weights is not None, "checked by _convolution"
    image = sized(x)
    need(min(image[1:]) > 0, "a size is unknown")
    kernel = weights.shape[1], weights.shape[2]
    strides = option(op, "stride_h"), option(op, "stride_w")
    dilations = option(op, "dilation_h_factor"), option(op, "dilation_w_factor")
    padding = [0, 0]
    if option(op, "padding") == "SAME":
        for axis in range(2):
            reach = (kernel[axis] - 1) * dilations[axis] + 1
            covered = ((image[axis + 1] - 1) // strides[axis]) * strides[axis] + reach
            padding[axis] = max(covered - image[axis + 1], 0) // 2
    return _Branch(x, weights, bias, strides, dilations, (padding[0], padding[1]), kernel)


def _scaled(value: Value, op: Operation) -> _Branch | None:
    """Returns a product of a convolution's input with a constant, with or without an addition, as a convolution."""
    shift = None
    add = value.sole_producer("tfl.add")
    if add is not None and questions.is_plain(add) and (split := questions.with_constant(add)) is not None:
        value, shift = split
    mul = value.sole_producer("tfl.mul")
    split = None if mul is None or not questions.is_plain(mul) else questions.with_constant(mul)
    if split is None or split[0] is not op.operands[0]:
        return None
    x, factor = split
    shape = sized(x)
    channels = shape[-1]
    need(shape == sized(op.results[0]) == sized(value), "the convolution changes the size")
    vectors = [None if each is None else questions.as_vector(each, channels, 4) for each in (factor, shift)]
    scale, bias = (
        None if each is None else np.broadcast_to(tensor_data.to_array(each), (channels,)) for each in vectors
    )
    assert scale is not None, "a product has a factor"
    filters = np.diag(scale) if op.name == "tfl.conv_2d" else scale
    shaped = filters[:, None, None, :] if filters.ndim == 2 else filters[None, None, None]
    shifts = None if bias is None else tensor_data.of_array(np.ascontiguousarray(bias))
    weights = tensor_data.of_array(np.ascontiguousarray(shaped))
    return _Branch(x, weights, shifts, (1, 1), (1, 1), (0, 0), (1, 1))


def _sum(op: Operation, *, rounds: bool = False) -> Emit:
    """Returns the convolution that a sum of convolutions is; declines if `rounds` and 8 bits are too few for it."""
    shape, result = large(op.results[0]), op.results[0]
    need(is_float(result) and all(shape_of(each) == shape for each in op.operands), "it broadcasts, or isn't of floats")
    for value, other in (op.operands, op.operands[::-1]):
        source = _convolution(value)
        if source is None:
            continue
        second = _convolution(other)
        one = _branch(source)
        small = _scaled(other, source) if second is None else _branch(second)
        place = None if small is None or (second and second.name != source.name) else _place(one, small)
        if small is not None and place is not None:
            weights = _added(one, small, place)
            channels = fold_into_weights.OPS[source.name].output_axis
            need(not rounds or _is_rounded_little(weights, channels), "8 bits would lose weights")
            return _joined(op, source, one, small, weights)
    need(False, "it isn't the sum of convolutions of one value")
    raise AssertionError


def _place(one: _Branch, other: _Branch) -> tuple[int, int] | None:
    """Returns the position of a filter in another, `None` if it is outside or if its pixels are others."""
    if one.x is not other.x or one.filter.shape[::3] != other.filter.shape[::3]:
        return None
    place = []
    for axis in range(2):
        dilation = one.dilations[axis]
        at, rest = divmod(one.padding[axis] - other.padding[axis], dilation)
        if other.kernel[axis] > 1 and other.dilations[axis] != dilation:
            return None
        if rest or at < 0 or at + other.kernel[axis] > one.kernel[axis] or one.strides[axis] != other.strides[axis]:
            return None
        place.append(at)
    return place[0], place[1]


def _added(one: _Branch, other: _Branch, place: tuple[int, int]) -> Constant:
    """Returns the sum of a filter and one inside of it."""
    sides = [(at, one.kernel[axis] - at - other.kernel[axis]) for axis, at in enumerate(place)]
    weights, shape = other.filter, one.filter.shape
    if any(map(any, sides)):
        weights = tensor_data.defer("pad", (weights,), shape, ((0, 0), *sides, (0, 0)))
    return tensor_data.defer("add", (one.filter, weights), shape)


def _is_rounded_little(weights: Constant, axis: int) -> bool:
    """Returns whether 8-bit integers with a scale for each slice of an axis differ from each by at most 1 %."""
    channels = np.moveaxis(tensor_data.to_array(weights), axis, 0).reshape(weights.shape[axis], -1)
    steps = np.abs(channels).max(axis=1) / _LARGEST
    # The error of rounding is uniform: its variance is a twelfth of the square of a step.
    errors = np.sqrt(channels.shape[1] / 12) * steps
    return bool((errors <= _ROUNDED * np.linalg.norm(channels, axis=1)).all())


def _joined(op: Operation, source: Operation, one: _Branch, other: _Branch, weights: Constant) -> Emit:
    def emit_one(build: FormBuilder) -> Value:
        length = fold_into_weights.channels(source)
        assert length is not None, "the filter's shape is known"
        bias = one.bias
        if other.bias is not None:
            bias = fold_into_weights.sum_of(bias, other.bias, length)
        shifts = np.zeros(length, np.float32) if bias is None else bias
        operands = [one.x, build.constant(weights), build.constant(shifts)]
        activation = {questions.ACTIVATION: op.properties.get(questions.ACTIVATION, questions.NONE)}
        return build.insert(rebuild(source, operands, [op.results[0].type], activation)).results[0]

    return emit_one


NEEDS = "conv_2d depthwise_conv_2d"
"""The operators without any of which no pattern matches: the sum that they start at is one of convolutions."""

FAST_WEIGHTS: tuple[Pattern[Any], ...] = (planned("sum-of-convolutions", "add", _sum, depth=3),)
FAST_CHANNELS: tuple[Pattern[Any], ...] = (planned("sum-of-convolutions", "add", partial(_sum, rounds=True), depth=3),)
