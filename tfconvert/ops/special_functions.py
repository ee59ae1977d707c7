"""Exponential, trigonometric and special functions, and the activations made of them.

Numpy lacks the error function, its complement and inverse, and Bessel functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tfconvert.ops.call import Array, Call, Function, Results, typed, wide
from tfconvert.ops.declaration import Decomposition, Formula, OpDeclaration, op
from tfconvert.ops.formula import Tensor
from tfconvert.ops.shape_functions import same
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation

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

BESSEL_I_BOUND = 6.0
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

BESSEL_I1_MIDDLE = (
    0.00221808924,
    0.0104138892,
    0.0744882056,
    0.341054008,
    1.13926195,
    2.5312175,
    3.37500254,
    2.24999993,
    0.5,
)
BESSEL_I1_TAIL = (
    -1.03074124e-05,
    -5.19935117e-06,
    -7.78135453e-06,
    -8.53548554e-05,
    -0.000527989289,
    -0.010179418,
    0.162867507,
)
"""I1(x) exp(-x) = x exp(-x) P(y^2) for 0 <= y = x/6 < 1, and Q(1/y) / sqrt(y) beyond, to 2e-8; highest power first."""

# Beyond this erf is 1 to a float's last bit.
_ERF_BOUND = 4.0

# erfc(z) = t * exp(-z*z + p(t)) with t = 1 / (1 + z/2), for z >= 0; highest power first.
_ERFC_P = (
    0.17087277,
    -0.82215223,
    1.48851587,
    -1.13520398,
    0.27886807,
    -0.18628806,
    0.09678418,
    0.37409196,
    1.00002368,
    -1.26551223,
)

# M. Giles' single precision approximation: erfinv(x) = x * p(w - 2.5) where w = -log(1 - x*x) is less than 5, and
# x * q(sqrt(w) - 3) beyond; highest power first.
_ERFINV_MIDDLE = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
_ERFINV_TAIL = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)

# For square roots from 4 to 10.2, those of the smallest floats: x * r(sqrt(w) - 7), fitted to 4e-8.
_ERFINV_FAR = (
    1.61688409e-08,
    -9.45128293e-08,
    2.32274203e-07,
    -1.2968328e-06,
    6.42391444e-06,
    5.39218741e-06,
    -0.000513264409,
    1.00859626,
    6.86901982,
)

# The exponential integral: log(x) + gamma + x P(x) for 0 <= x <= 6, and exp(x) / x Q(12 / x - 1) beyond, to 3e-7.
_EXPINT_NEAR = (
    1.16118693e-11,
    -2.60482368e-10,
    3.56895817e-09,
    -2.34785512e-08,
    1.56800983e-07,
    -1.38038102e-07,
    4.15693603e-06,
    2.6617844e-05,
    0.000233372842,
    0.00166534033,
    0.0104172174,
    0.0555554376,
    0.25000001,
    1.0,
)
_EXPINT_FAR = (
    -0.0012667168,
    -0.000826580757,
    0.00598949598,
    0.00279457811,
    -0.0129046058,
    -0.00372452367,
    0.0181491149,
    0.00362852831,
    -0.0215189959,
    -0.0111400642,
    0.0182735275,
    0.045735135,
    0.132720091,
    1.1029747,
)
_EXPINT_BOUND = 6.0
# Beyond the numbers whose exponentials are finite.
_EXPINT_LARGE = 200.0

# Spence's function at 1 + w is -w P(w) for |w| <= 1/2, to 7e-9.
_SPENCE = (
    0.0152716561,
    -0.0169210289,
    0.0100125011,
    -0.0136849165,
    0.020747034,
    -0.0280027598,
    0.0399780682,
    -0.0624895797,
    0.111111631,
    -0.250000134,
    0.999999998,
)

# Dawson's integral: x P(2 s - 1) where s = (x / 3.5)^2 <= 1, and Q(2 / s - 1) / (2 x) beyond, to 2e-7.
_DAWSON_NEAR = (
    0.00104220103,
    -0.00323503009,
    0.00421625859,
    -0.00681787187,
    0.0167928918,
    -0.0322844851,
    0.0509595322,
    -0.0748650038,
    0.101533616,
    -0.123537442,
    0.134696819,
    -0.132836513,
    0.120804959,
    -0.105049047,
    0.0913281489,
)
_DAWSON_FAR = (
    -4.32024497e-06,
    -4.67015461e-06,
    1.12604334e-05,
    3.11687507e-05,
    6.75178138e-05,
    0.000263087047,
    0.0017933668,
    0.0233859956,
    1.02180775,
)
_DAWSON_BOUND = 3.5

# Fresnel's integrals: x^3 P(2 s - 1) and x Q(2 s - 1) where s = (x / 1.6)^4 <= 1. Beyond, with t = pi x^2 / 2, they are
# 1/2 - f cos(t) - g sin(t) and 1/2 + f sin(t) - g cos(t), f = R(2 / s - 1) / (pi x), g = S(2 / s - 1) / (pi^2 x^3).
_FRESNEL_SINE = (
    2.04069135e-06,
    -4.52898453e-05,
    0.000714260771,
    -0.00762922052,
    0.0501329416,
    -0.176135657,
    0.288939363,
)
_FRESNEL_COSINE = (1.75493183e-05, -0.000331953376, 0.0042881711, -0.0356260975, 0.166442927, -0.349835159, 0.443458119)
_FRESNEL_F = (
    2.18780004e-05,
    -2.93615229e-05,
    5.55576961e-06,
    -4.18216918e-05,
    0.000159251238,
    -0.000476979796,
    0.00203861722,
    -0.0164158313,
    0.980810642,
)
_FRESNEL_G = (
    -0.000250553174,
    0.000289493827,
    0.000153425252,
    5.2968787e-05,
    -0.000779052949,
    0.00149116599,
    -0.00369737459,
    0.0126836493,
    -0.0657627939,
    0.915145948,
)
_FRESNEL_BOUND = 1.6
# From here on, they are 1/2 to a float's last bit.
_FRESNEL_LARGE = 1e7

# A number whose square doesn't overflow, while adding one to the square of a larger one changes nothing.
_LARGE = 1e18

# From here on, the series of Bessel functions in powers of 1/x have a double's digits.
_ASYMPTOTIC = 30
_POINTS = 64

# The smallest number whose logarithm every kernel has.
_TINY = float(np.finfo(np.float32).tiny)

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


def bessel_i(order: int, x: Array) -> Array:
    """Returns the modified Bessel function of the first kind, to a double's digits."""
    return bessel_ie(order, x) * np.exp(np.abs(np.asarray(x, np.float64)))


