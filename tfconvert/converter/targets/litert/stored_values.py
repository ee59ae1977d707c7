"""Converts between the stored numbers of a quantized model's tensors and the floats that they represent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfconvert.schema.dialects.boxes import Array


def to_stored(value: Array, details: Mapping[str, Any]) -> Array:
    """Returns an input in the tensor's type: floats become integers if needed.

    Args:
        value: The input.
        details: The tensor's details from LiteRT's interpreter.
    """
    scale, zero_point = details["quantization"]
    if value.dtype.kind != "f" or not scale or np.dtype(details["dtype"]).kind not in "iu":
        return value
    limits = np.iinfo(details["dtype"])
    stored: Array = np.clip(np.round(value / scale) + zero_point, limits.min, limits.max).astype(details["dtype"])
    return stored


def to_floats(stored: Array, scale: float, zero_point: int) -> Array:
    """Returns the floats that integers represent; numbers without a scale don't change."""
    if not scale:
        return stored
    return np.asarray((stored.astype(np.float32) - zero_point) * scale, np.float32)
