"""What a pass is, its place in a pipeline, and who may watch it at work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.diagnostics import Diagnostic

if TYPE_CHECKING:
    from tfconvert.schema.ir.builtin import ModuleOp
    from tfconvert.schema.ir.operation import Operation


class Pass(Protocol):
    """A rewrite of a whole module; its fields, if it has any, are its options."""

    name: ClassVar[str]
    """The name in `-p` and in the report; the file's name with dashes."""

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites the module in place; returns what it did, which depends on nothing but the module."""


class Step(NamedTuple):
    """A pass in the pipeline.

    Attributes:
        run: The pass.
        because: Why it stands here.
        forbids: Prefixes of op names that no op has afterwards; what the next steps rely on.
    """

    run: Pass
    because: str
    forbids: tuple[str, ...] = ()

    def left_over(self, module: ModuleOp) -> Operation | None:
        """Returns an op that should be gone, `None` if the step did what it ensures."""
        return next((op for op in module.walk() if op.name.startswith(self.forbids)), None) if self.forbids else None


class Instrument:
    """Looks at the module before and after each step; this one sees nothing."""

    def before(self, step: Step, module: ModuleOp) -> None:
        """Looks at what a step is about to rewrite."""

    def after(self, step: Step, module: ModuleOp) -> Sequence[Diagnostic]:
        """Looks at what a step has made; returns what the report should tell of it."""
        return ()

    def failed(self, step: Step, module: ModuleOp) -> None:
        """Looks at what is there when a step has given up with an error."""


def apply_watched(step: Step, module: ModuleOp, instruments: Sequence[Instrument]) -> PassResult:
    """Applies a step under the eyes of instruments; returns what the pass returned, with their notes behind its own.

    The first instrument is the outermost: it looks first before the pass and last after it.
    """
    for instrument in instruments:
        instrument.before(step, module)
    done = False
    try:
        result = step.run.apply(module)
        done = True
    finally:
        if not done:
            for instrument in reversed(instruments):
                instrument.failed(step, module)
    notes = [note for instrument in reversed(instruments) for note in instrument.after(step, module)]
    return result._replace(notes=[*result.notes, *notes]) if notes else result
