"""Elementwise ops of StableHLO: arithmetic, comparisons, conversions, special functions.

Kernels accept arrays of one shape, or arrays that broadcast to each other, so that bodies of reductions compute many
elements at once. Integers wrap around; a division by zero yields -1, its remainder the dividend, as in XLA.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from tfconvert.converter.executor.stablehlo.properties import Kernel, dtype_of
from tfconvert.converter.executor.tasks import bad
from tfconvert.ops import gamma_functions, special_functions
from tfconvert.ops.call import Array, Dtype, Results, is_float, wide
from tfconvert.ops.random_bits import ALGORITHMS, generate
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.stablehlo_properties import text
from tfconvert.schema.ir.operation import Operation

bessel_i1e = partial(special_functions.bessel_ie, 1)
erf = special_functions.erf
erfc = special_functions.erfc
erf_inv = special_functions.each(special_functions.erf_inverse)
log_gamma = special_functions.each(gamma_functions.log_gamma)


Function = Callable[..., Any]


def _same(function: Function) -> Kernel:
    """Returns a kernel whose result has the dtype of its operands."""
    return lambda op, inputs: np.asarray(function(*inputs)).astype(inputs[0].dtype, copy=False)


def _wide(function: Function) -> Kernel:
    """Returns a kernel that computes 16-bit floats in 32 bits."""
    return lambda op, inputs: np.asarray(function(*map(wide, inputs))).astype(inputs[0].dtype, copy=False)


def _truth(function: Function) -> Kernel:
    return lambda op, inputs: np.asarray(function(*inputs)).astype(np.bool_, copy=False)


def bits(array: Array) -> Array:
    """Returns the bits of numbers as unsigned integers."""
    return array.view(np.dtype(f"u{array.dtype.itemsize}"))


def divide(x: Array, y: Array) -> Array:
    """Returns the quotient, truncated for integers."""
    if x.dtype.kind not in "iu":
        return np.asarray(np.divide(x, y))
    safe = np.where(y == 0, np.ones((), y.dtype), y)
    quotient = np.where(safe == -1, -x, (x - np.fmod(x, safe)) // safe) if x.dtype.kind == "i" else x // safe
    return np.where(y == 0, ~np.zeros((), x.dtype), quotient)


def remainder(x: Array, y: Array) -> Array:
    """Returns the remainder, which has the sign of the dividend."""
    if x.dtype.kind not in "iu":
        return np.asarray(np.fmod(x, y))
    safe = np.where((y == 0) | (y == -1), np.ones((), y.dtype), y) if x.dtype.kind == "i" else np.maximum(y, 1)
    return np.where(y == 0, x, np.fmod(x, safe))


def _power(x: Array, y: Array) -> Array:
    if x.dtype.kind != "i":
        return np.asarray(np.power(x, y))
    positive = np.power(x, np.maximum(y, 0))
    odd = np.where(y & 1, x, np.ones((), x.dtype))
    return np.asarray(np.where(y >= 0, positive, np.where(x == 1, 1, np.where(x == -1, odd, 0))))


def _shift(function: Function, beyond: Function) -> Function:
    """Returns a shift; shifts by the type's width or more give `beyond`."""

    def shift(x: Array, y: Array) -> Array:
        width = x.dtype.itemsize * 8
        amount = y.astype(np.dtype(f"u{y.dtype.itemsize}"))
        kept = np.minimum(amount, amount.dtype.type(width - 1)).astype(x.dtype)
        return np.asarray(np.where(amount < width, function(x, kept), beyond(x)))

    return shift


def _shift_right_logical(x: Array, y: Array) -> Array:
    shifted: Array = _shift(np.right_shift, np.zeros_like)(bits(x), y)
    return shifted.view(x.dtype)


def _negate(x: Array) -> Array:
    return np.asarray(x if x.dtype.kind == "b" else np.negative(x))


def _leading_zeros(x: Array) -> Array:
    width, left, count = x.dtype.itemsize * 8, bits(np.ascontiguousarray(x)).reshape(x.shape), np.zeros(x.shape, int)
    for bit in range(width):
        count = np.where((left >> left.dtype.type(bit)) != 0, bit + 1, count)
    return np.asarray(width - count)


def _sign(x: Array) -> Array:
    if x.dtype.kind != "c":
        return np.asarray(np.sign(x))
    size = np.abs(x)
    return np.where(size == 0, np.zeros((), x.dtype), x / np.where(size == 0, 1, size))


