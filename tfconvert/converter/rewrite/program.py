"""Declarative patterns as flat lists of questions: one program for each order of commutative operands.

A program also explains why its pattern declines an op.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from tfconvert.converter.rewrite import op_info
from tfconvert.converter.rewrite.dsl import (
    ARRAY,
    CONSTANT,
    NUMBER,
    REST,
    AttributeCapture,
    Capture,
    Literal,
    OneOf,
    Op,
    Result,
    Term,
    ValueLimits,
)
from tfconvert.converter.rewrite.questions import (
    Ask,
    Found,
    Path,
    Question,
    QuestionKind,
    attribute_of,
    compiled,
    value_at,
)
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value


def of(question: Question, expected: frozenset[Any], found: Found, slots: Mapping[Path, int]) -> str:
    """Returns why an op isn't matched.

    Args:
        question: The question.
        expected: The accepted answers.
        found: The ops found.
        slots: Slots of the positions that have an op.
    """
    kind, path = question.kind, question.path
    if kind in _OF_OP:
        return _OF_OP[kind](found[slots[path]], question, expected)
    where = _place(path, found, slots)
    value = value_at(found, slots, path)
    if kind is QuestionKind.PRODUCER:
        return f"{where} is {_origin(value)}, not defined by {_either(expected)}"
    text = _OF_VALUE[kind]
    return f"{where} {text(value, question, expected) if callable(text) else text}"


def _place(path: Path, found: Found, slots: Mapping[Path, int]) -> str:
    return f"operand {path[-1]} of {found[slots[path[:-1]]].name}" if path else "the result"


def _origin(value: Value) -> str:
    return f"defined by {value.op.name}" if isinstance(value, OpResult) else "an argument"


def _either(answers: frozenset[Any]) -> str:
    texts = sorted(map(_text, answers))
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"


def _text(answer: Any) -> str:
    if isinstance(answer, Attribute):
        entry = types.from_mlir(answer)
        return str(answer) if entry is None else entry.name
    return str(answer)


_OF_OP: Mapping[QuestionKind, Callable[[Any, Question, frozenset[Any]], str]] = {
    QuestionKind.ARITY: lambda op, _, expected: f"{op.name} has {len(op.operands)} operands, not {_either(expected)}",
    QuestionKind.AT_LEAST: lambda op, question, _: f"{op.name} has fewer than {question.argument} operands",
    QuestionKind.ATTRIBUTE: lambda op, question, expected: (
        f"{question.argument} of {op.name} is {attribute_of(op, str(question.argument))}, not {_either(expected)}"
    ),
    QuestionKind.SAME_ATTRIBUTE: lambda op, question, _: (
        f"{question.argument[0]} of {op.name} differs from {question.argument[2]} elsewhere"  # type: ignore[index]
    ),
    QuestionKind.ALL_ONCE: lambda op, _, __: f"the result of {op.name} is used more than once",
}

_OF_VALUE: Mapping[QuestionKind, str | Callable[[Value, Question, frozenset[Any]], str]] = {
    QuestionKind.SAME_OP: "is defined by another op than the same result elsewhere",
    QuestionKind.INDEX: lambda _, __, expected: f"isn't result {_either(expected)} of the op that defines it",
    QuestionKind.SAME: "isn't the same value as elsewhere in the pattern",
    QuestionKind.CONSTANT: lambda _, __, expected: "isn't constant" if True in expected else "is constant",
    QuestionKind.ARRAY: "isn't constant, or too large to look into",
    QuestionKind.NUMBER: "isn't a constant of one element",
    QuestionKind.ONCE: "is used more than once",
    QuestionKind.ELEMENT: lambda value, _, expected: (
        f"has elements of type {_text(value.element)}, not {_either(expected)}"
    ),
    QuestionKind.RANK: lambda value, _, expected: f"has the shape {value.shape}, not the rank {_either(expected)}",
    QuestionKind.DIM: lambda value, question, expected: (
        f"has the shape {value.shape}, whose dimension {question.argument} isn't {_either(expected)}"
    ),
    QuestionKind.STATIC: lambda value, _, __: f"has the shape {value.shape}, which isn't known",
    QuestionKind.EQUALS: lambda _, question, __: f"isn't the constant {question.argument}",
}


Asked = tuple[Question, frozenset[Any], str]
"""A question, its accepted answers, and the reason for other answers (empty: derived from the IR)."""


class Bound(NamedTuple):
    """The binding of a name where a program matches.

    Attributes:
        value: The value that functions get.
        origin: The captured value, the matched op or the attribute, from which a result is computed.
    """

    value: Any
    origin: Value | Operation | Attribute | tuple[Value, ...] | None


class Program:
    """One way to match a declarative pattern.

    Attributes:
        root: The root op's name.
        asked: The questions in order; an op with an accepted answer to all of them is matched.
        captures: Position of each captured value, by name.
        attributes: Position and attribute's name of each captured attribute, by name.
        labels: Positions of ops by their labels.
        ops: Positions of the ops by their terms.
        slots: The index of each position's op in a list of found ops.
    """

    __slots__ = ("_asks", "_places", "asked", "attributes", "captures", "labels", "ops", "root", "slots")

    def __init__(self, root: str) -> None:
        self.root = root
        self.asked: list[Asked] = []
        self.captures: dict[str, tuple[Path, str]] = {}
        self.attributes: dict[str, tuple[Path, str]] = {}
        self.labels: dict[str, Path] = {"root": ()}
        self.ops: dict[Op, Path] = {}
        self.slots: dict[Path, int] = {}
        self._asks: list[Ask] | None = None
        self._places: list[tuple[int, int]] | None = None

    def run(self, op: Operation) -> tuple[Found, int]:
        """Matches an op of the root's name; returns the ops found and the number of accepted answers."""
        if self._asks is None:
            self._asks = [compiled(question, self.slots) for question, _, _ in self.asked]
        found: Found = [None] * len(self.slots)
        found[0] = op
        for index, ask in enumerate(self._asks):
            if ask(found) not in self.asked[index][1]:
                return found, index
        return found, len(self._asks)

    def reason(self, found: Found, index: int) -> str:
        """Returns why an op isn't matched, from what `run` returned."""
        question, expected, reason = self.asked[index]
        return reason or of(question, expected, found, self.slots)

    def locate(self, op: Operation) -> Found:
        """Returns the ops that `run` finds, for an op that is known to be matched."""
        if self._places is None:
            paths = list(self.slots)[1:]  # each after its prefixes
            self._places = [(self.slots[path[:-1]], path[-1]) for path in paths]
        found: Found = [op]
        for parent, index in self._places:
            found.append(found[parent].operands[index].op)
        return found

    def binding(self, found: Found, name: str) -> Bound:
        """Returns the binding of a name, from the ops found for a matched op."""
        if name in self.captures:
            path, kind = self.captures[name]
            return _bind(found, self.slots, path, kind)
        if name in self.attributes:
            path, attribute = self.attributes[name]
            held = attribute_of(found[self.slots[path]], attribute)
            return Bound(None if held is None else op_info.python_value(held), held)
        op = found[self.slots[self.labels[name]]]
        return Bound(op, op)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a match binds."""
        return (*self.captures, *self.attributes, *self.labels)

    def ops_in(self, found: Found) -> dict[Op, Operation]:
        """Returns the op that each term was matched with."""
        return {term: found[self.slots[path]] for term, path in self.ops.items()}


class Bindings(dict[str, Bound]):
    """The bindings of a match by name; those of the pattern are created on first use."""

    __slots__ = ("_found", "_program")

    def __init__(self, program: Program, found: Found) -> None:
        self._program = program
        self._found = found

    def __missing__(self, name: str) -> Bound:
        bound = self[name] = self._program.binding(self._found, name)
        return bound

    def complete(self, names: Iterable[str]) -> None:
        """Creates the bindings that nothing has read yet, before the ops change."""
        for name in names:
            if name not in self:
                self[name] = self._program.binding(self._found, name)


def _bind(found: Found, slots: Mapping[Path, int], path: Path, kind: str) -> Bound:
    if kind == REST:
        values = tuple(found[slots[path[:-1]]].operands[path[-1] :])
        return Bound(values, values)
    value = value_at(found, slots, path)
    if kind not in (CONSTANT, ARRAY, NUMBER):
        return Bound(value, value)
    constant = tensor_data.constant_of(value)
    assert constant is not None, "the questions have been answered"
    if kind == CONSTANT:
        return Bound(constant, value)
    held = tensor_data.to_array(constant)
    return Bound(held.item() if kind == NUMBER else held, value)


def programs(root: Op) -> list[Program]:
    """Returns the ways to match a term, starting with all operands in the order in which they are written."""
    commuting = [op for op in ops_of(root) if op.commutes]
    orders = product((False, True), repeat=len(commuting))
    return [_flatten(root, {op for op, swap in zip(commuting, order, strict=True) if swap}) for order in orders]


def ops_of(root: Op) -> Iterator[Op]:
    """Yields each op of a term once, the root first."""
    seen: set[Op] = set()
    pending: deque[Term] = deque([root])
    while pending:
        op = op_of(pending.popleft())
        if op is not None and op not in seen:
            seen.add(op)
            yield op
            pending.extend(op.operands)


def in_order(root: Op) -> list[Op]:
    """Returns the ops of a term, each before those that it feeds."""
    done: dict[Op, None] = {}
    pending: list[tuple[Op, bool]] = [(root, False)]
    while pending:
        op, is_exit = pending.pop()
        if is_exit:
            done[op] = None
        elif op not in done:
            pending.append((op, True))
            pending.extend((inner, False) for inner in map(op_of, op.operands) if inner is not None)
    return list(done)


def op_of(term: Any) -> Op | None:
    """Returns the op that a term is, or is a result of."""
    op = term.op if isinstance(term, Result) else term
    return op if isinstance(op, Op) else None


def depth_of(root: Op) -> int:
    """Returns the maximum number of ops between the root and a value of a term."""
    depth, level = 0, list(root.operands)
    while level:
        depth += 1
        ops = [term.op if isinstance(term, Result) else term for term in level]
        level = [operand for op in dict.fromkeys(ops) if isinstance(op, Op) for operand in op.operands]
    return depth


def _flatten(root: Op, swapped: set[Op]) -> Program:
    program = Program(root.names[0])
    pending: deque[tuple[Term, Path]] = deque([(root, ())])
    while pending:
        term, path = pending.popleft()
        _ask_limits(program, term, path)
        if isinstance(term, Capture):
            _flatten_capture(program, term, path)
        elif isinstance(term, Literal):
            _ask(program, term, QuestionKind.EQUALS, path, True, argument=float(term.value))
        else:
            op, index = (term.op, term.index) if isinstance(term, Result) else (term, 0)
            assert isinstance(op, Op), "the pattern has been checked"
            if isinstance(term, Result):
                _ask_limits(program, op, path)
            known = program.ops.get(op)
            program.slots[path] = len(program.slots)
            if path and (index or _has_results(op)):
                _ask(program, op, QuestionKind.INDEX, path, index)
            if known is not None:
                _ask(program, op, QuestionKind.SAME_OP, path, True, argument=known)
                continue
            program.ops[op] = path
            _flatten_op(program, op, path)
            operands = op.operands[::-1] if op in swapped else op.operands
            pending.extend((operand, (*path, position)) for position, operand in enumerate(operands))
    program.asked.sort(key=lambda asked: asked[0].order)
    return program


def _has_results(op: Op) -> bool:
    """Returns whether an op may have several results."""
    return any((op_info.signature_of(name) or op_info.ANYTHING).results[1] > 1 for name in op.names)


def _flatten_op(program: Program, op: Op, path: Path) -> None:
    if path:
        _ask(program, op, QuestionKind.PRODUCER, path, *op.names)
    if op.label:
        program.labels[op.label] = path
    count = len(op.operands)
    if op.operands and isinstance(last := op.operands[-1], Capture) and last.kind == REST:
        if count > 1:
            _ask(program, op, QuestionKind.AT_LEAST, path, True, argument=count - 1)
    else:
        _ask(program, op, QuestionKind.ARITY, path, count)
    for name, value in op.attributes.items():
        if isinstance(value, AttributeCapture):
            first = program.attributes.setdefault(value.name, (path, name))
            if first != (path, name):
                _ask(program, op, QuestionKind.SAME_ATTRIBUTE, path, True, argument=(name, *first))
        else:
            values = value.values if isinstance(value, OneOf) else (value,)
            wanted = [op_info.to_attribute(each, name, value) for each in op.names for value in values]
            _ask(program, op, QuestionKind.ATTRIBUTE, path, *wanted, argument=name)


_KINDS = {CONSTANT: QuestionKind.CONSTANT, ARRAY: QuestionKind.ARRAY, NUMBER: QuestionKind.NUMBER}


def _flatten_capture(program: Program, capture: Capture, path: Path) -> None:
    first, _ = program.captures.setdefault(capture.name, (path, capture.kind))
    if first != path:
        _ask(program, capture, QuestionKind.SAME, path, True, argument=first)
    elif capture.kind in _KINDS:
        _ask(program, capture, _KINDS[capture.kind], path, True)


def _ask_limits(program: Program, term: Term, path: Path) -> None:
    limits: ValueLimits = term.limits
    if limits.once:
        _ask(program, term, QuestionKind.ALL_ONCE if isinstance(term, Op) else QuestionKind.ONCE, path, True)
    if limits.varies:
        _ask(program, term, QuestionKind.CONSTANT, path, False)
    if limits.elements:
        _ask(program, term, QuestionKind.ELEMENT, path, *limits.elements)
    if limits.rank is not None or limits.dims is not None:
        _ask(program, term, QuestionKind.RANK, path, limits.rank if limits.dims is None else len(limits.dims))
    for index, dim in enumerate(limits.dims or ()):
        if dim >= 0:
            _ask(program, term, QuestionKind.DIM, path, dim, argument=index)
    if limits.static:
        _ask(program, term, QuestionKind.STATIC, path, True)


def _ask(program: Program, term: Term, kind: QuestionKind, path: Path, *answers: Any, argument: Any = None) -> None:
    asked = (Question(kind, path, argument), frozenset(answers), term.reason)
    if asked not in program.asked:
        program.asked.append(asked)
