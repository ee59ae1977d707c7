"""Verifies declarative patterns when they are defined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfconvert.converter.rewrite import op_info
from tfconvert.converter.rewrite.dsl import (
    NO_LIMITS,
    REST,
    AttributeCapture,
    Capture,
    Computed,
    Literal,
    OneOf,
    Op,
    Result,
    Term,
    ValueLimits,
)
from tfconvert.converter.rewrite.functions import parameters_of
from tfconvert.converter.rewrite.pattern import PatternError
from tfconvert.converter.rewrite.program import in_order, op_of, ops_of

if TYPE_CHECKING:
    from tfconvert.converter.rewrite.declarative import Rule

_MAX_OPS = 64
# Maximum number of commutative ops; each order of operands needs a program.
_MAX_COMMUTING = 6

ROOT = "root"
"""The parameter name of the op that a pattern starts at."""


def check_rule(rule: Rule) -> None:
    """Checks a pattern.

    Raises:
        PatternError: It can't work; the message begins with its name.
    """
    try:
        _check_matched(rule.root)
        names = _names_of(rule.root)
        for condition in rule.conditions:
            _check_function(condition.function, names, "a condition")
            if isinstance(condition, Computed):
                if not condition.name or condition.name in names:
                    raise PatternError("a value computed among the conditions needs a name of its own")
                names.add(condition.name)
        if rule.native is not None:
            _check_native(rule.native, names)
        _Results(rule.root, rule.replacements, names).check()
    except PatternError as problem:
        raise PatternError(f"pattern {rule.name!r}: {problem}") from None


def _check_matched(root: Any) -> None:
    if not isinstance(root, Op):
        raise PatternError("the root must be an op, not a capture")
    if len(root.names) != 1:
        raise PatternError("the root has one name; make a pattern for each")
    commuting = 0
    for count, op in enumerate(ops_of(root), 1):
        commuting += op.commutes
        if count > _MAX_OPS or commuting > _MAX_COMMUTING:
            raise PatternError(f"at most {_MAX_OPS} ops can be matched, and {_MAX_COMMUTING} that commute")
        _check_op(op)
        if op.copied is not None or op.result_types:
            raise PatternError(f"{_title(op)} is matched: rebuilt, typed and like are for results")
        for term in op.operands:
            _check_operand(op, term)


def _check_operand(op: Op, term: Term) -> None:
    if isinstance(term, Computed):
        raise PatternError(f"an operand of {_title(op)} is computed; only results and conditions can be")
    if isinstance(term, Literal) and not isinstance(term.value, int | float):
        raise PatternError(f"an operand of {_title(op)} is {type(term.value).__name__}, not a term or a number")
    if isinstance(term, Result):
        maximum = max(_signature(name, term.op).results[1] for name in term.op.names)
        if not 0 <= term.index < maximum:
            raise PatternError(f"{_title(term.op)} has no result {term.index}")


def _title(op: Op) -> str:
    return "|".join(op.names)


def _signature(name: str, op: Op) -> op_info.Signature:
    signature = op_info.signature_of(name)
    if signature is None:
        if op.unregistered:
            return op_info.ANYTHING
        similar = op_info.similar_names(name)
        raise PatternError(f"there is no op {name!r}" + (f"; is it {' or '.join(similar)}?" if similar else ""))
    return signature


def _check_op(op: Op) -> None:
    """Checks an op's names, its number of operands and its attributes."""
    if not op.names:
        raise PatternError("an op has no name")
    rests = [index for index, term in enumerate(op.operands) if isinstance(term, Capture) and term.kind == REST]
    if rests and rests != [len(op.operands) - 1]:
        raise PatternError(f"the rest of the operands of {_title(op)} must come last, and once")
    if op.commutes and (len(op.operands) != 2 or rests):
        raise PatternError(f"{_title(op)} has {len(op.operands)} operands; only two can commute")
    for name in op.names:
        signature = _signature(name, op)
        minimum, maximum = signature.operands
        count = len(op.operands) - len(rests)
        if count > maximum or (count < minimum and not rests):
            wanted = _count(minimum, maximum)
            raise PatternError(f"{name} takes {wanted} operands, not {count}")
        for attribute, value in op.attributes.items():
            _check_attribute(name, signature, attribute, value)


