"""Passes that apply their own patterns and the user's until none matches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import Any, ClassVar

from tfconvert.converter.ir.edit import update_function_types
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.rewrite import user_patterns
from tfconvert.converter.rewrite.driver import rewrite_greedily
from tfconvert.converter.rewrite.pattern import Pattern
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.rewrite.tracked_pattern import unused
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation


class GreedyPass(ABC):
    """Rewrites every function greedily.

    Attributes:
        dialect: The prefix of the ops that the user's patterns must start at to be for this pass.
        heading: The heading of its counts in the short report.

    Args:
        patterns: The user's patterns, for any pass.
        allow_custom_ops: Whether these may make custom operators.
    """

    __slots__ = ("allow_custom_ops", "patterns")

    dialect: ClassVar[str]

    def __init__(self, patterns: tuple[Pattern[Any], ...] = (), allow_custom_ops: bool = False) -> None:
        self.patterns = patterns
        self.allow_custom_ops = allow_custom_ops

    @abstractmethod
    def own_patterns(self, module: ModuleOp, names: set[str]) -> PatternSet:
        """Returns the pass's own patterns.

        Args:
            module: The module.
            names: The names of the ops that the module had before; those that it has now may be added.
        """

    @staticmethod
    @abstractmethod
    def has_side_effects(op: Operation) -> bool:
        """Returns whether an op must stay although nothing uses its results."""

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns how often each pattern was applied."""
        applied: Counter[str] = Counter()
        watched = user_patterns.watched(self.patterns, self.dialect, module, allow_custom_ops=self.allow_custom_ops)
        functions = list(functions_of(module).values())
        names: set[str] = set()
        own = self.own_patterns(module, names)
        while True:
            patterns = user_patterns.joined(own, [each.pattern for each in watched])
            before = applied.total()
            for function in functions:
                applied += rewrite_greedily(function.body, patterns, self.has_side_effects)
            if applied.total() == before:
                break
            # New ops may need patterns that nothing before did.
            known, own = own, self.own_patterns(module, names)
            if own is known:
                break
        update_function_types(functions)
        return PassResult(applied, [*patterns.notes(applied), *unused(watched, applied)])
