"""Moves layout changes of fake-quantized constants before the fake quantization, where they are free.

    transpose(fake_quant(w), p)  ->  fake_quant(transpose(w, p))
    reshape(fake_quant(w), s)    ->  fake_quant(reshape(w, s))

The same holds for `dequantize(quantize(w))`, whose axis is renumbered.
"""

from __future__ import annotations

from tfconvert.converter.rewrite.pattern import Pattern, need, required
from tfconvert.converter.targets.litert import fake_quant
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import static_shape
from tfconvert.converter.targets.litert.optimize import transposes
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _fake_quantized(op: Operation) -> Value:
    value = op.operands[0]
    is_constant = fake_quant.source_of(value) is not None and fake_quant.constant_behind(value) is not None
    need(is_constant, "it isn't about a fake-quantized constant")
    return value


def _transposed(op: Operation) -> Emit:
    permutation = required(transposes.permutation_of(op), "the permutation is computed")
    value = _fake_quantized(op)
    return lambda build: fake_quant.transposed(build.insert, value, permutation)


def _reshaped(op: Operation) -> Emit:
    value, shape = _fake_quantized(op), static_shape(op.results[0])
    need(fake_quant.can_reshape(value, shape), "no dimension has slices with one range")
    return lambda build: fake_quant.reshaped(build.insert, value, shape)


NEEDS = "dequantize fake_quant"
"""The operators without any of which no pattern matches."""

PATTERNS: tuple[Pattern[Emit], ...] = tuple(
    planned(f"{name}-below-fake-quant", name, plan, benefit=15, depth=3, producers={0: fake_quant.LAST})
    for name, plan in (("transpose", _transposed), ("reshape", _reshaped))
)
