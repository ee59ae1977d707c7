"""Pass `verify-quantized`: rejects quantized ops that LiteRT's kernels reject or compute incorrectly.

The runtime does not check types, scales and zero points: many wrong files load and compute wrong results. The outcome
of each form was measured for each kernel (`tfconvert/schema/tflite/kernels.py`); unmeasured forms are accepted. All
problems of a module are one error, `quantized-kernel`. In a file that was quantized by others, and is not quantized
again, what the runtime computes incorrectly is a warning.

Refused:

    func.func @main(%x: tensor<2x3x!quant.uniform<i8:f32, 0.5>>, %y: tensor<2x3x!quant.uniform<i8:f32, 0.25>>)
        -> tensor<2x3x!quant.uniform<i8:f32, 0.5>> {
      %0 = "tfl.maximum"(%x, %y) : (tensor<2x3x!quant.uniform<i8:f32, 0.5>>, tensor<2x3x!quant.uniform<i8:f32, 0.25>>)
          -> tensor<2x3x!quant.uniform<i8:f32, 0.5>>
      func.return %0 : tensor<2x3x!quant.uniform<i8:f32, 0.5>>
    }

A float operator with 16-bit constants is also wrong without a `tfl.dequantize` between them.

Refused:

    func.func @main(%x: tensor<1x4x4x2xf32>, %b: tensor<1xf32>) -> tensor<1x4x4x1xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<1.0> : tensor<1x1x1x2xf16>}> : () -> tensor<1x1x1x2xf16>
      %1 = "tfl.conv_2d"(%x, %0, %b) <{padding = "SAME", stride_w = 1 : i32, stride_h = 1 : i32}>
          : (tensor<1x4x4x2xf32>, tensor<1x1x1x2xf16>, tensor<1xf32>) -> tensor<1x4x4x1xf32>
      func.return %1 : tensor<1x4x4x1xf32>
    }
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.schema.diagnostics import WARNING, ConversionError, Diagnostic
from tfconvert.schema.dialects import tfl, tfl_file, types
from tfconvert.schema.dialects.locations import found_at, node_of
from tfconvert.schema.dialects.quant import BlockedType, UniformType
from tfconvert.schema.dialects.tfl import call_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tflite import kernels
from tfconvert.schema.tflite.kernels import CRASHES, OK, REFUSED, WRONG, Outcome
from tfconvert.schema.tflite.versions import Call
from tfconvert.settings.quantization import Quantize

CODE = "quantized-kernel"

_DOES: Mapping[str, str] = {OK: "takes", WRONG: "computes nonsense from", REFUSED: "refuses", CRASHES: "crashes on"}
_DO: Mapping[str, str] = {OK: "take", WRONG: "compute nonsense from", REFUSED: "refuse", CRASHES: "crash on"}

_OF_FILE = "it is so in the file that was read: quantize the float model again, or leave the operator float there"

_FORM = re.compile(r"([a-z]+\d+)(?:(w)|c(\d+)|b(\d+))?")

# The mistake if a condition does not hold.
_LACKS: Mapping[str, str] = {
    "same": "the scales and zero points are not all equal",
    "centred": "a zero point is not 0",
    "adjoint": "the scales go along the wrong axis",
}

# The mistake if a condition holds.
_HAS: Mapping[str, str] = {
    "offset": "a constant's zero point is not 0",
    "other-bias": "the bias's scale is not that of the operand times that of the weights",
    "unbiased": "a gate has no bias",
    "grouped": "the convolution is in groups",
    "powers": "all scales are powers of two and `pot_scale_int16` is set",
    "adjoint": "the scales go along the wrong axis",
}


@dataclass(frozen=True, slots=True)
class VerifyQuantized:
    """Checks that LiteRT's kernels compute the quantized ops correctly."""

    quantize: Quantize | None = None  # How the module was quantized; `None` if it was not.
    name: ClassVar[str] = "verify-quantized"

    def apply(self, module: ModuleOp) -> PassResult:
        """Checks all functions.

        Raises:
            ConversionError: The runtime would reject an op or compute it incorrectly (`quantized-kernel`).
        """
        is_of_file = self.quantize is None and tfl_file.is_image(module)
        problems = []
        for op in module.walk():
            if isinstance(op, tfl.TFLOp) and op.op_name not in tfl.BESIDE and _is_concerned(op):
                problem = _problem(op, is_of_file)
                if problem is not None:
                    problems.append(problem)
        if is_of_file:
            return PassResult(Counter(), problems)
        if problems:
            raise ConversionError(problems)
        return NOTHING_DONE


def _is_concerned(op: tfl.TFLOp) -> bool:
    """Returns whether an op has quantized operands or results, or floats of two widths."""
    elements = {value.element for value in (*op.operands, *op.results)}
    return any(isinstance(element, UniformType | BlockedType) for element in elements) or (
        types.F16 in elements and types.F32 in elements
    )


def _problem(op: tfl.TFLOp, is_of_file: bool) -> Diagnostic | None:
    operator, call = op.op_name.upper(), call_of(op)
    outcome = kernels.outcome(operator, call)
    if outcome is None or outcome.is_ok or (is_of_file and outcome.builtin != WRONG):
        return None
    message, reason = _does(outcome, _forms(kernels.signature(operator, call))), _reason(operator, call, outcome)
    message = f"{message}: {reason}" if reason else message
    if is_of_file:
        return found_at(op, CODE, message, _OF_FILE)._replace(severity=WARNING)
    return found_at(op, CODE, message, _hint(op))


def _forms(signature: str) -> str:
    """Returns a signature in words."""
    sides = signature.partition(">")[::2]
    return " -> ".join(", ".join(map(_words, side.split(","))) for side in sides if side)


def _words(form: str) -> str:
    found = _FORM.fullmatch(form)
    if found is None:
        return form
    kind, is_constant, axis, size = found.groups()
    if axis is not None:
        return f"{kind} with scales along axis {axis}"
    return f"constant {kind}" if is_constant else f"{kind} with scales for blocks of {size}" if size else kind


def _does(outcome: Outcome, forms: str) -> str:
    """Returns what the runtime does, in words."""
    if outcome.builtin == outcome.xnnpack:
        return f"LiteRT {_DOES[outcome.builtin]} {forms}"
    return f"LiteRT's own kernels {_DO[outcome.builtin]} {forms}, and XNNPACK {_DOES[outcome.xnnpack]} it"


def _reason(operator: str, call: Call, outcome: Outcome) -> str:
    """Returns why a kernel fails on these values of supported types; empty if the types aren't supported."""
    missing = kernels.required(operator, call)
    reasons = [text for word, text in _HAS.items() if word in outcome.conditions]
    reasons += [text for word, text in _LACKS.items() if word in missing and not reasons]
    fixed = kernels.fixed_result(operator, call.result(0).type)
    if "fixed" in missing and fixed is not None:
        reasons.append(f"the result's scale must be {fixed[0]!r} and its zero point {fixed[1]}")
    return " and ".join(dict.fromkeys(reasons))


def _hint(op: tfl.TFLOp) -> str:
    pattern = node_of(op.location) or op.op_name.upper()
    return f"let it stay float, with tfconvert.Quantize(..., exclude=[{pattern!r}]), or choose another mode"
