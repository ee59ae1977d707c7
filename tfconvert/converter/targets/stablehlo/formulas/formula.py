"""Formulas of sizes: numbers, sizes and elements of arguments, and arithmetic on them, simplified as they are made.

Equal formulas are equal sizes, whatever the arguments are; of unequal ones nothing is known.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import ClassVar
from weakref import WeakValueDictionary

SIZE, ELEMENT, UNKNOWN = "size", "element", "unknown"
"""Kinds of leaves: the size of an argument's dimension, an argument's element, what only computing tells."""

_unknowns = count()


class Formula:
    """An operation on terms, or a leaf; equal ones are one object, so that what they have in common is stored once.

    Attributes:
        kind: The operation, by StableHLO's name (a comparison by its direction), or the kind of the leaf.
        terms: What it is applied to; of a leaf the number of the argument, and of the dimension or element.
        leaves: The leaves below it.
        rank: By which formulas are ordered, the simplest first: how much there is to it, and a digest of it.
    """

    __slots__ = ("__weakref__", "kind", "leaves", "rank", "terms")

    _made: ClassVar[WeakValueDictionary[tuple[str, tuple[Term, ...]], Formula]] = WeakValueDictionary()

    kind: str
    terms: tuple[Term, ...]
    leaves: frozenset[Formula]
    rank: tuple[int, bytes]

    def __new__(cls, kind: str, terms: tuple[Term, ...]) -> Formula:
        """Returns the formula of a kind and terms."""
        found = cls._made.get((kind, terms))
        if found is None:
            found = cls._made[kind, terms] = super().__new__(cls)
            found.kind, found.terms = kind, terms
            own = [each for each in terms if isinstance(each, Formula)]
            is_leaf = kind in (SIZE, ELEMENT, UNKNOWN)
            found.leaves = frozenset((found,)) if is_leaf else frozenset().union(*(each.leaves for each in own))
            digest = hashlib.blake2b(kind.encode(), digest_size=16)
            for each in terms:
                digest.update(each.rank[1] if isinstance(each, Formula) else b"%d;" % each)
            found.rank = 1 + len(terms) + sum(each.rank[0] for each in own), digest.digest()
        return found

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(map(repr, self.terms))})"


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


def rank(term: Term) -> tuple[int, bytes]:
    """Returns by what terms are ordered, the simplest first."""
    return (0, b"%d" % term) if isinstance(term, int) else term.rank


def _order(term: Term) -> tuple[bool, tuple[int, bytes]]:
    return isinstance(term, int), rank(term)


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


def leaves(term: Term) -> frozenset[Formula]:
    return frozenset() if isinstance(term, int) else term.leaves


def is_known(term: Term) -> bool:
    """Returns whether a term follows from the arguments."""
    return all(each.kind != UNKNOWN for each in leaves(term))


def evaluate(term: Term, values: Mapping[Formula, int]) -> int:
    """Returns what a term is.

    Args:
        term: The term.
        values: The values of its leaves.
    """
    known: dict[Term, int] = dict(values.items())
    waiting = [term]
    while waiting:
        each = waiting[-1]
        if isinstance(each, int):
            known[each] = each
        if each in known:
            waiting.pop()
            continue
        assert isinstance(each, Formula)
        needed = _needed(each, known)
        missing = [other for other in needed if other not in known]
        if missing:
            waiting += missing
        elif each.kind == "select":
            known[each] = known[needed[-1]]
        else:
            one, other = needed
            known[each] = int(COMPUTED[each.kind](known[one], known[other]))
    return known[term]


def _needed(formula: Formula, known: Mapping[Term, int]) -> tuple[Term, ...]:
    """Returns the terms that a formula's value follows from: of a choice the condition, and what it chooses."""
    if formula.kind != "select":
        return formula.terms
    condition, one, other = formula.terms
    return (condition,) if condition not in known else (condition, one if known[condition] else other)
