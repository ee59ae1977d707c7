"""Booleans and choices: none where they are known, none of a negation, and leaky rectifiers that are written as such.

    select(not(c), x, y)               ->  select(c, y, x)
    select(true, x, y)                 ->  x                     false: y; where nothing broadcasts
    select(x >= 0, x, a * x)           ->  leaky_relu{a}(x)      and with any of the other comparisons with zero
    not(not(x))                        ->  x
    not(x == y), not(x != y)           ->  x != y, x == y        of integers also the comparisons by size
    and(x, true), or(x, false)         ->  x
    and(x, false), or(x, true)         ->  false, true

A comparison of floats by size doesn't have the opposite one as its negation: neither holds of what is not a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_array
from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.litert.optimize import matching
from tfconvert.converter.rewrite.declarative import rule
from tfconvert.converter.rewrite.dsl import Op, Term, check, computed, number, op, tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects import tfl as dialect
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_SELECTS = ("select", "select_v2")

_OPPOSITE: Mapping[str, str] = {
    "tfl.equal": "not_equal",
    "tfl.not_equal": "equal",
    "tfl.less": "greater_equal",
    "tfl.greater_equal": "less",
    "tfl.greater": "less_equal",
    "tfl.less_equal": "greater",
}
_EXACT = ("tfl.equal", "tfl.not_equal")
"""Comparisons whose opposite is their negation whatever is compared."""

_ABSORBING: Mapping[str, bool] = {"tfl.logical_and": False, "tfl.logical_or": True}
"""The value that decides the result by itself; the other one leaves it to the other operand."""


def _match_known(op: Operation) -> Value | Failure:
    condition = constant_array(op.operands[0])
    if condition is None or not condition.size or condition.all() != condition.any():
        return Failure("the condition is computed, or both values are chosen")
    chosen = op.operands[1 if condition.all() else 2]
    dims = matching.static_shape(chosen)
    same = dims is not None and dims == matching.shape(op.results[0])
    return chosen if same else Failure("the chosen value is broadcast, or may be")


def _rewrite_operand(op: Operation, match: Value, rewriter: Rewriter) -> None:
    rewriter.replace(match)


def _match_negated(op: Operation) -> Operation | Failure:
    source = matching.sole_producer(op.operands[0], "tfl.logical_not")
    return Failure("the condition isn't a negation, or is used elsewhere too") if source is None else source


def _rewrite_negated(op: Operation, match: Operation, rewriter: Rewriter) -> None:
    _, chosen, other = op.operands
    rewriter.replace(rewriter.insert(rebuild(op, [match.operands[0], other, chosen])))


def _match_opposite(op: Operation) -> Operation | Failure:
    source = matching.sole_producer(op.operands[0], frozenset(_OPPOSITE))
    if source is None:
        return Failure("no comparison comes before, or it is used elsewhere too")
    element = types.element_of(source.operands[0].type)
    if element in (types.I32, types.I64) or (element == types.F32 and source.name in _EXACT):
        return source
    return Failure("floats that are not numbers are neither less nor greater nor equal, or the kernels lack the type")


def _rewrite_opposite(op: Operation, match: Operation, rewriter: Rewriter) -> None:
    comparison = dialect.build(_OPPOSITE[match.name], match.operands, [op.results[0].type])
    rewriter.replace(rewriter.insert(comparison))


def _match_decided(op: Operation) -> Value | tuple[int, ...] | Failure:
    """Matches a connective one of whose operands is constant: the other operand, or the shape of what is known."""
    split = matching.with_constant(op)
    array = None if split is None else constant_array(next(each for each in op.operands if each is not split[0]))
    if split is None or array is None or not array.size or array.all() != array.any():
        return Failure("no operand is known to be true or false throughout")
    if bool(array.all()) != _ABSORBING[op.name]:
        same = matching.shape(split[0]) == matching.shape(op.results[0]) and matching.shape(split[0]) is not None
        return split[0] if same else Failure("it broadcasts")
    dims = matching.static_shape(op.results[0])
    if dims is None or math.prod(dims) > tensor_data.MAX_READ_BYTES:
        return Failure("the result's shape is unknown, or it would be large")
    return dims


def _rewrite_decided(op: Operation, match: Value | tuple[int, ...], rewriter: Rewriter) -> None:
    if isinstance(match, tuple):
        rewriter.replace(matching.insert_constant(rewriter, np.full(match, _ABSORBING[op.name])))
    else:
        rewriter.replace(match)


X, B = value("x").element(np.float32), value("b")
_SCALED = tfl.mul(X, number("alpha"), **matching.PLAIN).commutative()
_POSITIVE, _NEGATIVE = ("tfl.greater", "tfl.greater_equal"), ("tfl.less", "tfl.less_equal")


def _leaky() -> Iterator[Pattern[Any]]:
    """Yields the patterns of the ways in which a leaky rectifier is written."""
    conditions: Mapping[str, tuple[Op, tuple[Term, Term]]] = {
        "positive": (op(_POSITIVE, X, 0.0), (X, _SCALED)),
        "positive-mirrored": (op(_NEGATIVE, 0.0, X), (X, _SCALED)),
        "negative": (op(_NEGATIVE, X, 0.0), (_SCALED, X)),
        "negative-mirrored": (op(_POSITIVE, 0.0, X), (_SCALED, X)),
    }
    where = [
        check("the factor isn't finite", lambda alpha: -math.inf < alpha < math.inf),
        check("it broadcasts", matching.same_shape_as_result),
    ]
    for select in _SELECTS:
        for name, (condition, values) in conditions.items():
            matched = op(f"tfl.{select}", condition.once(), *values)
            created = tfl.leaky_relu(X, alpha=computed(lambda alpha: alpha))
            yield rule(f"leaky-relu-{name}-{select}", matched, created, where=where, benefit=5)


PATTERNS: tuple[Pattern[Any], ...] = (
    *(Pattern(f"known-{name}", f"tfl.{name}", _match_known, _rewrite_operand, benefit=20,
              producers={0: ("tfl.pseudo_const",)}) for name in _SELECTS),
    *(Pattern(f"negated-{name}", f"tfl.{name}", _match_negated, _rewrite_negated, benefit=10,
              producers={0: ("tfl.logical_not",)}) for name in _SELECTS),
    *_leaky(),
    rule("twice-not", tfl.logical_not(tfl.logical_not(B)), B, benefit=20),
    Pattern("opposite-comparison", "tfl.logical_not", _match_opposite, _rewrite_opposite, benefit=5,
            producers={0: _OPPOSITE}),
    *(Pattern(f"decided-{name[4:]}", name, _match_decided, _rewrite_decided, benefit=15) for name in _ABSORBING),
)  # fmt: skip
