"""Exponential, trigonometric and special functions, and the activations made of them.

Numpy lacks the error function, its complement and inverse, the logarithm of gamma, and Bessel functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tfconvert.ops.call import Array, Call, Function, Results, typed, wide
from tfconvert.ops.declaration import OpDeclaration, op, ops_like
from tfconvert.ops.shape_functions import broadcasting, same

_SELU_SCALE = 1.0507009873554805
_SELU_ALPHA = 1.7580993408473768

ERF_NUMERATOR = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
ERF_DENOMINATOR = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)
"""erf(x) = x P(x^2) / Q(x^2) for |x| <= 4 to float32's precision, beyond which it is 1; highest power first."""

# log(erfc(x) exp(x^2) / t) as a polynomial in t = 2 / (2 + x) for x >= 0, fitted to 6e-10.
_ERFC_TERMS = (
    -0.01313820088730482,
    0.2820083546003588,
    -1.689012997145456,
    5.010228777479314,
    -8.666030623045616,
    9.235818262955798,
    -6.193086943970399,
    2.861332285322763,
    -1.135536850115239,
    0.1491654451716795,
    0.0449034247782254,
    0.3791125624693876,
    0.9997414044518738,
    -1.265504901954702,
)

BESSEL_I0_BOUND = 6.0
BESSEL_I0_MIDDLE = (
    0.0405571742,
    0.164695526,
    1.0451214,
    4.09131183,
    11.3930215,
    20.2496806,
    20.250019,
    8.99999964,
    1.0,
)
BESSEL_I0_TAIL = (
    1.01223288e-05,
    2.22685235e-07,
    1.02403178e-05,
    5.91465081e-05,
    0.000317038614,
    0.00339316269,
    0.162867503,
)
"""I0(x) exp(-x) = exp(-x) P(y^2) for 0 <= y = x/6 < 1, and Q(1/y) / sqrt(y) beyond, to 4e-7; highest power first."""

# From here on, the series of Bessel functions in powers of 1/x have a double's digits.
_ASYMPTOTIC = 30
_POINTS = 64

# The constant of his formula for the inverse of the error function that fits best.
_WINITZKI = 0.147


def erf(x: Array) -> Array:
    """Returns the error function, to a few units in the last place of the argument's dtype."""
    if x.dtype == np.float64:
        return each(math.erf)(x)
    clipped = np.clip(wide(x), -4, 4)
    square = clipped * clipped
    return clipped * _horner(ERF_NUMERATOR, square) / _horner(ERF_DENOMINATOR, square)


def erfc(x: Array) -> Array:
    """Returns 1 - erf(x) without the cancellation for large x."""
    if x.dtype == np.float64:
        return each(math.erfc)(x)
    # exp(-x^2) spoils float32's digits for large x, hence float64.
    wide_x = x.astype(np.float64)
    size = np.abs(wide_x)
    tail = np.exp(_horner(_ERFC_TERMS, 2 / (2 + size)) - size * size) * (2 / (2 + size))
    return np.asarray(np.where(wide_x < 0, 2 - tail, tail))


def each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """Returns a function of arrays that calls a scalar one for each element, in float64."""

    def apply(x: Array) -> Array:
        return np.fromiter(map(function, x.reshape(-1).tolist()), np.float64, x.size).reshape(x.shape)

    return apply


def erf_inverse(x: float) -> float:
    """Returns the number whose error function is x; infinity at -1 and 1, NaN beyond."""
    size = abs(x)
    if not size < 1:
        return math.copysign(math.inf, x) if size == 1 else math.nan
    # Winitzki's approximation is off by 0.2 % at most; each of Newton's steps doubles the digits.
    log = math.log((1 - size) * (1 + size))
    half = 2 / (math.pi * _WINITZKI) + log / 2
    root = math.sqrt(math.sqrt(half * half - log / _WINITZKI) - half)
    for _ in range(4):
        # Each form is the one that doesn't cancel.
        difference = math.erf(root) - size if size < 0.5 else (1 - size) - math.erfc(root)
        root -= difference * math.sqrt(math.pi) / 2 * math.exp(root * root)
    return math.copysign(root, x)


