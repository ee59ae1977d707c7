"""Calls of Linux's kernel through the C library."""

from __future__ import annotations

import ctypes
import os
from functools import cache

from tfconvert.schema.diagnostics import error


@cache
def libc() -> ctypes.CDLL:
    """Returns the C library."""
    return ctypes.CDLL(None, use_errno=True)


def checked(result: int) -> int:
    """Returns the result of a call.

    Raises:
        ConversionError: It has failed (`internal-error`).
    """
    if result < 0:
        raise error("internal-error", f"the sandbox fails: {os.strerror(ctypes.get_errno())}")
    return result


def prctl(option: int, *arguments: int) -> int:
    """Changes or reads a property of this process, and returns what the kernel does."""
    given = [*arguments, 0, 0, 0, 0][:4]
    return int(libc().prctl(option, *map(ctypes.c_ulong, given)))