def normal_quantile(p: float) -> float:
    """Returns the number that a normal one is below with some probability."""
    size = min(p, 1 - p)
    if size < 0:
        return math.nan
    if not 0 < size <= 0.25:
        return math.sqrt(2) * erf_inverse(2 * p - 1)
    # The first terms of the asymptotic series; each of Newton's steps doubles the digits.
    root = math.sqrt(-2 * math.log(size))
    root -= math.log(root * math.sqrt(2 * math.pi)) / root
    for _ in range(6):
        tail = math.erfc(root * math.sqrt(0.5)) / 2
        # Of logarithms, whose tails are almost parabolas.
        density = math.exp(-root * root / 2) / math.sqrt(2 * math.pi)
        root += math.log(tail / size) * tail / density
    return math.copysign(root, p - 0.5)


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


def _elu(x: Array) -> Array:
    return np.where(x < 0, np.expm1(np.minimum(x, 0)), x)


def _leaky_relu(call: Call) -> Results:
    (x,) = call.inputs
    return (typed(np.where(x > 0, x, x * typed(call.number("alpha", 0.2), x.dtype)), x.dtype),)


def composed_erf(x: Tensor) -> Tensor:
    x = x.minimum(_ERF_BOUND).maximum(-_ERF_BOUND)
    square = x.square()
    return x * square.horner(ERF_NUMERATOR) / square.horner(ERF_DENOMINATOR)


def composed_erfc(x: Tensor) -> Tensor:
    z = abs(x)
    t = 1 / (z * 0.5 + 1)
    tail = t * (t.horner(_ERFC_P) - z.square()).exp()
    return (x < 0).where(2 - tail, tail)


def erfinv(x: Tensor) -> Tensor:
    inside = (1 - x) * (x + 1)
    w = -inside.log()
    factor = (w < 5).where((w - 2.5).horner(_ERFINV_MIDDLE), (w.sqrt() - 3).horner(_ERFINV_TAIL))
    # At -1 and 1 the polynomial is of infinity, and of different signs.
    return inside.equal(0).where(math.inf, factor) * x


def ndtri(x: Tensor) -> Tensor:
    """The inverse of the error function at `2x - 1`, whose distance to -1 and 1 keeps its digits here."""
    p = x.wide()
    inside = p * (1 - p) * 4
    w = -inside.log()
    root = w.sqrt()
    tail = (root < 4).where((root - 3).horner(_ERFINV_TAIL), (root - 7).horner(_ERFINV_FAR))
    factor = (w < 5).where((w - 2.5).horner(_ERFINV_MIDDLE), tail)
    return (inside.equal(0).where(math.inf, factor) * (p - 0.5) * math.sqrt(8)).cast(x.dtype)


def expm1(x: Tensor) -> Tensor:
    """`tanh(x/2) * (exp(x) + 1)`: keeps its digits near zero, where `exp(x) - 1` loses them."""
    return (x * 0.5).tanh() * (x.exp() + 1)


