"""Declarative patterns: terms to match, and terms to replace them with.

    x, c, d = value("x"), number("c"), number("d")
    rule(
        "chain-add",
        tfl.add(tfl.add(x, c).commutative().once(), d).commutative(),
        tfl.add(x, computed(lambda c, d: c + d)),
    )

A rule is checked when it is created and becomes an ordinary `Pattern`; a `PatternSet` matches all its rules at once.
A `Maker` materializes the result side of a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.rewrite import op_info
from tfconvert.converter.rewrite.dsl import (
    AttributeCapture,
    Capture,
    Check,
    Computed,
    Literal,
    Op,
    Result,
    Term,
    TermLike,
    as_term,
)
from tfconvert.converter.rewrite.functions import parameters_of
from tfconvert.converter.rewrite.pattern import Declined, Failure, Pattern
from tfconvert.converter.rewrite.program import Bindings, Bound, Program, depth_of, in_order, ops_of, programs
from tfconvert.converter.rewrite.questions import Found
from tfconvert.converter.rewrite.rewriter import Rewriter, fuse_origins
from tfconvert.converter.rewrite.verify import check_rule
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import dims, tensor_data, types
from tfconvert.schema.dialects.locations import place_of
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.locations import Location
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

# Attributes that are not properties, in addition to those that begin with `_`.
_FREE = frozenset(("device",))


def misfit(
    op: Operation, terms: Sequence[Term], bound: Mapping[str, Bound], ops: Mapping[Op, Operation]
) -> Failure | None:
    """Returns why existing values can't replace an op's results, or `None` if they can.

    A value fits if its type is the result's or a more specific one.
    """
    for result, term in zip(op.results, terms, strict=False):
        value = _existing(term, bound, ops)
        if value is None or value.type is result.type or value.type == result.type:
            continue
        is_most_specific = types.most_specific(value.type, result.type) == value.type
        if not is_most_specific or not dims.compatible_types(value.type, result.type):
            return Failure(f"the result has the type {result.type}, its replacement {value.type}")
    return None


def _existing(term: Term, bound: Mapping[str, Bound], ops: Mapping[Op, Operation]) -> Value | None:
    if isinstance(term, Capture):
        origin = bound[term.name].origin
        return origin if isinstance(origin, Value) else None
    if isinstance(term, Computed):
        held = bound[term.name].value if term.name in bound else None
        return held if isinstance(held, Value) else None
    op, index = (term.op, term.index) if isinstance(term, Result) else (term, 0)
    found = ops.get(op) if isinstance(op, Op) else None
    return None if found is None else found.results[index]


class Maker:
    """Creates the results of one match."""

    def __init__(self, bound: dict[str, Bound], ops: Mapping[Op, Operation], rewriter: Rewriter) -> None:
        self._bound = bound
        self._ops = ops
        self._rewriter = rewriter
        self._created: dict[Op, Operation] = {}
        self._types: dict[Op, dict[int, Attribute]] = {}
        self._before: Operation = rewriter.root

    def replace(self, replacements: Mapping[Op, Sequence[Term]]) -> None:
        """Replaces the results of matched ops, each op's before those that it feeds."""
        for op, terms in replacements.items():
            for result, term in zip(self._ops[op].results, terms, strict=False):
                made, index = (term.op, term.index) if isinstance(term, Result) else (term, 0)
                if isinstance(made, Op):
                    self._types.setdefault(made, {}).setdefault(index, result.type)
        for op, terms in replacements.items():
            replaced = self._before = self._ops[op]
            like = [result.type for result in replaced.results]
            values = [value for term, wanted in zip(terms, like, strict=False) for value in self._values(term, wanted)]
            for old, new in zip(replaced.results, values, strict=True):
                self._rewriter.replace_value(old, new)
            self._rewriter.erase(replaced)

    def _values(self, term: Term, like: Attribute | None) -> Sequence[Value]:
        """Returns the values that a term represents: one, or several for a capture of the rest."""
        if isinstance(term, Capture):
            origin = self._bound[term.name].origin
            return origin if isinstance(origin, tuple) else (_value(origin),)
        if isinstance(term, Literal):
            return (self._constant(term.value, like, ()),)
        if isinstance(term, Computed):
            held = self._call(term)
            return (held if isinstance(held, Value) else self._constant(held, like, parameters_of(term.function)),)
        op, index = (term.op, term.index) if isinstance(term, Result) else (term, 0)
        assert isinstance(op, Op), "the pattern has been checked"
        found = self._ops.get(op) or self._created.get(op) or self._create(op)
        return (found.results[index],)

    def _call(self, term: Computed) -> Any:
        if term.name in self._bound:
            return self._bound[term.name].value
        result = term.function(*(self._bound[name].value for name in parameters_of(term.function)))
        if term.name:
            self._bound[term.name] = Bound(result, None)
        return result

    def _create(self, term: Op) -> Operation:
        copied = None if term.copied is None else self._ops[term.copied]
        name = term.names[0] if copied is None else copied.name
        operands = self._operands(term)
        properties, free = ({}, {}) if copied is None else (dict(copied.properties), dict(copied.attributes))
        for key, wanted in term.attributes.items():
            attribute = self._attribute(name, key, wanted)
            if attribute is not None:
                (free if key in _FREE or key.startswith("_") else properties)[key] = attribute
        result_types = self._result_types(term, operands, copied)
        if copied is None:
            op = op_info.build(name, operands, result_types, properties)
            op.attributes.update(free)
        else:
            op = type(copied)(name, operands, result_types, properties, free)
        self._created[term] = op
        return self._rewriter.insert(op, before=self._before)

    def _operands(self, term: Op) -> list[Value]:
        """Returns an op's operands; numbers get the element type of the first operand that isn't a number."""
        operands = [() if _is_free(each) else self._values(each, None) for each in term.operands]
        like = next((values[0].type for values in operands if values), None)
        return [
            value
            for each, values in zip(term.operands, operands, strict=True)
            for value in (self._values(each, like) if _is_free(each) else values)
        ]

    def _attribute(self, name: str, key: str, wanted: Any) -> Attribute | None:
        if isinstance(wanted, AttributeCapture):
            origin = self._bound[wanted.name].origin
            return origin if isinstance(origin, Attribute) else None
        return op_info.to_attribute(name, key, self._call(wanted) if isinstance(wanted, Computed) else wanted)

    def _result_types(self, term: Op, operands: Sequence[Value], copied: Operation | None) -> list[Attribute]:
        if term.result_types:
            return [self._type(each) for each in term.result_types]
        expected = self._types.get(term)
        if expected is not None:
            return [expected[index] for index in range(len(expected))]
        name = term.names[0] if copied is None else copied.name
        if not op_info.infers(name):
            return [each.type for each in _of(copied)]
        try:
            return [op_info.infer(operands)]
        except dims.MismatchError as problem:
            root = self._rewriter.root
            raise error(
                "wrong-pattern",
                f"a pattern creates {name} with operands that don't go together: {problem}",
                op=root.name,
                node=place_of(root.location).node,
            ) from problem

    def _type(self, wanted: Attribute | Term) -> Attribute:
        if isinstance(wanted, Attribute):
            return wanted
        if isinstance(wanted, Computed):
            found: Attribute = self._call(wanted)
            return found
        return self._values(wanted, None)[0].type

    def _constant(self, held: Any, like: Attribute | None, names: Sequence[str]) -> Value:
        """Inserts a constant; it has the location of the constants that it was computed from."""
        if not isinstance(held, np.ndarray | Attribute):
            held = np.asarray(held)
            if like is not None:
                held = held.astype(types.numpy_dtype(types.element_of(like)))
            elif held.dtype == np.float64:
                held = held.astype(np.float32)
        constant = tensor_data.of_array(held) if isinstance(held, np.ndarray) else held
        op = op_info.constant(self._rewriter.root.name, constant, self._location(names))
        return self._rewriter.insert(op, before=self._before).results[0]

    def _location(self, names: Sequence[str]) -> Location:
        origins = [self._bound[name].origin for name in names]
        return fuse_origins(
            origin for origin in origins if isinstance(origin, Value) and tensor_data.constant_of(origin) is not None
        )


def _is_free(term: Term) -> bool:
    return isinstance(term, Literal | Computed)


def _value(origin: Any) -> Value:
    assert isinstance(origin, Value), "the pattern has been checked"
    return origin


def _of(copied: Operation | None) -> Sequence[OpResult]:
    assert copied is not None, "the pattern has been checked"
    return copied.results


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
            try:
                result = function(*[bound[name].value for name in names])
            except Declined as declined:
                return declined.failure
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
            failure = misfit(ops[op], terms, bound, ops)
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
        Maker(match.bound, match.ops, rewriter).replace(self.replacements)


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
