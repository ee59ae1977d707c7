"""Ties a process to the one that has started it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

# Linux: which signal a process gets when its parent ends.
_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Has this process end with its parent, whatever it is busy with, on Linux.

    Args:
        parent: The parent's number: if it ended before this was asked for, so does this process.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit()
