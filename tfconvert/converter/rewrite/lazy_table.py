"""Tables of modules that are loaded when an op needs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import NamedTuple


class LazyModule(NamedTuple):
    """A module of a table.

    Attributes:
        name: Its name in the table's package.
        ops: The ops that need it, separated by spaces; empty if it is always needed.
        title: Its title in the table of support.
    """

    name: str
    ops: str = ""
    title: str = ""


class LazyTable:
    """The modules of a package by the ops that need them.

    Attributes:
        modules: All of them, in order.
        by_op: The modules that an op needs, by the op's full name.

    Args:
        package: The package.
        dialect: The prefix of the ops' full names.
        modules: The modules.
    """

    def __init__(self, package: str, dialect: str, modules: Iterable[LazyModule]) -> None:
        self.modules = tuple(modules)
        self._package = package
        self._common = frozenset(module for module in self.modules if not module.ops)
        by_op: dict[str, set[LazyModule]] = {}
        for module in self.modules:
            for op in module.ops.split():
                by_op.setdefault(dialect + op, set()).add(module)
        self.by_op: Mapping[str, frozenset[LazyModule]] = {op: frozenset(needed) for op, needed in by_op.items()}

    def needed(self, names: Iterable[str]) -> frozenset[LazyModule]:
        """Returns the modules that ops of some names need."""
        return self._common.union(*(self.by_op[name] for name in names if name in self.by_op))

    def load(self, modules: frozenset[LazyModule]) -> list[ModuleType]:
        """Returns some of the modules, loaded, in the table's order."""
        return [import_module(f"{self._package}.{module.name}") for module in self.modules if module in modules]
