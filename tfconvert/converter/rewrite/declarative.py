"""Declarative patterns: terms to match, and terms to replace them with.

    x, c, d = value("x"), number("c"), number("d")
    rule(
        "chain-add",
        tfl.add(tfl.add(x, c).commutative().once(), d).commutative(),
        tfl.add(x, computed(lambda c, d: c + d)),
    )

A rule is checked when it is created and becomes an ordinary `Pattern`; a `PatternSet` matches all its rules at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from tfconvert.converter.rewrite import materialize
from tfconvert.converter.rewrite.dsl import Check, Computed, Op, Term, TermLike, as_term
from tfconvert.converter.rewrite.functions import parameters_of
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.program import Bindings, Bound, Program, depth_of, in_order, ops_of, programs
from tfconvert.converter.rewrite.questions import Found
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.rewrite.verify import check_rule
from tfconvert.schema.ir.operation import Operation

Replacements = Mapping[Op, tuple[Term, ...]]
"""The replacements of the results of matched ops."""


class Match(NamedTuple):
    """A match of a declarative pattern.

    Attributes:
        bound: The values of the names.
        ops: The op that each term was matched with; empty if a function creates the result.
    """

    bound: dict[str, Bound]
    ops: dict[Op, Operation]


class Rule:
    """A declarative pattern.

    Attributes:
        name: Its name.
        root: The term that it matches.
        replacements: The replacement terms, op by op, each before those that it feeds.
        native: The function that creates the result instead, or `None`.
        conditions: The conditions to check once the form matches, in order.
    """

    __slots__ = ("_called", "_parameters", "_programs", "conditions", "name", "native", "replacements", "root")

    def __init__(
        self,
        name: str,
        root: Op,
        replacements: Replacements,
        native: Callable[..., None] | None,
        conditions: Sequence[Check | Computed],
    ) -> None:
        self.name = name
        self.root = root
        self.replacements = replacements
        self.native = native
        self.conditions = conditions
        self._programs: list[Program] = []
        self._called: list[tuple[Check | Computed, Callable[..., Any], tuple[str, ...]]] = []
        self._parameters: tuple[str, ...] = ()

    @property
    def programs(self) -> Sequence[Program]:
        """The ways to match it; compiled on first use, since most models don't use most rules."""
        if not self._programs:
            self._called = [(each, each.function, parameters_of(each.function)) for each in self.conditions]
            self._parameters = () if self.native is None else parameters_of(self.native)[1:]
            self._programs = programs(self.root)
        return self._programs

    def match(self, op: Operation) -> Match | Failure:
        """Matches an op of the root's name; a failure is that of the form that matched farthest."""
        best, reason = -1, ""
        for program in self.programs:
            found, passed = program.run(op)
            if passed == len(program.asked):
                match = self.conclude(program, found)
                if not isinstance(match, Failure):
                    return match
            else:
                match = None
            if passed > best:
                best, reason = passed, program.reason(found, passed) if match is None else match.reason
        return Failure(reason)

    def conclude(self, program: Program, found: Found) -> Match | Failure:
        """Checks the conditions on ops that match a program's form."""
        bound = Bindings(program, found)
        for condition, function, names in self._called:
            result = function(*[bound[name].value for name in names])
            if isinstance(result, Failure):
                return result
            if isinstance(condition, Computed):
                bound[condition.name] = Bound(result, None)
            elif not result:
                return Failure(condition.reason)
        if self.native is not None:
            bound.complete(self._parameters)
            return Match(bound, {})
        ops = program.ops_in(found)
        for op, terms in self.replacements.items():
            failure = materialize.misfit(ops[op], terms, bound, ops)
            if failure is not None:
                return failure
        bound.complete(program.names)
        return Match(bound, ops)

    def pattern(self, benefit: int | None, depth: int, note: str) -> Pattern[Match]:
        """Returns the pattern that the rule is; the arguments are those of `rule`."""
        self.replacements = {op: self.replacements[op] for op in in_order(self.root) if op in self.replacements}
        return Pattern(
            self.name,
            self.root.names[0],
            self.match,
            self.rewrite,
            benefit=sum(1 for _ in ops_of(self.root)) if benefit is None else benefit,
            depth=max(depth, depth_of(self.root)),
            declaration=self,
            note=note,
        )

    def rewrite(self, op: Operation, match: Match, rewriter: Rewriter) -> None:
        """Creates the result."""
        if self.native is not None:
            self.native(rewriter, *[match.bound[name].value for name in self._parameters])
            return
        materialize.Maker(match.bound, match.ops, rewriter).replace(self.replacements)


Replacement = TermLike | Sequence[TermLike] | Callable[..., None]
"""A replacement of the results of a pattern's root."""


def rule(
    name: str,
    root: Op,
    to: Replacement,
    *,
    where: Sequence[Check | Computed | Callable[..., Any]] = (),
    also: Mapping[Op, TermLike | Sequence[TermLike]] | None = None,
    benefit: int | None = None,
    depth: int = 0,
    note: str = "",
    is_checked: bool = True,
) -> Pattern[Match]:
    """Creates a declarative pattern.

    Args:
        name: Unique among the patterns it is used with; the report counts it under this name.
        root: The term that is matched, from the op whose results are replaced up to the producers of its operands.
        to: The replacement of each result of the root: captures, ops that were matched or are created, constants;
            nothing (`()`) for an op without results. Alternatively, a function creates the result: its first parameter
            is the `Rewriter`, the others are names as in `computed`.
        where: Conditions on the captures, and values to compute for them, in order.
        also: Other matched ops whose results are also replaced, with their replacements. These may use only values that
            the op itself depends on.
        benefit: The priority among patterns of one root, highest first; by default, the number of matched ops.
        depth: The distance above the root at which its functions look, if that is farther than the terms.
        note: A warning for the report where the pattern was applied, as a phrase; none by default.
        is_checked: Whether to check it now.

    Returns:
        The pattern.

    Raises:
        PatternError: The pattern can't work.
    """
    native = to if callable(to) and not isinstance(to, Term) else None
    wanted: dict[Any, Any] = {**(also or {}), **({} if native else {root: to})}
    conditions = tuple(
        each if isinstance(each, Check | Computed) else Check(each, f"{getattr(each, '__name__', each)} doesn't hold")
        for each in where
    )
    made = Rule(name, root, {op: _terms(terms) for op, terms in wanted.items()}, native, conditions)
    if is_checked:
        check_rule(made)
    return made.pattern(benefit, depth, note)


own_rule = partial(rule, is_checked=False)
"""`rule` for patterns of our own: checking all that a conversion uses takes 3 ms, so that a test does it instead."""


def _terms(terms: Any) -> tuple[Term, ...]:
    if isinstance(terms, Sequence) and not isinstance(terms, Term):
        return tuple(map(as_term, terms))
    return (as_term(terms),)