def _count(minimum: int, maximum: int) -> str:
    if minimum == maximum:
        return str(minimum)
    return f"{minimum} or more" if maximum > 1000 else f"{minimum} to {maximum}"


def _check_attribute(name: str, signature: op_info.Signature, attribute: str, value: Any) -> None:
    if attribute in signature.derived:
        raise PatternError(f"{name} doesn't keep {attribute}, which its operands imply; constrain their element type")
    free = attribute.startswith("_") or attribute == "device"
    if signature.attributes is not None and attribute not in signature.attributes and not free:
        known = ", ".join(sorted(signature.attributes)) or "none"
        raise PatternError(f"{name} has no attribute {attribute!r}; it has {known}")
    if isinstance(value, Term) and not isinstance(value, Computed):
        raise PatternError(f"attribute {attribute!r} of {name} is the term of a value; use attr(...) or computed(...)")
    if isinstance(value, AttributeCapture | Computed):
        return
    for each in value.values if isinstance(value, OneOf) else (value,):
        try:
            op_info.to_attribute(name, attribute, each)
        except (TypeError, ValueError, AttributeError) as problem:
            raise PatternError(f"attribute {attribute!r} of {name} can't be {each!r}") from problem


def _names_of(root: Op) -> set[str]:
    """Returns the names that functions may read; checks that each is bound once."""
    kinds: dict[str, str] = {ROOT: "op"}
    limits: dict[str, ValueLimits] = {}
    for op in ops_of(root):
        if op.label:
            if op.label in kinds:
                raise PatternError(f"the name {op.label!r} is taken twice")
            kinds[op.label] = "op"
        for name, kind, constraint in _captures_of(op):
            if kinds.setdefault(name, kind) != kind:
                raise PatternError(f"{name!r} is captured as {kinds[name]} and as {kind}")
            limits[name] = _joined(name, limits.get(name, NO_LIMITS), constraint)
            if kind == REST and sum(1 for other in ops_of(root) for each in other.operands if _is(each, name)) > 1:
                raise PatternError(f"the rest {name!r} is captured twice")
    return set(kinds)


def _is(term: Term, name: str) -> bool:
    return isinstance(term, Capture) and term.name == name


def _captures_of(op: Op) -> Iterator[tuple[str, str, ValueLimits]]:
    for term in op.operands:
        if isinstance(term, Capture):
            yield term.name, term.kind, term.limits
    for value in op.attributes.values():
        if isinstance(value, AttributeCapture):
            yield value.name, "attribute", NO_LIMITS


def _joined(name: str, one: ValueLimits, other: ValueLimits) -> ValueLimits:
    """Returns the conjunction of two constraints on the same capture."""
    elements = one.elements & other.elements if one.elements and other.elements else one.elements or other.elements
    ranks = {limits.rank if limits.dims is None else len(limits.dims) for limits in (one, other)} - {None}
    dims = zip(one.dims or (), other.dims or (), strict=False)
    if (one.elements and not elements) or len(ranks) > 1 or any(min(a, b) >= 0 and a != b for a, b in dims):
        raise PatternError(f"{name!r} can't satisfy all its constraints")
    return ValueLimits(elements, one.rank if other.rank is None else other.rank, one.dims or other.dims)


def _check_function(function: Callable[..., Any], names: set[str], what: str) -> None:
    for name in parameters_of(function):
        if name not in names:
            raise PatternError(f"{what} reads {name!r}, which nothing captures")


def _check_native(native: Callable[..., None], names: set[str]) -> None:
    if not parameters_of(native):
        raise PatternError("a function that creates the result needs the rewriter as its first parameter")
    _check_function(native, {*names, parameters_of(native)[0]}, "the function that creates the result")


