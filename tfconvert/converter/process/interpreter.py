"""Contiguous stack space for the interpreter's frames.

CPython allocates memory for frames 16 KiB at a time, and frees a chunk when the first frame in it returns. A function
at the end of a chunk therefore allocates and frees memory with every call, at a cost that depends on the depth of the
caller. A chunk is at least as large as its first frame, so a function that claims a large frame leaves space in one
chunk for all its callees. Untouched memory is never committed.

Measured on examples/digits, in pairs: without it, a whole process takes 1% longer from the command line, and 4% longer
when `convert` is called 95 frames deep, where a conversion alone takes 1.7 times as long (22 instead of 13 ms).
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])

# Slots of 8 bytes. A chunk is the next power of two that holds them, which leaves space for several hundred frames.
CLAIM = 1 << 15


def with_room(function: Function) -> Function:
    """Decorates a function to start a chunk that is large enough for the frames of all its callees."""
    if isinstance(function, FunctionType):
        function.__code__ = function.__code__.replace(co_stacksize=CLAIM)
    return function
