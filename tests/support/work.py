"""Counts calls: how the work of some code grows, the same on every machine however busy that is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from tests.support.run_text import parse
from tfconvert.converter.pipeline.stage import Pass

# The limit of the growth of work relative to ops.
_SLACK = 1.15


def calls(function: Callable[[], object]) -> int:
    """Returns how many functions some code calls, Python's and those of C."""
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def check_linear(rewrite: Pass, small: str, large: str, times: int) -> None:
    """Checks that the work of a pass grows no faster than the ops."""
    rewrite.apply(parse(small))  # tables are built on first use
    few, many = parse(small), parse(large)
    assert calls(lambda: rewrite.apply(many)) < _SLACK * times * calls(lambda: rewrite.apply(few))
