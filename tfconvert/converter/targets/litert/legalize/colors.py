"""Colours: contrast, and the space of hue, saturation and value."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering, rank_is_known
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder, Operand
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_FLOAT = "f32"


def _contrast(op: Operation, emit: LiteRTBuilder) -> Value:
    """Moves pixels away from, or towards, the mean of their image and channel."""
    images, factor = op.operands
    rank = len(types.shape_of(images.type) or ())
    mean = emit.reduce("Mean", images, (rank - 3, rank - 2), keep_dims=True)
    return emit.binary("AddV2", emit.binary("Mul", emit.binary("Sub", images, mean), factor), mean)


def _channels(emit: LiteRTBuilder, images: Value) -> Sequence[Value]:
    channel = types.tensor(types.F32, (types.shape_of(images.type) or ())[:-1])
    return emit.tf_op("Unpack", (images,), (channel,) * 3, {"axis": -1, "num": 3}).results


def _image(emit: LiteRTBuilder, op: Operation, channels: Sequence[Value]) -> Value:
    return emit.tf("Pack", channels, op.results[0].type, {"axis": -1, "N": len(channels)})


def _hue_saturation_value(emit: LiteRTBuilder, images: Value) -> tuple[Value, Value, Value]:
    red, green, blue = _channels(emit, images)
    value, least = (emit.binary(extreme, emit.binary(extreme, red, green), blue) for extreme in ("Maximum", "Minimum"))
    span = emit.binary("Sub", value, least)
    saturation = emit.select(emit.compare("Greater", value, 0), emit.binary("RealDiv", span, value), 0)
    sixth = emit.binary("RealDiv", 1.0, emit.binary("Mul", span, 6.0))

    def part(x: Value, y: Value, start: float) -> Value:
        return emit.binary("AddV2", emit.binary("Mul", sixth, emit.binary("Sub", x, y)), start)

    hue = emit.select(emit.compare("Equal", green, value), part(blue, red, 2 / 6), part(red, green, 4 / 6))
    hue = emit.select(emit.compare("Equal", red, value), part(green, blue, 0.0), hue)
    hue = emit.select(emit.compare("Greater", span, 0), hue, 0)
    return emit.select(emit.compare("Less", hue, 0), emit.binary("AddV2", hue, 1.0), hue), saturation, value


def _red_green_blue(emit: LiteRTBuilder, hue: Value, saturation: Value, value: Value) -> list[Value]:
    at = emit.binary("Mul", hue, 6.0)
    grey = emit.binary("Sub", 1.0, saturation)

    def distance(place: float) -> Value:
        return emit.unary("Abs", emit.binary("Sub", at, place))

    ramps = (
        emit.binary("Sub", distance(3.0), 1.0),
        emit.binary("Sub", 2.0, distance(2.0)),
        emit.binary("Sub", 2.0, distance(4.0)),
    )
    mixed = [emit.binary("AddV2", grey, emit.binary("Mul", saturation, _unit(emit, ramp))) for ramp in ramps]
    return [emit.binary("Mul", each, value) for each in mixed]


def _unit(emit: LiteRTBuilder, x: Operand) -> Value:
    return emit.binary("Maximum", emit.binary("Minimum", x, 1.0), 0.0)


def _to_hsv(op: Operation, emit: LiteRTBuilder) -> Value:
    return _image(emit, op, _hue_saturation_value(emit, op.operands[0]))


def _to_rgb(op: Operation, emit: LiteRTBuilder) -> Value:
    hue, saturation, value = _channels(emit, op.operands[0])
    return _image(emit, op, _red_green_blue(emit, hue, saturation, value))


def _saturation(op: Operation, emit: LiteRTBuilder) -> Value:
    images, scale = op.operands
    hue, saturation, value = _hue_saturation_value(emit, images)
    scaled = _unit(emit, emit.binary("Mul", saturation, scale))
    return _image(emit, op, _red_green_blue(emit, hue, scaled, value))


def _hue(op: Operation, emit: LiteRTBuilder) -> Value:
    images, delta = op.operands
    hue, saturation, value = _hue_saturation_value(emit, images)
    rotated = emit.binary("FloorMod", emit.binary("AddV2", hue, delta), 1.0)
    return _image(emit, op, _red_green_blue(emit, rotated, saturation, value))


ENTRIES: tuple[Entry, ...] = (
    Lowering("AdjustContrastv2", "Mean Sub Mul AddV2", _contrast, _FLOAT, rank_is_known),
    Lowering("RGBToHSV", "Unpack SelectV2 Pack", _to_hsv, _FLOAT, rank_is_known),
    Lowering("HSVToRGB", "Unpack Maximum Minimum Pack", _to_rgb, _FLOAT, rank_is_known),
    Lowering("AdjustSaturation", "Unpack SelectV2 Pack", _saturation, _FLOAT, rank_is_known),
    Lowering("AdjustHue", "Unpack SelectV2 FloorMod Pack", _hue, _FLOAT, rank_is_known),
)
