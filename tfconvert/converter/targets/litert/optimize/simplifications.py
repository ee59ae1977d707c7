"""Simplifies arithmetic to fewer ops with the same result for every operand.

neg(neg(x))                        ->  x
x + neg(y), x - neg(y)             ->  x - y, x + y
1 / sqrt(x)                        ->  rsqrt(x)
square(x - y)                      ->  squared_difference(x, y)
relu(square(x)), relu(abs(x)) ...  ->  square(x), abs(x)          where no element is negative
pow(x, 0)                          ->  1
x - x, of integers                 ->  0
x - 0, x / 1, of integers          ->  x

Replaces softmax and similar ops, written out in other ops, by single ops.

    exp(x) / sum(exp(x), -1)                        ->  softmax(x)
    softmax(x - reduce_max(x, -1))                  ->  softmax(x)        log_softmax as well
    softmax(x - reshape(reduce_max(y)))             ->  softmax(x)        one maximum for each row of x
    x - log(sum(exp(x), -1))                        ->  log_softmax(x)
    exp(x - (log(sum(exp(x - m), axes)) + m))       ->  reshape(softmax(reshape(x)))     over the last dimensions
    1 / (1 + exp(-x))                               ->  logistic(x)
    arg_max(softmax(x), -1)                         ->  arg_max(x, -1)    log_softmax as well

The kernels subtract the maximum themselves, so the single op never overflows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.declarative import own_rule
from tfconvert.converter.rewrite.dsl import Op, array, attr, check, computed, number, op, rest, tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects import tfl as dialect
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators

X, Y = value("x").element(np.float32), value("y")
_AXES = array("axes")


def _is_last(x: Value, axes: Array) -> bool:
    dims = x.shape
    return bool(dims) and axes.ravel().tolist() in ([-1], [len(dims or ()) - 1])


_LAST = check("it goes over more than the last dimension, or the rank is unknown", _is_last)

_EXP = tfl.exp(X)
_SUM = tfl.sum(_EXP, _AXES, keep_dims=True).once()
_MAX = tfl.reduce_max(X, _AXES, keep_dims=True)
_CENTERED = tfl.sub(X, _MAX, **questions.PLAIN)


_M = value("m")

# Maximum number of reshapes and transposes between a maximum and its use.
_MAX_MOVES = 3


def _is_maximum_of_rows(m: Value, x: Value, difference: Operation) -> bool:
    """Returns whether a softmax of rows subtracts from each row a maximum, which its own form does anyway."""
    dims = m.shape
    if not dims or dims[-1] != 1 or x.shape != difference.results[0].shape:
        return False
    for _ in range(_MAX_MOVES):
        owner = m.owner
        if not isinstance(owner, Operation) or owner.name not in ("tfl.reshape", "tfl.transpose"):
            break
        m = owner.operands[0]
    return isinstance(m.owner, Operation) and m.owner.name == "tfl.reduce_max"


_LOWERED = tfl.sub(X, _M, **questions.PLAIN).named("difference")
_IS_MAXIMUM = check("what is subtracted is no maximum of rows", _is_maximum_of_rows)
_SHIFTED = tfl.sub(X, _M, **questions.PLAIN)
_LOGARITHM = tfl.log(tfl.sum(tfl.exp(_SHIFTED), _AXES, keep_dims=True).once()).once()
_TOTAL = tfl.add(_LOGARITHM, _M, **questions.PLAIN).commutative().once()


def _joined(x: Value, m: Value, axes: Array) -> types.Shape | Failure:
    """Returns a value's shape with the last dimensions, which a reduction goes over, as one."""
    dims, shift = x.shape, m.shape
    if dims is None or shift is None or dims.count(-1) > 1:
        return Failure("several sizes are unknown")
    if any(dim != 1 for dim in shift[max(len(shift) - axes.size, 0) :]):
        return Failure("what is subtracted differs along the dimensions")
    rank, last = len(dims), sorted(int(axis) % len(dims) for axis in axes.ravel())
    if last != list(range(rank - len(last), rank)) or not last or -1 in dims[rank - len(last) :]:
        return Failure("it goes over other dimensions than the last ones, or their sizes are unknown")
    return (*dims[: rank - len(last)], math.prod(dims[rank - len(last) :]))


_JOINED = computed(_joined, "joined")


def _joined_type(x: Value, joined: types.Shape) -> Attribute:
    return types.tensor(x.element, joined)


def _sigmoid(name: str, negative: Op) -> Pattern[Any]:
    divisor = tfl.add(tfl.exp(negative), 1.0, **questions.PLAIN).commutative().once()
    return own_rule(
        name, tfl.div(1.0, divisor, **questions.PLAIN), tfl.logistic(X), where=[questions.KEEPS_SHAPE], benefit=15
    )


def _keeps_order(softmax: Operation) -> bool:
    return softmax.name == "tfl.log_softmax" or dialect.attribute(softmax, "beta") > 0


_ORDERED = value("x")
_SEARCH = tfl.arg_max(op(("tfl.softmax", "tfl.log_softmax"), _ORDERED).named("softmax"), _AXES)


_NOT_NEGATIVE = tuple(f"tfl.{name}" for name, (low, _) in operators.ranges().items() if low >= 0)

# The kernel of squared differences broadcasts tensors of this rank.
_MAX_RANK = 4