def log_gamma(x: float) -> float:
    """Returns log |gamma(x)|; infinity at the poles."""
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


def bessel_ie(order: int, x: Array) -> Array:
    """Returns the modified Bessel function of the first kind times exp(-|x|), to a double's digits."""
    size = np.abs(np.asarray(x, np.float64))
    near, far = np.minimum(size, _ASYMPTOTIC), np.maximum(size, _ASYMPTOTIC)
    # It is the mean of a periodic function, for which as many points as this are exact.
    mean = np.zeros_like(size)
    for angle in (np.arange(_POINTS) + 0.5) * (math.pi / _POINTS):
        mean += np.exp(near * (math.cos(angle) - 1)) * (math.cos(order * angle) / _POINTS)
    term = total = np.ones_like(size)
    for index in range(1, _ASYMPTOTIC):
        term = term * ((2 * index - 1) ** 2 - 4 * order**2) / (8 * index * far)
        total = total + term
    result = np.where(size < _ASYMPTOTIC, mean, total / np.sqrt(2 * math.pi * far))
    return np.asarray(np.copysign(result, x) if order % 2 else result)


def _horner(coefficients: tuple[float, ...], x: Array) -> Array:
    result = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        result *= x
        result += coefficient
    return result


def sigmoid(x: Array) -> Array:
    """Returns the logistic function, which overflows nowhere."""
    if x.dtype.kind == "c":
        return np.asarray(1 / (1 + np.exp(-x)))
    decay = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, np.ones((), x.dtype), decay) / (1 + decay))


def _softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def _elu(x: Array) -> Array:
    return np.where(x < 0, np.expm1(np.minimum(x, 0)), x)


def _selu(x: Array) -> Array:
    return np.where(x < 0, _SELU_ALPHA * np.expm1(np.minimum(x, 0)), _SELU_SCALE * x)


def _leaky_relu(call: Call) -> Results:
    (x,) = call.inputs
    return (typed(np.where(x > 0, x, x * typed(call.number("alpha", 0.2), x.dtype)), x.dtype),)


def _function(name: str, function: Function, **more: Any) -> OpDeclaration:
    """Declares a function of one operand, computed in float32 where the dtype is narrower, then rounded once."""

    def compute(call: Call) -> Results:
        (x,) = call.inputs
        return (typed(function(wide(x)), x.dtype),)

    return op(name, shape=same, compute=compute, verified=True, **more)


OPS = (
    _function("Acos", np.arccos),
    _function("Acosh", np.arccosh),
    _function("Asin", np.arcsin),
    _function("Asinh", np.arcsinh),
    _function("Atan", np.arctan),
    _function("Atanh", np.arctanh),
    op("Digamma", shape=same, verified=True),
    *ops_like("BesselI0 BesselI1 Ndtri", shape=same),
    _function("BesselI0e", partial(bessel_ie, 0)),
    _function("BesselI1e", partial(bessel_ie, 1)),
    *ops_like("Igamma IgammaGradA Igammac Polygamma RandomGammaGrad Zeta", shape=broadcasting, verified=True),
    op("Betainc", shape=broadcasting),
    _function("Cos", np.cos),
    _function("Cosh", np.cosh),
    _function("Elu", _elu),
    _function("Erf", erf),
    _function("Erfc", erfc),
    _function("Erfinv", each(erf_inverse)),
    _function("Exp", np.exp),
    _function("Expm1", np.expm1),
    op("LeakyRelu", shape=same, compute=_leaky_relu, verified=True),
    _function("Lgamma", each(log_gamma)),
    _function("Log", np.log),
    _function("Log1p", np.log1p),
    _function("Rsqrt", lambda x: 1 / np.sqrt(x)),
    _function("Selu", _selu),
    _function("Sigmoid", sigmoid),
    _function("Sin", np.sin),
    _function("Sinh", np.sinh),
    _function("Softplus", _softplus),
    _function("Softsign", lambda x: x / (1 + np.abs(x))),
    _function("Sqrt", np.sqrt),
    _function("Tan", np.tan),
    _function("Tanh", np.tanh),
)
