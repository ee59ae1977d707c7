"""Exceptions that become diagnostics: those of others' code, and those of exhausted memory or stack."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from tfconvert.schema.diagnostics import ConversionError, Diagnostic

Result = TypeVar("Result")


def diagnosed(work: Callable[[], Result]) -> Result:
    """Returns the result of a function.

    Raises:
        ConversionError: It needs more memory than there is (`out-of-memory`), or something in the model is nested too
            deeply (`too-deep`); or what the work raises.
    """
    try:
        return work()
    except (MemoryError, RecursionError) as problem:
        found = exhausted(problem)
    # Raised outside of the block, so that the frames of the failed work are freed.
    raise ConversionError([found])


def exhausted(problem: MemoryError | RecursionError) -> Diagnostic:
    """Returns the diagnostic for exhausted memory or stack."""
    stage = next((f"{note}: " for note in getattr(problem, "__notes__", ()) if note.startswith("stage ")), "")
    if isinstance(problem, MemoryError):
        return Diagnostic(
            "out-of-memory",
            f"{stage}there is not enough memory",
            hint="convert signatures one by one (--signature), or on a larger machine",
        )
    return Diagnostic(
        "too-deep",
        f"{stage}the model is nested more deeply than Python's stack allows",
        hint="call functions, or write loops, instead of nesting",
    )


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
            raise self._error_of(f"fails with {type(value).__name__}: {_message(value, trace)}") from value


def _message(problem: Exception, trace: TracebackType | None) -> str:
    """Returns the message of an exception, with the line."""
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
