"""Colours: contrast, and the space of hue, saturation and value."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite
from tfconvert.converter.targets.stablehlo.legalize.expressions import Expression
from tfconvert.converter.targets.stablehlo.legalize.reductions import kept
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, part
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _wide(emit: StableHLOBuilder, value: Value) -> Value:
    is_half = types.element_of(value.type) in (types.F16, types.BF16)
    return emit.convert(value, types.F32) if is_half else value


def _contrast(op: Operation, emit: StableHLOBuilder) -> Value:
    """Moves pixels away from, or towards, the mean of their image and channel."""
    images, factor = _wide(emit, op.operands[0]), op.operands[1]
    dims = emit.dims(images)
    axes = (len(dims) - 3, len(dims) - 2)
    element = types.element_of(images.type)
    pixels = emit.convert(emit.value(emit.product([dims[axis] for axis in axes])), element)
    total = emit.reduce("add", images, axes, 0)
    mean = kept(emit, emit.binary("divide", total, pixels), dims, axes)
    spread = emit.binary("multiply", emit.binary("subtract", images, mean), emit.convert(factor, element))
    return emit.convert(emit.binary("add", spread, mean), types.element_of(op.results[0].type))


def _channels(emit: StableHLOBuilder, value: Value) -> list[Expression]:
    last = len(emit.dims(value)) - 1
    wide = _wide(emit, value)
    return [Expression(emit, part(emit, wide, last, index, index + 1)) for index in range(3)]


def _image(emit: StableHLOBuilder, op: Operation, channels: list[Expression]) -> Value:
    values = [channel.value for channel in channels]
    joined = concatenate(emit, values, len(emit.dims(values[0])) - 1)
    return emit.convert(joined, types.element_of(op.results[0].type))


def _to_hsv(channels: list[Expression]) -> list[Expression]:
    red, green, blue = channels
    value = red.maximum(green).maximum(blue)
    span = value - red.minimum(green).minimum(blue)
    saturation = (span / value).where(value.compare("GT", 0), 0)
    sixth = 1 / (span * 6)
    hue = (sixth * (blue - red) + 2 / 6).where(green.compare("EQ", value), sixth * (red - green) + 4 / 6)
    hue = (sixth * (green - blue)).where(red.compare("EQ", value), hue)
    hue = hue.where(span.compare("GT", 0), 0)
    return [(hue + 1).where(hue.compare("LT", 0), hue), saturation, value]


def _to_rgb(channels: list[Expression]) -> list[Expression]:
    hue, saturation, value = channels
    at = hue * 6
    ramps = (abs(at - 3) - 1, 2 - abs(at - 2), 2 - abs(at - 4))
    return [((1 - saturation) + saturation * ramp.maximum(0).minimum(1)) * value for ramp in ramps]


def _rgb_to_hsv(op: Operation, emit: StableHLOBuilder) -> Value:
    return _image(emit, op, _to_hsv(_channels(emit, op.operands[0])))


def _hsv_to_rgb(op: Operation, emit: StableHLOBuilder) -> Value:
    return _image(emit, op, _to_rgb(_channels(emit, op.operands[0])))


def _adjusted_hue(op: Operation, emit: StableHLOBuilder) -> Value:
    hue, saturation, value = _to_hsv(_channels(emit, op.operands[0]))
    turned = hue + Expression(emit, emit.convert(op.operands[1], types.element_of(hue.value.type)))
    return _image(emit, op, _to_rgb([turned - turned.apply("floor"), saturation, value]))


def _adjusted_saturation(op: Operation, emit: StableHLOBuilder) -> Value:
    hue, saturation, value = _to_hsv(_channels(emit, op.operands[0]))
    scale = Expression(emit, emit.convert(op.operands[1], types.element_of(hue.value.type)))
    return _image(emit, op, _to_rgb([hue, (saturation * scale).maximum(0).minimum(1), value]))


LOWERINGS: Mapping[str, Rewrite] = {
    "AdjustContrastv2": _contrast,
    "AdjustHue": _adjusted_hue,
    "AdjustSaturation": _adjusted_saturation,
    "HSVToRGB": _hsv_to_rgb,
    "RGBToHSV": _rgb_to_hsv,
}
