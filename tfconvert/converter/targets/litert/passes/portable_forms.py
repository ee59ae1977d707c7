"""Pass `portable-forms`: operators in the form that every delegate takes, where that costs the CPU nothing.

A rewrite of this pass that adds operators does so because the CPU is as fast with them. Others are made for the
accelerators that are named.

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

from tfconvert.converter.ir.edit import update_function_types
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.targets.litert.forms.driver import Candidate, rewrite
from tfconvert.converter.targets.litert.forms.tables import made_by_default
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.quantization import Quantize


class PortableForms:
    """Makes the rewrites of `tfconvert.converter.targets.litert.forms` that are made by default.

    Args:
        quantize: How to quantize later on; some forms would add numbers to what becomes integers.
        accelerators: The accelerators that the file is for.
    """

    __slots__ = ("accelerators", "quantize")

    name: ClassVar[str] = "portable-forms"

    def __init__(self, quantize: Quantize | None = None, accelerators: Sequence[str] = ()) -> None:
        self.quantize = quantize
        self.accelerators = tuple(accelerators)

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns how often each rewrite was applied."""
        applied: Counter[str] = Counter()
        functions = list(functions_of(module).values())
        as_integers = self.quantize is not None and self.quantize.is_static
        names = {op.name for op in module.walk()}
        as_integers = as_integers or "tfl.fake_quant" in names
        is_for_gpu = "gpu" in self.accelerators
        rows = made_by_default(names, is_for_gpu=is_for_gpu)

        def candidate(op: tfl.TFLOp) -> Candidate:
            return Candidate(op, as_integers=as_integers, is_for_gpu=is_for_gpu)

        for function in functions:
            applied += rewrite(function.body, candidate, rows.get)
        update_function_types(functions)
        return PassResult(applied)
