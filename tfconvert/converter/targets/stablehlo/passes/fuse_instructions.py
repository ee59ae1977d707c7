"""Pass `fuse-instructions`: moves ops that one kernel can compute into a private function.

A kernel is a loop over its result, or a reduction of such a loop (`dhlo.fusion`). Sizes that are operands stay outside,
since they are computed before the kernel is launched. Every engine can run the calls.

Before:

    func.func @main(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %n: tensor<2xi64>, %z: tensor<f32>) -> tensor<?xf32> {
      %0 = stablehlo.constant dense<0> : tensor<2xi64>
      %1 = stablehlo.constant dense<1> : tensor<2xi64>
      %2 = "stablehlo.real_dynamic_slice"(%x, %0, %n, %1)
        : (tensor<?x8xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x8xf32>
      %3 = "stablehlo.add"(%2, %y) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
      %4 = "stablehlo.reduce"(%3, %z) <{dimensions = array<i64: 1>}> ({
      ^bb0(%5: tensor<f32>, %6: tensor<f32>):
        %7 = "stablehlo.add"(%5, %6) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%7) : (tensor<f32>) -> ()
      }) : (tensor<?x8xf32>, tensor<f32>) -> tensor<?xf32>
      func.return %4 : tensor<?xf32>
    }

After:

    module {
      func.func @main(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %n: tensor<2xi64>, %z: tensor<f32>) -> tensor<?xf32> {
        %0 = func.call @main__fusion_0(%x, %n, %y, %z) {dhlo.fusion = "input"}
          : (tensor<?x8xf32>, tensor<2xi64>, tensor<?x8xf32>, tensor<f32>) -> tensor<?xf32>
        func.return %0 : tensor<?xf32>
      }
      func.func private @main__fusion_0(%0: tensor<?x8xf32>, %1: tensor<2xi64>, %2: tensor<?x8xf32>, %3: tensor<f32>)
          -> tensor<?xf32> attributes {dhlo.fusion = "input"} {
        %4 = stablehlo.constant dense<0> : tensor<2xi64>
        %5 = stablehlo.constant dense<1> : tensor<2xi64>
        %6 = "stablehlo.real_dynamic_slice"(%0, %4, %1, %5)
          : (tensor<?x8xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x8xf32>
        %7 = "stablehlo.add"(%6, %2) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
        %8 = "stablehlo.reduce"(%7, %3) <{dimensions = array<i64: 1>}> ({
        ^bb0(%9: tensor<f32>, %10: tensor<f32>):
          %11 = "stablehlo.add"(%9, %10) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%11) : (tensor<f32>) -> ()
        }) : (tensor<?x8xf32>, tensor<f32>) -> tensor<?xf32>
        func.return %8 : tensor<?xf32>
      }
    }
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.targets.stablehlo.buffers.host import FUSION
from tfconvert.converter.targets.stablehlo.instruction_fusion import groups, outline
from tfconvert.schema.dialects.func import defined_functions
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp


class FuseInstructions:
    """Moves ops that one kernel can compute into functions."""

    __slots__ = ()

    name: ClassVar[str] = "fuse-instructions"

    def apply(self, module: ModuleOp) -> PassResult:
        """Outlines every group of at least two ops; returns the number of each kind."""
        counts = Counter[str]()
        for name, function in defined_functions(module).items():
            if FUSION in function.attributes:
                continue
            for number, group in enumerate(groups(function.body.block)):
                fused = outline(group, f"{name}__fusion_{number}")
                module.body.block.add_op(fused)
                counts[group.kind] += 1
            _drop_constants(function.body.block)
        return PassResult(counts)


def _drop_constants(block: Block) -> None:
    """Erases constants that only the moved ops used."""
    for op in tuple(block.ops):
        if op.name == "stablehlo.constant" and op.results[0].first_use is None:
            op.detach()
            op.erase()
