"""Functions of numbers, element by element, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from tfconvert.ops.decomposition import Decomposition
from tfconvert.ops.decompositions.requirements import has_few_digits, rank_is_known
from tfconvert.ops.formula import Elementwise, Tensor
from tfconvert.ops.kernels.special_functions import (
    BESSEL_I0_BOUND,
    BESSEL_I0_MIDDLE,
    BESSEL_I0_TAIL,
    ERF_DENOMINATOR,
    ERF_NUMERATOR,
)

E = TypeVar("E", bound=Elementwise)

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

SELU_SCALE = 1.0507009873554804934193349852946
SELU_SCALE_ALPHA = 1.7580993408473768599402175208123

# A number whose square doesn't overflow, while adding one to the square of a larger one changes nothing.
_LARGE = 1e18


def erf(x: E) -> E:
    x = x.minimum(_ERF_BOUND).maximum(-_ERF_BOUND)
    square = x.square()
    return x * square.horner(ERF_NUMERATOR) / square.horner(ERF_DENOMINATOR)


def erfc(x: E) -> E:
    z = abs(x)
    t = 1 / (z * 0.5 + 1)
    tail = t * (t.horner(_ERFC_P) - z.square()).exp()
    return (x < 0).where(2 - tail, tail)


def erfinv(x: E) -> E:
    inside = (1 - x) * (x + 1)
    w = -inside.log()
    factor = (w < 5).where((w - 2.5).horner(_ERFINV_MIDDLE), (w.sqrt() - 3).horner(_ERFINV_TAIL))
    # At -1 and 1 the polynomial is of infinity, and of different signs.
    return inside.equal(0).where(math.inf, factor) * x


def expm1(x: E) -> E:
    """`tanh(x/2) * (exp(x) + 1)`: keeps its digits near zero, where `exp(x) - 1` loses them."""
    return (x * 0.5).tanh() * (x.exp() + 1)


def log1p(x: E) -> E:
    return (x + 1).log()


def tan(x: E) -> E:
    return x.sin() / x.cos()


def cosh(x: E) -> E:
    return (x.exp() + (-x).exp()) * 0.5


def sinh(x: E) -> E:
    """`tanh(x/2) * (cosh(x) + 1)`, which keeps its digits near zero."""
    return (x * 0.5).tanh() * (cosh(x) + 1)


def asinh(x: E) -> E:
    size = abs(x)
    root = (size.minimum(_LARGE).square() + 1).sqrt()
    return x.sign() * (size + root.maximum(size)).log()


def acosh(x: E) -> E:
    return (x + (x - 1).sqrt() * (x + 1).sqrt()).log()


def atanh(x: E) -> E:
    return ((x + 1) / (1 - x)).log() * 0.5


def _other_side(x: E) -> E:
    return ((1 - x) * (x + 1)).sqrt()


def asin(x: E) -> E:
    return x.atan2(_other_side(x))


def acos(x: E) -> E:
    return _other_side(x).atan2(x)


def atan(x: E) -> E:
    return x.atan2(x.ones_like())


def bessel_i0e(x: Tensor) -> Tensor:
    size = abs(x.wide())
    part = size * (1 / BESSEL_I0_BOUND)
    middle = part.square().horner(BESSEL_I0_MIDDLE) * (-size).exp()
    tail = (1 / part).horner(BESSEL_I0_TAIL) * part.rsqrt()
    # What is not chosen may be infinite, or NaN.
    return (part < 1).where(middle, tail).cast(x.dtype)


def reciprocal(x: E) -> E:
    return 1 / x


def div_no_nan(x: E, y: E) -> E:
    return y.equal(0).where(0, x / y)


def mul_no_nan(x: E, y: E) -> E:
    return y.equal(0).where(0, x * y)


def xdivy(x: E, y: E) -> E:
    return x.equal(0).where(0, x / y)


def xlogy(x: E, y: E) -> E:
    return x.equal(0).where(0, x * y.log())


def xlog1py(x: E, y: E) -> E:
    return x.equal(0).where(0, x * y.log1p())


def is_nan(x: E) -> E:
    return x.not_equal(x)


def is_inf(x: E) -> E:
    return abs(x).equal(math.inf)


def is_finite(x: E) -> E:
    return (x - x).equal(0)


def approximate_equal(x: E, y: E, *, tolerance: float = 1e-5) -> E:
    return abs(x - y) < tolerance


def truncate_div(x: E, y: E) -> E:
    quotient = x / y
    return (quotient < 0).where(quotient.ceil(), quotient.floor())


def truncate_div_of_integers(x: Tensor, y: Tensor) -> Tensor:
    return x.op("Div", x, y)  # type: ignore[no-any-return]


def truncate_mod(x: E, y: E) -> E:
    """The remainder of the sizes, with the dividend's sign."""
    return abs(x) % abs(y) * x.sign()


def truncate_mod_of_integers(x: E, y: E) -> E:
    """The floored remainder, less the divisor where its sign is not the dividend's: no absolute value is computed."""
    floored = x % y
    is_away = (x < 0).not_equal(floored < 0) & floored.not_equal(0)
    return is_away.where(floored - y, floored)


