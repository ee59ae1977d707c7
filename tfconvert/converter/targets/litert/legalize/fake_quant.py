"""Fake quantization, as in models that are trained to run on integers.

One range for all is a `tfl.fake_quant`. Where each slice of an axis has its own, a constant is quantized and
dequantized again, and anything else rounded by arithmetic: no kernel computes on activations of that kind. So are
values with ranges that are computed, or that TensorFlow takes from the values of each run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.ir.extent import extent
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.targets.litert import fake_quant
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.ops.fake_quant import HALF_UP, MAX_BITS, limits, scaled
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


def _rounded(emit: LiteRTBuilder, x: Value, factor: Value, scale: Value, half_up: bool) -> Value:
    """Rounds to multiples of a scale; `factor` is its inverse."""
    product = emit.binary("Mul", x, factor)
    whole = emit.unary("Floor", emit.binary("AddV2", product, 0.5)) if half_up else emit.unary("Round", product)
    return emit.binary("Mul", whole, scale)


def _clamped(emit: LiteRTBuilder, x: Value, minimum: Array, maximum: Array) -> Value:
    return emit.binary("Maximum", emit.binary("Minimum", x, emit.constant(maximum)), emit.constant(minimum))


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


def _aligned(values: Array, rank: int, axis: int) -> Array:
    """Returns a vector so that it broadcasts along an axis; one number is a scalar."""
    return values.reshape(()) if axis < 0 else values.reshape([-1 if at == axis else 1 for at in range(rank)])


def _ranges_are_known(op: Operation) -> Failure | None:
    bits = tf.get(op, "num_bits", 8)
    if not 2 <= bits <= MAX_BITS:
        return Failure(f"num_bits is {bits}, not 2 to {MAX_BITS}")
    ends = _ends(op)
    if ends is None:
        return Failure("its range is not a constant")
    minimum, maximum = ends
    if not (
        np.isfinite(minimum) & np.isfinite(maximum) & ((minimum < maximum) | ((minimum == 0) & (maximum == 0)))
    ).all():
        return Failure("its range is empty or not finite")
    shape = op.operands[0].shape
    if op.name != _PER_CHANNEL:
        return Failure("there are several ranges") if minimum.size != 1 or maximum.size != 1 else None
    fits = shape is not None and len(shape) > 0 and minimum.size == maximum.size == shape[-1]
    return None if fits else Failure("there isn't one range for each slice of the last dimension")


def _fake_quant(op: Operation, emit: LiteRTBuilder) -> Value:
    ends = _ends(op)
    assert ends is not None, "checked by the constraint"
    minimum, maximum = ends
    bits, narrow = tf.get(op, "num_bits", 8), bool(tf.get(op, "narrow_range", False))
    if minimum.size == 1:
        is_zero = minimum[0] == maximum[0]
        return _zeros(op, emit) if is_zero else _builtin(emit, op, minimum[0], maximum[0], bits, narrow)
    scales, zeros = fake_quant.steps(minimum, maximum, bits, narrow)
    if tensor_data.constant_of(op.operands[0]) is not None:
        axis = len(op.operands[0].shape or ()) - 1
        return _pair(emit, op, scales, zeros, bits, narrow, axis)
    bottom, top = ((np.float32(end) - zeros) * scales for end in (int(narrow), 2**bits - 1))
    with np.errstate(all="ignore"):
        factor = np.where(scales > 0, np.float32(2**bits - 1 - narrow) / (maximum - minimum), np.float32(0))
    x = _clamped(emit, op.operands[0], bottom, top)
    return _rounded(emit, x, emit.constant(factor), emit.constant(scales), True)


def _range_is_computed(op: Operation) -> Failure | None:
    bits = tf.get(op, "num_bits", 8)
    if not 2 <= bits <= MAX_BITS:
        return Failure(f"num_bits is {bits}, not 2 to {MAX_BITS}")
    if _ends(op) is not None:
        return Failure("its range is a constant", is_special=True)
    shapes = [operand.shape for operand in op.operands]
    wanted = () if op.name != _PER_CHANNEL else None if not shapes[0] else shapes[0][-1:]
    fits = wanted is not None and shapes[1] is not None and len(shapes[1]) == len(wanted) and shapes[1] == shapes[2]
    return None if fits else Failure("there isn't one range for all, or one for each slice of the last dimension")


def _by_computed_range(op: Operation, emit: LiteRTBuilder) -> Value:
    """Rounds with a scale and a zero that are computed from the range as TensorFlow nudges it."""
    x, minimum, maximum = op.operands
    low, high = int(bool(tf.get(op, "narrow_range", False))), 2 ** tf.get(op, "num_bits", 8) - 1
    span = emit.binary("Sub", maximum, minimum)
    scale = emit.binary("RealDiv", span, high - low)
    ratio = emit.binary("DivNoNan", minimum, scale)
    zero = emit.unary("Floor", emit.binary("AddV2", emit.binary("Sub", low, ratio), 0.5))
    zero = emit.binary("Maximum", emit.binary("Minimum", zero, high), low)
    bottom, top = (emit.binary("Mul", emit.binary("Sub", end, zero), scale) for end in (low, high))
    x = emit.binary("Maximum", emit.binary("Minimum", x, top), bottom)
    return _rounded(emit, x, emit.binary("DivNoNan", high - low, span), scale, True)


class _Settings(NamedTuple):
    """The settings of `QuantizeAndDequantize*`."""

    signed: bool  # Whether integers are signed.
    bits: int  # Bits of an integer.
    narrow: bool  # Whether the lowest of the signed integers isn't used.
    axis: int  # The axis along which there are ranges, -1 if there is one for all.
    given: bool  # Whether the op has the range; else it is that of the values.
    half_up: bool  # Whether halves are rounded up; else to even numbers.

    @property
    def integers(self) -> tuple[int, int]:
        """The smallest and the largest integer."""
        return limits(self.signed, self.bits, self.narrow)


def _settings(op: Operation) -> _Settings | None:
    """Returns an op's settings, `None` if the number of bits is computed."""
    is_third = op.name == "tf.QuantizeAndDequantizeV3"
    signed, bits = bool(tf.get(op, "signed_input", True)), tf.get(op, "num_bits", 8)
    if is_third:
        constant = tensor_data.constant_of(op.operands[3])
        if constant is None:
            return None
        bits = int(tensor_data.to_array(constant).reshape(-1)[0])
    narrow, axis = signed and bool(tf.get(op, "narrow_range", False)), tf.get(op, "axis", -1)
    half_up = str(tf.get(op, "round_mode", "HALF_TO_EVEN")) == HALF_UP
    return _Settings(signed, bits, narrow, axis, bool(tf.get(op, "range_given", is_third)), half_up)


