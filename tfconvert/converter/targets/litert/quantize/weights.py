"""Constants as integers: the scales from one read, the integers computed when the file is written.

Scales and integers are the official converter's: symmetric, without the lowest integer, so that 0 is exact and products
can't overflow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfconvert.converter.ir.extent import Extent, extent
from tfconvert.schema.dialects import quant, tensor_data
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.fidelity import decibels
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.types import IntegerType


class QuantizedConstant:
    """A constant as integers.

    Attributes:
        stored: The integers.
        type: The quantized tensor type.
    """

    __slots__ = ("stored", "type")

    def __init__(self, stored: Constant, type: Attribute) -> None:
        self.stored = stored
        self.type = type


def symmetric_scales(low: Array, high: Array, bits: int) -> Array:
    """Returns the scales with which integers without the lowest one span ranges around 0.

    A scale has to be a normal number: kernels divide by it. Slices of zeros, or nearly, could have any; they
    get the largest of the others, for the sake of biases, whose scales are made of these.
    """
    largest: Array = np.maximum(np.abs(low), np.abs(high)).astype(np.float32)
    scales: Array = largest / np.float32(2 ** (bits - 1) - 1)
    is_normal = scales >= np.finfo(np.float32).tiny
    return np.where(is_normal, scales, scales.max() if is_normal.any() else np.float32(1))


def symmetric(found: Extent, axis: int | None, bits: int = 8) -> Uniform:
    """Returns the symmetric mapping for a weight of some extent.

    Args:
        found: The extent.
        axis: The axis along which each slice has its own scale, `None` for one scale.
        bits: Bits of an integer, 8 or 4.
    """
    scales = symmetric_scales(found.low, found.high, bits)
    return quant.Uniform(IntegerType.get(bits), tuple(scales.tolist()), (0,) * len(scales), axis)


def snr(found: Extent, uniform: Uniform, elements: int) -> float:
    """Returns the signal-to-noise ratio of a constant that is stored as integers, in dB.

    The error is what it is on average: spread evenly over a step of each slice's scale.
    """
    noise = float(np.square(np.array(uniform.scales, np.float64)).mean()) / 12 * elements
    return decibels(found.power, noise)


def quantize_weight(constant: Constant, axis: int | None, bits: int = 8) -> QuantizedConstant | None:
    """Returns a weight as symmetric integers, `None` if some element is not finite; see `symmetric`."""
    found = extent(constant, axis)
    return quantize_symmetric(constant, symmetric(found, axis, bits)) if found.is_finite else None


def quantize_symmetric(constant: Constant, uniform: Uniform) -> QuantizedConstant:
    """Returns a weight as integers of a symmetric mapping, which leaves the lowest integer out unless it has limits."""
    limit = 2 ** (uniform.storage.width - 1) - 1
    low, high = uniform.limits or (-limit, limit)
    return quantize_constant(constant, uniform, low, high)


def quantize_constant(
    constant: Constant, uniform: Uniform, low: int | None = None, high: int | None = None
) -> QuantizedConstant:
    """Returns a constant of 32-bit floats as integers of a certain mapping, within limits; its storage's by default."""
    bits = uniform.storage.width
    low, high = -(2 ** (bits - 1)) if low is None else low, 2 ** (bits - 1) - 1 if high is None else high
    shape = tensor_data.as_handle(constant).shape
    arguments = (constant, _array(uniform.scales, np.float32), _array(uniform.zero_points, np.int32))
    stored = tensor_data.defer("quantize", arguments, shape, (uniform.axis, low, high), uniform.storage)
    uniform = uniform._replace(limits=None)
    return QuantizedConstant(stored, quant.tensor(uniform, shape))


def _array(values: tuple[Any, ...], dtype: Any) -> Constant:
    return tensor_data.of_array(np.array(values, dtype))
