"""Contiguous stack space for the interpreter's frames.

CPython takes memory for frames from the kernel 16 KiB at a time, and gives a piece back when the first frame in it
returns. A function at the edge of a piece therefore requests memory from the kernel with every call: where
imports nest deep this was up to a tenth of a conversion, more or less as the caller happened to stand. A piece is as
large as the frame that begins it requires. So a function that claims to need much, and uses none of it, leaves room on
one piece for all that it calls. Memory that is never touched is never taken.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])

CLAIM = 1 << 15
"""Slots of 8 bytes. The size of a piece is the next power of two that holds them and a little more, so that as much
again is left: several hundred frames."""


def with_room(function: Function) -> Function:
    """Decorates a function to begin a piece that is large enough for all frames below it."""
    if isinstance(function, FunctionType):
        function.__code__ = function.__code__.replace(co_stacksize=CLAIM)
    return function
