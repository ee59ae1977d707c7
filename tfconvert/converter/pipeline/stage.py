"""Passes, their stages in a pipeline, and instruments."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.diagnostics import ConversionError, Diagnostic

if TYPE_CHECKING:
    from tfconvert.schema.ir.builtin import ModuleOp
    from tfconvert.schema.ir.operation import Operation


class InStage:
    """A context that adds the note `stage NAME` to unexpected exceptions.

    Args:
        name: The stage.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(problem, Exception) and not isinstance(problem, ConversionError):
            problem.add_note(f"stage {self._name}")


HALVES = "inputs.halves"
"""The need of stages that run only on models with inputs of `f16` or `bf16`."""

OPEN_SIZES = "inputs.open"
"""The need of stages that run only on models with dynamic input sizes other than the batch."""


class Pass(Protocol):
    """A rewrite of a whole module. Its constructor's parameters are its options."""

    name: ClassVar[str]
    """The name in `-p` and in the report; the file's name with dashes."""

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites the module in place; the result depends only on the module."""


class Stage(NamedTuple):
    """A stage of a pipeline: a pass, and when it runs.

    Attributes:
        run: The pass, by name.
        because: The reason for its position.
        needs: Groups of name prefixes. The pass is skipped, and not even imported, unless the module has had a name
            with one of the prefixes of each group. Names are those of ops, of attributes of functions, `HALVES` and
            `OPEN_SIZES` for models with such inputs, and `options.` followed by a setting that the user has set.
        takes: Settings that are options of the pass: fields of `Options` or of its target, as `allow_custom_ops`, or of
            a field there, as `quantize.mode`; after the option's name if that differs, as `mlir_state=state`.
        only_with: A setting that must be set for the pass to run; may be empty.
        forbids: Prefixes of op names that no op may have afterwards; later stages rely on that.
        left: Prefixes of names, one of which the module must still have; may be empty.
        keeps_results: Whether the model's results stay the same, so that the pass can be checked.
    """

    run: str
    because: str
    needs: tuple[tuple[str, ...], ...] = ()
    takes: tuple[str, ...] = ()
    only_with: str = ""
    forbids: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    keeps_results: bool = True

    def left_over(self, module: ModuleOp) -> Operation | None:
        """Returns an op that the stage forbids, or `None`."""
        return next((op for op in module.walk() if op.name.startswith(self.forbids)), None) if self.forbids else None


class Instrument:
    """Base class of pass instruments; the hooks do nothing."""

    def before(self, stage: Stage, module: ModuleOp) -> None:
        """Called before a pass runs."""

    def after(self, stage: Stage, module: ModuleOp) -> Sequence[Diagnostic]:
        """Called after a pass has run; returns notes for the report."""
        return ()

    def failed(self, stage: Stage, module: ModuleOp) -> None:
        """Called when a pass has failed with an error."""


def apply_watched(run: Pass, stage: Stage, module: ModuleOp, instruments: Sequence[Instrument]) -> PassResult:
    """Applies a pass with instruments; appends their notes to its result.

    The first instrument is outermost: called first before the pass and last after it.
    """
    for instrument in instruments:
        instrument.before(stage, module)
    done = False
    try:
        result = run.apply(module)
        done = True
    finally:
        if not done:
            for instrument in reversed(instruments):
                instrument.failed(stage, module)
    notes = [note for instrument in reversed(instruments) for note in instrument.after(stage, module)]
    return result._replace(notes=[*result.notes, *notes]) if notes else result
