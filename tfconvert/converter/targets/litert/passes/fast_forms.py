"""Pass `fast-forms`: forms that LiteRT runs faster on a processor, where measured times say so.

Before:

    func.func @main(%x: tensor<3x32x32xf32>) -> tensor<32x32xf32> {
      %b = "tfl.pseudo_const"() <{value = dense<[1, 0, 0]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %e = "tfl.pseudo_const"() <{value = dense<[2, 0, 0]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %s = "tfl.pseudo_const"() <{value = dense<1> : tensor<3xi32>}> : () -> tensor<3xi32>
      %0 = "tfl.strided_slice"(%x, %b, %e, %s) <{begin_mask = 6 : i32, end_mask = 6 : i32, shrink_axis_mask = 1 : i32}>
        : (tensor<3x32x32xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<32x32xf32>
      func.return %0 : tensor<32x32xf32>
    }

After:

    func.func @main(%x: tensor<3x32x32xf32>) -> tensor<32x32xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<[1, 0, 0]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %1 = "tfl.pseudo_const"() <{value = dense<[1, 32, 32]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %2 = "tfl.slice"(%x, %0, %1) : (tensor<3x32x32xf32>, tensor<3xi32>, tensor<3xi32>) -> tensor<1x32x32xf32>
      %3 = "tfl.pseudo_const"() <{value = dense<32> : tensor<2xi32>}> : () -> tensor<2xi32>
      %4 = "tfl.reshape"(%2, %3) <{new_shape = [32 : i32, 32 : i32]}> : (tensor<1x32x32xf32>, tensor<2xi32>)
        -> tensor<32x32xf32>
      func.return %4 : tensor<32x32xf32>
    }
"""

from __future__ import annotations

from typing import ClassVar

from tfconvert.converter.pipeline.greedy_pass import GreedyPass
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.targets.litert.fast import fast_patterns
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.quantization import Quantize


class FastForms(GreedyPass):
    """Applies every pattern of `tfconvert.converter.targets.litert.fast` until none matches.

    Args:
        quantize: How to quantize later on; operators that will be of integers stay as they are.
    """

    __slots__ = ("quantize",)

    name: ClassVar[str] = "fast-forms"
    dialect: ClassVar[str] = "tfl."
    has_side_effects = staticmethod(tfl.has_side_effects)

    def __init__(self, quantize: Quantize | None = None) -> None:
        super().__init__()
        self.quantize = quantize

    def own_patterns(self, module: ModuleOp, names: set[str]) -> PatternSet:
        names.update(op.name for op in module.walk())
        is_static = self.quantize is not None and self.quantize.is_static
        only_floats = not is_static and "tfl.fake_quant" not in names
        has_int16 = self.quantize is not None and self.quantize.mode == "int16"
        return fast_patterns.patterns_for(names, only_floats=only_floats, has_int16=has_int16)
