"""LiteRT's interpreter, under the name that scripts look for it."""

from __future__ import annotations

from typing import Any

from tfconvert.converter.litert import runtime


class _Absent:
    """Stands where LiteRT is not installed, so that whoever only lists names meets no error."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        runtime.require()


Interpreter: Any = runtime.Interpreter if runtime.is_installed() else _Absent
"""`ai_edge_litert.interpreter.Interpreter`; without LiteRT, creating one says what to install."""
