"""The names that a module has or has had, which decide whether a stage runs on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr

if TYPE_CHECKING:
    from tfconvert.schema.ir.builtin import ModuleOp
    from tfconvert.schema.ir.operation import Operation


class OpNames:
    """The names of a module's ops and of the attributes of its functions and their arguments, erased ones included.

    The module is walked when an unknown name is queried, and only if a pass has run since the last walk.
    """

    __slots__ = ("_is_current", "_module", "_names")

    def __init__(self, module: ModuleOp, others: Iterable[str] = ()) -> None:
        """Defers the walk to the first query.

        Args:
            module: The module.
            others: Names that count as present.
        """
        self._module = module
        self._names = set(others)
        self._is_current = False

    def changed(self) -> None:
        """Notes that the module may have new names."""
        self._is_current = False

    def have(self, groups: Iterable[tuple[str, ...]]) -> bool:
        """Returns whether there is, or was, a name with one of the prefixes of each group."""
        return all(self._has(prefixes) for prefixes in groups)

    def _has(self, prefixes: tuple[str, ...]) -> bool:
        if any(name.startswith(prefixes) for name in self._names):
            return True
        if self._is_current:
            return False
        self._names |= names_in(self._module)
        self._is_current = True
        return any(name.startswith(prefixes) for name in self._names)


def names_in(module: ModuleOp) -> set[str]:
    """Returns the names of all ops in a module, and of attributes of the ops on its top level and their arguments."""
    names: set[str] = set()
    for function in module.ops:
        names.update(function.attributes)
        arguments = function.properties.get("arg_attrs")
        for attributes in arguments.data if isinstance(arguments, ArrayAttr) else ():
            names.update(attributes.data if isinstance(attributes, DictionaryAttr) else ())
    pending: list[Operation] = [module]
    while pending:
        for region in pending.pop().regions:
            for block in region.blocks:
                op = block.first_op
                while op is not None:
                    names.add(op.name)
                    if op.regions:
                        pending.append(op)
                    op = op.next_op
    return names
