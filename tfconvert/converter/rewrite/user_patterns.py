"""The user's patterns, which are applied together with the converter's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tfconvert.converter.rewrite.declarative import Rule
from tfconvert.converter.rewrite.dsl import Op, Result
from tfconvert.converter.rewrite.pattern import Pattern
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.rewrite.program import ops_of
from tfconvert.converter.rewrite.tracked_pattern import CUSTOM, TrackedPattern, custom_code, not_allowed
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.operation import Operation

DIALECTS = ("tf.", "tfl.")
"""The dialects of root ops: the model's ops, or those of the result."""


def of_dialect(patterns: Sequence[Pattern[Any]], dialect: str) -> tuple[Pattern[Any], ...]:
    """Returns the patterns that start at ops of a dialect.

    Args:
        patterns: All of the user's patterns.
        dialect: One of `DIALECTS`.

    Raises:
        ConversionError: Something isn't a pattern, or starts at an op of another dialect (`wrong-option`).
    """
    for pattern in patterns:
        if not isinstance(pattern, Pattern):
            raise error(
                "wrong-option",
                f"patterns holds {pattern!r}, which is not a pattern",
                hint="make one with tfconvert.patterns.rule",
            )
        if not pattern.root.startswith(DIALECTS):
            raise error(
                "wrong-option",
                f"pattern {pattern.name!r} starts at {pattern.root}",
                hint="a pattern starts at an op of tf or tfl",
            )
    return tuple(pattern for pattern in patterns if pattern.root.startswith(dialect))


def check_custom(patterns: Sequence[Pattern[Any]], allow_custom_ops: bool) -> None:
    """Checks that patterns create custom operators only if the user allows them.

    Raises:
        ConversionError: One makes a custom operator although they aren't allowed (`wrong-option`).
    """
    for pattern in () if allow_custom_ops else patterns:
        code = next(iter(_custom_codes(pattern)), None)
        if code is not None:
            raise ConversionError([not_allowed(pattern.name, code)])


def _custom_codes(pattern: Pattern[Any]) -> Iterator[str]:
    """Yields the names of the custom operators that a declarative pattern creates."""
    if not isinstance(pattern.declaration, Rule):
        return
    matched = set(ops_of(pattern.declaration.root))
    for term in (term for terms in pattern.declaration.replacements.values() for term in terms):
        made = term.op if isinstance(term, Result) else term
        for op in ops_of(made) if isinstance(made, Op) else ():
            if op.names == (CUSTOM,) and op not in matched:
                yield str(op.attributes.get(tfl.CUSTOM_CODE, ""))


def watched(
    patterns: Sequence[Pattern[Any]], dialect: str, module: Operation, *, allow_custom_ops: bool
) -> list[TrackedPattern]:
    """Returns the patterns that start at ops of a dialect, to be applied to a module.

    Args:
        patterns: All of the user's patterns.
        dialect: One of `DIALECTS`.
        module: The module.
        allow_custom_ops: Whether they may create custom operators that the module doesn't have.

    Raises:
        ConversionError: Something isn't a pattern, or starts at an op of another dialect (`wrong-option`).
    """
    chosen = of_dialect(patterns, dialect)
    ops = list(module.walk()) if chosen else []
    codes = None if allow_custom_ops else frozenset(map(custom_code, ops))
    return [TrackedPattern(pattern, ops, codes) for pattern in chosen]


def joined(own: PatternSet, patterns: Sequence[Pattern[Any]]) -> PatternSet:
    """Returns a pass's patterns and the user's, which come first if benefits are equal.

    Raises:
        ConversionError: Two patterns have the same name (`wrong-option`).
    """
    if not patterns:
        return own
    try:
        return PatternSet([*patterns, *own])
    except ValueError as problem:
        raise error("wrong-option", str(problem), hint="give your pattern another name") from problem
