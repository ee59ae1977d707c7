"""Convolutions of parts of the channels by one convolution in groups.

    concatenation(conv_2d(split(x)[i], w[i]) for all i)  ->  conv_2d(x, concatenation(w))    or slices of x

This is how grouped convolutions are written where a framework has none. LiteRT copies the parts, and XNNPACK
concatenates five values at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import large, like, option, producer, shape_of, sized
from tfconvert.converter.targets.litert.forms.slices import spans_of
from tfconvert.converter.targets.litert.optimize import fold_into_weights
from tfconvert.schema.dialects import tensor_data, tfl
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_OPTIONS = ("padding", "stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor", questions.ACTIVATION)


def _in_groups(op: Operation) -> Emit:
    shape = large(op.results[0])
    need(option(op, "axis") in (-1, 3) and len(shape) == 4 and questions.is_plain(op), "it isn't of channels")
    parts = [value.sole_producer("tfl.conv_2d") for value in op.operands]
    convolutions = [part for part in parts if part is not None]
    need(len(convolutions) == len(parts) > 1, "it doesn't join convolutions")
    first, inputs = convolutions[0], [each.operands[0] for each in convolutions]
    need(len({shape_of(part)[-1] for part in inputs}) == 1, "the parts aren't equal")
    x = _whole(inputs)
    filters = [_plain_filter(each, first) for each in convolutions]
    biases = list(map(fold_into_weights.bias_of, convolutions))

    def emit_groups(build: FormBuilder) -> Value:
        outputs = shape[-1]
        weights = tensor_data.defer("concat", tuple(filters), (outputs, *filters[0].shape[1:]), 0)
        zeros = np.zeros(outputs // len(filters), np.float32)
        shifts = [zeros if bias is None else tensor_data.to_array(bias) for bias in biases]
        operands = (x, build.constant(weights), build.constant(np.concatenate(shifts)))
        options = {name: option(first, name) for name in _OPTIONS}
        return build.tfl("conv_2d", operands, like(x, shape), options)

    return emit_groups


def _whole(parts: Sequence[Value]) -> Value:
    """Returns the value that a split, or slices, part along the channels; declines if a part is used elsewhere."""
    first = parts[0].owner
    need(isinstance(first, tfl.TFLOp) and all(part.has_one_use() for part in parts), "a part is used elsewhere")
    assert isinstance(first, tfl.TFLOp)
    if first.op_name in ("split", "split_v"):
        x = first.operands[1 if first.op_name == "split" else 0]
        need(list(parts) == list(first.results), "the parts are in another order")
        need(sum(shape_of(part)[-1] for part in parts) == sized(x)[-1], "it isn't split along the channels")
        return x
    slices = [producer(part, "slice") for part in parts]
    x = first.operands[0]
    need(all(each.operands[0] is x for each in slices), "they are parts of several values")
    need(all(shape_of(part)[:-1] == sized(x)[:-1] for part in parts), "more than the channels is cut")
    begins = [spans_of(each)[-1].begin for each in slices]
    need(begins == list(range(0, sized(x)[-1], shape_of(parts[0])[-1])), "they aren't all channels, in order")
    return x


def _plain_filter(op: Operation, first: Operation) -> Constant:
    """Returns the filter of a convolution without groups; declines unless it is like the first one."""
    weights, model = fold_into_weights.float_filter(op), fold_into_weights.float_filter(first)
    need(weights is not None and model is not None and weights.shape == model.shape, "the filters differ")
    assert weights is not None
    need(weights.shape[3] == shape_of(op.operands[0])[3], "it has groups already")
    need(all(option(op, name) == option(first, name) for name in _OPTIONS), "the options differ")
    return weights


FAST_BYTES: tuple[Pattern[Any], ...] = (planned("convolutions-in-groups", "concatenation", _in_groups, depth=2),)
