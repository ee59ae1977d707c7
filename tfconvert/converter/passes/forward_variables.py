"""Pass `forward-variables`: forwards stored values to reads of variables, and erases dead assignments.

A variable holds the value that was last written or read, unless something may have changed it since.

Before:

    func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %0 = "tf.VarHandleOp"() <{container = "", shared_name = "v"}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
      %1 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
      %2 = "tf.AddV2"(%1, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      "tf.AssignVariableOp"(%0, %2) : (tensor<!tf_type.resource<tensor<2xf32>>>, tensor<2xf32>) -> ()
      %3 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
      %4 = "tf.Mul"(%3, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      "tf.AssignVariableOp"(%0, %4) : (tensor<!tf_type.resource<tensor<2xf32>>>, tensor<2xf32>) -> ()
      %5 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
      func.return %3, %5 : tensor<2xf32>, tensor<2xf32>
    }

After:

    func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %0 = "tf.VarHandleOp"() <{container = "", shared_name = "v"}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
      %1 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
      %2 = "tf.AddV2"(%1, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %3 = "tf.Mul"(%2, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      "tf.AssignVariableOp"(%0, %3) : (tensor<!tf_type.resource<tensor<2xf32>>>, tensor<2xf32>) -> ()
      func.return %2, %3 : tensor<2xf32>, tensor<2xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import ClassVar

from tfconvert.converter.ir.edit import erase
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.schema.dialects import tf_effects
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_READ = "tf.ReadVariableOp"
_ASSIGN = "tf.AssignVariableOp"

# The key of a state in `tf_effects`: the kind of its handle, the container, the name.
_Name = tuple[Hashable, ...]


class ForwardVariables:
    """Replaces reads by the values that variables are known to hold, and erases unobservable assignments."""

    __slots__ = ()

    name: ClassVar[str] = "forward-variables"

    def apply(self, module: ModuleOp) -> PassResult:
        if not any(op.name in (_READ, _ASSIGN) for op in module.walk()):
            return NOTHING_DONE
        effects = tf_effects.ModuleEffects(module)
        applied: Counter[str] = Counter()
        for function in module.ops:
            if isinstance(function, FuncOp):
                for block in _blocks(function):
                    _Contents(effects).go_through(block, applied)
        return PassResult.of(applied)


def _blocks(function: FuncOp) -> list[Block]:
    blocks = list(function.body.blocks)
    for op in function.body.walk():
        blocks += [block for region in op.regions for block in region.blocks]
    return blocks


class _Contents:
    """The known values of variables at a point in a block.

    Args:
        effects: Which states ops read and write.
    """

    def __init__(self, effects: tf_effects.ModuleEffects) -> None:
        self._effects = effects
        self._held: dict[_Name, Value] = {}
        self._unseen: dict[_Name, Operation] = {}

    def go_through(self, block: Block, applied: Counter[str]) -> None:
        """Rewrites a block, and counts the erased ops."""
        for op in tuple(block.ops):
            if op.name == _READ:
                applied["reads"] += self._read(op)
            elif op.name == _ASSIGN:
                applied["assignments"] += self._assign(op)
            elif not tf_effects.is_pure(op):
                self._pass(op)

    def _read(self, op: Operation) -> bool:
        variable = _named(tf_effects.resource_identity(op.operands[0]))
        held = None if variable is None else self._held.get(variable)
        if held is not None and held.type == op.results[0].type:
            op.results[0].replace_all_uses_with(held)
            erase(op)
            return True
        self._see(variable)
        if variable is not None:
            self._held[variable] = op.results[0]
        return False

    def _assign(self, op: Operation) -> bool:
        variable = _named(tf_effects.resource_identity(op.operands[0]))
        overwritten = None if variable is None else self._unseen.get(variable)
        if overwritten is not None:
            erase(overwritten)
        self._change(variable)
        if variable is not None:
            self._held[variable] = op.operands[1]
            self._unseen[variable] = op
        return overwritten is not None

    def _pass(self, op: Operation) -> None:
        """Updates the known values after any other op, which may read and write."""
        effects = self._effects.effects(op)
        for state in effects.reads:
            self._see(_named(state))
        for state in effects.writes:
            self._change(_named(state))

    def _see(self, variable: _Name | None) -> None:
        if variable is None:
            self._unseen.clear()
        else:
            self._unseen.pop(variable, None)

    def _change(self, variable: _Name | None) -> None:
        if variable is None:
            self._held.clear()
            self._unseen.clear()
        else:
            self._held.pop(variable, None)


def _named(state: Hashable) -> _Name | None:
    """Returns a state with a name. Any other state, such as that of an argument, may be any variable."""
    return state if isinstance(state, tuple) else None
