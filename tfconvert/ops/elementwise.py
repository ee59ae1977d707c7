"""Arithmetic, comparisons, logic and selection, element by element; numpy's broadcasting is TensorFlow's.

Integers wrap around; a division of integers by zero is an error; floats follow IEEE 754.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tfconvert.ops.call import Array, Call, Function, Results, typed, wide
from tfconvert.ops.declaration import Decomposition, OpDeclaration, op, ops_like
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands, Partials
from tfconvert.ops.shape_functions import Shapes, all_equal, broadcasting, same, scalars
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects.dims import (
    UNKNOWN,
    MismatchError,
    add_elements,
    are_known,
    broadcast,
    merge,
    multiply_elements,
    with_rank_at_least,
)

# Results of arithmetic beyond this stay unknown: overflow is the kernels' business.
_LIMIT = 1 << 62


def _unary(name: str, function: Function, **more: Any) -> OpDeclaration:
    """Declares an op whose result has the operand's type."""
    return op(name, shape=same, compute=partial(_compute_unary, function), verified=True, **more)


def _binary(name: str, function: Function, **more: Any) -> OpDeclaration:
    """Declares an op whose result has the operands' type."""
    return op(name, shape=broadcasting, compute=partial(_compute_binary, function), verified=True, **more)


def _division(name: str, integers: Function, floats: Function, **more: Any) -> OpDeclaration:
    """Declares a division by the functions for integers and for all else."""
    return op(name, shape=broadcasting, compute=partial(_divide, integers, floats), verified=True, **more)


def _predicate(name: str, function: Function, **more: Any) -> OpDeclaration:
    """Declares an op whose result is boolean."""
    return op(name, shape=broadcasting, compute=partial(_test, function), verified=True, **more)


def _part(name: str, function: Function) -> OpDeclaration:
    """Declares an op that takes a real number from a complex one."""
    return op(name, shape=same, compute=lambda call: (np.array(function(call.inputs[0])),), verified=True)


def _elements(operation: Callable[[int, int], int]) -> Callable[[Operands], Partials]:
    """Returns the value function of arithmetic on two elements."""
    return partial(_infer_elements, operation)


def _compute_unary(function: Function, call: Call) -> Results:
    (x,) = call.inputs
    return (typed(function(x), x.dtype),)


def _compute_binary(function: Function, call: Call) -> Results:
    x, y = call.inputs
    return (typed(function(x, y), x.dtype),)


def _divide(integers: Function, floats: Function, call: Call) -> Results:
    x, y = call.inputs
    if x.dtype.kind not in "iu":
        return (typed(floats(x, y), x.dtype),)
    if not y.all():
        raise error("integer-division-by-zero", "an integer is divided by zero", op=f"tf.{call.op}")
    return (typed(integers(x, y), x.dtype),)


def _test(function: Function, call: Call) -> Results:
    return (typed(function(*call.inputs), np.dtype(np.bool_)),)


def _equality(name: str, function: Function, otherwise: bool) -> OpDeclaration:
    """Declares a comparison; without `incompatible_shape_error`, shapes that don't broadcast are unequal."""

    def compute(call: Call) -> Results:
        try:
            return _test(function, call)
        except ValueError:
            if call.flag("incompatible_shape_error", True):
                raise
            return (np.array(otherwise),)

    return op(name, shape=_equality_shape, compute=compute, verified=True)


def _equality_shape(operands: Operands) -> Shapes:
    """Without `incompatible_shape_error` unequal shapes compare as one `false`."""
    if operands.attribute("incompatible_shape_error", True):
        return broadcasting(operands)
    first, second = operands.shape(0), operands.shape(1)
    if first is None or second is None:
        return (None,)
    pairs = zip(first[::-1], second[::-1], strict=False)
    if any(x != y and 1 not in (x, y) and min(x, y) < 0 for x, y in pairs):
        return (None,)
    try:
        return (broadcast(first, second),)
    except MismatchError:
        return ((),)


