"""Means before products with weights, instead of after them.

    mean(fully_connected(x), a)          ->  fully_connected(mean(x, a))
    mean(conv_2d(x), a)                  ->  fully_connected(mean(x, a))              where the filter has one pixel
    mean(add(y, fully_connected(x)), a)  ->  add(mean(y, a), fully_connected(mean(x, a)))

A product is linear, so it needs one row instead of all, as long as the mean isn't over channels. Networks that end in a
global average, as SqueezeNet and many transformers, have one before it. Rows may be sliced between, as those of all
tokens but the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import (
    elements,
    ints_of,
    is_float,
    large,
    option,
    shape_of,
    sized,
)
from tfconvert.converter.targets.litert.forms.slices import Span, spans_of
from tfconvert.converter.targets.litert.optimize import fold_into_weights
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_SLICES = frozenset(("tfl.slice", "tfl.strided_slice"))
_PRODUCTS = frozenset(("tfl.conv_2d", "tfl.fully_connected"))

# How many rows there are at least, so that one is much less work.
_MIN_ROWS = 8


def _after_mean(op: Operation) -> Emit:
    value = op.operands[0]
    shape = large(value)
    axes = sorted({axis % len(shape) for axis in ints_of(op.operands[1])})
    need(is_float(value) and len(shape) - 1 not in axes, "it is of channels, or not of 32-bit floats")
    need(elements([shape[axis] for axis in axes]) >= _MIN_ROWS, "there are few rows")
    result = sized(op.results[0])
    need(len(result) > 1, "a vector is left")
    cut = value.sole_producer(_SLICES)
    spans = None if cut is None else spans_of(cut)
    if cut is not None and spans is not None:
        value = cut.operands[0]
        need(spans[-1].length == shape_of(value)[-1], "channels are cut")
        need(all(span.stride == 1 and not span.is_dropped for span in spans), "rows are left out between others")
        shape = sized(value)
    product, rest = _product(value), None
    if product is None:
        total = value.sole_producer("tfl.add")
        need(total is not None and questions.is_plain(total), "it isn't of a product without an activation")
        assert total is not None
        need(all(shape_of(each) == shape for each in total.operands), "the sum broadcasts")
        for each, other in (total.operands, total.operands[::-1]):
            product, rest = _product(each), other
            if product is not None:
                break
    if product is None:
        need(False, "it isn't of a product with constant weights")
    assert product is not None
    return _emit(op, product, rest, axes, spans)


def _product(value: Value) -> Operation | None:
    """Returns the product that computes rows apart from each other, and is used by nothing else."""
    op = value.sole_producer(_PRODUCTS)
    if op is None or not questions.is_plain(op) or fold_into_weights.float_filter(op) is None:
        return None
    x = op.operands[0]
    if len(shape_of(x)) != len(shape_of(value)) or shape_of(x)[:-1] != shape_of(value)[:-1]:
        return None
    weights = fold_into_weights.filter_shape(op)
    is_pixel = weights is not None and (len(weights) == 2 or weights[1:3] == (1, 1))
    return op if is_pixel and weights is not None and weights[-1] == shape_of(x)[-1] else None


def _emit(op: Operation, product: Operation, rest: Value | None, axes: list[int], spans: Sequence[Span] | None) -> Emit:
    keeps, result = bool(option(op, "keep_dims")), op.results[0]

    def mean_of(build: FormBuilder, value: Value) -> Value:
        channels = shape_of(value)[-1]
        if spans is not None:
            extents = [*(span.length for span in spans[:-1]), channels]
            value = build.slice(value, [span.begin for span in spans], extents)
        shape = (*shape_of(result)[:-1], channels)
        kind = types.tensor(types.F32, shape)
        return build.tfl("mean", (value, build.ints(axes)), kind, {"keep_dims": keeps})

    def emit_product(build: FormBuilder) -> Value:
        x, weights, *bias = product.operands
        outputs, inputs = shape_of(weights)[0], shape_of(weights)[-1]
        operands = [mean_of(build, x), build.reshape(weights, (outputs, inputs)), *bias]
        options = {questions.ACTIVATION: "NONE", "keep_num_dims": len(shape_of(result)) > 2}
        value = build.tfl("fully_connected", operands, result.type, options)
        if rest is None:
            return value
        return build.tfl("add", (mean_of(build, rest), value), result.type, {questions.ACTIVATION: "NONE"})

    return emit_product


FAST: tuple[Pattern[Any], ...] = (planned("mean-before-product", "mean", _after_mean, benefit=2, depth=3),)
