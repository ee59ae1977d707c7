"""Instruments, which run between passes: they verify, print, time, and compare the results before and after."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TextIO

from tfconvert.converter.pipeline.runner import make_pass
from tfconvert.converter.pipeline.stage import Instrument, Stage
from tfconvert.ops.verification import Broken, first_broken
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.settings.options import Options

if TYPE_CHECKING:
    from tfconvert.converter.rewrite.pattern import Pattern
    from tfconvert.schema.ir.builtin import ModuleOp

Check = Callable[["ModuleOp", "ModuleOp", str], list[Diagnostic]]

_HINT = "correct the pattern: its replacement computes something else"


def blamed(stage: Stage, before: ModuleOp, problem: ConversionError, options: Options, check: Check) -> ConversionError:
    """Returns the error of a pass that changed the results; names the user's patterns if they are the cause.

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


Print = Callable[["ModuleOp", TextIO], None]
Blame = Callable[[Stage, "ModuleOp", ConversionError], ConversionError]

REPORT_IT = "this is a bug in the pass, not in the model; please report it with the model"


@dataclass(slots=True)
class VerifyEach(Instrument):
    """Verifies the module and the guarantees of the stage after each pass."""

    def after(self, stage: Stage, module: ModuleOp) -> Sequence[Diagnostic]:
        broken = first_broken(module)
        if broken is None and (left := stage.left_over(module)) is not None:
            broken = Broken(left, f"{left.name} should be gone")
        if broken is not None:
            introduction = f"pass {stage.run} broke the module: "
            raise ConversionError([broken.diagnostic("broken-ir", introduction, REPORT_IT)])
        return ()


@dataclass(slots=True)
class PrintIR(Instrument):
    """Prints the module before and after some passes.

    Attributes:
        stream: The stream to print to.
        write: Prints a module.
        names_before: Names of passes; prints the module before them.
        names_after: Names of passes; prints the module after them. `None` means all passes.
    """

    stream: TextIO
    write: Print
    names_before: Collection[str] = ()
    names_after: Collection[str] | None = ()

    def before(self, stage: Stage, module: ModuleOp) -> None:
        if stage.run in self.names_before:
            self._print("before", stage, module)

    def after(self, stage: Stage, module: ModuleOp) -> Sequence[Diagnostic]:
        if self.names_after is None or stage.run in self.names_after:
            self._print("after", stage, module)
        return ()

    def failed(self, stage: Stage, module: ModuleOp) -> None:
        if self.names_after is None or stage.run in self.names_after:
            self._print("after the failure of", stage, module)

    def _print(self, when: str, stage: Stage, module: ModuleOp) -> None:
        self.stream.write(f"// ----- IR {when} {stage.run} -----\n")
        self.write(module, self.stream)


@dataclass(slots=True)
class TimePasses(Instrument):
    """Measures each pass.

    Attributes:
        seconds: The measured times, by pass and in the order of the run.
    """

    seconds: list[tuple[str, float]] = field(default_factory=list)
    _start: float = 0.0

    def before(self, stage: Stage, module: ModuleOp) -> None:
        self._start = time.perf_counter()

    def after(self, stage: Stage, module: ModuleOp) -> Sequence[Diagnostic]:
        self.seconds.append((stage.run, time.perf_counter() - self._start))
        return ()

    def failed(self, stage: Stage, module: ModuleOp) -> None:
        self.after(stage, module)

    def table(self) -> str:
        """Returns a table of passes, milliseconds and shares."""
        total = sum(seconds for _, seconds in self.seconds)
        width = max([len("total"), *(len(name) for name, _ in self.seconds)])
        rows = [*self.seconds, ("total", total)]
        lines = [f"{'pass':<{width}}  {'ms':>9}  {'share':>6}"]
        for name, seconds in rows:
            share = seconds / total if total else 0.0
            lines.append(f"{name:<{width}}  {seconds * 1e3:>9.2f}  {share:>6.1%}")
        return "\n".join(lines)


@dataclass(slots=True)
class CheckPasses(Instrument):
    """Runs the module before and after each pass on the same random inputs.

    Attributes:
        check: Compares two modules; raises if their results differ, returns notes on incomparable results.
        blame: Turns the error about the pass into one about the cause, such as a user's pattern.
    """

    check: Check
    blame: Blame = lambda stage, before, problem: problem
    _before: ModuleOp | None = None

    def before(self, stage: Stage, module: ModuleOp) -> None:
        self._before = module.clone() if stage.keeps_results else None

    def after(self, stage: Stage, module: ModuleOp) -> Sequence[Diagnostic]:
        before, self._before = self._before, None
        if before is None:
            return ()
        try:
            return self.check(before, module, stage.run)
        except ConversionError as problem:
            raise self.blame(stage, before, problem) from problem.__cause__
