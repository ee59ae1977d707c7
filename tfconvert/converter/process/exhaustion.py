"""Turns running out of memory, or of the interpreter's stack, into a diagnostic."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tfconvert.schema.diagnostics import ConversionError, Diagnostic

Result = TypeVar("Result")


def diagnosed(work: Callable[[], Result]) -> Result:
    """Returns what some work returns.

    Raises:
        ConversionError: It needs more memory than there is (`out-of-memory`), or something in the model is nested too
            deeply (`too-deep`); or what the work raises.
    """
    try:
        return work()
    except (MemoryError, RecursionError) as problem:
        found = exhausted(problem)
    # Raised outside of the block, so that the frames of the failed work, and what they hold, are given back.
    raise ConversionError([found])


def exhausted(problem: MemoryError | RecursionError) -> Diagnostic:
    """Returns the diagnostic of an exception that tells that something is used up."""
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
