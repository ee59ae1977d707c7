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
    """The symbols of an op, by name; insertions and erasures go through it.

    Args:
        table: An op that holds symbols, such as a module.
    """

    __slots__ = ("_counts", "_symbols", "op")

    def __init__(self, table: Operation) -> None:
        self.op = table
        self._symbols = dict(symbols_in(table))
        self._counts: dict[str, int] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._symbols)

    def __contains__(self, name: str) -> bool:
        return name in self._symbols

    def lookup(self, name: str) -> Operation | None:
        """Returns the symbol of a name, `None` if there is none."""
        return self._symbols.get(name)

    def unique_name(self, name: str) -> str:
        """Returns the name, with a number appended if it is taken; never the same one twice."""
        if name not in self._symbols and name not in self._counts:
            self._counts[name] = 0
            return name
        count = self._counts.get(name, 0)
        while True:
            candidate = f"{name}_{count}"
            count += 1
            if candidate not in self._symbols and candidate not in self._counts:
                self._counts[name] = count
                self._counts[candidate] = 0
                return candidate

    def insert(self, op: Operation) -> str:
        """Adds a symbol at the end of the table, renamed if its name is taken; returns its name."""
        name = symbol_name(op)
        assert name is not None, f"{op.name} is not a symbol"
        if name in self._symbols:
            name = self.unique_name(name)
            op.properties[SYMBOL_NAME] = StringAttr.get(name)
        self._symbols[name] = op
        if op.parent is None:
            self.op.regions[0].blocks[0].add_op(op)
        return name

    def erase(self, op: Operation) -> None:
        """Erases a symbol."""
        name = symbol_name(op)
        if name is not None and self._symbols.get(name) is op:
            del self._symbols[name]
        op.erase()
