"""Replaces a vector divided by its length by one op.

    x * rsqrt(maximum(sum(x * x), 1e-12))  ->  l2_normalization(x)
    x / sqrt(maximum(sum(x * x), 1e-12))   ->  l2_normalization(x)

The sum is over the last dimension, which is kept. The kernel treats a length below 1e-6 as 1e-6, like the maximum; any
other bound has different results.

Splits normalization that is written as one multiplication and one addition.

    x * i + (b - mean(x) * i)       ->  (x - mean(x)) * r * g + b        where i = r * g
    x * i + (-mean(x) * i + b)      ->  the same

The mean and `r` have one value for each vector of `x`, and `g` and `b` are constants. The left side is cheap if `i` is
constant. Otherwise it costs two more products of full size, loses precision if the mean is large, and hides `g` and `b`
from a following matrix product that could absorb them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.rewrite.declarative import own_rule
from tfconvert.converter.rewrite.dsl import Op, array, check, number, tfl, value
from tfconvert.converter.rewrite.pattern import Declined, Pattern, need
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import need_floats, shape_of
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class _Moved(NamedTuple):
    """`shift - mean * factor`."""

    mean: Value
    factor: Value
    shift: Value | None


def _normalized(op: Operation) -> Emit:
    need_floats(op.results[0])
    for scaled, rest in (op.operands, op.operands[::-1]):
        product = scaled.sole_producer("tfl.mul")
        moved = None if product is None or not questions.is_plain(product) else _moved_mean(rest)
        if product is None or moved is None:
            continue
        for x, factor in (product.operands, product.operands[::-1]):
            if factor is moved.factor:
                return _split(op, x, moved)
    raise Declined("it isn't a scaled value minus its scaled mean")


def _moved_mean(value: Value) -> _Moved | None:
    """Matches `shift - mean * factor`, `-mean * factor + shift` and `-mean * factor`."""
    sub = value.sole_producer("tfl.sub")
    if sub is not None and tensor_data.constant_of(sub.operands[0]) is not None and questions.is_plain(sub):
        product = sub.operands[1].sole_producer("tfl.mul")
        factors = None if product is None else _with_mean(product)
        if product is None or factors is None:
            return None
        return _Moved(*factors, sub.operands[0])
    add = value.sole_producer("tfl.add")
    split = None if add is None or not questions.is_plain(add) else questions.with_constant(add)
    shift = None if add is None or split is None else next(each for each in add.operands if each is not split[0])
    product = (split[0] if split is not None else value).sole_producer("tfl.mul")
    factors = None if product is None else _with_mean(product, negated=True)
    if product is None or factors is None:
        return None
    return _Moved(*factors, shift)


def _with_mean(product: Operation, *, negated: bool = False) -> tuple[Value, Value] | None:
    """Returns the mean (negated, if `negated`) and the other factor of a product."""
    if not questions.is_plain(product):
        return None
    for first, factor in (product.operands, product.operands[::-1]):
        neg = first.sole_producer("tfl.neg") if negated else None
        mean = first if neg is None else neg.operands[0]
        if negated == (neg is not None) and mean.producer("tfl.mean") is not None:
            return mean, factor
    return None


def _split(op: Operation, x: Value, moved: _Moved) -> Emit:
    """Splits the scale, if the mean is narrow enough to make this worthwhile."""
    dims, narrow, kind = shape_of(op.results[0]), shape_of(moved.mean), op.results[0].type
    is_narrow = x.shape == dims and len(narrow) == len(dims) and narrow[-1:] == (1,)
    need(is_narrow, "the mean isn't one value a vector")
    need(sum(1 for _ in moved.factor.uses) == 2, "the scale is used elsewhere too")
    scale = moved.factor.producer("tfl.mul")
    split = None if scale is None or not questions.is_plain(scale) else questions.with_constant(scale)
    factors = [moved.factor]
    if scale is not None and split is not None:
        factors = [split[0], next(operand for operand in scale.operands if operand is not split[0])]
    steps = [("sub", moved.mean), *(("mul", factor) for factor in factors)]
    steps += [] if moved.shift is None else [("add", moved.shift)]

    def emit_steps(build: FormBuilder) -> Value:
        value = x
        for name, operand in steps[:-1]:
            value = build.tfl(name, (value, operand), kind)
        name, operand = steps[-1]
        return build.tfl(name, (value, operand), kind, {questions.ACTIVATION: questions.activation(op)})

    return emit_steps


_MIN = 1e-12
_MAX_RANK = 4

X = value("x").element(np.float32)

# The forms of a square.
_SQUARES: Mapping[str, Op] = {"square": tfl.square(X), "product": tfl.mul(X, X, **questions.PLAIN)}


def _is_over_last(x: Value, axes: Array) -> bool:
    dims = x.shape
    return dims is not None and len(dims) <= _MAX_RANK and axes.ravel().tolist() in ([-1], [len(dims) - 1])


def _bounded(square: Op) -> Op:
    """Returns the bounded sum of a value's squares."""
    total = tfl.sum(square.once(), array("axes"), keep_dims=True).once()
    return tfl.maximum(total, number("least")).commutative().once()


_CONDITIONS = (
    check("the bound isn't the kernel's", lambda least: questions.is_close(least, _MIN, relative=1e-4)),
    check("the sum goes over more than the last dimension, or the rank is too high", _is_over_last),
)


def _patterns(name: str, square: Op) -> list[Pattern[Any]]:
    factor, divisor = tfl.rsqrt(_bounded(square)).once(), tfl.sqrt(_bounded(square)).once()
    product, quotient = tfl.mul(X, factor, **questions.PLAIN).commutative(), tfl.div(X, divisor, **questions.PLAIN)
    return [
        own_rule(f"l2-normalization-mul-{name}", product, tfl.l2_normalization(X), where=_CONDITIONS, benefit=1),
        own_rule(f"l2-normalization-div-{name}", quotient, tfl.l2_normalization(X), where=_CONDITIONS, benefit=1),
    ]


NEEDS = "neg rsqrt sqrt sub"
"""The operators without any of which no pattern matches."""

PATTERNS: tuple[Pattern[Any], ...] = (
    planned("normalization", "add", _normalized, benefit=5, depth=4),
    *tuple(pattern for name, square in _SQUARES.items() for pattern in _patterns(name, square)),
)
