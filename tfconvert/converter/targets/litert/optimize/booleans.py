"""Simplifies booleans and selections: known ones, negations, and leaky rectifiers.

    select(not(c), x, y)               ->  select(c, y, x)
    select(true, x, y)                 ->  x                     false: y; where nothing broadcasts
    select(x >= 0, x, a * x)           ->  leaky_relu{a}(x)      and with any of the other comparisons with zero
    not(not(x))                        ->  x
    not(x == y), not(x != y)           ->  x != y, x == y        of integers also the comparisons by size
    and(x, true), or(x, false)         ->  x
    and(x, false), or(x, true)         ->  false, true
    select(c, -2, 0) < 0               ->  c

An ordered comparison of floats can't be negated to its opposite: both are false for NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.declarative import own_rule
from tfconvert.converter.rewrite.dsl import Op, Term, array, check, computed, number, op, tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects import tfl as dialect
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators

_SELECTS = ("select", "select_v2")

_OPPOSITE = {f"tfl.{name}": opposite for name, opposite in operators.having("opposite").items()}
# Comparisons whose opposite is their negation for all types.
_EXACT = ("tfl.equal", "tfl.not_equal")

# The value that decides the result regardless of the other operand.
_ABSORBING: Mapping[str, bool] = {"tfl.logical_and": False, "tfl.logical_or": True}


def _chosen(root: Operation, condition: Array) -> Value | Failure:
    if not condition.size or condition.all() != condition.any():
        return Failure("both values are chosen")
    chosen = root.operands[1 if condition.all() else 2]
    dims = questions.known_shape(chosen)
    same = dims is not None and dims == root.results[0].shape
    return chosen if same else Failure("the chosen value is broadcast, or may be")


def _has_opposite(comparison: Operation) -> bool:
    element = comparison.operands[0].element
    return element in (types.I32, types.I64) or (element == types.F32 and comparison.name in _EXACT)


def _compare(rewriter: Rewriter, root: Operation, comparison: Operation) -> None:
    opposite = dialect.build(_OPPOSITE[comparison.name], comparison.operands, [root.results[0].type])
    rewriter.replace(rewriter.insert(opposite))


def _decided(root: Operation, b: Value, known: Array) -> Value | Array | Failure:
    """Returns the result of a logical op with a constant: its other operand, or a constant."""
    if not known.size or known.all() != known.any():
        return Failure("no operand is known to be true or false throughout")
    absorbing = _ABSORBING[root.name]
    if bool(known.all()) != absorbing:
        same = b.shape == root.results[0].shape and b.shape is not None
        return b if same else Failure("it broadcasts")
    dims = questions.known_shape(root.results[0])
    if dims is None or math.prod(dims) > tensor_data.MAX_READ_BYTES:
        return Failure("the result's shape is unknown, or it would be large")
    return np.full(dims, absorbing)


X, B, Y, Z = value("x").element(np.float32), value("b"), value("y"), value("z")
_CHOSEN, _DECIDED = computed(_chosen, "chosen"), computed(_decided, "decided")
_COMPARISON = op(tuple(_OPPOSITE), Y, Z).once().named("comparison")
_HAS_OPPOSITE = check("what is not a number compares as false either way, or the kernels lack the type", _has_opposite)
_SCALED = tfl.mul(X, number("alpha"), **questions.PLAIN).commutative()
_POSITIVE, _NEGATIVE = ("tfl.greater", "tfl.greater_equal"), ("tfl.less", "tfl.less_equal")


def _leaky() -> Iterator[Pattern[Any]]:
    """Yields a pattern for each form of a leaky rectifier."""
    conditions: Mapping[str, tuple[Op, tuple[Term, Term]]] = {
        "positive": (op(_POSITIVE, X, 0.0), (X, _SCALED)),
        "positive-mirrored": (op(_NEGATIVE, 0.0, X), (X, _SCALED)),
        "negative": (op(_NEGATIVE, X, 0.0), (_SCALED, X)),
        "negative-mirrored": (op(_POSITIVE, 0.0, X), (_SCALED, X)),
    }
    where = [check("the factor isn't finite", lambda alpha: -math.inf < alpha < math.inf), questions.KEEPS_SHAPE]
    for select in _SELECTS:
        for name, (condition, values) in conditions.items():
            matched = op(f"tfl.{select}", condition.once(), *values)
            created = tfl.leaky_relu(X, alpha=computed(lambda alpha: alpha))
            yield own_rule(f"leaky-relu-{name}-{select}", matched, created, where=where, benefit=5)


def _below() -> Iterator[Pattern[Any]]:
    """Yields patterns for the comparison of a choice between two numbers, of which the first one only is less."""
    where = [
        check("both numbers compare alike", lambda low, high, limit: low < limit <= high),
        check("it broadcasts", lambda b, root: b.shape == root.results[0].shape),
    ]
    for select in _SELECTS:
        choice = op(f"tfl.{select}", B, number("low"), number("high"))
        yield own_rule(f"chosen-below-{select}", tfl.less(choice, number("limit")), B, where=where, benefit=10)


_NEGATED = [op(f"tfl.{name}", tfl.logical_not(B).once(), Y, Z) for name in _SELECTS]

NEEDS = "logical_and logical_not logical_or select select_v2"
"""The operators without any of which no pattern matches."""

PATTERNS: tuple[Pattern[Any], ...] = (
    *(
        own_rule(f"known-{name}", op(f"tfl.{name}", array("condition"), Y, Z), _CHOSEN, where=[_CHOSEN], benefit=20)
        for name in _SELECTS
    ),
    *(own_rule(f"negated-{each.names[0][4:]}", each, each.rebuilt(B, Z, Y), benefit=10) for each in _NEGATED),
    *_leaky(),
    *_below(),
    own_rule("twice-not", tfl.logical_not(tfl.logical_not(B)), B, benefit=20),
    own_rule("opposite-comparison", tfl.logical_not(_COMPARISON), _compare, where=[_HAS_OPPOSITE], benefit=5),
    *(
        own_rule(
            f"decided-{name[4:]}",
            op(name, B.varying(), array("known")).commutative(),
            computed(lambda decided: decided),
            where=[_DECIDED],
            benefit=15,
        )
        for name in _ABSORBING
    ),
)