def _filled(op: Operation, number: float) -> Array | Failure:
    """Returns the result of an op with equal elements as a constant."""
    dims, row = questions.known_shape(op.results[0]), types.from_mlir(op.results[0].element)
    if dims is None or row is None or math.prod(dims) * row.dtype.itemsize > tensor_data.MAX_READ_BYTES:
        return Failure("the result's shape is unknown, or it would be large")
    return np.full(dims, number, row.dtype)


_ANY, C = value("any"), number("c")
_CLAMPED = {questions.ACTIVATION: attr("activation")}
_INTEGERS = value("x").element(np.int32, np.int64)
_SOURCE = op(_NOT_NEGATIVE, rest("operands")).element(np.float32).named("source")
_ZEROS = computed(lambda root: _filled(root, 0), "zeros")
_ONES = computed(lambda root: _filled(root, 1), "ones")
_LOW = check("the rank is unknown or too high", lambda root: len(root.results[0].shape or [0] * 9) <= _MAX_RANK)
_IS_ZERO = check("the number isn't zero", lambda c: c == 0)
_IS_ONE = check("the number isn't one", lambda c: c == 1)


NEEDS = "abs div exp floor_div log_softmax logistic neg pow softmax sqrt square squared_difference sub"
"""The operators without any of which no pattern matches."""

PATTERNS: tuple[Pattern[Any], ...] = (
    own_rule("softmax", tfl.div(_EXP, _SUM, **questions.PLAIN), tfl.softmax(X, beta=1.0), where=[_LAST], benefit=15),
    own_rule(
        "log-softmax",
        tfl.sub(X, tfl.log(_SUM).once(), **questions.PLAIN),
        tfl.log_softmax(X),
        where=[_LAST],
        benefit=15,
    ),
    own_rule(
        "centered-softmax",
        tfl.softmax(_CENTERED, beta=attr("beta")),
        tfl.softmax(X, beta=attr("beta")),
        where=[_LAST, check("beta is negative", lambda beta: beta > 0)],
        benefit=15,
    ),
    own_rule(
        "softmax-of-logarithms",
        tfl.exp(tfl.sub(X, _TOTAL, **questions.PLAIN).once()),
        tfl.reshape(
            tfl.softmax(
                tfl.reshape(X, computed(lambda joined: np.array(joined, np.int32))).typed(_joined_type), beta=1.0
            ).typed(_joined_type),
            computed(lambda root: np.array(root.results[0].shape, np.int32)),
        ),
        where=[_JOINED, questions.KEEPS_SHAPE],
        benefit=15,
    ),
    own_rule(
        "lowered-softmax",
        tfl.softmax(_LOWERED, beta=attr("beta")),
        tfl.softmax(X, beta=attr("beta")),
        where=[_IS_MAXIMUM, check("beta is negative", lambda beta: beta > 0)],
        benefit=14,
    ),
    own_rule("centered-log-softmax", tfl.log_softmax(_CENTERED), tfl.log_softmax(X), where=[_LAST], benefit=15),
    _sigmoid("logistic", tfl.neg(X)),
    _sigmoid("logistic-of-product", tfl.mul(X, -1.0, **questions.PLAIN).commutative()),
    own_rule(
        "order-before-softmax",
        _SEARCH,
        _SEARCH.rebuilt(_ORDERED, _AXES),
        where=[_LAST, check("the softmax turns the order around", _keeps_order)],
        benefit=5,
    ),
    own_rule("twice-negated", tfl.neg(tfl.neg(_ANY)), _ANY, benefit=20),
    own_rule("plus-negated", tfl.add(X, tfl.neg(Y), **_CLAMPED).commutative(), tfl.sub(X, Y, **_CLAMPED), benefit=2),
    own_rule("minus-negated", tfl.sub(X, tfl.neg(Y), **_CLAMPED), tfl.add(X, Y, **_CLAMPED), benefit=2),
    own_rule(
        "reciprocal-root",
        tfl.div(1.0, tfl.sqrt(X).once(), **questions.PLAIN),
        tfl.rsqrt(X),
        where=[questions.KEEPS_SHAPE],
        benefit=2,
    ),
    own_rule(
        "squared-difference",
        tfl.square(tfl.sub(X, Y, **questions.PLAIN).once()),
        tfl.squared_difference(X, Y),
        where=[_LOW],
        benefit=0,
    ),
    own_rule(
        "rectified",
        tfl.relu(_SOURCE),
        _SOURCE,
        benefit=3,
        where=[check("the type changes", lambda source, root: source.results[0].type == root.results[0].type)],
    ),
    own_rule("power-of-zero", tfl.pow(_ANY, C), _ONES, where=[_IS_ZERO, _ONES], benefit=2),
    own_rule("minus-itself", tfl.sub(_INTEGERS, _INTEGERS, **questions.PLAIN), _ZEROS, where=[_ZEROS], benefit=12),
    *(
        own_rule(
            f"neutral-{matched.names[0][4:]}", matched, _INTEGERS, where=[is_neutral, questions.KEEPS_TYPE], benefit=12
        )
        for matched, is_neutral in (
            (tfl.sub(_INTEGERS, C, **questions.PLAIN), _IS_ZERO),
            (tfl.div(_INTEGERS, C, **questions.PLAIN), _IS_ONE),
            (tfl.floor_div(_INTEGERS, C), _IS_ONE),
        )
    ),
)
