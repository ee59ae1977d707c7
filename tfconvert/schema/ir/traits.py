"""Traits of ops, as in MLIR."""

from __future__ import annotations

from enum import Enum, auto


class Trait(Enum):
    """A trait of an op."""

    TERMINATOR = auto()
    """Ends its block."""
    NO_TERMINATOR = auto()
    """Its blocks need no terminator."""
    SYMBOL = auto()
    """Its `sym_name` names it in the nearest symbol table around it."""
    SYMBOL_TABLE = auto()
    """Its one region holds symbols."""
    ISOLATED_FROM_ABOVE = auto()
    """Its regions use no values from outside."""
    NO_PROPERTIES = auto()
    """MLIR has no properties for it: its properties here are attributes in the text."""


NO_TRAITS: frozenset[Trait] = frozenset()
