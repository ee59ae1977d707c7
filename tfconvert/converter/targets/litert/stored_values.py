"""Numbers of a quantized model's tensors as they are stored, and the floats that they represent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfconvert.schema.dialects.boxes import Array


def to_stored(value: Array, details: Mapping[str, Any]) -> Array:
    """Returns an input as the model takes it: floats as integers, if that is what the tensor holds.

    Args:
        value: The input.
        details: The tensor's details, as LiteRT's interpreter tells them.
    """
    scale, zero_point = details["quantization"]
    if value.dtype.kind != "f" or not scale or np.dtype(details["dtype"]).kind not in "iu":
        return value
    limits = np.iinfo(details["dtype"])
    stored: Array = np.clip(np.round(value / scale) + zero_point, limits.min, limits.max).astype(details["dtype"])
    return stored


def to_floats(stored: Array, scale: float, zero_point: int) -> Array:
    """Returns integers as the floats that they represent; what has no scale stays."""
    if not scale:
        return stored
    return np.asarray((stored.astype(np.float32) - zero_point) * scale, np.float32)
