"""The matching automaton: all patterns of one root share their questions.

The questions of each pattern, in their common order, form a word, and the words form a prefix tree. A node has the next
questions, each with a table from answer to node. A thousand patterns that expect different producers of an operand
therefore cost one lookup. The path of an op through the tree ends at the patterns that it matches.

The first questions of most words are about the number of operands and the names of the ops that define them. Ops that
agree in these reach the same nodes, so the path is followed once for each such *outline*, and later ops only answer the
other questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from tfconvert.converter.rewrite.pattern import Pattern
from tfconvert.converter.rewrite.program import Program
from tfconvert.converter.rewrite.questions import Ask, Path, Question, QuestionKind, compiled
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult

Accepted = tuple[int, int, Pattern[Any], Callable[[Operation], Any]]
"""The ranks of a pattern and its program, in the order of preference; the pattern; the function that matches it."""

_PREFERENCE = itemgetter(0, 1)


# Maximum number of outlines that are remembered; the operands of most ops have few forms.
_MAX_OUTLINES = 4096

Outline = tuple[Any, ...]
"""The number of an op's operands, up to the largest that matters, and the names of the ops that define some of them."""


class _Node:
    """A state: the accepted patterns, and the next questions, each with the function that asks it and its table."""

    __slots__ = ("accepted", "asks", "tables")

    def __init__(self) -> None:
        self.accepted: list[Accepted] = []
        self.tables: dict[Question, dict[Any, _Node]] = {}
        self.asks: Sequence[_Asked] = ()


_Asked = tuple[Question, Ask, dict[Any, _Node]]

# The patterns that all ops with one outline match, in order of preference, and the questions that remain.
_Reached = tuple[list[Accepted], Sequence[_Asked]]


class Automaton:
    """Finds the patterns of one root op whose form matches the neighbourhood of an op.

    Attributes:
        in_order: The patterns in order of preference if their forms are equal, or `None`.
    """

    __slots__ = ("_many", "_named", "_reached", "_size", "_start", "in_order")

    def __init__(self, patterns: Iterable[Pattern[Any]]) -> None:
        """Builds the tree.

        Args:
            patterns: The patterns in order of preference.
        """
        self._start = _Node()
        slots: dict[Path, int] = {(): 0}
        named: set[int] = set()
        counts = {0}
        for rank, pattern in enumerate(patterns):
            for number, (questions, program) in enumerate(_words(pattern)):
                _insert(self._start, questions, (rank, number, pattern, _matcher(pattern, program)))
                for path in _positions(questions):
                    slots.setdefault(path, len(slots))
                for question, answers in questions:
                    if question.kind is QuestionKind.PRODUCER and len(question.path) == 1:
                        named.add(question.path[0])
                    elif question.kind is QuestionKind.ARITY and not question.path:
                        counts.update(answers)
                    elif question.kind is QuestionKind.AT_LEAST and not question.path:
                        counts.add(_minimum(question))
        self._size = len(slots)
        # The operands whose producers the outline names, with the slots of these; and a count that is above all others.
        self._named = [(index, slots[index,]) for index in sorted(named)]
        self._many = max(counts) + 1
        self._reached: dict[Outline, _Reached] = {}
        _compile(self._start, slots)
        self.in_order = None if self._start.asks else self._start.accepted

    def candidates(self, op: Operation) -> Sequence[Accepted]:
        """Returns the patterns whose form an op has, in order of preference, without checking their conditions."""
        if self.in_order is not None:
            return self.in_order
        operands = op.operands
        count = len(operands)
        found: list[Any] = [None] * self._size
        found[0] = op
        outline: list[Any] = [min(count, self._many)]
        for index, slot in self._named:
            value = operands[index] if index < count else None
            if type(value) is OpResult:
                producer = found[slot] = value.op
                outline.append(producer.name)
            else:
                outline.append(None)
        key = tuple(outline)
        reached = self._reached.get(key)
        if reached is None:
            reached = self._reach(key)
        accepted, asks = reached
        if not asks:
            return accepted
        accepted = accepted[:]
        pending = [asks]
        while pending:
            for _, ask, table in pending.pop():
                # The op at a position doesn't depend on the path to it, so branches may share the list.
                node = table.get(ask(found))
                if node is not None:
                    accepted += node.accepted
                    if node.asks:
                        pending.append(node.asks)
        if len(accepted) > 1:
            accepted.sort(key=_PREFERENCE)
        return accepted

    def _reach(self, outline: Outline) -> _Reached:
        """Follows the path of ops with an outline as far as that answers the questions."""
        names = {(index,): name for (index, _), name in zip(self._named, outline[1:], strict=True)}
        accepted: list[Accepted] = []
        left: list[_Asked] = []
        pending = [self._start]
        while pending:
            node = pending.pop()
            accepted += node.accepted
            for asked in node.asks:
                question, _, table = asked
                following: _Node | None = None
                if question.kind is QuestionKind.PRODUCER and question.path in names:
                    following = table.get(names[question.path])
                elif question.kind is QuestionKind.ARITY and not question.path:
                    following = table.get(outline[0])
                elif question.kind is QuestionKind.AT_LEAST and not question.path:
                    following = table.get(outline[0] >= _minimum(question))
                else:
                    left.append(asked)
                if following is not None:
                    pending.append(following)
        accepted.sort(key=_PREFERENCE)
        reached = accepted, left
        if len(self._reached) < _MAX_OUTLINES:
            self._reached[outline] = reached
        return reached


