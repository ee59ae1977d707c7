"""What a pass is, its place in a pipeline, and who may watch it at work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, runtime_checkable

from tfconvert.schema.diagnostics import Diagnostic

if TYPE_CHECKING:
    from tfconvert.schema.ir.builtin import ModuleOp
    from tfconvert.schema.ir.operation import Operation


class Pass(Protocol):
    """A rewrite of a whole module; its fields, if it has any, are its options."""

    name: ClassVar[str]
    """The name in `-p` and in the report; the file's name with dashes."""

    def apply(self, module: ModuleOp) -> Counter[str] | None:
        """Rewrites the module in place; may return how often each of its patterns was applied."""


@runtime_checkable
class Telling(Protocol):
    """A pass that decides what the user should know of; its notes are of the last time that it was applied."""

    @property
    def notes(self) -> Sequence[Diagnostic]:
        """What has been decided."""


def notes_of(run: Pass) -> Sequence[Diagnostic]:
    """Returns what a pass, once it was applied, has to tell."""
    return run.notes if isinstance(run, Telling) else ()


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
    """Looks at the module before and after each step; this one sees nothing.

    Attributes:
        notes: What the report should tell.
    """

    notes: Sequence[Diagnostic] = ()

    def before(self, step: Step, module: ModuleOp) -> None:
        """Looks at what a step is about to rewrite."""

    def after(self, step: Step, module: ModuleOp) -> None:
        """Looks at what a step has made."""

    def failed(self, step: Step, module: ModuleOp) -> None:
        """Looks at what is there when a step has given up with an error."""


def apply_watched(step: Step, module: ModuleOp, instruments: Sequence[Instrument]) -> Counter[str] | None:
    """Applies a step under the eyes of instruments; returns what the pass returned.

    The first instrument is the outermost: it looks first before the pass and last after it.
    """
    for instrument in instruments:
        instrument.before(step, module)
    done = False
    try:
        applied = step.run.apply(module)
        done = True
    finally:
        if not done:
            for instrument in reversed(instruments):
                instrument.failed(step, module)
    for instrument in reversed(instruments):
        instrument.after(step, module)
    return applied
