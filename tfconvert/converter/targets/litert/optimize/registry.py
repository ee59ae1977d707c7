"""All patterns of the optimizer, family by family, as `families.py` lists them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from tfconvert.converter.rewrite.pattern import Pattern
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.targets.litert.optimize.families import BY_OP, COMMON, FAMILIES, Family


def patterns() -> PatternSet:
    """Returns all patterns, ready for the driver."""
    return _patterns(frozenset(FAMILIES))


def patterns_for(names: Iterable[str]) -> PatternSet:
    """Returns the patterns that a module with ops of some names needs: the common ones and those of some families."""
    return _patterns(COMMON.union(*(BY_OP[name] for name in names if name in BY_OP)))


def _file(family: Family) -> Sequence[Pattern[Any]]:
    """Returns the patterns in a family's file, which may be loaded for that."""
    module = import_module(f"tfconvert.converter.targets.litert.optimize.{family.module}")
    patterns: Sequence[Pattern[Any]] = module.PATTERNS
    return patterns


@cache
def _patterns(families: frozenset[Family]) -> PatternSet:
    return PatternSet(pattern for family in FAMILIES if family in families for pattern in _file(family))
