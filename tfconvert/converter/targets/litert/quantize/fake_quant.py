"""Scales and zero points of models trained with fake quantization, as in the official converter."""

from __future__ import annotations

import math

import numpy as np

from tfconvert.converter.targets.litert import fake_quant
from tfconvert.schema.dialects import quant, tfl
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import I8, I16
from tfconvert.schema.ir.values import Value


def is_fake_quant(op: Operation) -> bool:
    """Returns whether an op fake-quantizes activations, with one range for all."""
    return op.name == fake_quant.FAKE_QUANT


def trained_uniform(value: Value) -> Uniform | None:
    """Returns the mapping that a value was trained with; `None` if it was not fake-quantized."""
    ops = fake_quant.ops_of(value)
    return uniform_of(ops[-1]) if ops else None


def uniform_of(op: Operation) -> Uniform:
    """Returns the integers that represent a fake-quantized value: `i8` with limits for up to 8 bits, `i16` for more.

    The scale of a `tfl.fake_quant` is computed in 64 bits, as in the official converter, and then rounded. In a pair,
    the scales are TensorFlow's own. In 32 bits the middle of a symmetric range may be rounded either way, so the zero
    point can be -1. Filters need the zero point 0, so it is set to 0, which changes the ends by a step.

    Args:
        op: The op whose result is the value: a `tfl.fake_quant`, or the `tfl.dequantize` of a pair.
    """
    if op.name != fake_quant.FAKE_QUANT:
        uniform = fake_quant.uniform_of(op.results[0])
        if sum(uniform.range) != -1:
            return uniform
        return uniform._replace(zero_points=tuple(0 if zero == -1 else zero for zero in uniform.zero_points))
    minimum, maximum = (float(np.float32(tfl.attribute(op, name))) for name in ("min", "max"))
    bits, narrow = tfl.attribute(op, "num_bits"), bool(tfl.attribute(op, "narrow_range"))
    return _uniform(minimum, maximum, bits, narrow)


def widened(uniform: Uniform) -> Uniform:
    """Returns a mapping with the same range without limits, which kernels can compute.

    An 8-bit kernel uses all integers, so a range of fewer steps would end later. The steps become smaller, but numbers
    beyond the range are clipped as in training. A narrow range isn't changed: it ends one step later.
    """
    low, high = uniform.range
    whole = uniform.storage.width
    if uniform.limits is None or high == 2 ** (whole - 1) - 1:
        return uniform._replace(limits=None)
    (scale,), (zero,) = uniform.scales, uniform.zero_points
    return _uniform((low - zero) * scale, (high - zero) * scale, whole, False)


def symmetric(uniform: Uniform) -> Uniform:
    """Returns a mapping with the zero point 0, which 16-bit kernels require, for at least the same range."""
    if uniform.storage is not I16 or not any(uniform.zero_points):
        return uniform
    (scale,), (zero,), (low, high) = uniform.scales, uniform.zero_points, uniform.range
    largest = max(zero - low, high - zero) * scale / (2 ** (I16.width - 1) - 1)
    return Uniform(I16, (float(np.float32(largest)),), (0,))


def _uniform(minimum: float, maximum: float, bits: int, narrow: bool) -> Uniform:
    """Returns the mapping of a range that is shifted so that 0 is exact."""
    low, high = int(narrow), 2**bits - 1
    scale = (maximum - minimum) / (high - low)
    zero = min(max(math.floor(low - minimum / scale + 0.5), low), high)
    middle = 2 ** (bits - 1)
    storage = I8 if bits <= I8.width else I16
    limits = quant.limits_within(storage, low - middle, high - middle)
    return Uniform(storage, (float(np.float32(scale)),), (zero - middle,), None, limits)
