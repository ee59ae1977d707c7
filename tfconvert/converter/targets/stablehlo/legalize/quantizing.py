"""Fake quantization: rounds numbers to those that integers of few bits can represent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite, number
from tfconvert.converter.targets.stablehlo.legalize.expressions import Expression
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.ops.fake_quant import HALF_UP, limits
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _float(op: Operation, name: str, default: float) -> float:
    return float(getattr(op.properties.get(name), "value", default))


def _fake_quant(op: Operation, emit: StableHLOBuilder) -> Value:
    """Shifts the range so that 0 is one of the numbers, and rounds to the nearest of them."""
    value = op.operands[0]
    if op.name == "tf.FakeQuantWithMinMaxArgs":
        ends = [
            Expression(emit, np.full((), _float(op, name, default), np.float32))
            for name, default in (("min", -6.0), ("max", 6.0))
        ]
    else:
        ends = [Expression(emit, operand) for operand in op.operands[1:3]]
    low, high = int(bool(tf.get(op, "narrow_range", False))), 2 ** int(tf.get(op, "num_bits", 8)) - 1
    minimum, maximum = ends
    is_used = ~(minimum.equal(0) & maximum.equal(0))
    span = maximum - minimum
    scale, inverse = span / (high - low), (high - low) / span
    zero = ((low - minimum / scale) + 0.5).floor().maximum(low).minimum(high)
    zero, inverse = (is_used.where(each, other) for each, other in ((zero, float(low)), (inverse, 1.0)))
    scale = is_used.where(scale, 0)
    bottom, top = (low - zero) * scale, (high - zero) * scale
    start = (bottom * -1 * inverse + 0.5).floor()
    clamped = Expression(emit, value).minimum(top).maximum(bottom)
    rounded = ((clamped - bottom) * inverse - start + 0.5).floor() * scale
    result = is_used.where(rounded, 0).value
    return emit.broadcast(result, emit.dims(value))


def _bits(op: Operation) -> int:
    return int(number(op, 3, "the number of bits")) if op.name.endswith("V3") else int(tf.get(op, "num_bits", 8))


def _quantize_and_dequantize(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    dims, element = emit.dims(value), value.element
    if element != types.F32:
        raise Declined(f"its numbers are of {element}")
    axis = int(tf.get(op, "axis", -1))
    if axis < 0:
        return _in_range(emit, op, value, range(len(dims)))
    # Channels with separate ranges become the last dimension.
    order = [*(at for at in range(len(dims)) if at != axis), axis]
    found = _in_range(emit, op, emit.transpose(value, order), range(len(dims) - 1))
    return emit.transpose(found, [order.index(at) for at in range(len(dims))])


def _in_range(emit: StableHLOBuilder, op: Operation, value: Value, axes: Sequence[int]) -> Value:
    """Rounds to the numbers that integers represent, in the given range or in that of the values along axes."""
    is_given = bool(tf.get(op, "range_given", True))
    if is_given:
        ends = list(op.operands[1:3])
    else:
        extremes = (("minimum", float("inf")), ("maximum", float("-inf")))
        ends = [emit.reduce(name, value, axes, start) for name, start in extremes]
    minimum, maximum = (Expression(emit, end) for end in ends)
    low, high = limits(bool(tf.get(op, "signed_input", True)), _bits(op), bool(tf.get(op, "narrow_range", False)))
    largest = float(np.finfo(np.float32).max)
    from_minimum = (minimum * low > 0).where(low / minimum, largest)
    from_maximum = (maximum * high > 0).where(high / maximum, largest)
    by_minimum = from_minimum < from_maximum
    # Where the smallest integer is 0, the largest one decides.
    scale = by_minimum.where(minimum / low, maximum / high) if low else maximum / high
    factor = by_minimum.where(from_minimum, from_maximum)
    x = Expression(emit, value)
    if is_given:
        x = x.minimum(by_minimum.where(scale * high, maximum)).maximum(by_minimum.where(minimum, scale * low))
    scaled = x * factor
    is_up = tf.get(op, "round_mode", "HALF_TO_EVEN") == HALF_UP
    rounded = (scaled + 0.5).floor() if is_up else scaled.round()
    return (rounded * scale).value


LOWERINGS: Mapping[str, Rewrite] = {
    "FakeQuantWithMinMaxArgs": _fake_quant,
    "FakeQuantWithMinMaxVars": _fake_quant,
    "FakeQuantWithMinMaxVarsPerChannel": _fake_quant,
    "QuantizeAndDequantizeV2": _quantize_and_dequantize,
    "QuantizeAndDequantizeV3": _quantize_and_dequantize,
    "QuantizeAndDequantizeV4": _quantize_and_dequantize,
}
