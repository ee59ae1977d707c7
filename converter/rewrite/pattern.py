"""Patterns of the DAG rewriter: a root op, a benefit, and a match that stands apart from the rewrite (design §6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from xdsl.ir import Operation

if TYPE_CHECKING:
    from converter.rewrite.rewriter import Rewriter


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a pattern declines an op; shown where an op is left over.

    Attributes:
        reason: A phrase that completes "not rewritten because ...".
    """

    reason: str


M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Pattern(Generic[M]):
    """A rewrite of the DAG that ends in one op.

    Attributes:
        name: Unique in its set; shown in errors.
        root: The full name of the op that the pattern starts at (`tf.Conv2D`).
        match: Looks at the op without changing anything; returns what the rewrite needs to know, or a `Failure`.
        rewrite: Replaces the op; may rely on what `match` saw.
        benefit: Patterns of one root are tried in falling order of benefit, equal ones in the order of the set.
    """

    name: str
    root: str
    match: Callable[[Operation], M | Failure]
    rewrite: Callable[[Operation, M, Rewriter], None]
    benefit: int = 1


class PatternSet:
    """Patterns by root op, in falling order of benefit: finding an op's patterns is one look-up."""

    __slots__ = ("_buckets",)

    def __init__(self, patterns: Iterable[Pattern[Any]]) -> None:
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

    def for_root(self, op_name: str) -> tuple[Pattern[Any], ...]:
        """Returns the patterns to try on an op of this name."""
        return self._buckets.get(op_name, ())

    def __iter__(self) -> Iterator[Pattern[Any]]:
        for bucket in self._buckets.values():
            yield from bucket

    def reasons(self, op: Operation) -> list[str]:
        """Returns why each pattern that could rewrite an op declines it."""
        results = [(pattern.name, pattern.match(op)) for pattern in self.for_root(op.name)]
        return [f"{name}: {result.reason}" for name, result in results if isinstance(result, Failure)]
