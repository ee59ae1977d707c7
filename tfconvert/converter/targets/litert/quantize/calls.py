"""Operators that call functions of a module: loops and branches."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.schema.ir.attributes import SymbolRefAttr
from tfconvert.schema.ir.operation import Operation

LOOP = "tfl.while"

CALLS: Mapping[str, tuple[str, str]] = {LOOP: ("cond", "body"), "tfl.if": ("then_branch", "else_branch")}
"""The properties that name the functions."""


def callees(op: Operation) -> list[str]:
    """Returns the names of the functions that an operator calls."""
    symbols = [op.properties.get(name) for name in CALLS.get(op.name, ())]
    return [symbol.root for symbol in symbols if isinstance(symbol, SymbolRefAttr)]