def log1p(x: Tensor) -> Tensor:
    return (x + 1).log()


def tan(x: Tensor) -> Tensor:
    return x.sin() / x.cos()


def cosh(x: Tensor) -> Tensor:
    return (x.exp() + (-x).exp()) * 0.5


def sinh(x: Tensor) -> Tensor:
    """`tanh(x/2) * (cosh(x) + 1)`, which keeps its digits near zero."""
    return (x * 0.5).tanh() * (cosh(x) + 1)


def asinh(x: Tensor) -> Tensor:
    size = abs(x)
    root = (size.minimum(_LARGE).square() + 1).sqrt()
    return x.sign() * (size + root.maximum(size)).log()


def acosh(x: Tensor) -> Tensor:
    return (x + (x - 1).sqrt() * (x + 1).sqrt()).log()


def atanh(x: Tensor) -> Tensor:
    return ((x + 1) / (1 - x)).log() * 0.5


def _other_side(x: Tensor) -> Tensor:
    return ((1 - x) * (x + 1)).sqrt()


def asin(x: Tensor) -> Tensor:
    return x.atan2(_other_side(x))


def acos(x: Tensor) -> Tensor:
    return _other_side(x).atan2(x)


def atan(x: Tensor) -> Tensor:
    return x.atan2(x.ones_like())


def has_few_digits(op: Operation) -> str | None:
    """The requirement that the digits of f32 are enough."""
    return "it is computed with the digits of f32" if op.operands[0].element == types.F64 else None


def _bessel_ie(x: Tensor, middle: Sequence[float], tail: Sequence[float], factor: Tensor | None) -> Tensor:
    """Returns a modified Bessel function of the first kind times exp(-|x|); `factor` is one of its middle."""
    size = abs(x)
    part = size * (1 / BESSEL_I_BOUND)
    near = part.square().horner(middle) * (-size).exp()
    near = near if factor is None else near * factor
    far = (1 / part).horner(tail) * part.rsqrt()
    # What is not chosen may be infinite, or NaN.
    return (part < 1).where(near, far if factor is None else far * x.sign())


def bessel_i0e(x: Tensor) -> Tensor:
    return _bessel_ie(x.wide(), BESSEL_I0_MIDDLE, BESSEL_I0_TAIL, None).cast(x.dtype)


def bessel_i1e(x: Tensor) -> Tensor:
    wide_x = x.wide()
    return _bessel_ie(wide_x, BESSEL_I1_MIDDLE, BESSEL_I1_TAIL, wide_x).cast(x.dtype)


def grown(formula: Formula, x: Tensor) -> Tensor:
    """Returns what a formula damps by `exp(-|x|)`."""
    wide_x = x.wide()
    return (formula(wide_x) * abs(wide_x).exp()).cast(x.dtype)  # type: ignore[no-any-return]


def expint(x: Tensor) -> Tensor:
    x, dtype = x.wide(), x.dtype
    near = x.log() + np.euler_gamma + x * x.horner(_EXPINT_NEAR)
    size = x.minimum(_EXPINT_LARGE)
    inverse, root = 1 / size, (size * 0.5).exp()
    far = root * ((inverse * (2 * _EXPINT_BOUND) - 1).horner(_EXPINT_FAR) * inverse) * root
    return (x < 0).where(math.nan, (x < _EXPINT_BOUND).where(near, far)).cast(dtype)


def spence(x: Tensor) -> Tensor:
    """The dilogarithm at `1 - x`, by its values at other arguments where the distance from 1 is more than 1/2."""
    x, dtype = x.wide(), x.dtype
    is_large = x > 1.5
    part = is_large.where(1 / x, x)
    is_small = part < 0.5
    w = is_small.where(-part, part - 1)
    found = -w * w.horner(_SPENCE)
    logarithms = part.maximum(_TINY).log() * (1 - part).log()
    found = is_small.where(math.pi**2 / 6 - logarithms - found, found)
    found = is_large.where(x.log().square() * -0.5 - found, found)
    return (x < 0).where(math.nan, found).cast(dtype)


def dawsn(x: Tensor) -> Tensor:
    wide_x = x.wide()
    square = wide_x.square() * (1 / _DAWSON_BOUND**2)
    near = wide_x * (square * 2 - 1).horner(_DAWSON_NEAR)
    far = (2 / square - 1).horner(_DAWSON_FAR) * 0.5 / wide_x
    return (square < 1).where(near, far).cast(x.dtype)


