"""Everything needed to write patterns for `convert(patterns=[...])`; docs/rewriting.md teaches it."""

from __future__ import annotations

from tfconvert.converter.rewrite.declarative import Match, rule
from tfconvert.converter.rewrite.driver import rewrite_greedily
from tfconvert.converter.rewrite.dsl import (
    array,
    attr,
    check,
    computed,
    constant,
    custom,
    number,
    one_of,
    op,
    rest,
    tf,
    tfl,
    value,
)
from tfconvert.converter.rewrite.pattern import Failure, Pattern, PatternError
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.schema.dialects import types

__all__ = [
    "Failure",
    "Match",
    "Pattern",
    "PatternError",
    "PatternSet",
    "Rewriter",
    "array",
    "attr",
    "check",
    "computed",
    "constant",
    "custom",
    "number",
    "one_of",
    "op",
    "rest",
    "rewrite_greedily",
    "rule",
    "tf",
    "tfl",
    "types",
    "value",
]