def _settings_are_known(op: Operation) -> Failure | None:
    settings = _settings(op)
    if settings is None:
        return Failure("the number of bits is not a constant")
    if not 1 + settings.signed <= settings.bits <= MAX_BITS:
        return Failure(f"num_bits is {settings.bits}, not {1 + settings.signed} to {MAX_BITS}")
    shape = op.operands[0].shape
    if settings.axis >= 0 and (shape is None or settings.axis >= len(shape)):
        return Failure("the dimension that has several ranges is not known")
    if not settings.given:
        return None if shape is not None else Failure("the operand's rank is not known")
    ends = _ends(op)
    if ends is None:
        return Failure("its range is not a constant")
    if not all(np.isfinite(end).all() for end in ends):
        return Failure("its range is not finite")
    counts = {end.size for end in ends}
    fits = counts == {1} if settings.axis < 0 else len(counts) == 1 and counts <= {(shape or ())[settings.axis]}
    return None if fits else Failure("there isn't one range for each slice")


def _quantize_and_dequantize(op: Operation, emit: LiteRTBuilder) -> Value:
    settings = _settings(op)
    assert settings is not None, "checked by the constraint"
    constant = tensor_data.constant_of(op.operands[0])
    ends = _ends(op) if settings.given else None if constant is None else _extent(constant, settings.axis)
    if ends is None:
        return _by_own_range(emit, op, settings)
    with np.errstate(all="ignore"):
        factor, scale, minimum, maximum = scaled(*ends, settings.integers)
    # A range without a number of the right sign leaves nothing but zeros.
    scale = np.where(scale > 0, scale, np.float32(0))
    is_clamped = settings.given or settings.signed or bool((ends[0] >= 0).all())
    if is_clamped and settings.axis < 0 and settings.bits > 1:
        if not scale[0]:
            return _zeros(op, emit)
        return _builtin(emit, op, minimum[0], maximum[0], settings.bits, settings.narrow)
    if is_clamped and constant is not None and settings.bits > 1:
        zero = 2 ** (settings.bits - 1) if settings.signed else 0
        zeros = np.full(scale.shape, zero, np.float32)
        return _pair(emit, op, scale, zeros, settings.bits, settings.narrow, settings.axis)
    rank = len(op.operands[0].shape or ())
    parts = (np.where(scale > 0, factor, np.float32(0)), scale, minimum, maximum)
    factor, scale, minimum, maximum = (_aligned(part, rank, settings.axis) for part in parts)
    x = _clamped(emit, op.operands[0], minimum, maximum) if settings.given else op.operands[0]
    return _rounded(emit, x, emit.constant(factor), emit.constant(scale), settings.half_up)


def _by_own_range(emit: LiteRTBuilder, op: Operation, settings: _Settings) -> Value:
    """Rounds with scales that are computed from the values."""
    x, (low, high) = op.operands[0], settings.integers
    axes = [at for at in range(len(x.shape or ())) if at != settings.axis]
    scale = emit.binary("Mul", emit.reduce("Max", x, axes, keep_dims=True), 1 / high)
    if low:
        scale = emit.binary("Maximum", scale, emit.binary("Mul", emit.reduce("Min", x, axes, keep_dims=True), 1 / low))
    factor = emit.binary("DivNoNan", emit.tf("OnesLike", (scale,), scale.type), scale)
    return _rounded(emit, x, factor, scale, settings.half_up)


_FAKE_QUANT = ("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
_AND_BACK = ("QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")

ENTRIES: tuple[Entry, ...] = (
    *(Lowering(op, "fake_quant", _fake_quant, "f32", _ranges_are_known) for op in _FAKE_QUANT[:2]),
    Lowering(_FAKE_QUANT[2], "quantize dequantize", _fake_quant, "f32", _ranges_are_known),
    *(
        Lowering(op, "Sub Floor Mul", _by_computed_range, "f32", _range_is_computed, benefit=0)
        for op in _FAKE_QUANT[1:]
    ),
    *(Lowering(op, "fake_quant", _quantize_and_dequantize, "f32", _settings_are_known) for op in _AND_BACK),
)

# Before anything else is legalized, since filters have to be constants.
PATTERNS: tuple[Pattern[Any], ...] = tuple(entry.pattern() for entry in ENTRIES)
