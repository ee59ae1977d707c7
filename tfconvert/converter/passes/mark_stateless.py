"""Pass `mark-stateless`: marks control flow without effects as stateless, and erases it where it is dead.

TensorFlow marks a conditional as stateful even if its only effect is an assert. Once asserts are erased, it is a
function of its operands, which later passes may merge, move or erase.

Before:

    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
      "tf.If"(%p, %x) <{then_branch = @nothing, else_branch = @nothing, is_stateless = false}>
          : (tensor<i1>, tensor<2xf32>) -> ()
      %0 = "tf.If"(%p, %x) <{then_branch = @exp, else_branch = @same, is_stateless = false}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @nothing(%x: tensor<2xf32>) {
      func.return
    }
    func.func private @exp(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @same(%x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }

After:

    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.If"(%p, %x) <{then_branch = @exp, else_branch = @same, is_stateless = true}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @exp(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @same(%x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar

from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.edit import erase
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tf_effects
from tfconvert.schema.dialects.call_interfaces import STATEFUL
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

_TRUE = attrs.boolean(True)

_EFFECTFUL, _UNUSED, _PURE = range(3)
"""The effects of a function: it must run; it may be erased where its results are unused; it is a function of its
arguments alone, too."""


class MarkStateless:
    """Marks `If`, `While` and `Case` without effects as stateless, and erases unused ones."""

    __slots__ = ()

    name: ClassVar[str] = "mark-stateless"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns how many are marked and erased.

        Functions that only an erased op referred to are erased with it.
        """
        functions = functions_of(module)
        applied: Counter[str] = Counter()
        if len(functions) < 2:
            return PassResult(applied)  # no calls
        purity = _Purity(functions)
        for function in functions.values():
            # Backwards, so that the users of an op are erased before it is visited.
            for op in reversed([op for op in function.body.walk() if op.name in STATEFUL]):
                applied[_improve(op, purity)] += 1
        applied.pop("", None)
        if applied["erased"]:
            outside = symbol_table.names_outside(module)
            symbol_table.erase_unreferenced(functions, outside)
        return PassResult(+applied)


def _improve(op: Operation, purity: _Purity) -> str:
    """Marks or erases an op; returns the name of the change, or an empty string."""
    known = purity.of_op(op)
    if known > _EFFECTFUL and all(result.first_use is None for result in op.results):
        erase(op)
        return "erased"
    if known < _PURE or op.properties.get("is_stateless") == _TRUE:
        return ""
    op.properties["is_stateless"] = _TRUE
    return "marked"


class _Purity:
    """The effects of the functions of a module; each is analysed once.

    Args:
        functions: The functions by name.
    """

    def __init__(self, functions: Mapping[str, FuncOp]) -> None:
        self._functions = functions
        self._known: dict[str, int] = {}

    def of_op(self, op: Operation) -> int:
        """Returns the effects of an op, its own and those of its callees."""
        callees = symbol_table.names(op)
        if callees:
            return min(map(self._of_function, callees))
        if op.regions or not op.name.startswith("tf."):
            return _PURE if op.name == "func.return" else _EFFECTFUL
        if tf_effects.is_pure(op):
            return _PURE
        return _EFFECTFUL if tf_effects.has_side_effects(op) else _UNUSED

    def _of_function(self, name: str) -> int:
        stack, entered = [name], set[str]()
        while stack:
            current = stack[-1]
            function = self._functions.get(current)
            if function is None or current in self._known:
                self._known.setdefault(current, _EFFECTFUL)
                stack.pop()
                continue
            ops = list(function.body.walk())
            if current not in entered:
                entered.add(current)
                needed = {callee for op in ops for callee in symbol_table.names(op)} - self._known.keys()
                # A function that calls itself may never end.
                self._known.update(dict.fromkeys(needed & entered, _EFFECTFUL))
                stack += sorted(needed - entered)
                continue
            self._known.setdefault(current, min(map(self.of_op, ops), default=_PURE))
        return self._known[name]
