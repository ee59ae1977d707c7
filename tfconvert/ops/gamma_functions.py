"""The logarithm of the gamma function, its derivatives, and Hurwitz' zeta function.

Kernels have a double's digits. Formulas have those of a float; where a function has zeros, the distance to the zero is
a factor, so that relative errors stay small beside it.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tfconvert.ops.call import Array, Call, Function, Results, typed, wide
from tfconvert.ops.declaration import Decomposition, Formula, OpDeclaration, op
from tfconvert.ops.formula import Tensor
from tfconvert.ops.shape_functions import broadcasting, same
from tfconvert.ops.special_functions import each, has_few_digits

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

# x - log(1 + x) = x^2 P(x) for |x| <= 1/2, to 3e-8, and exp(x) - 1 - x = x^2 P(x) for |x| <= 1, to 2e-8.
_PHI = (
    0.162700821,
    -0.167815768,
    0.0479460037,
    -0.0578960919,
    0.106231754,
    -0.11644579,
    0.124460798,
    -0.142450467,
    0.166688116,
    -0.200013084,
    0.249999693,
    -0.333333214,
    0.500000001,
)
_EXPONENTIAL_REST = (
    2.77224457e-06,
    2.53548239e-05,
    0.000198440304,
    0.00138854521,
    0.00833331024,
    0.0416667345,
    0.16666667,
    0.499999998,
)

# The points and weights by which functions that fall from 1, at least as an exponential does, are integrated from 0 on.
_POINTS, _WEIGHTS = (np.asarray(each * 7.5, np.float32) for each in np.polynomial.legendre.leggauss(20))
_POINTS = _POINTS + np.float32(7.5)

# Parameters beyond which incomplete functions are what they are there; their inverses are finite.
_MAX_PARAMETER = 1e30

# The smallest number that kernels don't take as 0, and the magnitude of TensorFlow's logarithms of smaller ones.
_TINY = float(np.finfo(np.float32).tiny)
_MAX_NEAR_ZERO = 150 * math.log(2)

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
    return distance * math.pi, abs(distance) < _TINY


def _lgamma_near(size: Tensor) -> Tensor:
    near = (size < 1).where(size - 1, size - 2)
    return near * (near + 1) * near.horner(_LGAMMA_NEAR) + (-size.minimum(1).log()).minimum(_MAX_NEAR_ZERO)


def lgamma(x: Tensor) -> Tensor:
    x, dtype = x.wide(), x.dtype
    size = abs(x)
    inverse = 1 / size
    far = (size - 0.5) * (size.log() - 1) + _STIRLING + inverse.square().horner(_LGAMMA_FAR) * inverse
    found = (size < _FAR).where(_lgamma_near(size), far)
    angle, is_pole = _to_pole(size)
    # By the reflection formula; where its logarithms are infinite, so is the function.
    other = is_pole.where(math.inf, math.log(math.pi) - abs(angle.sin()).log() - size.log() - found)
    return (x <= 0).where(other, found).cast(dtype)


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
    return (x < _TINY).where(is_pole.where(math.nan, other), found).cast(dtype)


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


def _phi(x: Tensor, following: Tensor) -> Tensor:
    """Returns x - log(1 + x), whose digits are those of a product near 0; `following` is 1 + x."""
    return (abs(x) < 0.5).where(x.square() * x.horner(_PHI), x - following.log())


def _exponential_rest(x: Tensor) -> Tensor:
    """Returns exp(x) - 1 - x in the same way."""
    return (abs(x) < 1).where(x.square() * x.horner(_EXPONENTIAL_REST), x.exp() - 1 - x)


def _stirling_rest(a: Tensor) -> Tensor:
    """Returns what Stirling's formula lacks of log(gamma(a))."""
    inverse, half = 1 / a, math.log(2 * math.pi) / 2
    near = _lgamma_near(a) - (a - 0.5) * a.log() + a - half
    return (a < _FAR).where(near, inverse.square().horner(_LGAMMA_FAR) * inverse)


class _Integral(NamedTuple):
    """A function that falls from 1 on, for integrals of it.

    Attributes:
        points: Where it is known, along a new last dimension.
        width: How far apart these are, in comparison with `_POINTS`.
        values: What it is there.
    """

    points: Tensor
    width: Tensor
    values: Tensor

    def total(self, factor: Tensor | float = 1.0) -> Tensor:
        """Returns the integral of the function times a factor."""
        weighted = self.values * self.values.of(_WEIGHTS)
        return self.width * (weighted if isinstance(factor, float) else weighted * factor).sum([-1])


def _points(slope: Tensor, curvature: Tensor) -> tuple[Tensor, Tensor]:
    """Returns points for the function exp(-slope y - curvature y^2 / 2), and their width."""
    width = 2 / (slope + (slope.square() + curvature * 2).sqrt())
    return width.expand_dims(-1) * width.of(_POINTS), width


class _Incomplete(NamedTuple):
    """The incomplete gamma function: its smaller part is `density * part`, that below x where `is_lower` holds.

    Attributes:
        logarithm: That of x / a.
        is_lower: Whether it is the part below x.
        density: That of the distribution, times x.
        integral: The one from 0 to x, or from there on, as one of exp(y), by which x is more or less than its variable.
        part: The smaller part without the density.
        inverse: 1 / a.
    """

    logarithm: Tensor
    is_lower: Tensor
    density: Tensor
    integral: _Integral
    part: Tensor
    inverse: Tensor


