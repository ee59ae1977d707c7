"""Special functions of `chlo` that numpy lacks, to float32's precision and beyond."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from tfconvert.ops import special_functions
from tfconvert.ops.call import Array

# The Bernoulli numbers B2, B4, ..., B14.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)

# How far arguments are moved to where asymptotic series converge.
_SHIFT = 12

bessel_i1e = partial(special_functions.bessel_ie, 1)
erf = special_functions.erf
erfc = special_functions.erfc
log_gamma = special_functions.each(special_functions.log_gamma)


def erf_inv(x: Array) -> Array:
    """Returns the inverse of the error function: a first guess, and Newton's steps in 64 bits."""
    y = np.asarray(x, np.float64)
    inside = np.clip(y, -1 + 1e-16, 1 - 1e-16)
    log = np.log1p(-inside * inside)
    half = 2 / (math.pi * 0.147) + log / 2
    guess = np.copysign(np.sqrt(np.maximum(np.sqrt(half * half - log / 0.147) - half, 0)), inside)
    exact_erf, exact_erfc = special_functions.each(math.erf), special_functions.each(math.erfc)
    size, target = np.abs(guess), np.abs(inside)
    for _ in range(4):
        # The complement keeps its digits where the function is almost 1.
        wrong = np.where(target < 0.5, exact_erf(size) - target, (1 - target) - exact_erfc(size))
        size = size - wrong * (math.sqrt(math.pi) / 2) * np.exp(size * size)
    result = np.where(np.abs(y) < 1, np.copysign(size, y), np.where(np.abs(y) == 1, np.copysign(np.inf, y), np.nan))
    return np.asarray(result)


def digamma(x: Array) -> Array:
    """Returns the derivative of the logarithm of gamma; NaN at the poles."""
    y = np.asarray(x, np.float64)
    reflected = np.where(y < 0.5, 1 - y, y)
    lowered = sum((1 / (reflected + step) for step in range(_SHIFT)), np.zeros_like(reflected))
    far = reflected + _SHIFT
    series: Any = np.log(far) - 0.5 / far
    for order, number in enumerate(_BERNOULLI, 1):
        series = series - number / (2 * order * far ** (2 * order))
    result = series - lowered
    cotangent = math.pi / np.tan(math.pi * np.where(y < 0.5, y - np.floor(y), 0.5))
    result = np.where(y < 0.5, result - cotangent, result)
    return np.where((y <= 0) & (y == np.floor(y)), np.nan, result)


def zeta(x: Array, q: Array) -> Array:
    """Returns Hurwitz' zeta function, the sum of (q + k)^-x, by Euler's and Maclaurin's formula."""
    s, start = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(q, np.float64))
    total = sum(((start + step) ** -s for step in range(_SHIFT)), np.zeros_like(start))
    far = start + _SHIFT
    total = total + far ** (1 - s) / (s - 1) + 0.5 * far**-s
    rising = s
    for order, number in enumerate(_BERNOULLI, 1):
        total = total + number / math.factorial(2 * order) * rising * far ** (-s - 2 * order + 1)
        rising = rising * (s + 2 * order - 1) * (s + 2 * order)
    whole = start == np.floor(start)
    total = np.where(start <= 0, np.where(whole, np.inf, np.where(s == np.floor(s), total, np.nan)), total)
    return np.where(s == 1, np.inf, np.where(s < 1, np.nan, total))


def polygamma(n: Array, x: Array) -> Array:
    """Returns the n-th derivative of digamma."""
    order, y = np.broadcast_arrays(np.asarray(n, np.float64), np.asarray(x, np.float64))
    factorial = np.exp(log_gamma(order + 1))
    higher = np.where(order % 2, 1.0, -1.0) * factorial * zeta(order + 1, y)
    result = np.where(order == 0, digamma(y), higher)
    return np.where((order < 0) | (order != np.floor(order)), np.nan, result)
