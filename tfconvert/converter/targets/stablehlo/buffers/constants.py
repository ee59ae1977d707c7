"""Constants and state as memref globals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfconvert.converter.targets.stablehlo.buffers.host import CONSTANT
from tfconvert.converter.targets.stablehlo.buffers.kernels import buffer_type
from tfconvert.schema.dialects import memref
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import UNIT, StringAttr, SymbolRefAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import MemRefType
from tfconvert.schema.ir.values import Value

if TYPE_CHECKING:
    from tfconvert.converter.targets.stablehlo.buffers.scope import Scope

_STATE = "ml_program.global"


class Constants:
    """The globals of a module; equal constants are one.

    Args:
        module: The module; its state also becomes memory.
    """

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._globals: list[Operation] = []
        self._names: dict[Attribute, str] = {}
        self._declared: set[str] = set()
        self._taken = {_name(op, "sym_name") for op in module.ops}
        self._states = {_name(op, "sym_name"): op for op in module.ops if op.name == _STATE}

    def buffer(self, scope: Scope, value: Value) -> Value:
        """Returns the memory of a constant.

        Args:
            scope: The scope that needs it.
            value: The constant.
        """
        op = value.owner
        assert isinstance(op, Operation)
        assert op.name == CONSTANT, op.name
        held, kind = op.properties["value"], buffer_type(value.type)
        if held not in self._names:
            self._names[held] = self._add("constant", kind, held, is_constant=True)
        return _get(scope, self._names[held], kind)

    def state(self, op: Operation, scope: Scope) -> Value:
        """Returns the memory of the state that an op loads or stores.

        Raises:
            ConversionError: Its sizes are not known (`unsupported-op`).
        """
        name = _name(op, "global")
        declared = self._states[name]
        kind = buffer_type(declared.properties["type"])
        if -1 in kind.shape:
            raise error_at(op, "unsupported-op", "state whose sizes are not known has no memory of its own")
        if name not in self._declared:
            self._declared.add(name)
            self._globals.append(_global(name, kind, declared.properties.get("value"), is_constant=False))
        return _get(scope, name, kind)

    def insert(self) -> None:
        """Inserts the globals before the functions, in place of the state."""
        for op in self._states.values():
            op.detach()
        block = self._module.body.block
        first = block.first_op
        assert first is not None, "there is a function that uses the globals"
        for op in self._globals:
            block.insert_op_before(op, first)

    def _add(self, name: str, kind: MemRefType, value: Attribute, *, is_constant: bool) -> str:
        found, number = name, 0
        while found in self._taken:
            number += 1
            found = f"{name}_{number}"
        self._taken.add(found)
        self._globals.append(_global(found, kind, value, is_constant=is_constant))
        return found


def _global(name: str, kind: MemRefType, value: Attribute | None, *, is_constant: bool) -> Operation:
    properties: dict[str, Attribute] = {
        "sym_name": StringAttr.get(name),
        "sym_visibility": StringAttr.get("private"),
        "type": kind,
    }
    # State without a value is not initialised.
    properties["initial_value"] = UNIT if value is None else value
    if is_constant:
        properties["constant"] = UNIT
    return memref.build("memref.global", (), (), properties)


def _get(scope: Scope, name: str, kind: MemRefType) -> Value:
    return scope.insert(memref.build("memref.get_global", (), (kind,), {"name": _symbol(name)})).results[0]


def _symbol(name: str) -> SymbolRefAttr:
    return SymbolRefAttr.get(name)


def _name(op: Operation, key: str) -> str:
    found = op.properties.get(key)
    if isinstance(found, SymbolRefAttr):
        return found.root
    return found.data if isinstance(found, StringAttr) else ""
