"""The logarithm of the gamma function, its derivatives, and Hurwitz' zeta function.

Kernels have a double's digits. Formulas have those of a float; where a function has zeros, the distance to the zero is
a factor, so that relative errors stay small beside it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfconvert.ops.call import Array, Call, Function, Results, typed, wide
from tfconvert.ops.declaration import OpDeclaration, op, ops_like
from tfconvert.ops.formula import Tensor
from tfconvert.ops.shape_functions import broadcasting, same
from tfconvert.ops.special_functions import each

# The Bernoulli numbers B2, B4, ..., B14.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)

# Shift of arguments to where asymptotic series converge.
_SHIFT = 12

# log(gamma(x)) = u (u + 1) P(u) where u = x - 2 is from -1 to 1, fitted to 4e-10; highest power first, as below.
_LGAMMA_NEAR = (
    4.87408435e-06,
    -9.67748162e-06,
    2.24974515e-06,
    -7.28242233e-06,
    4.37050408e-05,
    -9.17341345e-05,
    0.000179807357,
    -0.000401982584,
    0.000916103389,
    -0.00210894163,
    0.0049985477,
    -0.0123841151,
    0.0329650052,
    -0.100317304,
    0.422784335,
)

# log(gamma(x)) = (x - 1/2) (log(x) - 1) + (log(2 pi) - 1) / 2 + P(1/x^2) / x for x >= 3, fitted to 4e-10.
_LGAMMA_FAR = (0.000507276897, -0.000567794947, 0.000792654238, -0.00277776474, 0.0833333333)
_STIRLING = (math.log(2 * math.pi) - 1) / 2

# digamma(x) = (u - z) P(u) where u = x - 2 is from -1 to 1 and z its zero, fitted to 2e-10.
_DIGAMMA_NEAR = (
    1.78307198e-05,
    -3.40787925e-05,
    -7.6389584e-06,
    8.90258114e-06,
    0.000115004953,
    -0.000219960369,
    0.000317412853,
    -0.000645999034,
    0.00136476704,
    -0.00274873313,
    0.00555098387,
    -0.0113369327,
    0.0234474293,
    -0.0495511423,
    0.108999913,
    -0.260738952,
    0.785307539,
)
_DIGAMMA_ZERO = float(np.float32(-0.53836787))
# The function at the float that is closest to its zero.
_DIGAMMA_REST = -1.2036052549106669e-08

# digamma(x) = log(x) - 1 / (2x) - P(1/x^2) / x^2 for x >= 3, fitted to 4e-9.
_DIGAMMA_FAR = (0.00413906203, -0.00389231175, 0.0039584282, -0.00833320593, 0.0833333331)

# From here on, asymptotic series are fitted.
_FAR = 3.0

# A number that the sizes of poles don't reach, but whose multiples are finite.
_LARGE = 1e30

# The terms that TensorFlow adds for zeta before the Euler-Maclaurin formula, and how many of the formula's are left
# beyond a float's digits.
_ZETA_TERMS = 9
_ZETA_SERIES = 6

# An exponent for which all terms of zeta but the first vanish beside it.
_ZETA_STEEP = 200.0


def log_gamma(x: float) -> float:
    """Returns log |gamma(x)|; infinity at the poles."""
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


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
    cotangent = math.pi / np.tan(math.pi * np.where(y < 0.5, y - np.round(y), 0.5))
    result = np.where(y < 0.5, result - cotangent, result)
    return np.where((y <= 0) & (y == np.floor(y)), np.nan, result)


def zeta(x: Array, q: Array) -> Array:
    """Returns the Hurwitz zeta function, the sum of (q + k)^-x, by the Euler-Maclaurin formula."""
    s, start = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(q, np.float64))
    total = sum(((start + step) ** -s for step in range(_SHIFT)), np.zeros_like(start))
    far = start + _SHIFT
    total = total + far ** (1 - s) / (s - 1) + 0.5 * far**-s
    rising = s
    for order, number in enumerate(_BERNOULLI, 1):
        total = total + number / math.factorial(2 * order) * rising * far ** (-s - 2 * order + 1)
        rising = rising * (s + 2 * order - 1) * (s + 2 * order)
    whole = start == np.floor(start)
    poles = np.where(s % 2 == 0, np.inf, np.nan)
    total = np.where(start <= 0, np.where(whole, poles, np.where(s == np.floor(s), total, np.nan)), total)
    return np.where(s == 1, np.inf, np.where(s < 1, np.nan, total))


def polygamma(n: Array, x: Array) -> Array:
    """Returns the n-th derivative of digamma."""
    order, y = np.broadcast_arrays(np.asarray(n, np.float64), np.asarray(x, np.float64))
    factorial = np.exp(each(log_gamma)(order + 1))
    higher = np.where(order % 2, 1.0, -1.0) * factorial * zeta(order + 1, y)
    result = np.where(order == 0, digamma(y), higher)
    return np.where((order < 0) | (order != np.floor(order)), np.nan, result)


def _to_pole(size: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the signed distance to the nearest integer times pi, and where it is 0; magnitudes may be infinite."""
    size = size.minimum(_LARGE)
    distance = size - size.round()
    return distance * math.pi, distance.equal(0)


