"""Pass `keep-nan`: keeps NaN in the extremes of models that were StableHLO, and reports operators that lose it.

StableHLO, and JAX with it, propagates NaN. LiteRT's `MAXIMUM` and `MINIMUM` return their second operand where either
is NaN, so a constant is best the first one. What the kernels of other operators make of NaN is reported.

Before:

    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<1.5> : tensor<f32>}> : () -> tensor<f32>
      %1 = "tfl.maximum"(%x, %0) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }

After:

    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<1.5> : tensor<f32>}> : () -> tensor<f32>
      %1 = "tfl.maximum"(%0, %x) : (tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.diagnostics import INEXACT, NOTE, Diagnostic
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.tflite import operators

_PAIRS = ("tfl.maximum", "tfl.minimum")

# What becomes of NaN -> its description.
_LOST: Mapping[str, str] = {
    "lost": "NaN may be lost, where JAX's result is NaN",
    "unplaced": "the place of NaN is never returned, where JAX returns that of the first one",
    "unordered": "NaN is not ordered, where JAX puts it after all numbers",
}


class KeepNaN:
    """Orders the operands of extremes, and reports operators that don't propagate NaN."""

    __slots__ = ()

    name: ClassVar[str] = "keep-nan"

    def apply(self, module: ModuleOp) -> PassResult:
        swapped = 0
        lost: dict[str, Counter[str]] = {}
        for op in module.walk():
            what = operators.having("nan").get(op.name.removeprefix(tfl.PREFIX))
            if what is None or op.operands[0].element is not types.F32:
                continue
            if op.name in _PAIRS and any(tensor_data.constant_of(operand) is not None for operand in op.operands):
                swapped += _put_constant_first(op)
            else:
                lost.setdefault(what, Counter())[op.name.removeprefix(tfl.PREFIX).upper()] += 1
        notes = [
            Diagnostic(INEXACT, f"{', '.join(sorted(names))}: {_LOST[what]} ({names.total()} of them)", severity=NOTE)
            for what, names in lost.items()
        ]
        return PassResult.of({"operands": swapped}, notes)


def _put_constant_first(op: Operation) -> bool:
    first, second = op.operands
    if tensor_data.constant_of(first) is not None:
        return False
    op.set_operand(0, second)
    op.set_operand(1, first)
    return True