def _truncated_quotient(x: Array, y: Array) -> Array:
    return np.asarray((x - np.fmod(x, y)) // y)


def _floor_remainder(x: Array, y: Array) -> Array:
    remainder = np.fmod(x, y)
    return np.where((remainder != 0) & ((y < 0) != (remainder < 0)), remainder + y, remainder)


def _squared_difference(x: Array, y: Array) -> Array:
    difference = x - y
    return np.asarray(np.conj(difference) * difference if x.dtype.kind == "c" else difference * difference)


def _shift(function: Function, x: Array, y: Array) -> Array:
    """Shifts by at least 0 and at most the width less one, where C++ leaves the result undefined."""
    return np.asarray(function(x, np.clip(y, 0, x.dtype.itemsize * 8 - 1).astype(x.dtype)))


def _power(x: Array, y: Array) -> Array:
    return np.asarray(np.power(x, y)) if x.dtype.kind in "iufc" else np.power(wide(x), wide(y))


def _round(x: Array) -> Array:
    return x if x.dtype.kind in "iu" else np.asarray(np.rint(x))


def _population_count(call: Call) -> Results:
    (x,) = call.inputs
    return (np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(np.uint8),)


def _complex(call: Call) -> Results:
    real, imaginary = call.inputs
    result = np.empty(np.broadcast_shapes(real.shape, imaginary.shape), np.result_type(real.dtype, np.complex64))
    result.real, result.imag = real, imaginary
    return (result,)


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


def _select_shape(operands: Operands) -> Shapes:
    """`Select` takes a scalar or a vector of conditions beside a condition for each element."""
    condition = operands.shape(0)
    shape = merge(operands.shape(1), operands.shape(2))
    if condition is None or len(condition) == 0 or shape is None:
        return (shape,)
    if len(condition) == 1 and len(shape) != 1:
        with_rank_at_least(shape, 1)
        merge(condition, shape[:1])
        return (shape,)
    return (merge(shape, condition),)


def _clip_shape(operands: Operands) -> Shapes:
    shape = operands.shape(0)
    for limit in operands.shapes(1):
        if limit is not None and len(limit) > 0:
            shape = merge(shape, limit)
    return (shape,)


def _subtract(first: int, second: int) -> int:
    if second == 0:
        return first
    if first == second < UNKNOWN:
        return 0
    return first - second if are_known(first, second) else UNKNOWN


def _floor_divide(first: int, second: int) -> int:
    if second == 1:
        return first
    return first // second if are_known(first, second) and second != 0 else UNKNOWN


def _modulo(first: int, second: int) -> int:
    if second == 1:
        return 0
    return first % second if are_known(first, second) and second != 0 else UNKNOWN


def _larger(first: int, second: int) -> int:
    if first == second:
        return first
    # A dimension is never negative.
    if first < UNKNOWN and UNKNOWN < second <= 0:
        return first
    if second < UNKNOWN and UNKNOWN < first <= 0:
        return second
    return max(first, second) if are_known(first, second) else UNKNOWN


def _smaller(first: int, second: int) -> int:
    if first == second:
        return first
    return min(first, second) if are_known(first, second) else UNKNOWN


def _infer_elements(operation: Callable[[int, int], int], operands: Operands) -> Partials:
    first, second = operands.partial(0), operands.partial(1)
    if first is None or second is None:
        return [None]
    length = max(len(first), len(second)) if first and second else 0
    if len(first) not in (1, length) or len(second) not in (1, length):
        return [None]
    pairs = zip(first * (length if len(first) == 1 else 1), second * (length if len(second) == 1 else 1), strict=True)
    result = tuple(operation(one, other) for one, other in pairs)
    return [None if any(abs(element) > _LIMIT for element in result if element > UNKNOWN) else result]


def _selected_elements(operands: Operands) -> Partials:
    """A shape picked by a constant condition, or one that is the same either way."""
    first, second = operands.partial(1), operands.partial(2)
    condition = operands.value(0)
    if first is None or second is None or len(first) != len(second):
        return [None]
    if condition is not None and condition.size == 1:
        return [first if condition.reshape(-1)[0] else second]
    return [tuple(one if one == other else UNKNOWN for one, other in zip(first, second, strict=True))]


def _cast_elements(operands: Operands) -> Partials:
    """Integers keep their values if they fit into 32 bits; conversion of floats is the kernel's business."""
    found = operands.partial(0)
    if found is None or any(element > UNKNOWN and not -(1 << 31) <= element < 1 << 31 for element in found):
        return [None]
    return [found]


def reciprocal(x: Tensor) -> Tensor:
    return 1 / x


def div_no_nan(x: Tensor, y: Tensor) -> Tensor:
    return y.equal(0).where(0, x / y)


def mul_no_nan(x: Tensor, y: Tensor) -> Tensor:
    return y.equal(0).where(0, x * y)


def xdivy(x: Tensor, y: Tensor) -> Tensor:
    return x.equal(0).where(0, x / y)


def xlogy(x: Tensor, y: Tensor) -> Tensor:
    return x.equal(0).where(0, x * y.log())


def xlog1py(x: Tensor, y: Tensor) -> Tensor:
    return x.equal(0).where(0, x * y.log1p())


def is_nan(x: Tensor) -> Tensor:
    return x.not_equal(x)


def is_inf(x: Tensor) -> Tensor:
    return abs(x).equal(math.inf)


def is_finite(x: Tensor) -> Tensor:
    return (x - x).equal(0)


def approximate_equal(x: Tensor, y: Tensor, *, tolerance: float = 1e-5) -> Tensor:
    return abs(x - y) < tolerance


def truncate_div(x: Tensor, y: Tensor) -> Tensor:
    quotient = x / y
    return (quotient < 0).where(quotient.ceil(), quotient.floor())


def truncate_div_of_integers(x: Tensor, y: Tensor) -> Tensor:
    return x.op("Div", x, y)  # type: ignore[no-any-return]


def truncate_mod(x: Tensor, y: Tensor) -> Tensor:
    """The remainder of the sizes, with the dividend's sign."""
    return abs(x) % abs(y) * x.sign()


def truncate_mod_by_quotient(x: Tensor, y: Tensor) -> Tensor:
    return x - truncate_div_of_integers(x, y) * y


def truncate_mod_of_integers(x: Tensor, y: Tensor) -> Tensor:
    """The floored remainder, less the divisor where its sign is not the dividend's: no absolute value is computed."""
    floored = x % y
    is_away = (x < 0).not_equal(floored < 0) & floored.not_equal(0)
    return is_away.where(floored - y, floored)


def clip_by_value(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Where the bounds are swapped, TensorFlow returns the lower one."""
    return x.clip(low, high)


_REMAINDERS = (
    Decomposition(truncate_mod),
    Decomposition(truncate_mod_by_quotient, "i32"),
    Decomposition(truncate_mod_of_integers, "i64"),
)


def next_after(x: Tensor, y: Tensor) -> Tensor:
    """Bits of floats are in the order of their sizes, so the next float's are the next number."""
    bits = x.op("Bitcast", x, type=np.dtype(np.int32))
    step = (x > 0).equal(y > x).where(bits + 1, bits - 1)
    step = x.equal(0).where((y > 0).where(bits * 0 + 1, 1 - (1 << 31)), step)
    found = x.equal(y).where(y, step.op("Bitcast", step, type=x.dtype))
    return (x.equal(x) & y.equal(y)).where(found, x + y)


OPS = (
    _unary("Abs", np.abs),
    *ops_like("AccumulateNV2 AddN", shape=all_equal, compute=_add_n),
    *[_binary(name, np.add, values=_elements(add_elements)) for name in ("Add", "AddV2")],
    _part("Angle", np.angle),
    op("ApproximateEqual", shape=broadcasting, decompose=approximate_equal),
    _binary("Atan2", np.arctan2),
    _binary("BitwiseAnd", np.bitwise_and),
    _binary("BitwiseOr", np.bitwise_or),
    _binary("BitwiseXor", np.bitwise_xor),
    op("Cast", shape=same, values=_cast_elements, compute=_cast, verified=True),
    _unary("Ceil", np.ceil),
    op("CheckNumerics", shape=same, compute=_check_numerics, verified=True),
    op("CheckNumericsV2", shape=same, compute=_check_numerics),
    op("ClipByValue", shape=_clip_shape, decompose=(Decomposition(clip_by_value, "number"),)),
    op("Complex", shape=broadcasting, compute=_complex, verified=True),
    _part("ComplexAbs", np.abs),
    _unary("Conj", np.conj),
    _division("Div", _truncated_quotient, np.divide),
    op("DivNoNan", shape=broadcasting, decompose=div_no_nan, verified=True),
    _equality("Equal", np.equal, otherwise=False),
    _unary("Floor", np.floor),
    _division("FloorDiv", np.floor_divide, lambda x, y: np.floor(x / y), values=_elements(_floor_divide)),
    _division("FloorMod", _floor_remainder, _floor_remainder, values=_elements(_modulo)),
    _predicate("Greater", np.greater),
    _predicate("GreaterEqual", np.greater_equal),
    _part("Imag", np.imag),
    _unary("Inv", np.reciprocal, decompose=reciprocal),
    _unary("Invert", np.invert),
    _predicate("IsFinite", np.isfinite, decompose=is_finite),
    _predicate("IsInf", np.isinf, decompose=is_inf),
    _predicate("IsNan", np.isnan, decompose=is_nan),
    _binary("LeftShift", partial(_shift, np.left_shift)),
    _predicate("Less", np.less),
    _predicate("LessEqual", np.less_equal),
    _predicate("LogicalAnd", np.logical_and),
    _unary("LogicalNot", np.logical_not),
    _predicate("LogicalOr", np.logical_or),
    _binary("Maximum", np.maximum, values=_elements(_larger)),
    _binary("Minimum", np.minimum, values=_elements(_smaller)),
    _division("Mod", np.fmod, np.fmod, decompose=_REMAINDERS),
    _binary("Mul", np.multiply, values=_elements(multiply_elements)),
    op("MulNoNan", shape=broadcasting, decompose=mul_no_nan, verified=True),
    _unary("Neg", np.negative),
    _binary("NextAfter", np.nextafter, decompose=(Decomposition(next_after, "f32"),)),
    _equality("NotEqual", np.not_equal, otherwise=True),
    op("PopulationCount", shape=same, compute=_population_count, verified=True),
    _binary("Pow", _power),
    _part("Real", np.real),
    _binary("RealDiv", np.divide),
    _unary("Reciprocal", np.reciprocal, decompose=reciprocal),
    _unary("Relu", lambda x: np.maximum(x, typed(0, x.dtype))),
    _unary("Relu6", lambda x: np.minimum(np.maximum(x, typed(0, x.dtype)), typed(6, x.dtype))),
    _binary("RightShift", partial(_shift, np.right_shift)),
    _unary("Rint", np.rint),
    _unary("Round", _round),
    op("Select", shape=_select_shape, values=_selected_elements, compute=_select, verified=True),
    op("SelectV2", shape=broadcasting, values=_selected_elements, compute=_select_v2, verified=True),
    _unary("Sign", np.sign),
    _unary("Square", np.square),
    _binary("SquaredDifference", _squared_difference),
    _binary("Sub", np.subtract, values=_elements(_subtract)),
    op("ToBool", shape=scalars, compute=_to_bool, verified=True),
    _division(
        "TruncateDiv",
        _truncated_quotient,
        lambda x, y: np.trunc(x / y),
        decompose=(Decomposition(truncate_div), Decomposition(truncate_div_of_integers, "i32")),
    ),
    _division("TruncateMod", np.fmod, np.fmod, decompose=_REMAINDERS),
    op("Xdivy", shape=broadcasting, decompose=xdivy, verified=True),
    op("Xlog1py", shape=broadcasting, decompose=xlog1py, verified=True),
    op("Xlogy", shape=broadcasting, decompose=xlogy, verified=True),
)
