"""Pass `fit-accelerators`: rewrites operators that an accelerator refuses or computes incorrectly to a form it takes.

The forms that accelerators take were measured (`tfconvert/schema/tflite/accelerators/`). A rewrite is kept only if
every operator that it makes is better off on the accelerators that the file is for, and none is worse.

Before:

    func.func @main(%x: tensor<1x2x4x2x4x3xf32>) -> tensor<1x2x2x4x4x3xf32> {
      %p = "tfl.pseudo_const"() <{value = dense<[0, 1, 3, 2, 4, 5]> : tensor<6xi32>}> : () -> tensor<6xi32>
      %0 = "tfl.transpose"(%x, %p) : (tensor<1x2x4x2x4x3xf32>, tensor<6xi32>) -> tensor<1x2x2x4x4x3xf32>
      func.return %0 : tensor<1x2x2x4x4x3xf32>
    }

After:

    func.func @main(%x: tensor<1x2x4x2x4x3xf32>) -> tensor<1x2x2x4x4x3xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<[2, 4, 2, 12]> : tensor<4xi32>}> : () -> tensor<4xi32>
      %1 = "tfl.reshape"(%x, %0) <{new_shape = [2 : i32, 4 : i32, 2 : i32, 12 : i32]}>
          : (tensor<1x2x4x2x4x3xf32>, tensor<4xi32>) -> tensor<2x4x2x12xf32>
      %2 = "tfl.pseudo_const"() <{value = dense<[0, 2, 1, 3]> : tensor<4xi32>}> : () -> tensor<4xi32>
      %3 = "tfl.transpose"(%1, %2) : (tensor<2x4x2x12xf32>, tensor<4xi32>) -> tensor<2x2x4x12xf32>
      %4 = "tfl.pseudo_const"() <{value = dense<[1, 2, 2, 4, 4, 3]> : tensor<6xi32>}> : () -> tensor<6xi32>
      %5 = "tfl.reshape"(%3, %4) <{new_shape = [1 : i32, 2 : i32, 2 : i32, 4 : i32, 4 : i32, 3 : i32]}>
          : (tensor<2x2x4x12xf32>, tensor<6xi32>) -> tensor<1x2x2x4x4x3xf32>
      func.return %5 : tensor<1x2x2x4x4x3xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.targets.litert.accelerators import trial
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.quantization import Quantize


class FitAccelerators:
    """Rewrites operators for accelerators.

    Args:
        accelerators: The accelerators, keys of `acceptance.ACCELERATORS`.
        quantize: How floats will be quantized, if they will be: operators count by what becomes of them.
    """

    __slots__ = ("accelerators", "quantize")

    name: ClassVar[str] = "fit-accelerators"

    def __init__(self, accelerators: Sequence[str] = ("gpu",), quantize: Quantize | None = None) -> None:
        self.accelerators = tuple(accelerators)
        self.quantize = quantize

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns how often each rewrite was applied."""
        applied: Counter[str] = Counter()
        as_integers = self.quantize is not None and self.quantize.is_static
        for function in functions_of(module).values():
            applied += trial.rewrite(function.body, self.accelerators, as_integers=as_integers)
        return PassResult(applied, heading="rewritten for accelerators")
