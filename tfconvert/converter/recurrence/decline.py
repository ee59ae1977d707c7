"""The exception for a loop, or a chain of equal steps, that is not fused, with the reason."""

from __future__ import annotations


class Declined(Exception):  # noqa: N818  # nothing is wrong: the loop is kept
    """Something is not a recurrent layer that an operator computes exactly; the message is the end of a sentence."""


def need(holds: bool, reason: str) -> None:
    """Requires a condition.

    Args:
        holds: Whether it holds.
        reason: Why nothing can be fused if it doesn't.

    Raises:
        Declined: It doesn't hold.
    """
    if not holds:
        raise Declined(reason)
