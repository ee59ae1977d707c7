"""Sets of patterns, which find the pattern that rewrites an op by an automaton: all patterns of a root share questions.

The questions of each pattern, in their common order, form a word, and the words form a prefix tree. A node has the next
questions, each with a table from answer to node. A thousand patterns that expect different producers of an operand
therefore cost one lookup. The path of an op through the tree ends at the patterns that it matches.

Most patterns decline an op because of the names of the ops that feed it. The part of the tree that depends on these
alone is walked once for each combination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.program import Program
from tfconvert.converter.rewrite.questions import Ask, Path, Question, QuestionKind, compiled
from tfconvert.schema.diagnostics import INEXACT, WARNING, Diagnostic
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult

Accepted = tuple[int, int, Pattern[Any], Callable[[Operation], Any]]
"""The ranks of a pattern and its program, in the order of preference; the pattern; the function that matches it."""

_PREFERENCE = itemgetter(0, 1)


class _Node:
    """A state: the accepted patterns, and the next questions, as functions those that names don't answer last."""

    __slots__ = ("accepted", "asks", "farther", "tables")

    def __init__(self) -> None:
        self.accepted: list[Accepted] = []
        self.tables: dict[Question, dict[Any, _Node]] = {}
        self.asks: tuple[tuple[Ask, dict[Any, _Node]], ...] = ()
        self.farther: tuple[tuple[Ask, dict[Any, _Node]], ...] = ()


_Start = tuple[Sequence[Accepted], tuple[tuple[tuple[Ask, dict[Any, _Node]], ...], ...]]
"""The patterns that the names around an op suffice for, in order of preference, and the questions that are left."""

# Maximum number of combinations of names that are remembered.
_MAX_STARTS = 4096


class Automaton:
    """Finds the patterns of one root op whose form matches the neighbourhood of an op.

    Attributes:
        in_order: The patterns in order of preference if their forms are equal, or `None`.
    """

    __slots__ = ("_near", "_size", "_start", "_starts", "in_order")

    def __init__(self, patterns: Iterable[Pattern[Any]]) -> None:
        """Builds the tree.

        Args:
            patterns: The patterns in order of preference.
        """
        self._start = _Node()
        slots: dict[Path, int] = {(): 0}
        for rank, pattern in enumerate(patterns):
            for number, (questions, program) in enumerate(_words(pattern)):
                _insert(self._start, questions, (rank, number, pattern, _matcher(pattern, program)))
                for path in _positions(questions):
                    slots.setdefault(path, len(slots))
        self._size = len(slots)
        # The slots of operands' ops, by the operands' indices; those that are in no question share one more slot.
        near = {path[0]: slot for path, slot in slots.items() if len(path) == 1}
        self._near = [near.get(index, self._size) for index in range(max(near, default=-1) + 1)]
        self._starts: dict[tuple[Any, ...], _Start] = {}
        _compile(self._start, slots)
        self.in_order = None if self._start.asks else self._start.accepted

    def candidates(self, op: Operation) -> Sequence[Accepted]:
        """Returns the patterns whose form an op has, in order of preference, without checking their conditions."""
        if self.in_order is not None:
            return self.in_order
        operands = op.operands
        count = len(operands)
        near = operands if count <= len(self._near) else operands[: len(self._near)]
        names = (count, *[value.op.name if type(value) is OpResult else None for value in near])
        start = self._starts.get(names)
        if start is None:
            if len(self._starts) >= _MAX_STARTS:
                self._starts.clear()
            start = self._starts[names] = self._walk(names)
        return self._continue(op, start) if start[1] else start[0]

    def _continue(self, op: Operation, start: _Start) -> Sequence[Accepted]:
        """Asks the questions that names don't answer."""
        found: list[Any] = [None] * (self._size + 1)
        found[0] = op
        for slot, value in zip(self._near, op.operands, strict=False):
            if type(value) is OpResult:
                found[slot] = value.op
        accepted = [*start[0]]
        pending = [*start[1]]
        while pending:
            for ask, table in pending.pop():
                # The op at a position doesn't depend on the path to it, so branches may share the list.
                node = table.get(ask(found))
                if node is not None:
                    accepted += node.accepted
                    if node.asks:
                        pending.append(node.asks)
        if len(accepted) > 1:
            accepted.sort(key=_PREFERENCE)
        return accepted

    def _walk(self, names: tuple[Any, ...]) -> _Start:
        """Walks the tree as far as the number of an op's operands and the names of the ops that feed it decide."""
        accepted: list[Accepted] = []
        left = []
        pending = [self._start]
        while pending:
            node = pending.pop()
            accepted += node.accepted
            if node.farther:
                left.append(node.farther)
            for question, table in node.tables.items():
                if question.kind is QuestionKind.ARITY:
                    answer = names[0]
                elif question.kind is QuestionKind.AT_LEAST:
                    answer = names[0] >= question.argument
                else:
                    index = question.path[0] + 1
                    answer = names[index] if index < len(names) else None
                following = table.get(answer)
                if following is not None:
                    pending.append(following)
        return sorted(accepted, key=_PREFERENCE), tuple(left)


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
            asks.append((ask, table))
            pending.extend(table.values())
        node.asks = tuple(asks)
        node.farther = tuple([each for each, question in zip(asks, node.tables, strict=True) if not _is_near(question)])
        node.tables = {question: table for question, table in node.tables.items() if _is_near(question)}


