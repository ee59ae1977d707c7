"""LiteRT's interpreter and what belongs to it, under the names that scripts look for."""

from __future__ import annotations

from typing import Any

from tfconvert.converter.targets.litert import runtime


class _Absent:
    """Replaces LiteRT's names where it is not installed, so that listing them is not an error."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        runtime.require()


try:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType, load_delegate
except ImportError:
    Interpreter = OpResolverType = load_delegate = _Absent

__all__ = ["Interpreter", "OpResolverType", "load_delegate"]
