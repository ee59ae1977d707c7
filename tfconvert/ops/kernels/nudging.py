"""The steps of a fake-quantized range, as TensorFlow's kernels compute them, operation by operation in 32 bits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfconvert.ops.call import Array


class Steps(NamedTuple):
    """The numbers that a range of `FakeQuant*` has: `scale * (integer - zero_point)`.

    Attributes:
        scale: The distance of two numbers; 0 where the range is nothing but 0.
        inverse: Its inverse.
        zero_point: The integer that represents 0, counted from 0.
        low: The least integer.
        high: The greatest integer.
    """

    scale: Array
    inverse: Array
    zero_point: Array
    low: int
    high: int


def nudged(least: Array, greatest: Array, bits: int, narrow: bool) -> Steps:
    """Returns the steps of `FakeQuant*`: ranges are shifted so that 0 is one of the numbers.

    Args:
        least: The least real numbers.
        greatest: The greatest real numbers.
        bits: Bits of an integer.
        narrow: Whether the lowest integer isn't used.
    """
    low, high = int(narrow), 2**bits - 1
    span = np.float32(high) - np.float32(low)
    scale: Array = (greatest - least) / span
    inverse: Array = span / (greatest - least)
    from_least = np.float32(low) - least / scale
    zero_point = np.clip(np.floor(from_least.astype(np.float64) + 0.5), low, high)
    empty = (least == 0) & (greatest == 0)
    scale, inverse = np.where(empty, np.float32(0), scale), np.where(empty, np.float32(1), inverse)
    return Steps(scale, inverse, np.where(empty, low, zero_point).astype(np.float32), low, high)
