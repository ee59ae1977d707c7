"""Softmax and its relatives, written out in other ops, become single ops.

    exp(x) / sum(exp(x), -1)                        ->  softmax(x)
    softmax(x - reduce_max(x, -1))                  ->  softmax(x)        log_softmax as well
    x - log(sum(exp(x), -1))                        ->  log_softmax(x)
    1 / (1 + exp(-x))                               ->  logistic(x)
    arg_max(softmax(x), -1)                         ->  arg_max(x, -1)    log_softmax as well

The kernels subtract the maximum themselves. Where the ops would overflow, the single op does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfconvert.converter.rewrite.declarative import rule
from tfconvert.converter.rewrite.dsl import Op, array, attr, check, op, tfl, value
from tfconvert.converter.rewrite.pattern import Pattern
from tfconvert.converter.targets.litert.optimize import matching
from tfconvert.schema.dialects import tfl as dialect
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

X = value("x").element(np.float32)
_AXES = array("axes")


def _is_last(x: Value, axes: Array) -> bool:
    dims = matching.shape(x)
    return bool(dims) and axes.ravel().tolist() in ([-1], [len(dims or ()) - 1])


_LAST = check("it goes over more than the last dimension, or the rank is unknown", _is_last)

_EXP = tfl.exp(X)
_SUM = tfl.sum(_EXP, _AXES, keep_dims=True).once()
_MAX = tfl.reduce_max(X, _AXES, keep_dims=True)
_CENTERED = tfl.sub(X, _MAX, **matching.PLAIN)


def _sigmoid(name: str, negative: Op) -> Pattern[Any]:
    divisor = tfl.add(tfl.exp(negative), 1.0, **matching.PLAIN).commutative().once()
    return rule(
        name, tfl.div(1.0, divisor, **matching.PLAIN), tfl.logistic(X), where=[matching.KEEPS_SHAPE], benefit=15
    )


def _keeps_order(softmax: Operation) -> bool:
    return softmax.name == "tfl.log_softmax" or dialect.attribute(softmax, "beta") > 0


_ORDERED = value("x")
_SEARCH = tfl.arg_max(op(("tfl.softmax", "tfl.log_softmax"), _ORDERED).named("softmax"), _AXES)

PATTERNS: tuple[Pattern[Any], ...] = (
    rule("softmax", tfl.div(_EXP, _SUM, **matching.PLAIN), tfl.softmax(X, beta=1.0), where=[_LAST], benefit=15),
    rule(
        "log-softmax", tfl.sub(X, tfl.log(_SUM).once(), **matching.PLAIN), tfl.log_softmax(X), where=[_LAST], benefit=15
    ),
    rule(
        "centered-softmax",
        tfl.softmax(_CENTERED, beta=attr("beta")),
        tfl.softmax(X, beta=attr("beta")),
        where=[_LAST, check("beta is negative", lambda beta: beta > 0)],
        benefit=15,
    ),
    rule("centered-log-softmax", tfl.log_softmax(_CENTERED), tfl.log_softmax(X), where=[_LAST], benefit=15),
    _sigmoid("logistic", tfl.neg(X)),
    _sigmoid("logistic-of-product", tfl.mul(X, -1.0, **matching.PLAIN).commutative()),
    rule(
        "order-before-softmax",
        _SEARCH,
        _SEARCH.rebuilt(_ORDERED, _AXES),
        where=[_LAST, check("the softmax turns the order around", _keeps_order)],
        benefit=5,
    ),
)
