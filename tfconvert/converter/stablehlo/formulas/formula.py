"""Formulas of sizes: numbers, sizes and elements of arguments, and arithmetic on them, simplified as they are made.

Equal formulas are equal sizes, whatever the arguments are; of unequal ones nothing is known.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import NamedTuple

SIZE, ELEMENT, UNKNOWN = "size", "element", "unknown"
"""Kinds of leaves: the size of an argument's dimension, an argument's element, what only computing tells."""

_unknowns = count()


class Formula(NamedTuple):
    """An operation on terms, or a leaf.

    Attributes:
        kind: The operation, by StableHLO's name (a comparison by its direction), or the kind of the leaf.
        terms: What it is applied to; of a leaf the number of the argument, and of the dimension or element.
    """

    kind: str
    terms: tuple[Term, ...]


Term = Formula | int
"""A formula, or a number."""


def _truncated(one: int, other: int) -> int:
    quotient = abs(one) // abs(other) if other else 0
    return -1 if not other else quotient if (one < 0) == (other < 0) else -quotient


def _remainder(one: int, other: int) -> int:
    return one - _truncated(one, other) * other if other else one


COMPUTED: Mapping[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "and": operator.and_,
    "divide": _truncated,
    "maximum": max,
    "minimum": min,
    "multiply": operator.mul,
    "or": operator.or_,
    "remainder": _remainder,
    "subtract": operator.sub,
    "EQ": operator.eq,
    "GE": operator.ge,
    "GT": operator.gt,
    "LE": operator.le,
    "LT": operator.lt,
    "NE": operator.ne,
}
"""How numbers are computed with; quotients are truncated, as StableHLO's."""

_COMMUTATIVE = frozenset({"add", "and", "maximum", "minimum", "multiply", "or", "EQ", "NE"})
_NEUTRAL: Mapping[str, int] = {"add": 0, "multiply": 1}
_NEUTRAL_LAST: Mapping[str, int] = {"divide": 1, "subtract": 0}


def unknown() -> Formula:
    """Returns a new formula of a size that only computing tells."""
    return Formula(UNKNOWN, (next(_unknowns),))


def _order(term: Term) -> tuple[bool, str]:
    return isinstance(term, int), repr(term)


def make(kind: str, one: Term, other: Term) -> Term:
    """Returns an operation on two terms, simplified."""
    if isinstance(one, int) and isinstance(other, int):
        return int(COMPUTED[kind](one, other))
    if kind in _COMMUTATIVE:
        one, other = sorted((one, other), key=_order)
    if _NEUTRAL.get(kind, _NEUTRAL_LAST.get(kind)) == other:
        return one
    if one == other and kind in ("maximum", "minimum", "and", "or"):
        return one
    if one == other and kind in ("subtract", "EQ", "GE", "LE", "NE", "GT", "LT"):
        return int(kind in ("EQ", "GE", "LE"))
    if kind == "maximum" and other == 0 and isinstance(one, Formula) and one.kind == SIZE:
        return one
    return Formula(kind, (one, other))


def select(condition: Term, one: Term, other: Term) -> Term:
    """Returns one term if a condition holds, else another one."""
    if isinstance(condition, int):
        return one if condition else other
    return one if one == other else Formula("select", (condition, one, other))


def total(kind: str, terms: Sequence[Term], start: Term) -> Term:
    """Returns an operation on all terms, one after another."""
    for term in terms:
        start = make(kind, start, term)
    return start


def leaves(term: Term) -> set[Formula]:
    """Returns the leaves of a term."""
    found, waiting = set[Formula](), [term]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Formula):
            if each.kind in (SIZE, ELEMENT, UNKNOWN):
                found.add(each)
            else:
                waiting += each.terms
    return found


def is_known(term: Term) -> bool:
    """Returns whether a term follows from the arguments."""
    return all(each.kind != UNKNOWN for each in leaves(term))


def evaluate(term: Term, values: Mapping[Formula, int]) -> int:
    """Returns what a term is.

    Args:
        term: The term.
        values: The values of its leaves.
    """
    if isinstance(term, int):
        return term
    if term in values:
        return values[term]
    if term.kind == "select":
        condition, one, other = term.terms
        return evaluate(one if evaluate(condition, values) else other, values)
    one, other = (evaluate(each, values) for each in term.terms)
    return int(COMPUTED[term.kind](one, other))
