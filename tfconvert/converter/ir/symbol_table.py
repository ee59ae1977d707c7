"""Functions by name: the symbols that ops refer to, and unreferenced functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tfconvert.schema.dialects.call_interfaces import REFERRING, symbols
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import Location
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FunctionType

PRIVATE = "private"
"""The visibility of functions that only the module itself can call."""


def is_private(function: FuncOp) -> bool:
    """Returns whether only the module itself can call a function."""
    return function.sym_visibility == PRIVATE


def function_named(functions: Mapping[str, FuncOp], name: str, op: Operation) -> FuncOp:
    """Returns the function with a body that an op names.

    Raises:
        ConversionError: It is missing (`missing-function`).
    """
    function = functions.get(name)
    if function is None or not function.body.blocks:
        what = "it doesn't name a function"
        if name:
            what = f"there is no function {name!r}" if function is None else f"the function {name!r} has no body"
        raise error_at(op, "missing-function", what, "the model file is damaged")
    return function


def named(op: Operation, attribute: str) -> str:
    """Returns the one function that an attribute of an op refers to; empty if it refers to none, or to several."""
    value = op.properties.get(attribute)
    found = symbols(value) if value is not None else []
    return found[0] if len(found) == 1 else ""


def names(op: Operation) -> list[str]:
    """Returns the names that an op's attributes refer to."""
    # Most ops have none, which is seen at a glance.
    if not op.properties and not op.attributes:
        return []
    attributes = [*op.properties.values(), *op.attributes.values()] if op.attributes else op.properties.values()
    if REFERRING.isdisjoint(map(type, attributes)):
        return []
    return [name for attribute in attributes if type(attribute) in REFERRING for name in symbols(attribute)]


def names_outside(module: ModuleOp) -> list[str]:
    """Returns the names that a module's ops other than functions refer to."""
    return [name for op in module.ops if not isinstance(op, FuncOp) for name in names(op)]


def referring_ops(function: FuncOp) -> list[Operation]:
    """Returns the ops inside a function that refer to functions."""
    return [op for op in function.body.walk() if names(op)]


def callees_first(
    functions: Mapping[str, FuncOp], referring: Mapping[str, Iterable[Operation]] | None = None
) -> list[FuncOp]:
    """Returns functions so that each follows those that it refers to, except where they refer to each other.

    Args:
        functions: The functions by name.
        referring: The `referring_ops` of each, if they are known.
    """
    order: list[FuncOp] = []
    entered: set[str] = set()
    for root in functions:
        stack = [(root, False)]
        while stack:
            name, is_ready = stack.pop()
            if is_ready:
                order.append(functions[name])
            elif name not in entered:
                entered.add(name)
                stack.append((name, True))
                ops = referring_ops(functions[name]) if referring is None else referring[name]
                needed = dict.fromkeys(each for op in ops for each in names(op))
                stack.extend((each, False) for each in reversed(needed) if each in functions and each not in entered)
    return order


class FunctionMaker:
    """Adds private functions to a module, each under a name of its own.

    Attributes:
        functions: The module's functions by name.

    Args:
        module: The module.
    """

    def __init__(self, module: ModuleOp) -> None:
        self.functions = functions_of(module)
        self._module = module
        self._next: dict[str, int] = {}

    def add(self, name: str, block: Block, location: Location) -> str:
        """Adds a function.

        Args:
            name: What to call it; a number is added where the module has that name already.
            block: Its body, which ends in its results.
            location: Where it comes from.

        Returns:
            The name that it has.
        """
        unique = name
        while unique in self.functions:
            number = self._next[name] = self._next.get(name, 0) + 1
            unique = f"{name}_{number}"
        last = block.last_op
        returned = [] if last is None else [value.type for value in last.operands]
        kind = FunctionType.get([argument.type for argument in block.args], returned)
        function = FuncOp.of(unique, kind, Region(block), PRIVATE)
        function.location = location
        self._module.body.block.add_op(function)
        self.functions[unique] = function
        return unique


def erase_unreferenced(functions: Mapping[str, FuncOp], outside: Iterable[str] = ()) -> list[str]:
    """Erases private functions that no public one reaches; returns their names.

    Args:
        functions: The module's functions.
        outside: Names that ops outside of functions refer to.
    """
    kept = set(outside)
    needed = [name for name, function in functions.items() if name in kept or not is_private(function)]
    reached = set(needed)
    # Once all are reached, the ops of the others don't matter.
    while needed and len(reached) < len(functions):
        for op in list(functions[needed.pop()].walk()):
            for name in names(op) if op.properties or op.attributes else ():
                if name in functions and name not in reached:
                    reached.add(name)
                    needed.append(name)
    erased = [name for name in functions if name not in reached]
    for name in erased:
        functions[name].detach()
        functions[name].drop_all_references()
    return erased
