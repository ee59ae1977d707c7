"""Edits of the IR that passes make outside of patterns."""

from __future__ import annotations

from xdsl.ir import Operation


def erase(op: Operation) -> None:
    """Takes an op without uses out of its block and drops what it refers to."""
    op.detach()
    op.erase()
