"""Pass `decompose-resource-ops`: expands updates and lookups of variables into reads, plain ops and assignments.

Before:

    func.func @main(%x: tensor<2xf32>) {
      %0 = "tf.VarHandleOp"() <{container = "", dtype = f32, shape = #tf_type.shape<2>, shared_name = "v"}>
          : () -> tensor<!tf_type.resource<tensor<2xf32>>>
      "tf.AssignAddVariableOp"(%0, %x) : (tensor<!tf_type.resource<tensor<2xf32>>>, tensor<2xf32>) -> ()
      func.return
    }

After:

    func.func @main(%x: tensor<2xf32>) {
      %0 = "tf.VarHandleOp"() <{container = "", dtype = f32, shape = #tf_type.shape<2>, shared_name = "v"}>
          : () -> tensor<!tf_type.resource<tensor<2xf32>>>
      %1 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
      %2 = "tf.AddV2"(%1, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      "tf.AssignVariableOp"(%0, %2) <{validate_shape = false}>
          : (tensor<!tf_type.resource<tensor<2xf32>>>, tensor<2xf32>) -> ()
      func.return
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import ClassVar

from tfconvert.converter.ir.edit import erase
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.resource_ops.updates import OPTIMIZERS, PARTS, Access, can_be_written
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.builtin import ModuleOp

_DECOMPOSED: Mapping[str, Callable[[Access], None]] = {**PARTS, **OPTIMIZERS}


class DecomposeResourceOps:
    """Expands ops that update or look up a part of a variable, or train it."""

    __slots__ = ()

    name: ClassVar[str] = "decompose-resource-ops"

    def apply(self, module: ModuleOp) -> PassResult:
        applied: Counter[str] = Counter()
        for function in module.ops:
            if isinstance(function, FuncOp):
                for op in [op for op in function.body.walk() if op.name in _DECOMPOSED and can_be_written(op)]:
                    applied[op.name.removeprefix("tf.")] += 1
                    _DECOMPOSED[op.name](Access(op))
                    erase(op)
        return PassResult(applied)