def _round_away(x: Array) -> Array:
    return np.asarray(np.trunc(x + np.copysign(np.where(np.abs(x) < 2.0**52, 0.5, 0.0), x)))


def _logistic(x: Array) -> Array:
    if x.dtype.kind == "c":
        return np.asarray(1 / (1 + np.exp(-x)))
    decay = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, np.ones((), x.dtype), decay) / (1 + decay))


def _cube_root(x: Array) -> Array:
    return np.asarray(np.cbrt(x))


_DIRECTIONS: Mapping[str, Function] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
}


def total_order(x: Array) -> Array:
    """Returns integers in the order of floats: -NaN, -inf, ..., -0, +0, ..., inf, NaN."""
    if not is_float(x.dtype):
        return x
    held = np.ascontiguousarray(x).view(np.dtype(f"i{x.dtype.itemsize}")).reshape(x.shape)
    return np.where(held < 0, np.iinfo(held.dtype).max ^ held, held)


def compare(op: Operation, inputs: Results) -> Array:
    x, y = map(total_order, inputs) if text(op, "compare_type") == "TOTALORDER" else inputs
    return np.asarray(_DIRECTIONS[text(op, "comparison_direction")](x, y))


def _select(op: Operation, inputs: Results) -> Array:
    return np.where(*inputs)


def _clamp(op: Operation, inputs: Results) -> Array:
    low, x, high = inputs
    return np.asarray(np.minimum(np.maximum(x, low), high)).astype(x.dtype, copy=False)


def cast(x: Array, dtype: Dtype) -> Array:
    """Converts to a dtype; floats are clamped to the range of integers, and NaN becomes 0."""
    if x.dtype == dtype:
        return x
    if dtype.kind == "b":
        return np.asarray(x != 0)
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real
    if dtype.kind not in "iu" or not is_float(x.dtype):
        return x.astype(dtype)
    info, numbers = np.iinfo(dtype), np.trunc(np.nan_to_num(x.astype(np.float64), posinf=np.inf, neginf=-np.inf))
    inside = np.where((numbers >= float(info.max)) | (numbers <= float(info.min)), 0, numbers).astype(dtype)
    return np.where(numbers >= float(info.max), info.max, np.where(numbers <= float(info.min), info.min, inside))


def _convert(op: Operation, inputs: Results) -> Array:
    return cast(inputs[0], dtype_of(op))


def _bitcast(op: Operation, inputs: Results) -> Array:
    (x,) = inputs
    dtype = dtype_of(op)
    if dtype.itemsize == x.dtype.itemsize:
        return np.ascontiguousarray(x).view(dtype).reshape(x.shape)
    if dtype.itemsize < x.dtype.itemsize:
        return np.ascontiguousarray(x[..., None]).view(dtype)
    if not x.ndim or x.shape[-1] * x.dtype.itemsize != dtype.itemsize:
        raise bad(op, f"the last dimension of {list(x.shape)} does not hold one element of the result")
    return np.ascontiguousarray(x).view(dtype)[..., 0]


def _random_bits(op: Operation, inputs: Results) -> Results:
    shape, dtype = op.results[1].shape, dtype_of(op, 1)
    if shape is None or not types.is_static(shape) or dtype.itemsize > 4:
        raise bad(op, "only numbers of up to 32 bits in a static shape are computed")
    state, bits = generate(ALGORITHMS.index(text(op, "rng_algorithm")), inputs[0], shape)
    return state, bits.astype(f"u{dtype.itemsize}").view(dtype)


def _complex(op: Operation, inputs: Results) -> Array:
    real, imaginary = inputs
    result = np.empty(np.broadcast_shapes(real.shape, imaginary.shape), dtype_of(op))
    result.real, result.imag = real, imaginary
    return result


def _reduce_precision(op: Operation, inputs: Results) -> Array:
    """Rounds the mantissa to nearest even; values beyond the exponent's range become infinity or zero."""
    (x,) = inputs
    numbers, minimum = x.astype(np.float64), 2 - (1 << (_bits(op, "exponent_bits") - 1))
    mantissa, exponent = np.frexp(numbers)
    scale = float(1 << (_bits(op, "mantissa_bits") + 1))
    rounded = np.ldexp(np.rint(mantissa * scale) / scale, exponent)
    limit = 2.0 ** (1 - minimum + 1)
    rounded = np.where(np.abs(rounded) >= limit, np.copysign(np.inf, numbers), rounded)
    rounded = np.where(np.abs(rounded) < 2.0**minimum, np.copysign(0.0, numbers), rounded)
    return np.where(np.isfinite(numbers), rounded, numbers).astype(x.dtype)


