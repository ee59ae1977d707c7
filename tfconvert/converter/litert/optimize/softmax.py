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

from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.litert.optimize import matching
from tfconvert.converter.rewrite.declarative import rule
from tfconvert.converter.rewrite.dsl import Op, array, attr, check, tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.schema.dialects import tfl as dialect
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_SOFTMAX = frozenset({"tfl.softmax", "tfl.log_softmax"})

X = value("x").element(np.float32)
_AXES = array("axes")


def _is_last(x: Value, axes: Array) -> bool:
    dims = matching.shape(x)
    return bool(dims) and axes.ravel().tolist() in ([-1], [len(dims or ()) - 1])


_LAST = check("it goes over more than the last dimension, or the rank is unknown", _is_last)
_SAME = check("it broadcasts", matching.same_shape_as_result)

_EXP = tfl.exp(X)
_SUM = tfl.sum(_EXP, _AXES, keep_dims=True).once()
_MAX = tfl.reduce_max(X, _AXES, keep_dims=True)
_CENTERED = tfl.sub(X, _MAX, **matching.PLAIN)


def _sigmoid(name: str, negative: Op) -> Pattern[Any]:
    divisor = tfl.add(tfl.exp(negative), 1.0, **matching.PLAIN).commutative().once()
    return rule(name, tfl.div(1.0, divisor, **matching.PLAIN), tfl.logistic(X), where=[_SAME], benefit=15)


def _match_order(op: Operation) -> Operation | Failure:
    """Matches the search for the largest of elements that a monotonic function comes before."""
    source = matching.producer(op.operands[0], _SOFTMAX)
    dims = matching.shape(op.operands[0])
    if source is None or not dims:
        return Failure("no softmax comes before, or the rank is unknown")
    if source.name == "tfl.softmax" and not dialect.attribute(source, "beta") > 0:
        return Failure("the softmax turns the order around")
    axes = matching.axes(op.operands[1], dims)
    return source if axes == frozenset({len(dims) - 1}) else Failure("it doesn't search along the last dimension")


def _rewrite_order(op: Operation, match: Operation, rewriter: Rewriter) -> None:
    rewriter.replace(rewriter.insert(rebuild(op, [match.operands[0], op.operands[1]])))


PATTERNS: tuple[Pattern[Any], ...] = (
    rule("softmax", tfl.div(_EXP, _SUM, **matching.PLAIN), tfl.softmax(X, beta=1.0), where=[_LAST], benefit=15),
    rule("log-softmax", tfl.sub(X, tfl.log(_SUM).once(), **matching.PLAIN), tfl.log_softmax(X), where=[_LAST],
         benefit=15),
    rule("centered-softmax", tfl.softmax(_CENTERED, beta=attr("beta")), tfl.softmax(X, beta=attr("beta")),
         where=[_LAST, check("beta is negative", lambda beta: beta > 0)], benefit=15),
    rule("centered-log-softmax", tfl.log_softmax(_CENTERED), tfl.log_softmax(X), where=[_LAST], benefit=15),
    _sigmoid("logistic", tfl.neg(X)),
    _sigmoid("logistic-of-product", tfl.mul(X, -1.0, **matching.PLAIN).commutative()),
    Pattern("order-before-softmax", "tfl.arg_max", _match_order, _rewrite_order, benefit=5,
            producers={0: _SOFTMAX}),
)  # fmt: skip
