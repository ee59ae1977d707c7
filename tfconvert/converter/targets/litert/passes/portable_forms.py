"""Pass `portable-forms`: operators in the form that every delegate takes, where that costs the CPU nothing.

No rewrite of this pass adds an operator, but for files that are for an accelerator.

Before:

    func.func @main(%x: tensor<1x8x4xf32>) -> tensor<1x8x4xf32> {
      %b = "tfl.pseudo_const"() <{value = dense<0> : tensor<3xi32>}> : () -> tensor<3xi32>
      %s = "tfl.pseudo_const"() <{value = dense<[1, -1, 1]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %0 = "tfl.strided_slice"(%x, %b, %b, %s) <{begin_mask = 7 : i32, end_mask = 7 : i32}>
        : (tensor<1x8x4xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<1x8x4xf32>
      func.return %0 : tensor<1x8x4xf32>
    }

After:

    func.func @main(%x: tensor<1x8x4xf32>) -> tensor<1x8x4xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
      %1 = "tfl.reverse_v2"(%x, %0) : (tensor<1x8x4xf32>, tensor<1xi32>) -> tensor<1x8x4xf32>
      func.return %1 : tensor<1x8x4xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
        accelerators: The accelerators that the file is for; forms that add operators are for these only.
    """

    __slots__ = ("accelerators", "quantize")

    name: ClassVar[str] = "portable-forms"
    dialect: ClassVar[str] = "tfl."
    heading: ClassVar[str] = "in portable forms"
    has_side_effects = staticmethod(tfl.has_side_effects)

    def __init__(self, quantize: Quantize | None = None, accelerators: Sequence[str] = ()) -> None:
        super().__init__()
        self.quantize = quantize
        self.accelerators = tuple(accelerators)

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns how often each pattern was applied."""
        result = super().apply(module)
        if not self.accelerators:
            return result
        copied = sum(_copy_twins(op) for op in tuple(module.walk()) if op.name in _ONCE)
        return result._replace(counts=result.counts + Counter({"copied": copied}))

    def own_patterns(self, module: ModuleOp, names: set[str]) -> PatternSet:
        names.update(op.name for op in module.walk())
        is_static = self.quantize is not None and self.quantize.is_static
        only_floats = not is_static and "tfl.fake_quant" not in names
        return patterns.patterns_for(names, only_floats=only_floats, is_longer=bool(self.accelerators))


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
