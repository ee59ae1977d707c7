"""Fake quantization, as in models that are trained to run on integers.

One range for all is a `tfl.fake_quant`. Where each slice of an axis has its own, a constant is quantized and
dequantized again. Anything else is rounded by arithmetic, the ops' decomposition: activations of which each slice has
its range, and values with ranges that are computed, or that TensorFlow takes from the values of each run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.ir.extent import extent
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.targets.litert import fake_quant
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.ops.fake_quant import Settings, is_range, range_fits, scaled, settings_fit, settings_of
from tfconvert.schema.dialects import tensor_data, tf
from tfconvert.schema.dialects.tensor_data import Array, Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_PER_CHANNEL = "tf.FakeQuantWithMinMaxVarsPerChannel"
_IN_ATTRIBUTES = {"tf.FakeQuantWithMinMaxArgs": ("min", "max"), "tf.QuantizeAndDequantize": ("input_min", "input_max")}
_DEFAULTS = {"min": -6.0, "max": 6.0, "input_min": 0.0, "input_max": 0.0}


def _ends(op: Operation) -> tuple[Array, Array] | None:
    """Returns the minima and maxima of an op's ranges, scalars or vectors; `None` if they're computed."""
    names = _IN_ATTRIBUTES.get(op.name)
    if names is not None:
        ends = [np.array([tf.get(op, name, _DEFAULTS[name])], np.float32) for name in names]
        return ends[0], ends[1]
    first, second = (tensor_data.constant_of(operand) for operand in op.operands[1:3])
    if first is None or second is None:
        return None
    return tensor_data.to_array(first).reshape(-1), tensor_data.to_array(second).reshape(-1)


def _zeros(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.tf("ZerosLike", (op.operands[0],), op.results[0].type)


def _builtin(emit: LiteRTBuilder, op: Operation, minimum: Any, maximum: Any, bits: int, narrow: bool) -> Value:
    options = {"min": float(minimum), "max": float(maximum), "num_bits": bits, "narrow_range": narrow}
    return emit.tfl("fake_quant", (op.operands[0],), op.results[0].type, options)


def _pair(emit: LiteRTBuilder, op: Operation, scales: Array, zeros: Array, bits: int, narrow: bool, axis: int) -> Value:
    """Quantizes and dequantizes a constant; a slice of zeros has any scale."""
    constant = tensor_data.constant_of(op.operands[0])
    assert constant is not None, "the constant was looked at"
    if not scales.all():
        low, high = _extent(constant, axis)
        scales = np.where((scales == 0) & (low == 0) & (high == 0), np.float32(1), scales)
    uniform = fake_quant.stored_uniform(scales, zeros, bits, narrow, axis)
    return fake_quant.pair(emit.insert, op.operands[0], uniform)


def _extent(constant: Constant, axis: int) -> tuple[Array, Array]:
    """Returns the minimum and maximum of each slice of an axis, or of all elements if it is -1."""
    found = extent(constant, None if axis < 0 else axis)
    return found.low, found.high


_BY_ARITHMETIC = "its numbers are rounded by arithmetic"


def _is_operator(op: Operation) -> Failure | None:
    """Returns why an op is no operator: it can't be converted, or is arithmetic with the numbers."""
    reason = range_fits(op)
    if reason is not None:
        return Failure(reason)
    ends = _ends(op)
    if ends is None or not is_range(*ends):
        return Failure("its range is not a constant", is_special=True)
    is_constant = tensor_data.constant_of(op.operands[0]) is not None
    return None if op.name != _PER_CHANNEL or is_constant else Failure(_BY_ARITHMETIC, is_special=True)


def _fake_quant(op: Operation, emit: LiteRTBuilder) -> Value:
    ends = _ends(op)
    assert ends is not None, "checked by the constraint"
    minimum, maximum = ends
    bits, narrow = tf.get(op, "num_bits", 8), bool(tf.get(op, "narrow_range", False))
    if op.name != _PER_CHANNEL:
        is_zero = minimum[0] == maximum[0]
        return _zeros(op, emit) if is_zero else _builtin(emit, op, minimum[0], maximum[0], bits, narrow)
    scales, zeros = fake_quant.steps(minimum, maximum, bits, narrow)
    return _pair(emit, op, scales, zeros, bits, narrow, len(op.operands[0].shape or ()) - 1)


class _Rounding(NamedTuple):
    """How `QuantizeAndDequantize*` rounds, where that is known."""

    settings: Settings
    scale: Array
    minimum: Array
    maximum: Array


def _rounding(op: Operation) -> _Rounding | None:
    """Returns how an op rounds; `None` if arithmetic does so."""
    settings, constant = settings_of(op), tensor_data.constant_of(op.operands[0])
    ends = _ends(op) if settings.given else None if constant is None else _extent(constant, settings.axis)
    if ends is None or settings.bits == 1:
        return None
    is_clamped = settings.given or settings.signed or bool((ends[0] >= 0).all())
    if not is_clamped or (settings.axis >= 0 and constant is None):
        return None
    with np.errstate(all="ignore"):
        _, scale, minimum, maximum = scaled(*ends, settings.integers)
    # A range without a number of the right sign leaves nothing but zeros.
    return _Rounding(settings, np.where(scale > 0, scale, np.float32(0)), minimum, maximum)


def _is_rounded_and_back(op: Operation) -> Failure | None:
    reason = settings_fit(op)
    if reason is not None:
        return Failure(reason)
    return None if _rounding(op) is not None else Failure(_BY_ARITHMETIC, is_special=True)


def _quantize_and_dequantize(op: Operation, emit: LiteRTBuilder) -> Value:
    found = _rounding(op)
    assert found is not None, "checked by the constraint"
    settings, scale = found.settings, found.scale
    if settings.axis >= 0:
        zeros = np.full(scale.shape, 2 ** (settings.bits - 1) if settings.signed else 0, np.float32)
        return _pair(emit, op, scale, zeros, settings.bits, settings.narrow, settings.axis)
    if not scale[0]:
        return _zeros(op, emit)
    return _builtin(emit, op, found.minimum[0], found.maximum[0], settings.bits, settings.narrow)


_FAKE_QUANT = ("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
_AND_BACK = ("QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")

ENTRIES: tuple[Entry, ...] = (
    *(Lowering(op, "fake_quant", _fake_quant, "f32", _is_operator) for op in _FAKE_QUANT[:2]),
    Lowering(_FAKE_QUANT[2], "quantize dequantize", _fake_quant, "f32", _is_operator),
    *(Lowering(op, "fake_quant", _quantize_and_dequantize, "f32", _is_rounded_and_back) for op in _AND_BACK),
)

# Before anything else is legalized, since filters have to be constants.
PATTERNS: tuple[Pattern[Any], ...] = tuple(entry.pattern() for entry in ENTRIES)
