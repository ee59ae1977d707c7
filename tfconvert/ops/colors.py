"""Colours: contrast, and the space of hue, saturation and value."""

from __future__ import annotations

import numpy as np

from tfconvert.ops.call import Array, Call, Results, typed, wide
from tfconvert.ops.declaration import op
from tfconvert.ops.shape_functions import same


def _contrast(call: Call) -> Results:
    images, factor = call.inputs
    x = wide(images)
    mean = x.mean((-3, -2), dtype=x.dtype, keepdims=True)
    return (typed((x - mean) * factor + mean, images.dtype),)


def _hue_saturation_value(images: Array) -> tuple[Array, Array, Array]:
    red, green, blue = np.moveaxis(images, -1, 0)
    value = images.max(-1)
    span = value - images.min(-1)
    saturation = np.where(value > 0, span / value, 0)
    sixth = 1 / (6 * span)
    hue = np.where(
        red == value,
        sixth * (green - blue),
        np.where(green == value, sixth * (blue - red) + 2 / 6, sixth * (red - green) + 4 / 6),
    )
    hue = np.where(span > 0, hue, 0)
    return np.where(hue < 0, hue + 1, hue), saturation, value


def _red_green_blue(hue: Array, saturation: Array, value: Array) -> Array:
    at = hue * 6
    red = np.clip(np.abs(at - 3) - 1, 0, 1)
    green = np.clip(2 - np.abs(at - 2), 0, 1)
    blue = np.clip(2 - np.abs(at - 4), 0, 1)
    return np.stack([((1 - saturation) + saturation * part) * value for part in (red, green, blue)], -1)


def _to_hsv(call: Call) -> Results:
    (images,) = call.inputs
    return (typed(np.stack(_hue_saturation_value(wide(images)), -1), images.dtype),)


def _to_rgb(call: Call) -> Results:
    (images,) = call.inputs
    return (typed(_red_green_blue(*np.moveaxis(wide(images), -1, 0)), images.dtype),)


def _saturation(call: Call) -> Results:
    images, scale = call.inputs
    hue, saturation, value = _hue_saturation_value(wide(images))
    return (typed(_red_green_blue(hue, np.clip(saturation * scale, 0, 1), value), images.dtype),)


def _hue(call: Call) -> Results:
    images, delta = call.inputs
    hue, saturation, value = _hue_saturation_value(wide(images))
    return (typed(_red_green_blue((hue + delta) % 1, saturation, value), images.dtype),)


OPS = (
    op("AdjustContrastv2", shape=same, compute=_contrast),
    op("AdjustHue", shape=same, compute=_hue),
    op("AdjustSaturation", shape=same, compute=_saturation),
    op("HSVToRGB", shape=same, compute=_to_rgb),
    op("RGBToHSV", shape=same, compute=_to_hsv),
)
