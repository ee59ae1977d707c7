"""Arithmetic in fewer ops, with the same result for every operand.

neg(neg(x))                        ->  x
x + neg(y), x - neg(y)             ->  x - y, x + y
1 / sqrt(x)                        ->  rsqrt(x)
square(x - y)                      ->  squared_difference(x, y)
relu(square(x)), relu(abs(x)) ...  ->  square(x), abs(x)          where no element is negative
pow(x, 0)                          ->  1
x - x, of integers                 ->  0
x - 0, x / 1, of integers          ->  x
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_number
from tfconvert.converter.litert.optimize import matching
from tfconvert.converter.rewrite.declarative import rule
from tfconvert.converter.rewrite.dsl import attr, check, tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_NOT_NEGATIVE = frozenset({
    "tfl.abs", "tfl.exp", "tfl.logistic", "tfl.softmax", "tfl.sqrt", "tfl.square", "tfl.squared_difference",
})  # fmt: skip

_MAX_RANK = 4
"""The kernel of squared differences broadcasts tensors of this rank."""


def _match_rectified(op: Operation) -> Value | Failure:
    value = op.operands[0]
    if matching.producer(value, _NOT_NEGATIVE) is None or not matching.is_float(value):
        return Failure("the elements may be negative, or aren't 32-bit floats")
    return value if value.type == op.results[0].type else Failure("the type changes")


def _rewrite_rectified(op: Operation, match: Value, rewriter: Rewriter) -> None:
    rewriter.replace(match)


def _filled(op: Operation, number: float) -> Array | Failure:
    """Returns the result of an op whose elements are all one number."""
    dims, row = matching.static_shape(op.results[0]), types.from_mlir(types.element_of(op.results[0].type))
    if dims is None or row is None or math.prod(dims) * row.dtype.itemsize > tensor_data.MAX_READ_BYTES:
        return Failure("the result's shape is unknown, or it would be large")
    return np.full(dims, number, row.dtype)


def _match_power(op: Operation) -> Array | Failure:
    zero = constant_number(op.operands[1]) == 0
    return _filled(op, 1) if zero else Failure("the exponent isn't zero")


def _match_itself(op: Operation) -> Array | Failure:
    if op.operands[0] is not op.operands[1] or not _is_integer(op) or not matching.is_plain(op):
        return Failure("another value is subtracted, an activation follows, or infinities may be subtracted")
    return _filled(op, 0)


def _rewrite_filled(op: Operation, match: Array, rewriter: Rewriter) -> None:
    rewriter.replace(matching.insert_constant(rewriter, match))


def _is_integer(op: Operation) -> bool:
    return types.element_of(op.results[0].type) in (types.I32, types.I64)


def _match_neutral(op: Operation) -> Value | Failure:
    if constant_number(op.operands[1]) != (0 if op.name == "tfl.sub" else 1) or not _is_integer(op):
        return Failure("it changes its operand, or the elements aren't integers")
    same = op.operands[0].type == op.results[0].type and matching.is_plain(op)
    return op.operands[0] if same else Failure("it broadcasts, or an activation follows")


X, Y = value("x").element(np.float32), value("y")
_CLAMPED = {matching.ACTIVATION: attr("activation")}
_ANY = value("any")
_SAME = check("it broadcasts", matching.same_shape_as_result)
_LOW = check(
    "the rank is unknown or too high", lambda root: len(matching.shape(root.results[0]) or [0] * 9) <= _MAX_RANK
)

PATTERNS: tuple[Pattern[Any], ...] = (
    rule("twice-negated", tfl.neg(tfl.neg(_ANY)), _ANY, benefit=20),
    rule("plus-negated", tfl.add(X, tfl.neg(Y), **_CLAMPED).commutative(), tfl.sub(X, Y, **_CLAMPED), benefit=2),
    rule("minus-negated", tfl.sub(X, tfl.neg(Y), **_CLAMPED), tfl.add(X, Y, **_CLAMPED), benefit=2),
    rule("reciprocal-root", tfl.div(1.0, tfl.sqrt(X).once(), **matching.PLAIN), tfl.rsqrt(X), where=[_SAME], benefit=2),
    rule("squared-difference", tfl.square(tfl.sub(X, Y, **matching.PLAIN).once()), tfl.squared_difference(X, Y),
         where=[_LOW], benefit=0),
    Pattern("rectified", "tfl.relu", _match_rectified, _rewrite_rectified, benefit=3, producers={0: _NOT_NEGATIVE}),
    Pattern("power-of-zero", "tfl.pow", _match_power, _rewrite_filled, benefit=2),
    Pattern("minus-itself", "tfl.sub", _match_itself, _rewrite_filled, benefit=12),
    *(Pattern(f"neutral-{name}", f"tfl.{name}", _match_neutral, _rewrite_rectified, benefit=12)
      for name in ("sub", "div", "floor_div")),
)  # fmt: skip
