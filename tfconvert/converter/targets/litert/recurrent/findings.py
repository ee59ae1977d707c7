"""The report's findings about recurrent layers."""

from __future__ import annotations

from tfconvert.converter.targets.litert.recurrent.speed import Choice
from tfconvert.schema.diagnostics import NOTE, Diagnostic
from tfconvert.schema.dialects.locations import place_of
from tfconvert.schema.ir.operation import Operation

KEPT = "recurrence-kept"
"""Code of the note about a recurrent layer that is not an operator."""
FUSED = "recurrence-fused"
"""Code of the note about a recurrent layer that is an operator because that is faster."""


def kept(loop: Operation, reason: str) -> Diagnostic:
    """Returns the note about a layer that stays a loop."""
    return _finding(KEPT, loop, f"a recurrent layer stays a loop: {reason}")


def not_unrolled(loop: Operation, reason: str, *, fixable: bool = False) -> Diagnostic:
    """Returns the note about a loop that is not unrolled.

    Args:
        loop: The loop.
        reason: Why it stays.
        fixable: Whether sizes of inputs may determine the number of steps.
    """
    hint = "fix the length of the sequence: input_shapes (--input-shape x=1,64,16)" if fixable else ""
    return _finding(KEPT, loop, f"a loop is not unrolled: {reason}", hint)


def chosen(op: Operation, choice: Choice) -> Diagnostic:
    """Returns the note about a layer of which either form is possible.

    Args:
        op: The loop, or the first op of unrolled steps.
        choice: What was chosen.
    """
    if choice.fuse:
        return _finding(FUSED, op, f"a recurrent layer became an operator: {choice.reason}")
    message = f"a recurrent layer keeps its steps: {choice.reason}"
    return _finding(KEPT, op, message, "recurrent='fused' (--recurrent fused) makes it one operator all the same")


def _finding(code: str, op: Operation, message: str, hint: str = "") -> Diagnostic:
    place = place_of(op.location)
    return Diagnostic(code, message, op.name, place.node, str(place), hint, NOTE)
