"""A vector divided by its length becomes one op.

    x * rsqrt(maximum(sum(x * x), 1e-12))  ->  l2_normalization(x)
    x / sqrt(maximum(sum(x * x), 1e-12))   ->  l2_normalization(x)

The sum goes over the last dimension and keeps it. The kernel treats a length below 1e-6 as 1e-6, as the
maximum does; another bound, or none, computes something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.declarative import rule
from tfconvert.converter.rewrite.dsl import Op, array, check, number, tfl, value
from tfconvert.converter.rewrite.pattern import Pattern
from tfconvert.converter.targets.litert.optimize import matching
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.values import Value

_MIN = 1e-12
_MAX_RANK = 4

X = value("x").element(np.float32)

# How a square may be written.
_SQUARES: Mapping[str, Op] = {"square": tfl.square(X), "product": tfl.mul(X, X, **matching.PLAIN)}


def _is_over_last(x: Value, axes: Array) -> bool:
    dims = matching.shape(x)
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
        rule(f"l2-normalization-mul-{name}", product, tfl.l2_normalization(X), where=_CONDITIONS, benefit=1),
        rule(f"l2-normalization-div-{name}", quotient, tfl.l2_normalization(X), where=_CONDITIONS, benefit=1),
    ]


PATTERNS: tuple[Pattern[Any], ...] = tuple(
    pattern for name, square in _SQUARES.items() for pattern in _patterns(name, square)
)
