"""Conversions whose settings are keywords all the same, whichever class they belong to."""

from __future__ import annotations

from typing import Any

import tfconvert
from tfconvert.settings.selection import Selection
from tfconvert.settings.setting import settings_of
from tfconvert.settings.targets import LiteRT

# Those are keywords of `convert` itself.
_OWN = {"signatures", "inputs", "outputs", "input_shapes", "batch", "rename", "quantize"}


def converted(model: object, **settings: Any) -> tfconvert.Model:
    """Returns a converted model.

    Args:
        model: The model.
        settings: Keywords of `tfconvert.convert`, fields of `tfconvert.Source` and of `tfconvert.LiteRT`.
    """
    source = {name: settings.pop(name) for name in settings_of(Selection).keys() - _OWN if name in settings}
    litert = {name: settings.pop(name) for name in settings_of(LiteRT).keys() - _OWN if name in settings}
    if litert:
        settings["target"] = LiteRT(**litert)
    return tfconvert.convert(tfconvert.Source(model, **source) if source else model, **settings)