def _bits(op: Operation, name: str) -> int:
    value: Any = op.properties[name]
    return int(value.value)


def _cast_real(function: Function) -> Kernel:
    return lambda op, inputs: np.asarray(function(inputs[0])).astype(dtype_of(op), copy=False)


_SAME: Mapping[str, Function] = {
    "add": np.add,
    "and": np.bitwise_and,
    "ceil": np.ceil,
    "count_leading_zeros": _leading_zeros,
    "floor": np.floor,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "negate": _negate,
    "not": np.bitwise_not,
    "or": np.bitwise_or,
    "popcnt": lambda x: np.bitwise_count(bits(np.ascontiguousarray(x)).reshape(x.shape)),
    "remainder": remainder,
    "round_nearest_even": np.rint,
    "shift_left": _shift(np.left_shift, np.zeros_like),
    "shift_right_arithmetic": _shift(np.right_shift, lambda x: np.where(x < 0, ~np.zeros_like(x), np.zeros_like(x))),
    "shift_right_logical": _shift_right_logical,
    "sign": _sign,
    "subtract": np.subtract,
    "xor": np.bitwise_xor,
    "divide": divide,
}

_WIDE: Mapping[str, Function] = {
    "atan2": np.arctan2,
    "cbrt": _cube_root,
    "cosine": np.cos,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "log": np.log,
    "log_plus_one": np.log1p,
    "logistic": _logistic,
    "power": _power,
    "round_nearest_afz": _round_away,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sine": np.sin,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}

_CHLO: Mapping[str, Function] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "bessel_i1e": bessel_i1e,
    "cosh": np.cosh,
    "digamma": gamma_functions.digamma,
    "erf": erf,
    "erf_inv": erf_inv,
    "erfc": erfc,
    "lgamma": log_gamma,
    "polygamma": gamma_functions.polygamma,
    "sinh": np.sinh,
    "square": np.square,
    "tan": np.tan,
    "zeta": gamma_functions.zeta,
}

KERNELS: Mapping[str, Kernel] = {
    **{f"stablehlo.{name}": _same(function) for name, function in _SAME.items()},
    **{f"stablehlo.{name}": _wide(function) for name, function in _WIDE.items()},
    **{f"chlo.{name}": _wide(function) for name, function in _CHLO.items()},
    "chlo.is_inf": _truth(np.isinf),
    "chlo.is_neg_inf": _truth(np.isneginf),
    "chlo.is_pos_inf": _truth(np.isposinf),
    "chlo.next_after": _same(np.nextafter),
    "stablehlo.abs": _cast_real(np.abs),
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": compare,
    "stablehlo.complex": _complex,
    "stablehlo.convert": _convert,
    "stablehlo.imag": _cast_real(np.imag),
    "stablehlo.is_finite": _truth(np.isfinite),
    "stablehlo.real": _cast_real(np.real),
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.select": _select,
}
"""Op -> kernel, for ops that compute many elements at once, also in bodies of reductions."""

OTHERS: Mapping[str, Kernel] = {"stablehlo.bitcast_convert": _bitcast, "stablehlo.rng_bit_generator": _random_bits}
"""Op -> kernel, for ops that change shapes."""

SAME_SHAPES = frozenset(KERNELS) - {"stablehlo.select", "stablehlo.clamp"}
"""Ops whose operands must have one shape."""


def check_shapes(op: Operation, inputs: Results) -> None:
    """Checks that the operands of an elementwise op have equal shapes; conditions and bounds may be scalars.

    Raises:
        ConversionError: The shapes differ (`unequal-sizes`).
    """
    checked = inputs
    if op.name == "stablehlo.select" and not inputs[0].ndim:
        checked = inputs[1:]
    elif op.name == "stablehlo.clamp":
        checked = tuple(each for each in inputs if each.ndim) or inputs[1:2]
    if len({each.shape for each in checked}) > 1:
        shapes = ", ".join(str(list(each.shape)) for each in checked)
        raise bad(op, f"the operands have the shapes {shapes}, which should be equal", "unequal-sizes")


def element_dtype(op: Operation, operand: int) -> Dtype:
    return np.dtype(types.numpy_dtype(op.operands[operand].element))