def _incomplete(a: Tensor, x: Tensor) -> _Incomplete:
    is_lower = x < a + 1
    slope = is_lower.where(a + 1 - x, x - a)
    points, width = _points(slope, x)
    wide_x = x.expand_dims(-1)
    rest = _exponential_rest(is_lower.expand_dims(-1).where(-points, points))
    integral = _Integral(points, width, (-slope.expand_dims(-1) * points - wide_x * rest).exp())
    inverse = 1 / a
    distance = (x - a) * inverse
    phi = _phi(distance, x * inverse)
    density = (a * (1 / (2 * math.pi))).sqrt() * (-a * phi - _stirling_rest(a)).exp()
    total = integral.total()
    return _Incomplete(
        distance - phi, is_lower, density, integral, is_lower.where((x * total + 1) * inverse, total), inverse
    )


def _limited(*operands: Tensor) -> list[Tensor]:
    return [operand.wide().minimum(_MAX_PARAMETER) for operand in operands]


def igamma(is_lower: bool, a: Tensor, x: Tensor) -> Tensor:
    """Returns the part of gamma's integral below x, or the one above."""
    dtype, (a, x) = a.dtype, _limited(a, x)
    found = _incomplete(a, x)
    smaller = found.density * found.part
    chosen = found.is_lower if is_lower else ~found.is_lower
    return ((x < 0) | (a <= 0)).where(math.nan, chosen.where(smaller, 1 - smaller)).cast(dtype)


def _slope_of_igamma(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the derivative of the part below x with respect to a, without the factor beside it."""
    found = _incomplete(a, x)
    moment = found.integral.total(found.integral.points)
    square = found.inverse.square()
    far = square.horner(_DIGAMMA_FAR) * square - found.inverse * 0.5
    following = a + 1
    # The logarithm of x less digamma at a + 1.
    logarithm = found.logarithm + (a < _FAR).where(a.log() - following.op("Digamma", following), far)
    lower = logarithm * found.part - x * found.inverse * moment
    upper = -((logarithm + found.inverse) * found.part) - moment
    return x.equal(0).where(0, found.is_lower.where(lower, upper)), found.density


def igamma_grad_a(a: Tensor, x: Tensor) -> Tensor:
    dtype, (a, x) = a.dtype, _limited(a, x)
    slope, density = _slope_of_igamma(a, x)
    found = density.equal(0).where(0, slope * density)
    return ((x < 0) | (a <= 0)).where(math.nan, found).cast(dtype)


def random_gamma_grad(alpha: Tensor, sample: Tensor) -> Tensor:
    dtype, (a, x) = alpha.dtype, _limited(alpha, sample)
    return (x * -_slope_of_igamma(a, x)[0]).cast(dtype)


def betainc(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """Integrates over y, where the variable of beta's integral is x exp(-y); beyond the mean, from the other end."""
    dtype, (a, b, x) = a.dtype, _limited(a, b, x)
    is_nan = (x < 0) | (x > 1) | (a <= 0) | (b <= 0)
    is_lower = x < (a + 1) / (a + b + 2)
    x, other = is_lower.where(x, 1 - x), is_lower.where(1 - x, x)
    first, second = is_lower.where(a, b), is_lower.where(b, a)
    odds, both = x / other, first + second
    power = second - 1
    slope = first + 1 - power * odds
    points, width = _points(slope.minimum(first + 1), (power * odds * (odds + 1)).maximum(0))
    wide_odds = odds.expand_dims(-1)
    grown = wide_odds * (1 - (-points).exp())
    rest = wide_odds * _exponential_rest(-points) + _phi(grown, grown + 1)
    integral = _Integral(points, width, (-slope.expand_dims(-1) * points - power.expand_dims(-1) * rest).exp())
    # The factor is that of the maximum, but for the distance from it.
    distance = x * second - other * first
    exponent = _stirling_rest(both) - _stirling_rest(first) - _stirling_rest(second)
    exponent = exponent - first * _phi(distance / first, x * both / first)
    exponent = exponent - second * _phi(-distance / second, other * both / second)
    factor = (first * (second / both) * (1 / (2 * math.pi))).sqrt() * exponent.exp()
    smaller = factor / first * (x * both * integral.total() / other + 1)
    return is_nan.where(math.nan, is_lower.where(smaller, 1 - smaller)).cast(dtype)


def _function(name: str, function: Function, **more: Any) -> OpDeclaration:
    """Declares a function of operands of one dtype, computed in float64, then rounded once."""

    def compute(call: Call) -> Results:
        return (typed(function(*map(wide, call.inputs)), call.inputs[0].dtype),)

    return op(name, compute=compute, verified=True, **more)


def _incomplete_function(name: str, formula: Formula, **more: Any) -> OpDeclaration:
    return op(name, shape=broadcasting, decompose=(Decomposition(formula, requires=has_few_digits),), **more)


OPS = (
    _incomplete_function("Betainc", betainc),
    _function("Digamma", digamma, shape=same, decompose=digamma_formula),
    _incomplete_function("Igamma", partial(igamma, True), verified=True),
    _incomplete_function("IgammaGradA", igamma_grad_a, verified=True),
    _incomplete_function("Igammac", partial(igamma, False), verified=True),
    _function("Lgamma", each(log_gamma), shape=same, decompose=lgamma),
    _function("Polygamma", polygamma, shape=broadcasting, decompose=polygamma_formula),
    _incomplete_function("RandomGammaGrad", random_gamma_grad, verified=True),
    _function("Zeta", zeta, shape=broadcasting, decompose=zeta_formula),
)
