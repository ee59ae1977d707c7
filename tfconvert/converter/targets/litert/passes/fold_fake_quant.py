"""Pass `fold-fake-quant`: fake quantization of constants is computed when the file is written.

Before:

    func.func @main(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<[0.26, 3.0]> : tensor<2xf32>}> : () -> tensor<2xf32>
      %1 = "tfl.fake_quant"(%0) <{min = -1.0 : f32, max = 1.0 : f32, num_bits = 3 : i32, narrow_range = true}>
          : (tensor<2xf32>) -> tensor<2xf32>
      %2 = "tfl.quantize"(%1) : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8<-127:127>:f32:0, {0.25,0.5}>>
      %3 = "tfl.dequantize"(%2) : (tensor<2x!quant.uniform<i8<-127:127>:f32:0, {0.25,0.5}>>) -> tensor<2xf32>
      %4 = "tfl.mul"(%x, %3) <{fused_activation_function = "NONE"}>
          : (tensor<1x2xf32>, tensor<2xf32>) -> tensor<1x2xf32>
      %5 = "tfl.fake_quant"(%4) <{min = -16.0 : f32, max = 15.875 : f32, num_bits = 8 : i32, narrow_range = false}>
          : (tensor<1x2xf32>) -> tensor<1x2xf32>
      func.return %5 : tensor<1x2xf32>
    }

After:

    func.func @main(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<[0.25, 1.0]> : tensor<2xf32>}> : () -> tensor<2xf32>
      %1 = "tfl.mul"(%x, %0) <{fused_activation_function = "NONE"}>
          : (tensor<1x2xf32>, tensor<2xf32>) -> tensor<1x2xf32>
      %2 = "tfl.fake_quant"(%1) <{min = -16.0 : f32, max = 15.875 : f32, num_bits = 8 : i32, narrow_range = false}>
          : (tensor<1x2xf32>) -> tensor<1x2xf32>
      func.return %2 : tensor<1x2xf32>
    }

Fake quantization of anything else stays, so that the model computes with floats what it computed with them in training.
LiteRT refuses narrow ranges there. Such a one is a whole range that begins a step lower, of what is cut off before.

Before:

    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tfl.fake_quant"(%x) <{min = -1.5 : f32, max = 1.5 : f32, num_bits = 3 : i32, narrow_range = true}>
          : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }

After:

    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<-1.5> : tensor<f32>}> : () -> tensor<f32>
      %1 = "tfl.maximum"(%x, %0) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
      %2 = "tfl.fake_quant"(%1) <{min = -2.0 : f32, max = 1.5 : f32, num_bits = 3 : i32, narrow_range = false}>
          : (tensor<2xf32>) -> tensor<2xf32>
      func.return %2 : tensor<2xf32>
    }

LiteRT multiplies by the inverse of the scale, TensorFlow by a number that is rounded once. They differ in the last bit,
which is a whole step for a number halfway between two. So ranges are changed by as much, where that makes them round
alike.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tfconvert.converter.ir.edit import replace_op
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.rewrite.rewriter import fuse_origins
from tfconvert.converter.targets.litert import fake_quant
from tfconvert.ops.fake_quant import nudged
from tfconvert.schema.diagnostics import NOTE, Diagnostic
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value
from tfconvert.settings.quantization import Quantize

KEPT = "fake-quant-kept"
"""Code of the note that a model was trained to be quantized and isn't."""


@dataclass(frozen=True, slots=True)
class FoldFakeQuant:
    """Folds fake quantization into constants."""

    quantize: Quantize | None = None  # How the model was quantized.
    name: ClassVar[str] = "fold-fake-quant"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of rounded constants, and a note if operators remain."""
        folded = kept = 0
        for function in module.ops:
            if isinstance(function, FuncOp):
                for op in list(function.walk()):
                    if op.name in fake_quant.LAST and _fold(op):
                        folded += 1
                    elif op.name == fake_quant.FAKE_QUANT:
                        _adapt(op)
                        kept += 1
        return PassResult(Counter({"folded": folded} if folded else {}), [self._note(kept)] if kept else ())

    def _note(self, count: int) -> Diagnostic:
        times = "once" if count == 1 else f"{count} times"
        hint = 'pass quantize="int8" (`--quantize int8`) for integers, which are smaller and faster'
        if self.quantize is not None and self.quantize.is_static:
            hint = "leave `trained_only` (--trained-only) out for integers there, too"
        return Diagnostic(
            KEPT,
            f"the model was trained to be quantized; its file computes with floats and rounds them {times}, as in "
            "training, but for numbers halfway between two that it may round to",
            op="tfl.fake_quant",
            hint=hint,
            severity=NOTE,
        )


def _fold(op: Operation) -> bool:
    """Replaces a fake-quantized constant; returns whether it was one."""
    value = op.results[0]
    constant = fake_quant.constant_behind(value) if fake_quant.source_of(value) is not None else None
    block = op.parent
    if constant is None or block is None or types.element_of(constant.type) != types.F32:
        return False
    source = fake_quant.source_of(value)
    folded = tfl.constant(_rounded(value, constant), fuse_origins([source]))
    block.insert_op_before(folded, op)
    operands = list(op.operands)
    replace_op(op, folded.results[0])
    for operand in operands:
        _erase_unused(operand)
    return True


def _rounded(value: Value, constant: Constant) -> Constant:
    uniform = fake_quant.uniform_of(value)
    scales = tensor_data.of_array(np.array(uniform.scales, np.float32))
    zero_points = tensor_data.of_array(np.array(uniform.zero_points, np.int32))
    return tensor_data.defer(
        "fake_quant", (constant, scales, zero_points), constant.type.shape, (uniform.axis, *uniform.range)
    )


def _erase_unused(value: Value) -> None:
    while value.is_unused and isinstance(value, OpResult):
        op, operands = value.op, list(value.op.operands)
        op.erase()
        if not operands:
            return
        (value,) = operands


def _adapt(op: Operation) -> None:
    """Adapts the operator's range so that LiteRT's results equal TensorFlow's."""
    minimum, maximum = (np.array(tfl.attribute(op, name), np.float32) for name in ("min", "max"))
    bits, narrow = tfl.attribute(op, "num_bits"), bool(tfl.attribute(op, "narrow_range"))
    with np.errstate(all="ignore"):
        steps = nudged(minimum, maximum, bits, narrow)
        if not (steps.scale > 0 and np.isfinite(steps.inverse)):
            return
        near = (steps.scale, np.nextafter(steps.scale, np.float32(0)), np.nextafter(steps.scale, np.float32(1e30)))
        same = [each for each in near if np.float32(1) / each == steps.inverse]
        # Halves are rounded up, so the inverse may be too large, but not too small.
        scale = next(iter([*same, *(each for each in near if np.float32(1) / each > steps.inverse)]), steps.scale)
        bottom, top = (np.asarray((np.float32(end) - steps.zero_point) * scale) for end in (0, steps.high))
        again = nudged(bottom, top, bits, False)
    is_better = scale != steps.scale and again.scale == scale and again.zero_point == steps.zero_point
    if narrow:
        insert = TFLBuilder(op)
        lowest = insert.constant(np.asarray((np.float32(1) - steps.zero_point) * scale))
        op.set_operand(0, insert.tfl("maximum", (op.operands[0], lowest), op.operands[0].type))
    if narrow or is_better:
        options = {"min": float(bottom), "max": float(top), "num_bits": bits, "narrow_range": False}
        op.properties.update(tfl.build("fake_quant", op.operands, [op.results[0].type], options).properties)
