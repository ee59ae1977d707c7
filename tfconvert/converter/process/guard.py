"""Runs code of others, the user's or a package's: an exception becomes an error that names the culprit and the line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from tfconvert.schema.diagnostics import ConversionError

# How the files of frames begin that are not the culprit's: the converter's, and Python's own.
_OTHERS = (str(Path(__file__).parents[2]), "<frozen")


class Guard:
    """A context that turns exceptions of others' code into errors that name the culprit.

    Args:
        error_of: Creates the error from a description of the failure.
    """

    __slots__ = ("_error_of",)

    def __init__(self, error_of: Callable[[str], ConversionError]) -> None:
        self._error_of = error_of

    def __enter__(self) -> None:
        """Does nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raises the error, whose cause the exception is; `ConversionError`s pass."""
        if isinstance(value, Exception) and not isinstance(value, ConversionError):
            raise self._error_of(f"fails with {type(value).__name__}: {_told(value, trace)}") from value


def _told(problem: Exception, trace: TracebackType | None) -> str:
    """Returns what an exception says, with the line."""
    if isinstance(problem, SyntaxError) and problem.filename is not None:
        return f"{problem.msg} ({problem.filename}:{problem.lineno})"
    return f"{problem}{_line(trace)}"


def _line(trace: TracebackType | None) -> str:
    """Returns the line at which others' code fails, in the first file of it that was entered; empty if none was."""
    from traceback import extract_tb  # only where something has failed

    frames = extract_tb(trace)[1:]
    entered = next((frame for frame in frames if not frame.filename.startswith(_OTHERS)), frames[0] if frames else None)
    inside = [frame for frame in frames if entered is not None and frame.filename == entered.filename]
    return f" ({inside[-1].filename}:{inside[-1].lineno})" if inside else ""