def _matcher(pattern: Pattern[Any], program: Program | None) -> Callable[[Operation], Any]:
    """Returns the function that matches a pattern; a declarative pattern is matched by one of its programs."""
    declaration = pattern.declaration
    if program is None or declaration is None:
        return pattern.match
    locate, conclude = program.locate, declaration.conclude
    return lambda op: conclude(program, locate(op))


def _words(pattern: Pattern[Any]) -> list[tuple[list[tuple[Question, Iterable[Any]]], Program | None]]:
    """Returns the initial questions of each form of a pattern, with the accepted answers."""
    if pattern.declaration is None:
        asked = [
            (Question(QuestionKind.PRODUCER, (index,)), names) for index, names in sorted(pattern.producers.items())
        ]
        minimum = max(pattern.producers, default=-1) + 1
        return [([(Question(QuestionKind.AT_LEAST, (), minimum), (True,)), *asked] if asked else [], None)]
    return [([(asked[0], asked[1]) for asked in program.asked], program) for program in pattern.declaration.programs]


def _positions(questions: Iterable[tuple[Question, Any]]) -> list[Path]:
    return [
        question.path for question, _ in questions if question.kind in (QuestionKind.PRODUCER, QuestionKind.SAME_OP)
    ]


def _minimum(question: Question) -> int:
    minimum = question.argument
    assert isinstance(minimum, int)
    return minimum


def _insert(start: _Node, questions: Iterable[tuple[Question, Iterable[Any]]], accepted: Accepted) -> None:
    nodes = [start]
    for question, answers in questions:
        tables = [node.tables.setdefault(question, {}) for node in nodes]
        nodes = [table.setdefault(answer, _Node()) for table in tables for answer in answers]
    for node in nodes:
        node.accepted.append(accepted)


def _compile(start: _Node, slots: Mapping[Path, int]) -> None:
    """Turns the questions of all nodes into functions; equal questions share a function."""
    known: dict[Question, Ask] = {}
    pending = [start]
    while pending:
        node = pending.pop()
        asks = []
        for question, table in node.tables.items():
            ask = known.get(question)
            if ask is None:
                ask = known[question] = compiled(question, slots)
            asks.append((question, ask, table))
            pending.extend(table.values())
        node.asks, node.tables = tuple(asks), {}
