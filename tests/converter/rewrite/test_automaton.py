"""The automaton finds what matching the patterns one by one finds, on random patterns and random graphs."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import permutations, product
from types import FrameType
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.converter.rewrite.ir import names, parse, rewrite
from tfconvert.converter.rewrite.declarative import rule
from tfconvert.converter.rewrite.dsl import Capture, Op, Term, check, constant, op, tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.pattern_set import Automaton, PatternSet
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

UNARY, BINARY = ("tfl.relu", "tfl.exp"), ("tfl.add", "tfl.mul")
LEAVES = ("x", "y", "k")


def fits(term: Term, found: Value, bound: dict[str, Value]) -> list[dict[str, Value]]:
    """Matches by recursion; returns the possible bindings of the captures, each way once."""
    if isinstance(term, Capture):
        if term.kind == "constant" and tensor_data.constant_of(found) is None:
            return []
        return [{**bound, term.name: found}] if bound.get(term.name, found) is found else []
    assert isinstance(term, Op)
    return fits_op(term, found.op, bound) if isinstance(found, OpResult) else []


def fits_op(term: Op, found: Operation, bound: dict[str, Value]) -> list[dict[str, Value]]:
    if found.name not in term.names or (term.limits.once and not found.results[0].has_one_use()):
        return []
    ways = []
    for order in permutations(term.operands) if term.commutes else [term.operands]:
        states = [bound]
        for inner, operand in zip(order, found.operands, strict=True):
            states = [new for state in states for new in fits(inner, operand, state)]
        ways += states
    return ways


@st.composite
def terms(draw: st.DrawFn, depth: int = 2, root: bool = True) -> Term:
    kind = draw(st.sampled_from(("leaf", "unary", "binary", "binary"))) if depth else "leaf"
    if root:
        kind = "binary"
    if kind == "leaf":
        name = draw(st.sampled_from(LEAVES))
        return constant(name) if name == "k" else value(name)
    below = terms(depth=depth - 1, root=False)
    if kind == "unary":
        made = op(draw(st.sampled_from((*((name,) for name in UNARY), UNARY))), draw(below))
    else:
        made = op(
            "tfl.add" if root else draw(st.sampled_from((*((name,) for name in BINARY), BINARY))),
            draw(below),
            draw(below),
        )
        if draw(st.booleans()):
            made = made.commutative()
    return made.once() if not root and draw(st.booleans()) else made


@st.composite
def graphs(draw: st.DrawFn) -> str:
    lines, known = ["%k = constant 1.0"], ["%x", "%y", "%k"]
    for index in range(draw(st.integers(1, 12))):
        name = draw(st.sampled_from((*UNARY, *BINARY, *BINARY)))
        operands = [draw(st.sampled_from(known[-6:])) for _ in range(1 if name in UNARY else 2)]
        lines.append(f"%{index} = {name} {', '.join(operands)}")
        known.append(f"%{index}")
    return "\n".join(lines)


def marked(index: int, term: Any, benefit: int) -> Pattern[Any]:
    return rule(f"p{index}", term, value("x"), benefit=benefit) if _has(term, "x") else native(index, benefit)


def _has(term: Any, name: str) -> bool:
    return any(_has(each, name) for each in term.operands) if isinstance(term, Op) else term.name == name


def native(index: int, benefit: int) -> Pattern[Any]:
    """A pattern by functions, with a producer that the automaton may query first."""

    def match(op: Operation) -> Failure | None:
        inner = op.operands[1]
        return None if isinstance(inner, OpResult) and inner.op.name == "tfl.exp" else Failure("no exp")

    producers = {1: ("tfl.exp",)} if index % 2 else {}
    return Pattern(f"p{index}", "tfl.add", match, lambda op, match, rewriter: None, benefit, producers=producers)


@settings(max_examples=200)
@given(st.lists(st.tuples(terms(), st.integers(1, 3)), min_size=1, max_size=8), graphs())
def test_it_agrees_with_matching_one_by_one(wanted: list[tuple[Any, int]], body: str) -> None:
    patterns = [marked(index, term, benefit) for index, (term, benefit) in enumerate(wanted)]
    found_in = dict(zip((pattern.name for pattern in patterns), (term for term, _ in wanted), strict=True))
    patterns_set = PatternSet(patterns)
    _, region = parse(body)
    for each in [each for each in region.block.ops if each.name == "tfl.add"]:
        expected = None
        for pattern in sorted(patterns, key=lambda pattern: -pattern.benefit):
            if pattern.declaration is None:
                matches = not isinstance(pattern.match(each), Failure)
            else:
                matches = bool(fits_op(found_in[pattern.name], each, {}))
                assert matches == (not isinstance(pattern.match(each), Failure))
            if matches:
                expected = pattern.name
                break
        found = patterns_set.match(each)
        assert (None if found is None else found[0].name) == expected


def test_the_first_order_of_operands_that_satisfies_the_conditions_is_taken() -> None:
    x, y = value("x"), value("y")
    pattern = rule(
        "second",
        tfl.sub(tfl.add(x, y).commutative(), y),
        tfl.neg(x),
        where=[check("x is an argument", lambda x: not isinstance(x, OpResult))],
    )
    module, region = parse("%e = tfl.exp %x\n%0 = tfl.add %e, %x\n%1 = tfl.sub %0, %e", "%1")
    rewrite(module, region, pattern)
    assert names(region) == ["neg"]


def test_a_thousand_producers_are_one_look_up() -> None:
    unary = (*UNARY, "tfl.abs", "tfl.neg", "tfl.sqrt", "tfl.rsqrt", "tfl.sin", "tfl.cos", "tfl.tanh", "tfl.square")
    binary = (*BINARY, "tfl.sub", "tfl.div", "tfl.maximum", "tfl.minimum", "tfl.pow", "tfl.floor_div", "tfl.floor_mod")
    few, many = _automaton(product(UNARY, BINARY, UNARY)), _automaton(product(unary, binary, unary))
    _, region = parse("%0 = tfl.relu %x\n%1 = tfl.mul %0, %y\n%2 = tfl.exp %1\n%3 = tfl.sub %2, %y", "%3")
    root = next(each for each in region.block.ops if each.name == "tfl.sub")
    found, calls = _candidates(few, root)
    assert found == ["tfl.exp tfl.mul tfl.relu"]
    assert _candidates(many, root) == (found, calls)
    assert 0 < calls < 20


def _automaton(wanted: Iterable[tuple[str, str, str]]) -> Automaton:
    x, y = value("x"), value("y")
    return Automaton([rule(" ".join(each), _chain(*each, x, y), x) for each in wanted])


def _chain(outer: str, middle: str, inner: str, x: Term, y: Term) -> Op:
    return tfl.sub(op(outer, op(middle, op(inner, x), y)), y)


def _candidates(automaton: Automaton, root: Operation) -> tuple[list[str], int]:
    """Returns the names of the patterns that an op may match, and how many function calls it took to find them."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        accepted = automaton.candidates(root)
    finally:
        sys.setprofile(before)
    return [pattern.name for _, _, pattern, _ in accepted], calls
