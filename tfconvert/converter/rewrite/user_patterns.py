"""The user's patterns, beside the converter's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfconvert.converter.rewrite.pattern import Pattern
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.schema.diagnostics import error

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
            raise error("wrong-option", f"patterns holds {pattern!r}, which is not a pattern",
                        hint="make one with tfconvert.patterns.rule")  # fmt: skip
        if not pattern.root.startswith(DIALECTS):
            raise error("wrong-option", f"pattern {pattern.name!r} starts at {pattern.root}",
                        hint="a pattern starts at an op of tf or tfl")  # fmt: skip
    return tuple(pattern for pattern in patterns if pattern.root.startswith(dialect))


def joined(own: PatternSet, patterns: Sequence[Pattern[Any]]) -> PatternSet:
    """Returns a pass's patterns and the user's, who come first where benefits are equal.

    Raises:
        ConversionError: Two patterns have the same name (`wrong-option`).
    """
    if not patterns:
        return own
    try:
        return PatternSet([*patterns, *own])
    except ValueError as problem:
        raise error("wrong-option", str(problem), hint="give your pattern another name") from problem
