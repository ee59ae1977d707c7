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
from collections.abc import Mapping, Sequence
from typing import ClassVar

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.targets.litert.accelerator_verdicts import verdict_of
from tfconvert.converter.targets.litert.forms.driver import Candidate, rewrite
from tfconvert.converter.targets.litert.forms.form import PREPARES, Rewrite
from tfconvert.converter.targets.litert.forms.questions import MAX_RANK
from tfconvert.converter.targets.litert.forms.tables import rewrites_of
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tflite.accelerators.acceptance import CRASHES, LOAD_FAILS, OK, REFUSED, UNKNOWN, WRONG
from tfconvert.settings.quantization import Quantize

# How bad an outcome is.
_HARM: Mapping[str, int] = {OK: 0, UNKNOWN: 1, REFUSED: 2, WRONG: 3, CRASHES: 4, LOAD_FAILS: 5}


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
            applied += rewrite(
                function.body, lambda op: _Better(op, self.accelerators, as_integers=as_integers), rewrites_of
            )
        return PassResult(applied, heading="rewritten for accelerators")


class _Better(Candidate):
    """An operator that is rewritten if accelerators take what replaces it, or at least compute it right.

    Args:
        op: The operator.
        accelerators: The accelerators.
        as_integers: Whether floats will be quantized.
    """

    is_default = False

    def __init__(self, op: tfl.TFLOp, accelerators: Sequence[str], *, as_integers: bool) -> None:
        super().__init__(op, as_integers=as_integers)
        self._accelerators = accelerators
        self._harm = _harm([op], accelerators, as_integers)

    def is_due(self, row: Rewrite) -> bool:
        return any(self._harm) and (row.only_for != "gpu" or "gpu" in self._accelerators)

    def is_better(self, row: Rewrite, made: Sequence[tfl.TFLOp]) -> bool:
        after = _harm([each for each in made if not _is_border(each)], self._accelerators, self.as_integers)
        is_no_worse = all(new <= old for new, old in zip(after, self._harm, strict=True))
        return is_no_worse and (after != self._harm or row.benefit >= PREPARES)


def _harm(ops: Sequence[tfl.TFLOp], accelerators: Sequence[str], as_integers: bool) -> list[int]:
    """Returns how bad the worst verdict on ops is, for each accelerator."""
    return [max((_harm_of(op, name, as_integers) for op in ops), default=0) for name in accelerators]


def _harm_of(op: tfl.TFLOp, accelerator: str, as_integers: bool) -> int:
    harm = _HARM[verdict_of(op, accelerator).outcome]
    if harm and as_integers:
        return min(harm, _HARM[verdict_of(op, accelerator, as_integers=True).outcome])
    return harm


def _is_border(op: tfl.TFLOp) -> bool:
    """Returns whether an op leads to a form that accelerators take, or back to the one that its users expect.

    Where users are rewritten, too, two of them cancel each other out.
    """
    if op.op_name == "reshape":
        return any(len(value.shape or ()) > MAX_RANK for value in (op.operands[0], op.results[0]))
    return op.op_name == "cast" and any(value.element == types.I64 for value in (op.operands[0], op.results[0]))
