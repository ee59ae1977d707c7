"""Normalization of groups of channels, in steps along whole rows.

XNNPACK is slow along the last dimension of a tensor if that is short: a reduction over it and dimensions before, or a
value for each vector of it.

    mean(x, axes)         ->  mean(mean(x, leading axes), last axis)            where the last dimension is short
    mean(x, axes)         ->  mean(x, axes)                                     without those of size 1
    sub(x, m)             ->  sub(x, m * ones)                                  where m has one value for each vector
    mul(mul(x, r), g)     ->  mul(x, mul(r, g))                                 where r and g are small

It is the same for other elementwise operators, and for sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, planned, worth
from tfconvert.converter.targets.litert.forms.questions import (
    elements,
    ints_of,
    is_float,
    joint,
    large,
    option,
    shape_of,
    sized,
)
from tfconvert.schema.dialects import tensor_data, tfl
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators

# The length of a last dimension up to which the rows of `speed.tsv` are faster.
_MAX_SHORT = 32
# How many times smaller an operand must be than the result, so that work on it doesn't count.
_SMALL = 4


def _reduced_in_steps(op: Operation) -> Emit:
    x = op.operands[0]
    shape = large(x)
    axes = sorted({axis % len(shape) for axis in ints_of(op.operands[1])})
    name = op.name.removeprefix("tfl.")
    need(is_float(x) and bool(option(op, "keep_dims")), "it drops dimensions, or isn't of 32-bit floats")
    kept = [axis for axis in axes if shape[axis] != 1]
    last = len(shape) - 1
    has_ones, is_short = len(kept) < len(axes), shape[last] <= _MAX_SHORT
    is_split = last in kept and len(kept) > 1 and last - 1 not in kept and shape[last] > 1
    is_split = is_split and (is_short or not has_ones)
    need(bool(kept) and (is_split or has_ones), "it is along whole rows")
    worth(is_short or not is_split, "the last dimension isn't short")

    if not is_split:
        return lambda build: build.reduce(name, x, kept, keep_dims=True)
    return lambda build: build.along_rows(name, build.reduce(name, x, kept[:-1], keep_dims=True))


def _in_full(op: Operation) -> Emit:
    shape, result = large(op.results[0]), op.results[0]
    need(is_float(result) and shape[-1] > 1, "the last dimension is 1, or it isn't of 32-bit floats")
    worth(shape[-1] <= _MAX_SHORT, "the last dimension isn't short")
    index = next((at for at, each in enumerate(op.operands) if _is_per_vector(each, shape)), None)
    if index is None:
        need(False, "no operand has one value for each vector")
    assert index is not None
    need(shape_of(op.operands[1 - index]) == shape, "the other operand is broadcast, too")

    def emit_ones(build: FormBuilder) -> Value:
        operands = list(op.operands)
        operands[index] = build.binary("mul", operands[index], build.constant(np.ones(shape[-1], np.float32)))
        return build.insert(tfl.TFLOp(op.name, operands, [result.type], op.properties, op.attributes)).results[0]

    return emit_ones


def _is_per_vector(value: Value, shape: tuple[int, ...]) -> bool:
    """Returns whether a computed value is much smaller than a shape, and one number along its last dimension."""
    own = value.shape
    if own is None or own.count(-1) > 1 or len(own) != len(shape) or tensor_data.constant_of(value) is not None:
        return False
    return own[-1] == 1 and elements(own) > 1 and elements(own) * shape[-1] * _SMALL <= elements(shape)


def _joined_factors(op: Operation) -> Emit:
    shape = large(op.results[0])
    need(is_float(op.results[0]), "it isn't of 32-bit floats")
    for product, last in (op.operands, op.operands[::-1]):
        inner = product.owner
        if not isinstance(inner, tfl.TFLOp) or inner.name != op.name or not product.has_one_use():
            continue
        need(option(inner, "fused_activation_function") == "NONE", "an activation is between")
        for x, factor in (inner.operands, inner.operands[::-1]):
            both = joint(sized(factor), sized(last))
            if shape_of(x) == shape and elements(both) * _SMALL <= elements(shape) and len(both) <= len(shape):
                return _times(op, x, (factor, last))
    need(False, "it isn't a product with two small factors")
    raise AssertionError


def _times(op: Operation, x: Value, factors: tuple[Value, Value]) -> Emit:
    options = dict(op.properties)
    return lambda build: build.tfl("mul", (x, build.binary("mul", *factors)), op.results[0].type, options)


NEEDS = "mean sum"
"""The operators without any of which no pattern matches."""

FAST: tuple[Pattern[Any], ...] = (
    planned("reduce-in-steps-mean", "mean", _reduced_in_steps),
    planned("reduce-in-steps-sum", "sum", _reduced_in_steps),
    planned("join-factors", "mul", _joined_factors, benefit=2, depth=2),
    *(planned(f"broadcast-in-full-{name}", name, _in_full) for name in operators.having("arithmetic")),
)