def lgamma(x: Tensor) -> Tensor:
    x, dtype = x.wide(), x.dtype
    size = abs(x)
    near = (size < 1).where(size - 1, size - 2)
    near = near * (near + 1) * near.horner(_LGAMMA_NEAR) - size.minimum(1).log()
    inverse = 1 / size
    far = (size - 0.5) * (size.log() - 1) + _STIRLING + inverse.square().horner(_LGAMMA_FAR) * inverse
    found = (size < _FAR).where(near, far)
    angle, is_pole = _to_pole(size)
    # By the reflection formula; where its logarithms are infinite, so is the function.
    other = is_pole.where(math.inf, math.log(math.pi) - abs(angle.sin()).log() - size.log() - found)
    return (x < 0).where(other, found).cast(dtype)


def digamma_formula(x: Tensor) -> Tensor:
    x, dtype = x.wide(), x.dtype
    size = abs(x)
    inverse = 1 / size
    is_small = size < 1
    near = is_small.where(size - 1, size - 2)
    near = (near - _DIGAMMA_ZERO) * near.horner(_DIGAMMA_NEAR) + _DIGAMMA_REST - is_small.where(inverse, 0)
    square = inverse.square()
    far = size.log() - inverse * 0.5 - square.horner(_DIGAMMA_FAR) * square
    found = (size < _FAR).where(near, far)
    angle, is_pole = _to_pole(size)
    other = found + inverse + angle.cos() / angle.sin() * math.pi
    return (x <= 0).where(is_pole.where(math.nan, other), found).cast(dtype)


def zeta_formula(x: Tensor, q: Tensor) -> Tensor:
    """TensorFlow's series, for floats: of arguments far below zero, it doesn't reach where the formula converges."""
    exponent = x.minimum(_ZETA_STEEP)
    total = q.power(-x)
    for step in range(1, _ZETA_TERMS):
        total = total + (q + step).power(-exponent)
    far = q + _ZETA_TERMS
    last = far.power(-exponent)
    total = total + far.power(1 - exponent) / (exponent - 1) + last * 0.5
    inverse = 1 / far
    factor = last * exponent * inverse
    for order in range(1, _ZETA_SERIES + 1):
        total = total + factor * (_BERNOULLI[order - 1] / math.factorial(2 * order))
        if order < _ZETA_SERIES:
            factor = factor * ((exponent + (2 * order - 1)) * inverse) * ((exponent + 2 * order) * inverse)
    is_below, is_pole = q <= 0, q.equal(q.floor())
    # Powers of negative numbers are real for whole exponents, and the signs of poles are those of even ones.
    is_nan = (x < 1) | (is_below & (x.not_equal(x.floor()) | (is_pole & (x % 2).not_equal(0))))
    total = is_nan.where(math.nan, (is_below & is_pole).where(math.inf, total))
    return x.equal(1).where(math.inf, total)


def polygamma_formula(n: Tensor, x: Tensor) -> Tensor:
    following = n + 1
    orders = n.constant
    if orders is None:
        factor = (n % 2 * 2 - 1) * following.op("Lgamma", following).exp()
    else:
        factorials = np.exp(each(log_gamma)(np.asarray(orders + 1, np.float64)))
        factor = n.of(np.asarray(np.where(orders % 2 == 1, factorials, -factorials), n.dtype))
    found = factor * following.op("Zeta", following, x)
    if orders is None or not np.all(orders > 0):
        found = n.equal(0).where(x.op("Digamma", x), found)
    return ((n < 0) | n.not_equal(n.floor())).where(math.nan, found)


def _function(name: str, function: Function, **more: Any) -> OpDeclaration:
    """Declares a function of operands of one dtype, computed in float64, then rounded once."""

    def compute(call: Call) -> Results:
        return (typed(function(*map(wide, call.inputs)), call.inputs[0].dtype),)

    return op(name, compute=compute, verified=True, **more)


OPS = (
    op("Betainc", shape=broadcasting),
    _function("Digamma", digamma, shape=same, decompose=digamma_formula),
    *ops_like("Igamma IgammaGradA Igammac RandomGammaGrad", shape=broadcasting, verified=True),
    _function("Lgamma", each(log_gamma), shape=same, decompose=lgamma),
    _function("Polygamma", polygamma, shape=broadcasting, decompose=polygamma_formula),
    _function("Zeta", zeta, shape=broadcasting, decompose=zeta_formula),
)
