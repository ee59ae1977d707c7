"""The symbols of a module: functions, global tensors, and all others that a name refers to."""

from __future__ import annotations

from collections.abc import Iterator

from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.traits import Trait

SYMBOL_NAME = "sym_name"


def symbol_name(op: Operation) -> str | None:
    """Returns the name of a symbol, `None` if the op is not one."""
    name = op.properties.get(SYMBOL_NAME) or op.attributes.get(SYMBOL_NAME)
    return name.data if isinstance(name, StringAttr) and op.has_trait(Trait.SYMBOL) else None


def symbols_in(table: Operation) -> Iterator[tuple[str, Operation]]:
    """Yields the symbols directly in an op with a symbol table, in order."""
    for block in table.regions[0].blocks:
        for op in block.ops:
            name = symbol_name(op)
            if name is not None:
                yield name, op


class SymbolTable:
    """The symbols of an op, by name.

    Args:
        table: An op that holds symbols, such as a module.
    """

    __slots__ = ("_symbols", "op")

    def __init__(self, table: Operation) -> None:
        self.op = table
        self._symbols = dict(symbols_in(table))

    def lookup(self, name: str) -> Operation | None:
        """Returns the symbol of a name, `None` if there is none."""
        return self._symbols.get(name)
