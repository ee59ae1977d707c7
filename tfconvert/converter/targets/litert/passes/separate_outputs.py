"""Pass `separate-outputs`: gives each output of the model its own tensor.

LiteRT's `CompiledModel` binds a buffer to each input and to each output. If an output is an input, or the same tensor
as another output, nothing writes its buffer. Such outputs become copies: reshapes to the same shape. The pass is at the
end of the pipeline, because optimizations would remove copies, and quantizing would round them.

Before:

    func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
      %0 = "tfl.exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %x, %0, %0 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    }

After:

    func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
      %0 = "tfl.exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tfl.pseudo_const"() <{value = dense<2> : tensor<1xi32>}> : () -> tensor<1xi32>
      %2 = "tfl.reshape"(%x, %1) <{new_shape = [2 : i32]}> : (tensor<2xf32>, tensor<1xi32>) -> tensor<2xf32>
      %3 = "tfl.pseudo_const"() <{value = dense<2> : tensor<1xi32>}> : () -> tensor<1xi32>
      %4 = "tfl.reshape"(%0, %3) <{new_shape = [2 : i32]}> : (tensor<2xf32>, tensor<1xi32>) -> tensor<2xf32>
      func.return %2, %0, %4 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    }
"""

from __future__ import annotations

from typing import ClassVar

from tfconvert.converter.ir.interface import entry_functions
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.values import BlockArgument, Value

_APPLIED = "copied"


class SeparateOutputs:
    """Copies outputs that are inputs, and those that are returned more than once."""

    __slots__ = ()

    name: ClassVar[str] = "separate-outputs"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites the exported functions; returns the number of copied outputs."""
        functions = [function for function in entry_functions(module) if not function.is_declaration]
        return PassResult.of({_APPLIED: sum(map(_separate, functions))})


def _separate(function: FuncOp) -> int:
    last = function.body.block.last_op
    if last is None:
        return 0
    seen: set[Value] = set()
    copied = 0
    for position, value in enumerate(last.operands):
        if isinstance(value, BlockArgument) or value in seen:
            last.set_operand(position, TFLBuilder(last).copy(value))
            copied += 1
        seen.add(value)
    return copied