def _is_near(question: Question) -> bool:
    """Returns whether the number of an op's operands and the names of the ops that feed it answer a question."""
    if question.kind is QuestionKind.PRODUCER:
        return len(question.path) == 1
    return not question.path and question.kind in (QuestionKind.ARITY, QuestionKind.AT_LEAST)


class PatternSet:
    """Patterns by root op, in descending order of benefit, with one automaton for each root.

    Attributes:
        reach: The maximum depth of the patterns that start at an op, by its name.
        gates: Names of ops, without any of which no pattern matches; empty if there are no such names.
    """

    __slots__ = ("_automata", "_buckets", "gates", "reach")

    def __init__(self, patterns: Iterable[Pattern[Any]], gates: Iterable[str] = ()) -> None:
        """Sorts the patterns; an automaton is built for the first op of its root.

        Raises:
            ValueError: Two patterns have the same name.
        """
        self.gates = frozenset(gates)
        buckets: dict[str, list[Pattern[Any]]] = {}
        names: set[str] = set()
        for pattern in patterns:
            if pattern.name in names:
                raise ValueError(f"two patterns are named {pattern.name!r}")
            names.add(pattern.name)
            buckets.setdefault(pattern.root, []).append(pattern)
        for bucket in buckets.values():
            bucket.sort(key=lambda pattern: -pattern.benefit)
        self._buckets = {root: tuple(bucket) for root, bucket in buckets.items()}
        self._automata: dict[str, Automaton] = {}
        self.reach: Mapping[str, int] = {
            root: max(pattern.depth for pattern in bucket) for root, bucket in buckets.items()
        }

    def match(self, op: Operation) -> tuple[Pattern[Any], Any] | None:
        """Returns the pattern with the highest benefit that matches an op, with the data for its rewrite."""
        automaton = self._automata.get(op.name)
        if automaton is None:
            bucket = self._buckets.get(op.name)
            if bucket is None:
                return None
            automaton = self._automata[op.name] = Automaton(bucket)
        candidates = automaton.candidates(op) if automaton.in_order is None else automaton.in_order
        for _, _, pattern, matches in candidates:
            match = matches(op)
            if type(match) is not Failure:
                return pattern, match
        return None

    def for_root(self, op_name: str) -> tuple[Pattern[Any], ...]:
        """Returns the patterns that start at an op of this name."""
        return self._buckets.get(op_name, ())

    def __iter__(self) -> Iterator[Pattern[Any]]:
        for bucket in self._buckets.values():
            yield from bucket

    def notes(self, applied: Mapping[str, int]) -> list[Diagnostic]:
        """Returns the warnings of the patterns that were applied.

        Args:
            applied: The number of times that each pattern was applied, by name.
        """
        return [
            Diagnostic(INEXACT, f"{pattern.note} ({applied[pattern.name]} of them)", severity=WARNING)
            for pattern in self
            if pattern.note and pattern.name in applied
        ]

    def reasons(self, op: Operation) -> list[str]:
        """Returns why each pattern that could rewrite an op declines it."""
        return [f"{pattern.name}: {failure.reason}" for pattern, failure in self.failures(op)]

    def failures(self, op: Operation) -> list[tuple[Pattern[Any], Failure]]:
        """Returns the patterns that could rewrite an op but decline it, in descending order of benefit."""
        results = [(pattern, pattern.match(op)) for pattern in self.for_root(op.name)]
        return [(pattern, result) for pattern, result in results if isinstance(result, Failure)]
