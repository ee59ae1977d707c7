"""LiteRT's interpreter, under the name that scripts look for it."""

from __future__ import annotations

from typing import Any

from tfconvert.converter.litert import runtime


class _Absent:
    """Stands where LiteRT is not installed, so that whoever only lists names meets no error."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        runtime.require()


try:
    from ai_edge_litert.interpreter import Interpreter
except ImportError:
    Interpreter = _Absent

__all__ = ["Interpreter"]
