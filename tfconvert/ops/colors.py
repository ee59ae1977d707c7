"""Colours: contrast, and the space of hue, saturation and value."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.ops.declaration import Decomposition, Formula, OpDeclaration, op
from tfconvert.ops.formula import Tensor
from tfconvert.ops.requirements import rank_is_known
from tfconvert.ops.shape_functions import same


def adjust_contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Moves pixels away from, or towards, the mean of their image and channel."""
    wide = images.wide()
    mean = wide.mean((images.rank - 3, images.rank - 2), keep_dims=True)
    return ((wide - mean) * factor.cast(wide.dtype) + mean).cast(images.dtype)


def _hue_saturation_value(red: Tensor, green: Tensor, blue: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    value = red.maximum(green).maximum(blue)
    span = value - red.minimum(green).minimum(blue)
    saturation = (value > 0).where(span / value, 0)
    sixth = 1 / (span * 6)
    hue = green.equal(value).where(sixth * (blue - red) + 2 / 6, sixth * (red - green) + 4 / 6)
    hue = red.equal(value).where(sixth * (green - blue), hue)
    hue = (span > 0).where(hue, 0)
    return (hue < 0).where(hue + 1, hue), saturation, value


def _red_green_blue(hue: Tensor, saturation: Tensor, value: Tensor) -> tuple[Tensor, ...]:
    at = hue * 6
    grey = 1 - saturation
    ramps = (abs(at - 3) - 1, 2 - abs(at - 2), 2 - abs(at - 4))
    return tuple([(grey + saturation * ramp.clip(0, 1)) * value for ramp in ramps])


def _channels(images: Tensor) -> Sequence[Tensor]:
    return images.wide().split(-1, 3)


def _image(images: Tensor, channels: Sequence[Tensor]) -> Tensor:
    return channels[0].concat(channels[1:], -1).cast(images.dtype)


def rgb_to_hsv(images: Tensor) -> Tensor:
    return _image(images, _hue_saturation_value(*_channels(images)))


def hsv_to_rgb(images: Tensor) -> Tensor:
    return _image(images, _red_green_blue(*_channels(images)))


def adjust_saturation(images: Tensor, scale: Tensor) -> Tensor:
    hue, saturation, value = _hue_saturation_value(*_channels(images))
    return _image(images, _red_green_blue(hue, (saturation * scale.cast(hue.dtype)).clip(0, 1), value))


def adjust_hue(images: Tensor, delta: Tensor) -> Tensor:
    hue, saturation, value = _hue_saturation_value(*_channels(images))
    return _image(images, _red_green_blue((hue + delta.cast(hue.dtype)) % 1, saturation, value))


def _of_images(name: str, formula: Formula) -> OpDeclaration:
    return op(name, shape=same, decompose=(Decomposition(formula, requires=rank_is_known),))


OPS = (
    _of_images("AdjustContrastv2", adjust_contrast),
    _of_images("AdjustHue", adjust_hue),
    _of_images("AdjustSaturation", adjust_saturation),
    _of_images("HSVToRGB", hsv_to_rgb),
    _of_images("RGBToHSV", rgb_to_hsv),
)
