"""Pass `fit-kernels`: gives operators that LiteRT's kernels refuse, or compute incorrectly, a form that they take.

What the kernels take was measured for all types and ranks (`tfconvert/schema/tflite/kernels.py`). Where there are too
many dimensions, those that an operator treats alike become one; where a type isn't supported, a wider one is used.
What has no such form is an error, `unfit-kernel`; all of a module's are reported at once.

Before:

    func.func @main(%x: tensor<2x3x2x2x1x2x3xf32>) -> tensor<2x3x2x2x1x2x3xf32> {
      %0 = "tfl.softmax"(%x) <{beta = 1.0 : f32}> : (tensor<2x3x2x2x1x2x3xf32>) -> tensor<2x3x2x2x1x2x3xf32>
      func.return %0 : tensor<2x3x2x2x1x2x3xf32>
    }

After:

    func.func @main(%x: tensor<2x3x2x2x1x2x3xf32>) -> tensor<2x3x2x2x1x2x3xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<[48, 3]> : tensor<2xi32>}> : () -> tensor<2xi32>
      %1 = "tfl.reshape"(%x, %0) <{new_shape = [48 : i32, 3 : i32]}>
          : (tensor<2x3x2x2x1x2x3xf32>, tensor<2xi32>) -> tensor<48x3xf32>
      %2 = "tfl.softmax"(%1) <{beta = 1.0 : f32}> : (tensor<48x3xf32>) -> tensor<48x3xf32>
      %3 = "tfl.pseudo_const"() <{value = dense<[2, 3, 2, 2, 1, 2, 3]> : tensor<7xi32>}> : () -> tensor<7xi32>
      %4 = "tfl.reshape"(%2, %3) <{new_shape = [2 : i32, 3 : i32, 2 : i32, 2 : i32, 1 : i32, 2 : i32, 3 : i32]}>
          : (tensor<48x3xf32>, tensor<7xi32>) -> tensor<2x3x2x2x1x2x3xf32>
      func.return %4 : tensor<2x3x2x2x1x2x3xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from tfconvert.converter.litert.kernel_outcomes import OTHERS, KernelOutcomes
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.tfl_calls import call_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tflite.kernel_conditions import is_plain


class FitKernels:
    """Replaces operators by forms of them that the kernels take."""

    __slots__ = ()

    name: ClassVar[str] = "fit-kernels"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns how many operators have fewer dimensions or wider types.

        Raises:
            ConversionError: There are operators that the kernels take in no form (`unfit-kernel`).
        """
        outcomes = KernelOutcomes()
        bad = [
            (op, problem)
            for op in module.walk()
            if isinstance(op, tfl.TFLOp) and op.op_name not in OTHERS and (problem := outcomes.problem(op)) is not None
        ]
        if not bad:
            return NOTHING_DONE
        from tfconvert.converter.litert.fitting import fit, refusal  # Few models need them.

        found = [(refusal.refusal(op, problem), fit.fit(op)) for op, problem in bad if is_plain(call_of(op))]
        left = [error for error, how in found if not how]
        if left:
            raise ConversionError(left)
        return PassResult.of(Counter(how for _, how in found))
