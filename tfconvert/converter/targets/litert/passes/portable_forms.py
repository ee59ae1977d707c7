"""Pass `portable-forms`: operators in the form that every delegate takes, where that costs the CPU nothing.

The rewrites for one accelerator alone are not here: they are made for those who name it.

Before:

    func.func @main(%x: tensor<1x8x4xf32>) -> tensor<1x4xf32> {
      %b = "tfl.pseudo_const"() <{value = dense<[0, 2, 0]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %e = "tfl.pseudo_const"() <{value = dense<[0, 3, 0]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %s = "tfl.pseudo_const"() <{value = dense<1> : tensor<3xi32>}> : () -> tensor<3xi32>
      %0 = "tfl.strided_slice"(%x, %b, %e, %s) <{begin_mask = 5 : i32, end_mask = 5 : i32, shrink_axis_mask = 2 : i32}>
        : (tensor<1x8x4xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<1x4xf32>
      func.return %0 : tensor<1x4xf32>
    }

After:

    func.func @main(%x: tensor<1x8x4xf32>) -> tensor<1x4xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<[0, 2, 0]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %1 = "tfl.pseudo_const"() <{value = dense<[1, 1, 4]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %2 = "tfl.slice"(%x, %0, %1) : (tensor<1x8x4xf32>, tensor<3xi32>, tensor<3xi32>) -> tensor<1x1x4xf32>
      %3 = "tfl.pseudo_const"() <{value = dense<[1, 4]> : tensor<2xi32>}> : () -> tensor<2xi32>
      %4 = "tfl.reshape"(%2, %3) <{new_shape = [1 : i32, 4 : i32]}> : (tensor<1x1x4xf32>, tensor<2xi32>)
        -> tensor<1x4xf32>
      func.return %4 : tensor<1x4xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.pipeline.greedy_pass import GreedyPass
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.targets.litert.forms import patterns
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.dims import constant_target
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.settings.quantization import Quantize


class PortableForms(GreedyPass):
    """Applies every pattern of `tfconvert.converter.targets.litert.forms` until none matches.

    Args:
        quantize: How to quantize later on; some forms would add numbers to what becomes integers.
    """

    __slots__ = ("quantize",)

    name: ClassVar[str] = "portable-forms"
    dialect: ClassVar[str] = "tfl."
    heading: ClassVar[str] = "in portable forms"
    has_side_effects = staticmethod(tfl.has_side_effects)

    def __init__(self, quantize: Quantize | None = None) -> None:
        super().__init__()
        self.quantize = quantize

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns how often each pattern was applied."""
        result = super().apply(module)
        copied = sum(_copy_twins(op) for op in tuple(module.walk()) if op.name in _ONCE)
        return result._replace(counts=result.counts + Counter({"copied": copied}))

    def own_patterns(self, module: ModuleOp, names: set[str]) -> PatternSet:
        names.update(op.name for op in module.walk())
        is_static = self.quantize is not None and self.quantize.is_static
        return patterns.patterns_for(names, only_floats=not is_static and "tfl.fake_quant" not in names)


# Operators that end the GPU's process if an operand is there twice.
_ONCE = ("tfl.batch_matmul", "tfl.pack")


def _copy_twins(op: Operation) -> int:
    """Lets an op read a copy of an operand that it reads already; returns the number of copies."""
    known: set[Value] = set()
    builder = TFLBuilder(op)
    copied = 0
    for index, value in enumerate(op.operands):
        target = constant_target(types.shape_of(value.type))
        if value in known and target is not None:
            copy = builder.tfl("reshape", (value, builder.ints(target)), value.type, {"new_shape": target})
            op.set_operand(index, copy)
            copied += 1
        known.add(value)
    return copied