def clip_by_value(x: E, low: E, high: E) -> E:
    """Where the bounds are swapped, TensorFlow returns the lower one."""
    return x.clip(low, high)


def add_n(first: E, *others: E) -> E:
    for other in others:
        first = first + other
    return first


def l2_loss(x: Tensor) -> Tensor:
    return x.square().sum(range(x.rank)) * 0.5


def sigmoid_grad(y: E, gradient: E) -> E:
    return gradient * y * (1 - y)


def tanh_grad(y: E, gradient: E) -> E:
    return gradient * (1 - y.square())


def _where_sloped(gradient: E, result: E) -> E:
    """Returns zero where the gradient is zero, however steep the function is there, as TensorFlow does."""
    return gradient.equal(0).where(0, result)


def rsqrt_grad(y: E, gradient: E) -> E:
    return _where_sloped(gradient, gradient * (y.square() * y) * -0.5)


def sqrt_grad(y: E, gradient: E) -> E:
    return _where_sloped(gradient, gradient * 0.5 / y)


def reciprocal_grad(y: E, gradient: E) -> E:
    return _where_sloped(gradient, -(gradient * y.square()))


def relu_grad(gradient: E, x: E) -> E:
    return (x > 0).where(gradient, 0)


def relu6_grad(gradient: E, x: E) -> E:
    return ((x > 0) & (x < 6)).where(gradient, 0)


def leaky_relu_grad(gradient: E, x: E, *, alpha: float = 0.2) -> E:
    slope = gradient * alpha
    return (x > 0).where(gradient, slope)


def elu_grad(gradient: E, y: E) -> E:
    """Below zero the derivative is `exp(x)`, which is one more than the result."""
    slope = (y + 1) * gradient
    return (y < 0).where(slope, gradient)


def selu_grad(gradient: E, y: E) -> E:
    slope = (y + SELU_SCALE_ALPHA) * gradient
    return (y < 0).where(slope, gradient * SELU_SCALE)


def softplus_grad(gradient: E, x: E) -> E:
    return gradient / ((-x).exp() + 1)


def softsign_grad(gradient: E, x: E) -> E:
    return gradient / (abs(x) + 1).square()


def bias_add_grad(gradient: Tensor, *, data_format: str = "NHWC") -> Tensor:
    channel = 1 if data_format == "NCHW" else gradient.rank - 1
    return gradient.sum([axis for axis in range(gradient.rank) if axis != channel])


DECOMPOSITIONS: Sequence[Decomposition] = (
    Decomposition("Erf", erf),
    Decomposition("Erfc", erfc),
    Decomposition("Erfinv", erfinv),
    Decomposition("Expm1", expm1),
    Decomposition("Log1p", log1p),
    Decomposition("Tan", tan),
    Decomposition("Sinh", sinh),
    Decomposition("Cosh", cosh),
    Decomposition("Asinh", asinh),
    Decomposition("Acosh", acosh),
    Decomposition("Atanh", atanh),
    Decomposition("Asin", asin),
    Decomposition("Acos", acos),
    Decomposition("Atan", atan),
    Decomposition("BesselI0e", bessel_i0e, requires=has_few_digits),
    Decomposition("Reciprocal", reciprocal),
    Decomposition("Inv", reciprocal),
    Decomposition("DivNoNan", div_no_nan),
    Decomposition("MulNoNan", mul_no_nan),
    Decomposition("Xdivy", xdivy),
    Decomposition("Xlogy", xlogy),
    Decomposition("Xlog1py", xlog1py),
    Decomposition("IsNan", is_nan),
    Decomposition("IsInf", is_inf),
    Decomposition("IsFinite", is_finite),
    Decomposition("ApproximateEqual", approximate_equal),
    Decomposition("TruncateDiv", truncate_div),
    Decomposition("TruncateDiv", truncate_div_of_integers, "i32"),
    *(Decomposition(op, truncate_mod) for op in ("TruncateMod", "Mod")),
    *(Decomposition(op, truncate_mod_of_integers, "integer") for op in ("TruncateMod", "Mod")),
    Decomposition("SigmoidGrad", sigmoid_grad),
    Decomposition("TanhGrad", tanh_grad),
    Decomposition("RsqrtGrad", rsqrt_grad),
    Decomposition("SqrtGrad", sqrt_grad),
    Decomposition("ReciprocalGrad", reciprocal_grad),
    Decomposition("InvGrad", reciprocal_grad),
    Decomposition("ReluGrad", relu_grad),
    Decomposition("Relu6Grad", relu6_grad),
    Decomposition("LeakyReluGrad", leaky_relu_grad),
    Decomposition("EluGrad", elu_grad),
    Decomposition("SeluGrad", selu_grad),
    Decomposition("SoftplusGrad", softplus_grad),
    Decomposition("SoftsignGrad", softsign_grad),
    Decomposition("BiasAddGrad", bias_add_grad, "number", rank_is_known),
    Decomposition("ClipByValue", clip_by_value, "number"),
    Decomposition("L2Loss", l2_loss, requires=rank_is_known),
)
