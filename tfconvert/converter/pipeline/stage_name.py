"""Notes on unexpected exceptions that name the stage of the conversion in which they were raised."""

from __future__ import annotations

from types import TracebackType

from tfconvert.schema.diagnostics import ConversionError


class InStage:
    """A context whose unexpected exceptions get a note, `stage NAME`; they stay what they are.

    Args:
        name: The stage.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        """Does nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Adds the note."""
        if isinstance(problem, Exception) and not isinstance(problem, ConversionError):
            problem.add_note(f"stage {self._name}")