def _fresnel(near: Callable[[Tensor, Tensor], Tensor], far: Callable[..., Tensor], x: Tensor) -> Tensor:
    wide_x = x.wide()
    size = abs(wide_x)
    fourth = (size * (1 / _FRESNEL_BOUND)).square().square()
    # Whole numbers and their distance give the angle but for whole turns: n^2 + 2 n d + d^2, a quarter turn being 1.
    capped = size.minimum(_FRESNEL_LARGE)
    whole = capped.round()
    rest = capped - whole
    angle = (whole % 2 + (whole * 2 + rest) * rest) * (math.pi / 2)
    inverse, variable = 1 / (capped * math.pi), 2 / fourth - 1
    f = variable.horner(_FRESNEL_F) * inverse
    g = variable.horner(_FRESNEL_G) * inverse * inverse / capped
    found = (fourth < 1).where(near(size, fourth * 2 - 1), far(angle, f, g) + 0.5)
    return (found * wide_x.sign()).cast(x.dtype)


fresnel_sin = partial(
    _fresnel,
    lambda x, variable: x * x * x * variable.horner(_FRESNEL_SINE),
    lambda angle, f, g: -(f * angle.cos() + g * angle.sin()),
)
fresnel_cos = partial(
    _fresnel,
    lambda x, variable: x * variable.horner(_FRESNEL_COSINE),
    lambda angle, f, g: f * angle.sin() - g * angle.cos(),
)


def selu(x: Tensor) -> Tensor:
    """`scale * elu(x, alpha)`: the negative side of elu is scaled by alpha, the positive one is not."""
    below = x.minimum(0).elu() * _SELU_ALPHA
    return x.relu() * _SELU_SCALE + below


def softplus(x: Tensor) -> Tensor:
    """`max(x, 0) + log(1 + exp(-|x|))`, which never overflows."""
    return x.relu() + (-abs(x)).exp().log1p()


def softsign(x: Tensor) -> Tensor:
    return x / (abs(x) + 1)


def _function(name: str, function: Function, **more: Any) -> OpDeclaration:
    """Declares a function of one operand, computed in float32 where the dtype is narrower, then rounded once."""

    def compute(call: Call) -> Results:
        (x,) = call.inputs
        return (typed(function(wide(x)), x.dtype),)

    return op(name, shape=same, compute=compute, verified=True, **more)


def _special(name: str, formula: Formula) -> OpDeclaration:
    """Declares a function of one operand that its formula computes, with the digits of f32."""
    return op(name, shape=same, decompose=(Decomposition(formula, requires=has_few_digits),), verified=True)


def _bessel(name: str, function: Function, formula: Formula) -> OpDeclaration:
    return _function(name, function, decompose=(Decomposition(formula, requires=has_few_digits),))


OPS = (
    _function("Acos", np.arccos, decompose=acos),
    _function("Acosh", np.arccosh, decompose=acosh),
    _function("Asin", np.arcsin, decompose=asin),
    _function("Asinh", np.arcsinh, decompose=asinh),
    _function("Atan", np.arctan, decompose=atan),
    _function("Atanh", np.arctanh, decompose=atanh),
    _bessel("BesselI0", partial(bessel_i, 0), partial(grown, bessel_i0e)),
    _bessel("BesselI0e", partial(bessel_ie, 0), bessel_i0e),
    _bessel("BesselI1", partial(bessel_i, 1), partial(grown, bessel_i1e)),
    _bessel("BesselI1e", partial(bessel_ie, 1), bessel_i1e),
    _function("Cos", np.cos),
    _function("Cosh", np.cosh, decompose=cosh),
    _special("Dawsn", dawsn),
    _function("Elu", _elu),
    _function("Erf", erf, decompose=composed_erf),
    _function("Erfc", erfc, decompose=composed_erfc),
    _function("Erfinv", each(erf_inverse), decompose=erfinv),
    _function("Exp", np.exp),
    _special("Expint", expint),
    _function("Expm1", np.expm1, decompose=expm1),
    _special("FresnelCos", fresnel_cos),
    _special("FresnelSin", fresnel_sin),
    op("LeakyRelu", shape=same, compute=_leaky_relu, verified=True),
    _function("Log", np.log),
    _function("Log1p", np.log1p, decompose=log1p),
    _function("Ndtri", each(normal_quantile), decompose=(Decomposition(ndtri, requires=has_few_digits),)),
    _function("Rsqrt", lambda x: 1 / np.sqrt(x)),
    op("Selu", shape=same, decompose=selu, verified=True),
    _function("Sigmoid", sigmoid),
    _function("Sin", np.sin),
    _function("Sinh", np.sinh, decompose=sinh),
    op("Softplus", shape=same, decompose=softplus, verified=True),
    op("Softsign", shape=same, decompose=softsign, verified=True),
    _special("Spence", spence),
    _function("Sqrt", np.sqrt),
    _function("Tan", np.tan, decompose=tan),
    _function("Tanh", np.tanh),
)
