"""Pass `optimize`: fewer and faster LiteRT ops for the same values.

Before:

    func.func @main(%x: tensor<1x2x2x1xf32>) -> tensor<1x2x2x1xf32> {
      %f = "tfl.pseudo_const"() <{value = dense<2.0> : tensor<1x1x1x1xf32>}> : () -> tensor<1x1x1x1xf32>
      %b = "tfl.pseudo_const"() <{value = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
      %c = "tfl.pseudo_const"() <{value = dense<3.0> : tensor<1xf32>}> : () -> tensor<1xf32>
      %0 = "tfl.conv_2d"(%x, %f, %b) <{padding = "SAME", stride_w = 1 : i32, stride_h = 1 : i32}>
        : (tensor<1x2x2x1xf32>, tensor<1x1x1x1xf32>, tensor<1xf32>) -> tensor<1x2x2x1xf32>
      %1 = "tfl.mul"(%0, %c) : (tensor<1x2x2x1xf32>, tensor<1xf32>) -> tensor<1x2x2x1xf32>
      %2 = "tfl.add"(%1, %c) : (tensor<1x2x2x1xf32>, tensor<1xf32>) -> tensor<1x2x2x1xf32>
      %3 = "tfl.relu6"(%2) : (tensor<1x2x2x1xf32>) -> tensor<1x2x2x1xf32>
      func.return %3 : tensor<1x2x2x1xf32>
    }

After:

    func.func @main(%x: tensor<1x2x2x1xf32>) -> tensor<1x2x2x1xf32> {
      %f = "tfl.pseudo_const"() <{value = dense<6.0> : tensor<1x1x1x1xf32>}> : () -> tensor<1x1x1x1xf32>
      %b = "tfl.pseudo_const"() <{value = dense<3.0> : tensor<1xf32>}> : () -> tensor<1xf32>
      %0 = "tfl.conv_2d"(%x, %f, %b)
        <{padding = "SAME", stride_w = 1 : i32, stride_h = 1 : i32, fused_activation_function = "RELU6"}>
        : (tensor<1x2x2x1xf32>, tensor<1x1x1x1xf32>, tensor<1xf32>) -> tensor<1x2x2x1xf32>
      func.return %0 : tensor<1x2x2x1xf32>
    }
"""

from __future__ import annotations

from typing import ClassVar

from tfconvert.converter.pipeline.greedy_pass import GreedyPass
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.targets.litert.optimize import optimizations
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.builtin import ModuleOp


class Optimize(GreedyPass):
    """Applies every pattern of `tfconvert.converter.targets.litert.optimize` until none matches."""

    __slots__ = ()

    name: ClassVar[str] = "optimize"
    dialect: ClassVar[str] = "tfl."
    has_side_effects = staticmethod(tfl.has_side_effects)

    def own_patterns(self, module: ModuleOp, names: set[str]) -> PatternSet:
        names |= {op.name for op in module.walk()}
        return optimizations.patterns_for(names)
