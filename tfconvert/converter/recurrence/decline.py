"""Why a loop, or a chain of equal steps, stays what it is."""

from __future__ import annotations


class Declined(Exception):  # noqa: N818  # nothing is wrong: the loop stays what it is
    """Something is no recurrent layer that an operator computes just so; the message is the end of a sentence."""


def need(holds: bool, reason: str) -> None:
    """Asks for a condition.

    Args:
        holds: Whether it holds.
        reason: Why nothing can be fused if it doesn't.

    Raises:
        Declined: It doesn't hold.
    """
    if not holds:
        raise Declined(reason)
