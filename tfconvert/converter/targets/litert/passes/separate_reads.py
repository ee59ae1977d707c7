"""Pass `separate-reads`: gives each operand of an operator its own read of a variable.

LiteRT's default delegate, XNNPACK, reads variables itself, and crashes if both operands of an operator are one read.

Before:

    func.func @main() -> tensor<2xf32> {
      %0 = "tfl.var_handle"() <{container = "", shared_name = "v"}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
      %1 = "tfl.read_variable"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
      %2 = "tfl.mul"(%1, %1) <{fused_activation_function = "NONE"}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %2 : tensor<2xf32>
    }

After:

    func.func @main() -> tensor<2xf32> {
      %0 = "tfl.var_handle"() <{container = "", shared_name = "v"}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
      %1 = "tfl.read_variable"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
      %2 = "tfl.read_variable"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
      %3 = "tfl.mul"(%1, %2) <{fused_activation_function = "NONE"}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %3 : tensor<2xf32>
    }
"""

from __future__ import annotations

from typing import ClassVar

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.traits import Trait

_READ = "tfl.read_variable"


class SeparateReads:
    """Gives each operand of an operator its own read, if several are the same."""

    __slots__ = ()

    name: ClassVar[str] = "separate-reads"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of new reads."""
        reads = [op for op in module.walk() if op.name == _READ]
        added = sum(map(_separate, reads))
        return PassResult.of({"reads": added})


def _separate(read: Operation) -> int:
    block, (value,) = read.parent, read.results
    assert block is not None
    added = 0
    for user in dict.fromkeys(use.operation for use in value.uses):
        places = [index for index, operand in enumerate(user.operands) if operand is value]
        if len(places) > 1 and not user.has_trait(Trait.TERMINATOR):
            for place in places[1:]:
                own = read.clone()
                block.insert_op_after(own, read)
                user.set_operand(place, own.results[0])
            added += len(places) - 1
    return added
