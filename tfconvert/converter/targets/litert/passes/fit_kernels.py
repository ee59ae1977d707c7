"""Pass `fit-kernels`: rewrites operators that LiteRT's kernels reject or compute incorrectly to an accepted form.

The accepted types and ranks were measured for all kernels (`tfconvert/schema/tflite/kernels.py`). If there are too many
dimensions, those that an operator treats alike are merged. If a type isn't supported, a wider one is used. An operator
without an accepted form is an error, `unfit-kernel`; all of a module's are reported at once.

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

import math
from collections import Counter
from typing import ClassVar

from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.converter.targets.litert.kernel_outcomes import NOTED, OTHERS, KernelOutcomes
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.tfl import call_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import TensorType
from tfconvert.schema.tflite.kernels import Outcome, is_plain


class FitKernels:
    """Replaces operators by forms that the kernels accept."""

    __slots__ = ()

    name: ClassVar[str] = "fit-kernels"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the numbers of operators with fewer dimensions or wider types.

        Differences that depend on numbers at run time are notes.

        Raises:
            ConversionError: The kernels accept some operators in no form (`unfit-kernel`).
        """
        outcomes = KernelOutcomes()
        bad: list[tuple[tfl.TFLOp, Outcome]] = []
        noted: list[Operation] = []
        for op in module.walk():
            if isinstance(op, tfl.TFLOp):
                if op.name not in OTHERS and (problem := outcomes.problem(op)) is not None:
                    bad.append((op, problem))
                if op.name in NOTED and _may_be_noted(op):
                    noted.append(op)
        notes = _notes(noted)
        if not bad:
            return PassResult(Counter(), notes) if notes else NOTHING_DONE
        from tfconvert.converter.targets.litert.fitting import fit, refusal  # Few models need them.

        # Users first: a reshape may be for one only that has a form without it.
        found = [(refusal.refusal(op, problem), fit.fit(op)) for op, problem in reversed(bad) if is_plain(call_of(op))]
        left = [error for error, how in reversed(found) if not how]
        if left:
            raise ConversionError(left)
        return PassResult.of(Counter(how for _, how in found), notes)


def _may_be_noted(op: Operation) -> bool:
    """Returns whether notes may concern an op; of constants, only those that are not finite."""
    if op.name != "tfl.pseudo_const":
        return True
    kind = op.results[0].type
    if not isinstance(kind, TensorType) or kind.shape or kind.element_type != types.F32:
        return False
    constant = tensor_data.constant_of(op.results[0])
    return constant is not None and not math.isfinite(tensor_data.to_array(constant).item())


def _notes(ops: list[Operation]) -> list[Diagnostic]:
    if not ops:
        return []
    from tfconvert.converter.targets.litert import kernel_notes  # Few models need it.

    return kernel_notes.notes(ops)
