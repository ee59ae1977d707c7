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
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.optimize import matching
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects import tfl as dialect
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class _Normalization(NamedTuple):
    """The parts of a normalization.

    Attributes:
        value: The normalized value.
        mean: The subtracted value.
        scale: The factors: a value for the whole vector, and a constant, if any.
        shift: The added constant, if any.
    """

    value: Value
    mean: Value
    scale: list[Value]
    shift: Value | None


class _Moved(NamedTuple):
    """`shift - mean * factor`."""

    mean: Value
    factor: Value
    shift: Value | None


def _match(op: Operation) -> _Normalization | Failure:
    if not matching.is_float(op.results[0]):
        return Failure("the elements aren't 32-bit floats")
    for scaled, rest in (op.operands, op.operands[::-1]):
        product = scaled.sole_producer("tfl.mul")
        moved = None if product is None or not matching.is_plain(product) else _moved_mean(rest)
        if product is None or moved is None:
            continue
        for x, factor in (product.operands, product.operands[::-1]):
            if factor is moved.factor:
                return _checked(op, x, moved)
    return Failure("it isn't a scaled value minus its scaled mean")


def _moved_mean(value: Value) -> _Moved | None:
    """Matches `shift - mean * factor`, `-mean * factor + shift` and `-mean * factor`."""
    sub = value.sole_producer("tfl.sub")
    if sub is not None and tensor_data.constant_of(sub.operands[0]) is not None and matching.is_plain(sub):
        product = sub.operands[1].sole_producer("tfl.mul")
        factors = None if product is None else _with_mean(product)
        if product is None or factors is None:
            return None
        return _Moved(*factors, sub.operands[0])
    add = value.sole_producer("tfl.add")
    split = None if add is None or not matching.is_plain(add) else matching.with_constant(add)
    shift = None if add is None or split is None else next(each for each in add.operands if each is not split[0])
    product = (split[0] if split is not None else value).sole_producer("tfl.mul")
    factors = None if product is None else _with_mean(product, negated=True)
    if product is None or factors is None:
        return None
    return _Moved(*factors, shift)


def _with_mean(product: Operation, *, negated: bool = False) -> tuple[Value, Value] | None:
    """Returns the mean (negated, if `negated`) and the other factor of a product."""
    if not matching.is_plain(product):
        return None
    for first, factor in (product.operands, product.operands[::-1]):
        neg = first.sole_producer("tfl.neg") if negated else None
        mean = first if neg is None else neg.operands[0]
        if negated == (neg is not None) and mean.producer("tfl.mean") is not None:
            return mean, factor
    return None


def _checked(op: Operation, value: Value, moved: _Moved) -> _Normalization | Failure:
    """Splits the scale, if the mean is narrow enough to make this worthwhile."""
    dims, narrow = op.results[0].shape, moved.mean.shape
    if dims is None or narrow is None or value.shape != dims or len(narrow) != len(dims) or narrow[-1] != 1:
        return Failure("the mean isn't one value a vector")
    if sum(1 for _ in moved.factor.uses) != 2:
        return Failure("the scale is used elsewhere too")
    scale = moved.factor.producer("tfl.mul")
    split = None if scale is None or not matching.is_plain(scale) else matching.with_constant(scale)
    if scale is None or split is None:
        return _Normalization(value, moved.mean, [moved.factor], moved.shift)
    gain = next(operand for operand in scale.operands if operand is not split[0])
    return _Normalization(value, moved.mean, [split[0], gain], moved.shift)


def _rewrite(op: Operation, match: _Normalization, rewriter: Rewriter) -> None:
    result_type = op.results[0].type
    steps = [("sub", match.mean), *(("mul", factor) for factor in match.scale)]
    if match.shift is not None:
        steps.append(("add", match.shift))
    value, last = match.value, len(steps) - 1
    for index, (name, operand) in enumerate(steps):
        options = {matching.ACTIVATION: op.properties.get(matching.ACTIVATION, matching.NONE)} if index == last else {}
        step = dialect.build(name, [value, operand], [result_type], options)
        value = rewriter.insert(step).results[0]
    rewriter.replace(value)


_MIN = 1e-12
_MAX_RANK = 4

X = value("x").element(np.float32)

# The forms of a square.
_SQUARES: Mapping[str, Op] = {"square": tfl.square(X), "product": tfl.mul(X, X, **matching.PLAIN)}


def _is_over_last(x: Value, axes: Array) -> bool:
    dims = x.shape
    return dims is not None and len(dims) <= _MAX_RANK and axes.ravel().tolist() in ([-1], [len(dims) - 1])


def _bounded(square: Op) -> Op:
    """Returns the bounded sum of a value's squares."""
    total = tfl.sum(square.once(), array("axes"), keep_dims=True).once()
    return tfl.maximum(total, number("least")).commutative().once()


_CONDITIONS = (
    check("the bound isn't the kernel's", lambda least: matching.is_close(least, _MIN, relative=1e-4)),
    check("the sum goes over more than the last dimension, or the rank is too high", _is_over_last),
)


def _patterns(name: str, square: Op) -> list[Pattern[Any]]:
    factor, divisor = tfl.rsqrt(_bounded(square)).once(), tfl.sqrt(_bounded(square)).once()
    product, quotient = tfl.mul(X, factor, **matching.PLAIN).commutative(), tfl.div(X, divisor, **matching.PLAIN)
    return [
        own_rule(f"l2-normalization-mul-{name}", product, tfl.l2_normalization(X), where=_CONDITIONS, benefit=1),
        own_rule(f"l2-normalization-div-{name}", quotient, tfl.l2_normalization(X), where=_CONDITIONS, benefit=1),
    ]


PATTERNS: tuple[Pattern[Any], ...] = (
    Pattern("normalization", "tfl.add", _match, _rewrite, benefit=5, depth=4),
    *tuple(pattern for name, square in _SQUARES.items() for pattern in _patterns(name, square)),
)
