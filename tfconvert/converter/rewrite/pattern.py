"""Patterns of the DAG rewriter: a root op, a benefit, and a match that is separate from the rewrite."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, Protocol, TypeVar

from tfconvert.schema.ir.operation import Operation

if TYPE_CHECKING:
    from tfconvert.converter.rewrite.program import Program
    from tfconvert.converter.rewrite.questions import Found
    from tfconvert.converter.rewrite.rewriter import Rewriter


P = ParamSpec("P")
T = TypeVar("T")


class PatternError(ValueError):
    """A pattern that can't work; raised when it is defined."""


class Failure:
    """Why a pattern declines an op; shown where an op is left unconverted.

    Attributes:
        reason: A phrase that completes "not rewritten because ...".
        takes: The element types that the pattern accepts, separated by spaces, if the op has another one.
        given: The op's element type in this case.
        is_special: Whether the pattern is for a special form only, so that the reason explains nothing to a user.
    """

    # Each op is declined by several patterns: an object with slots takes two thirds of a tuple's time.
    __slots__ = ("given", "is_special", "reason", "takes")

    def __init__(self, reason: str, takes: str = "", given: str = "", is_special: bool = False) -> None:
        self.reason = reason
        self.takes = takes
        self.given = given
        self.is_special = is_special

    def __repr__(self) -> str:
        return f"Failure({self.reason!r})"


class Declined(Exception):  # noqa: N818  # nothing is wrong: the op stays as it is
    """Carries a `Failure` from nested helpers of a rewrite to `attempt`, which returns it."""

    @property
    def failure(self) -> Failure:
        """The failure that it carries."""
        return Failure(*self.args)


def need(holds: bool, reason: str) -> None:
    """Declines unless a condition holds, for a reason that a `Failure` can have."""
    if not holds:
        raise Declined(reason)


def required(value: T | None, reason: str) -> T:
    """Returns a value; declines if it is missing."""
    if value is None:
        raise Declined(reason)
    return value


def attempt(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | Failure:
    """Calls a function; returns its result, or the failure if it declines."""
    try:
        return function(*args, **kwargs)
    except Declined as declined:
        return Failure(*declined.args)


M = TypeVar("M")


class Declaration(Protocol):
    """The interface of declarative patterns that a pattern set needs to match them together."""

    @property
    def programs(self) -> Sequence[Program]:
        """The questions about an op, one program for each order of commutative operands."""

    def conclude(self, program: Program, found: Found) -> Any | Failure:
        """Returns the match that the rewrite needs, for ops that one of the programs matches, or a failure."""


class Pattern(NamedTuple, Generic[M]):
    """A rewrite of the DAG that ends in one op.

    Attributes:
        name: Unique in its set; shown in errors.
        root: The full name of the op that the pattern starts at (`tf.Conv2D`).
        match: Inspects the op without changing anything; returns the data for the rewrite, or a `Failure`.
        rewrite: Replaces the op; may rely on the checks of `match`.
        benefit: Patterns of one root are tried in descending order of benefit, equal ones in the order of the set.
        depth: The distance above the root at which `match` looks: 1 is the producers of its operands. When an op
        changes
            at that distance, the root is visited again.
        producers: Names of the ops that may define an operand, by the operand's index. A pattern set doesn't try the
            pattern for others.
        declaration: The rule that the pattern was created from, if it is declarative.
        note: A warning for the user where the pattern was applied, as a phrase, or empty.
    """

    name: str
    root: str
    match: Callable[[Operation], M | Failure]
    rewrite: Callable[[Operation, M, Rewriter], None]
    benefit: int = 1
    depth: int = 1
    producers: Mapping[int, Collection[str]] = MappingProxyType({})
    declaration: Declaration | None = None
    note: str = ""
