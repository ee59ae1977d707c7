"""Scales and zero points from ranges, as TensorFlow's converter computes them."""

from __future__ import annotations

import math

import numpy as np

from tfconvert.converter.targets.litert.quantize.range import Range
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.ir.types import IntegerType

# By how much 16-bit numbers may exceed those of the samples.
#
# Losing one bit is negligible beside the errors of 8-bit weights, while a clipped number spoils a whole result.
_HEADROOM = 2.0


def uniform_of(values: Range, storage: IntegerType) -> Uniform:
    """Returns the mapping of integers to a range of numbers, which is widened so that it contains 0.

    8-bit integers are spread over the range; wider ones lie symmetrically about 0, as the kernels require, and have
    room for numbers beyond it.
    """
    low, high = min(values.low, 0.0), max(values.high, 0.0)
    if storage.width > 8:
        return Uniform(storage, (_scale(max(-low, high) * _HEADROOM / (2 ** (storage.width - 1) - 1)),), (0,))
    least, most = -(2 ** (storage.width - 1)), 2 ** (storage.width - 1) - 1
    scale = (high - low) / (most - least)
    if not _scale(scale, 0.0):
        return Uniform(storage, (1.0,), (0,))
    from_low, from_high = least - low / scale, most - high / scale
    # The end that is the larger number loses more by rounding.
    zero = from_low if abs(least) + abs(low / scale) < abs(most) + abs(high / scale) else from_high
    return Uniform(storage, (_scale(scale),), (min(max(_rounded(zero), least), most),))


def _rounded(value: float) -> int:
    """Rounds to the nearest integer, halves away from 0."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def _scale(value: float, otherwise: float = 1.0) -> float:
    """Returns a scale as `f32` has it; `otherwise` if that is not a positive normal number."""
    scale = float(np.float32(value))
    return scale if scale >= float(np.finfo(np.float32).tiny) else otherwise


def range_of_integers(uniform: Uniform) -> Range:
    """Returns the numbers that a mapping with one scale can represent."""
    bits = uniform.storage.width
    scale, zero = uniform.scales[0], uniform.zero_points[0]
    return Range((-(2 ** (bits - 1)) - zero) * scale, (2 ** (bits - 1) - 1 - zero) * scale)
