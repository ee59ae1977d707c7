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

from collections.abc import Hashable, Sequence
from functools import cache
from typing import ClassVar

from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.converter.targets.litert.accelerator_verdicts import IN_CONTEXT, verdict_of
from tfconvert.schema.diagnostics import NOTE, Diagnostic
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value
from tfconvert.schema.tflite import operators
from tfconvert.schema.tflite.accelerators.acceptance import CRASHES, LOAD_FAILS, WRONG, table
from tfconvert.schema.tflite.kernels import PARAMETERS

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
        if self.accelerators or not _is_spoilt(module):
            return NOTHING_DONE
        # Most files need no more than the verdicts.
        from tfconvert.converter.targets.litert.accelerator_check import check

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


def _is_spoilt(module: ModuleOp) -> bool:
    """Returns whether the GPU computes an operator wrongly, or crashes at it, if it takes it."""
    doubtful = {f"{tfl.PREFIX}{name.lower()}" for name in table("gpu").doubtful}
    # Large graphs have few forms of operators.
    known: set[Hashable] = set()
    for op in module.walk():
        if isinstance(op, tfl.TFLOp) and op.name in doubtful:
            form = _form(op)
            if form not in known:
                known.add(form)
                if verdict_of(op, "gpu").outcome in (WRONG, CRASHES):
                    return True
    return False


def _form(op: Operation) -> Hashable:
    """Returns what a verdict depends on: equal for ops with equal verdicts."""
    operands = op.operands[:]
    twins = () if len(set(operands)) == len(operands) else tuple(map(operands.index, operands))
    is_used = len(op.results) < 2 or tuple([result.first_use is None for result in op.results])
    parameters = _parameters(op.name)
    facts = tuple([(value.type, _origin(value, index in parameters)) for index, value in enumerate(operands)])
    return op.name, facts, twins, is_used, tuple(op.result_types), tuple(op.properties.items())


@cache
def _parameters(name: str) -> frozenset[int]:
    """Returns the operands of an op, by index, whose elements verdicts depend on."""
    operator = operators.lookup(name.removeprefix(tfl.PREFIX))
    named = enumerate(() if operator is None else operator.operands)
    return frozenset([index for index, each in named if each.name in PARAMETERS or each.name == "constant_values"])


def _origin(value: Value, is_parameter: bool) -> Hashable:
    """Returns what a verdict depends on of what makes a value."""
    if type(value) is not OpResult:
        return None
    op = value.op
    if tfl.is_constant(value):
        return not is_parameter or op.properties.get("value")
    if op.name == "tfl.dequantize":
        return op.operands[0].type if tfl.is_constant(op.operands[0]) else None
    # Joins of the parts of a split, and numbers that were made of bits.
    return (op, value.index) if op.name in IN_CONTEXT else None
