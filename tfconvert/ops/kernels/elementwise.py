"""Arithmetic, element by element, with numpy's broadcasting, which is TensorFlow's.

Integers wrap around; a division of integers by zero is an error; floats follow IEEE 754.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from tfconvert.ops.kernels import special_functions
from tfconvert.ops.kernels.call import Array, Call, Function, Kernel, Results, typed, wide
from tfconvert.schema.diagnostics import error

_SELU_SCALE = 1.0507009873554805
_SELU_ALPHA = 1.7580993408473768


def _unary(function: Function, call: Call) -> Results:
    (x,) = call.inputs
    return (typed(function(x), x.dtype),)


def _wide_unary(function: Function, call: Call) -> Results:
    (x,) = call.inputs
    return (typed(function(wide(x)), x.dtype),)


def _binary(function: Function, call: Call) -> Results:
    x, y = call.inputs
    return (typed(function(x, y), x.dtype),)


def _division(integers: Function, floats: Function, call: Call) -> Results:
    x, y = call.inputs
    if x.dtype.kind not in "iu":
        return (typed(floats(x, y), x.dtype),)
    if not y.all():
        raise error("integer-division-by-zero", "an integer is divided by zero", op=f"tf.{call.op}")
    return (typed(integers(x, y), x.dtype),)


def _predicate(function: Function, call: Call) -> Results:
    return (typed(function(*call.inputs), np.dtype(np.bool_)),)


def _equality(function: Function, call: Call) -> Results:
    x, y = call.inputs
    try:
        return (typed(function(x, y), np.dtype(np.bool_)),)
    except ValueError:
        if call.flag("incompatible_shape_error", True):
            raise
        return (np.array(call.op == "NotEqual"),)


def _truncated_quotient(x: Array, y: Array) -> Array:
    return np.asarray((x - np.fmod(x, y)) // y)


def _floor_remainder(x: Array, y: Array) -> Array:
    remainder = np.fmod(x, y)
    return np.where((remainder != 0) & ((y < 0) != (remainder < 0)), remainder + y, remainder)


def _unless_zero(function: Function, x: Array, y: Array) -> Array:
    """Returns `function(x, y)`, and 0 where x is 0, whatever y is."""
    return np.where(x == 0, np.zeros((), x.dtype), function(x, y))


def _no_nan(function: Function, x: Array, y: Array) -> Array:
    """Returns `function(x, y)`, and 0 where y is 0, whatever x is."""
    return np.where(y == 0, np.zeros((), x.dtype), function(x, y))


def _squared_difference(x: Array, y: Array) -> Array:
    difference = x - y
    return np.asarray(np.conj(difference) * difference if x.dtype.kind == "c" else difference * difference)


def _shift(function: Function, x: Array, y: Array) -> Array:
    """Shifts by at least 0 and at most the width less one, where C++ leaves the result undefined."""
    return np.asarray(function(x, np.clip(y, 0, x.dtype.itemsize * 8 - 1).astype(x.dtype)))


def _power(x: Array, y: Array) -> Array:
    return np.asarray(np.power(x, y)) if x.dtype.kind in "iufc" else np.power(wide(x), wide(y))


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


def _round(x: Array) -> Array:
    return x if x.dtype.kind in "iu" else np.asarray(np.rint(x))


def _population_count(call: Call) -> Results:
    (x,) = call.inputs
    return (np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(np.uint8),)


def _part(function: Function, call: Call) -> Results:
    """Takes a real number from a complex one."""
    return (np.array(function(call.inputs[0])),)


def _complex(call: Call) -> Results:
    real, imaginary = call.inputs
    result = np.empty(np.broadcast_shapes(real.shape, imaginary.shape), np.result_type(real.dtype, np.complex64))
    result.real, result.imag = real, imaginary
    return (result,)


def _approximate_equal(call: Call) -> Results:
    x, y = call.inputs
    return (np.asarray(np.abs(x - y) < typed(call.number("tolerance", 1e-5), x.dtype)),)


def _cast(call: Call) -> Results:
    (x,) = call.inputs
    dtype = call.dtype("DstT")
    if x.dtype == dtype:
        return (x,)
    if dtype.kind == "b":
        return (x != 0,)
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real
    return (wide(x).astype(dtype),)


def _to_bool(call: Call) -> Results:
    """Returns whether a number isn't zero; whether a string, or a value with dimensions, isn't empty."""
    (x,) = call.inputs
    return (np.array(x.size > 0 if x.ndim else bool(x[()])),)


def _clip(call: Call) -> Results:
    x, low, high = call.inputs
    return (typed(np.minimum(np.maximum(x, low), high), x.dtype),)


def _select(call: Call) -> Results:
    condition, x, y = call.inputs
    if condition.ndim == 1 and x.ndim > 1:
        condition = condition.reshape(-1, *[1] * (x.ndim - 1))
    return (np.where(condition, x, y),)


def _select_v2(call: Call) -> Results:
    condition, x, y = call.inputs
    return (np.where(condition, x, y),)


def _add_n(call: Call) -> Results:
    total = call.inputs[0]
    for term in call.inputs[1:]:
        total = total + term
    return (typed(total, call.inputs[0].dtype),)


def _check_numerics(call: Call) -> Results:
    (x,) = call.inputs
    if not np.isfinite(wide(x)).all():
        raise call.bad(f"{call.text('message')}: the tensor has an infinite or not-a-number element")
    return call.inputs


_UNARY: Mapping[str, Function] = {
    "Abs": np.abs,
    "Conj": np.conj,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Inv": np.reciprocal,
    "Invert": np.invert,
    "LogicalNot": np.logical_not,
    "Neg": np.negative,
    "Reciprocal": np.reciprocal,
    "Relu": lambda x: np.maximum(x, typed(0, x.dtype)),
    "Relu6": lambda x: np.minimum(np.maximum(x, typed(0, x.dtype)), typed(6, x.dtype)),
    "Rint": np.rint,
    "Round": _round,
    "Sign": np.sign,
    "Square": np.square,
}

# Computed in float32 where the dtype is narrower, then rounded once.
_WIDE_UNARY: Mapping[str, Function] = {
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "BesselI0e": partial(special_functions.bessel_ie, 0),
    "BesselI1e": partial(special_functions.bessel_ie, 1),
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Elu": _elu,
    "Erf": special_functions.erf,
    "Erfc": special_functions.erfc,
    "Erfinv": special_functions.each(special_functions.erf_inverse),
    "Exp": np.exp,
    "Expm1": np.expm1,
    "Lgamma": special_functions.each(special_functions.log_gamma),
    "Log": np.log,
    "Log1p": np.log1p,
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Selu": _selu,
    "Sigmoid": sigmoid,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Softplus": _softplus,
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Sqrt": np.sqrt,
    "Tan": np.tan,
    "Tanh": np.tanh,
}

_BINARY: Mapping[str, Function] = {
    "Add": np.add,
    "AddV2": np.add,
    "Atan2": np.arctan2,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "DivNoNan": partial(_no_nan, np.divide),
    "LeftShift": partial(_shift, np.left_shift),
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Mul": np.multiply,
    "MulNoNan": partial(_no_nan, np.multiply),
    "NextAfter": np.nextafter,
    "Pow": _power,
    "RealDiv": np.divide,
    "RightShift": partial(_shift, np.right_shift),
    "SquaredDifference": _squared_difference,
    "Sub": np.subtract,
    "Xdivy": partial(_unless_zero, np.divide),
    "Xlog1py": partial(_unless_zero, lambda x, y: x * np.log1p(y)),
    "Xlogy": partial(_unless_zero, lambda x, y: x * np.log(y)),
}

# Op -> what it does with integers, and with all else.
_DIVISIONS: Mapping[str, tuple[Function, Function]] = {
    "Div": (_truncated_quotient, np.divide),
    "FloorDiv": (np.floor_divide, lambda x, y: np.floor(x / y)),
    "FloorMod": (_floor_remainder, _floor_remainder),
    "Mod": (np.fmod, np.fmod),
    "TruncateDiv": (_truncated_quotient, lambda x, y: np.trunc(x / y)),
    "TruncateMod": (np.fmod, np.fmod),
}

_PREDICATES: Mapping[str, Function] = {
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "IsFinite": np.isfinite,
    "IsInf": np.isinf,
    "IsNan": np.isnan,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
}

_PARTS: Mapping[str, Function] = {"Angle": np.angle, "ComplexAbs": np.abs, "Imag": np.imag, "Real": np.real}

KERNELS: Mapping[str, Kernel] = {
    **{name: partial(_unary, function) for name, function in _UNARY.items()},
    **{name: partial(_wide_unary, function) for name, function in _WIDE_UNARY.items()},
    **{name: partial(_binary, function) for name, function in _BINARY.items()},
    **{name: partial(_division, *functions) for name, functions in _DIVISIONS.items()},
    **{name: partial(_predicate, function) for name, function in _PREDICATES.items()},
    **{name: partial(_part, function) for name, function in _PARTS.items()},
    **dict.fromkeys(("AccumulateNV2", "AddN"), _add_n),
    "ApproximateEqual": _approximate_equal,
    "Cast": _cast,
    "CheckNumerics": _check_numerics,
    "CheckNumericsV2": _check_numerics,
    "ClipByValue": _clip,
    "Complex": _complex,
    "Equal": partial(_equality, np.equal),
    "LeakyRelu": _leaky_relu,
    "NotEqual": partial(_equality, np.not_equal),
    "PopulationCount": _population_count,
    "Select": _select,
    "SelectV2": _select_v2,
    "ToBool": _to_bool,
}
"""Op name -> kernel."""
