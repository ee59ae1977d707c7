"""Pass `decompose`: ops that StableHLO has no form for become others that it has.

Before:

    func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Xdivy"(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }

After:

    func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Const"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
      %1 = "tf.Equal"(%x, %0) : (tensor<2xf32>, tensor<f32>) -> tensor<2xi1>
      %2 = "tf.RealDiv"(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %3 = "tf.Const"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
      %4 = "tf.SelectV2"(%1, %3, %2) : (tensor<2xi1>, tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %4 : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from tfconvert.converter.ir.edit import update_function_types
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.rewrite.decompose import patterns_for
from tfconvert.converter.rewrite.driver import rewrite_greedily
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.targets.stablehlo.legalize.decomposed import KINDS, illegal
from tfconvert.schema.dialects import tf
from tfconvert.schema.dialects.func import defined_functions
from tfconvert.schema.ir.builtin import ModuleOp


class Decompose:
    """Decomposes ops, and those that they are composed of."""

    __slots__ = ()

    name: ClassVar[str] = "decompose"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns how many ops of each kind were decomposed."""
        applied: Counter[str] = Counter()
        functions = list(defined_functions(module).values())
        names = illegal({op.name for op in module.walk()})
        while names:
            patterns = PatternSet(patterns_for(names, KINDS))
            for function in functions:
                applied += rewrite_greedily(function.body, patterns, tf.has_side_effects)
            found = illegal({op.name for op in module.walk()})
            names = names | found if found - names else set()
        update_function_types(functions)
        return PassResult(applied)
