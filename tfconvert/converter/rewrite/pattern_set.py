"""Sets of patterns, which find the pattern that rewrites an op."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tfconvert.converter.rewrite.automaton import Automaton
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.schema.diagnostics import INEXACT, WARNING, Diagnostic
from tfconvert.schema.ir.operation import Operation


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
