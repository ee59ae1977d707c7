"""Pass `check-gpu`: notes which operators LiteRT's GPU accelerator computes wrongly, without an error.

Forms that are right there are written by default if they cost the CPU nothing, others with `accelerator=["gpu"]`. A
file for no accelerator may be run on a GPU all the same. Operators that the GPU leaves to the CPU are right.

Noted with `wrong-on-gpu`, as the size of the last axis is no multiple of 4:

    func.func @main(%x: tensor<1x10xf32>) -> tensor<1xi32> {
      %0 = "tfl.pseudo_const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tfl.arg_max"(%x, %0) <{output_type = "INT32"}> : (tensor<1x10xf32>, tensor<i32>) -> tensor<1xi32>
      func.return %1 : tensor<1xi32>
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.converter.targets.litert.accelerator_check import check, verdict_of
from tfconvert.converter.targets.litert.stages import WRONG_ON_GPU
from tfconvert.schema.diagnostics import NOTE, Diagnostic
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tflite.accelerators.acceptance import CRASHES, LOAD_FAILS, WRONG

CODE = "wrong-on-gpu"

# The maximum number of operators that the note names.
_MAX_NAMED = 3


class CheckGpu:
    """Compares operators with what is known of the GPU.

    Args:
        accelerators: The accelerators that the file is for. The report has a verdict on them.
    """

    __slots__ = ("accelerators",)

    name: ClassVar[str] = "check-gpu"

    def __init__(self, accelerators: Sequence[str] = ()) -> None:
        self.accelerators = tuple(accelerators)

    def apply(self, module: ModuleOp) -> PassResult:
        """Changes nothing; returns the note."""
        if self.accelerators or not any(map(_is_spoilt, module.walk())):
            return NOTHING_DONE
        obstacles = check(module, "gpu").obstacles
        spoilt = [each for each in obstacles if each.outcome in (WRONG, CRASHES) and not each.is_left]
        if not spoilt or any(each.outcome == LOAD_FAILS for each in obstacles):
            return NOTHING_DONE  # An accelerator that doesn't load a file says so itself.
        named = "; ".join(each.text for each in spoilt[:_MAX_NAMED])
        more = f"; and {len(spoilt) - _MAX_NAMED} more" if len(spoilt) > _MAX_NAMED else ""
        hint = (
            'for GPUs convert with target=tfconvert.LiteRT(accelerator=["gpu"]) (--accelerator gpu); the CPU is right'
        )
        message = f"on LiteRT's GPU accelerator, {named}{more}"
        return PassResult.of({}, [Diagnostic(CODE, message, hint=hint, severity=NOTE)])


def _is_spoilt(op: object) -> bool:
    """Returns whether an op is one that the GPU computes wrongly or crashes at if it takes it."""
    if not isinstance(op, tfl.TFLOp) or op.name not in WRONG_ON_GPU:
        return False
    return verdict_of(op, "gpu").outcome in (WRONG, CRASHES)