class _Results:
    """Checks the result side of a pattern."""

    def __init__(self, root: Op, replacements: Mapping[Any, Sequence[Term]], names: set[str]) -> None:
        self._matched = set(ops_of(root))
        self._replacements = replacements
        self._names = names
        self._final = {op_of(term): [] for terms in replacements.values() for term in terms}  # type: dict[Any, list[int]]

    def check(self) -> None:
        """Checks every replacement."""
        for op, terms in self._replacements.items():
            if op not in self._matched:
                raise PatternError("an op whose results are replaced isn't matched")
            minimum, maximum = _signature(op.names[0], op).results
            if not minimum <= len(terms) <= maximum:
                wanted = _count(minimum, maximum)
                raise PatternError(f"{_title(op)} has {wanted} results, but {len(terms)} replacements")
            for term in terms:
                if isinstance(term, Capture) and term.kind == REST:
                    raise PatternError(f"the rest {term.name!r} can't take the place of one result")
                made = op_of(term)
                if made is not None:
                    self._final[made].append(term.index if isinstance(term, Result) else 0)
        for op, terms in self._replacements.items():
            reachable = self._reachable(op)
            for term in terms:
                self._check_term(term, reachable)

    def _reachable(self, op: Op) -> set[Any]:
        """Returns the captures and ops that an op depends on, which its replacement may use."""
        below = set(in_order(op)) - {op}
        return below | {name for inner in (*below, op) for name, _, _ in _captures_of(inner)}

    def _check_term(self, root: Term, reachable: set[Any]) -> None:
        pending, seen = [root], set[Term]()
        while pending:
            term = pending.pop()
            if term in seen:
                continue
            seen.add(term)
            if term.limits != NO_LIMITS and op_of(term) not in self._matched and not isinstance(term, Capture):
                raise PatternError("a result can't have constraints; they are for what is matched")
            if isinstance(term, Capture):
                self._check_capture(term, reachable)
            elif isinstance(term, Computed):
                _check_function(term.function, self._names, "a computed value")
            elif (op := op_of(term)) is not None:
                pending.extend(self._check_created(op, term.index if isinstance(term, Result) else 0, reachable))

    def _check_capture(self, term: Capture, reachable: set[Any]) -> None:
        if term.name not in self._names:
            raise PatternError(f"the result uses {term.name!r}, which nothing captures")
        if term.name not in reachable:
            raise PatternError(f"{term.name!r} may come after the op whose result it is to replace")

    def _check_created(self, op: Op, index: int, reachable: set[Any]) -> Sequence[Term]:
        """Checks an op of a result; returns the terms that it is computed from."""
        if op in self._matched:
            if op in self._replacements:
                raise PatternError(f"{_title(op)} is replaced, so that no result can use it")
            if op not in reachable:
                raise PatternError(f"{_title(op)} may come after the op whose result it is to replace")
            return ()
        if op.copied is not None and op.copied not in self._matched:
            raise PatternError(f"{_title(op)} is rebuilt, but isn't matched")
        if len(op.names) != 1 and op.copied is None:
            raise PatternError(f"{_title(op)} is created and needs one name")
        if op.commutes or op.label:
            raise PatternError(f"{_title(op)} is created: names and orders are for what is matched")
        _check_op(op)
        for value in op.attributes.values():
            self._check_value(op, value)
        self._check_types(op, index)
        return (*op.operands, *(each for each in op.result_types if isinstance(each, Term)))

    def _check_value(self, op: Op, value: Any) -> None:
        if isinstance(value, OneOf):
            raise PatternError(f"an attribute of {_title(op)} must be one of several; say which")
        if isinstance(value, AttributeCapture) and value.name not in self._names:
            raise PatternError(f"{_title(op)} uses the attribute {value.name!r}, which nothing captures")
        if isinstance(value, Computed):
            _check_function(value.function, self._names, "a computed attribute")

    def _check_types(self, op: Op, index: int) -> None:
        """Checks that the result types of an op that is created are known."""
        if op.result_types:
            known = index < len(op.result_types)
        elif self._final.get(op):
            known = set(self._final[op]) == set(range(max(self._final[op]) + 1)) and index in self._final[op]
        else:
            known = index == 0 and (op.copied is not None or op_info.infers(op.names[0]))
        if not known:
            raise PatternError(f"the type of result {index} of {_title(op)} isn't known; use like(...) or typed(...)")
