"""Which of the user's patterns made a pass change the results: the pass is run again with some of them only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tfconvert.converter.pipeline.runner import make_pass
from tfconvert.converter.pipeline.stage import Stage
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.settings.options import Options

if TYPE_CHECKING:
    from tfconvert.converter.rewrite.pattern import Pattern
    from tfconvert.schema.ir.builtin import ModuleOp

Check = Callable[["ModuleOp", "ModuleOp", str], list[Diagnostic]]

_HINT = "correct the pattern: what it puts in doesn't compute what it replaces"


def blamed(stage: Stage, before: ModuleOp, problem: ConversionError, options: Options, check: Check) -> ConversionError:
    """Returns the error of a pass that changed the results, about the user's patterns if they are why.

    Args:
        stage: The pass's stage.
        before: The module before the pass.
        problem: The error.
        options: The settings, with the user's patterns.
        check: Compares two modules; raises if their results differ.
    """

    def differs(patterns: Sequence[Pattern[Any]]) -> bool:
        after = before.clone()
        try:
            make_pass(stage, replace(options, patterns=tuple(patterns))).apply(after)
            check(before, after, stage.run)
        except ConversionError:
            return True
        return False

    if "patterns" not in stage.takes or differs(()):
        return problem
    guilty = [pattern.name for pattern in options.patterns if differs((pattern,))]
    names = guilty or [pattern.name for pattern in options.patterns]
    which = (
        f"the pattern {names[0]!r} changes"
        if len(names) == 1
        else (f"the patterns {', '.join(map(repr, names))} change")
    )
    return ConversionError(
        each._replace(message=f"{which} what the model computes: {each.message}", hint=_HINT)
        for each in problem.diagnostics
    )
