"""Functions that LiteRT has no kernel for, composed of those that it has."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering, rank_is_known
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder, broadcast_type
from tfconvert.ops.special_functions import ERF_DENOMINATOR, ERF_NUMERATOR
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_FLOAT = "f32"

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

# A number whose square doesn't overflow, while adding one to the square of a larger one changes nothing.
_LARGE = 1e18


def _polynomial(emit: LiteRTBuilder, x: Value, coefficients: Sequence[float]) -> Value:
    """Evaluates a polynomial by Horner's rule."""
    value: Value | float = coefficients[0]
    for coefficient in coefficients[1:]:
        value = emit.binary("AddV2", emit.binary("Mul", x, value), coefficient)
    assert isinstance(value, Value)
    return value


def _erf(op: Operation, emit: LiteRTBuilder) -> Value:
    x = emit.binary("Maximum", emit.binary("Minimum", op.operands[0], _ERF_BOUND), -_ERF_BOUND)
    square = emit.unary("Square", x)
    top = emit.binary("Mul", x, _polynomial(emit, square, ERF_NUMERATOR))
    return emit.binary("RealDiv", top, _polynomial(emit, square, ERF_DENOMINATOR))


def _erfc(op: Operation, emit: LiteRTBuilder) -> Value:
    x = op.operands[0]
    z = emit.unary("Abs", x)
    t = emit.binary("RealDiv", 1.0, emit.binary("AddV2", emit.binary("Mul", z, 0.5), 1.0))
    exponent = emit.binary("Sub", _polynomial(emit, t, _ERFC_P), emit.unary("Square", z))
    tail = emit.binary("Mul", t, emit.unary("Exp", exponent))
    return emit.select(emit.compare("Less", x, 0.0), emit.binary("Sub", 2.0, tail), tail)


def _erfinv(op: Operation, emit: LiteRTBuilder) -> Value:
    x = op.operands[0]
    inside = emit.binary("Mul", emit.binary("Sub", 1.0, x), emit.binary("AddV2", x, 1.0))
    w = emit.unary("Neg", emit.unary("Log", inside))
    middle = _polynomial(emit, emit.binary("Sub", w, 2.5), _ERFINV_MIDDLE)
    tail = _polynomial(emit, emit.binary("Sub", emit.unary("Sqrt", w), 3.0), _ERFINV_TAIL)
    factor = emit.select(emit.compare("Less", w, 5.0), middle, tail)
    # At -1 and 1 the polynomial is of infinity, and of different signs.
    factor = emit.select(emit.compare("Equal", inside, 0.0), math.inf, factor)
    return emit.binary("Mul", factor, x)


def _expm1(op: Operation, emit: LiteRTBuilder) -> Value:
    """`tanh(x/2) * (exp(x) + 1)`: keeps its digits near zero, where `exp(x) - 1` loses them."""
    x = op.operands[0]
    half = emit.unary("Tanh", emit.binary("Mul", x, 0.5))
    return emit.binary("Mul", half, emit.binary("AddV2", emit.unary("Exp", x), 1.0))


def _log1p(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.unary("Log", emit.binary("AddV2", op.operands[0], 1.0))


def _tan(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.binary("RealDiv", emit.unary("Sin", op.operands[0]), emit.unary("Cos", op.operands[0]))


def _cosh(op: Operation, emit: LiteRTBuilder) -> Value:
    return _hyperbolic_cosine(emit, op.operands[0])


def _hyperbolic_cosine(emit: LiteRTBuilder, x: Value) -> Value:
    both = emit.binary("AddV2", emit.unary("Exp", x), emit.unary("Exp", emit.unary("Neg", x)))
    return emit.binary("Mul", both, 0.5)


def _sinh(op: Operation, emit: LiteRTBuilder) -> Value:
    """`tanh(x/2) * (cosh(x) + 1)`, which keeps its digits near zero."""
    x = op.operands[0]
    half = emit.unary("Tanh", emit.binary("Mul", x, 0.5))
    return emit.binary("Mul", half, emit.binary("AddV2", _hyperbolic_cosine(emit, x), 1.0))


def _asinh(op: Operation, emit: LiteRTBuilder) -> Value:
    x = op.operands[0]
    size = emit.unary("Abs", x)
    tame = emit.binary("Minimum", size, _LARGE)
    root = emit.unary("Sqrt", emit.binary("AddV2", emit.unary("Square", tame), 1.0))
    root = emit.binary("Maximum", root, size)
    return emit.binary("Mul", emit.unary("Sign", x), emit.unary("Log", emit.binary("AddV2", size, root)))


def _acosh(op: Operation, emit: LiteRTBuilder) -> Value:
    x = op.operands[0]
    roots = [emit.unary("Sqrt", emit.binary(name, x, 1.0)) for name in ("Sub", "AddV2")]
    return emit.unary("Log", emit.binary("AddV2", x, emit.binary("Mul", *roots)))


def _atanh(op: Operation, emit: LiteRTBuilder) -> Value:
    x = op.operands[0]
    ratio = emit.binary("RealDiv", emit.binary("AddV2", x, 1.0), emit.binary("Sub", 1.0, x))
    return emit.binary("Mul", emit.unary("Log", ratio), 0.5)


def _other_side(emit: LiteRTBuilder, x: Value) -> Value:
    return emit.unary("Sqrt", emit.binary("Mul", emit.binary("Sub", 1.0, x), emit.binary("AddV2", x, 1.0)))


def _asin(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.binary("Atan2", op.operands[0], _other_side(emit, op.operands[0]))


def _acos(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.binary("Atan2", _other_side(emit, op.operands[0]), op.operands[0])


def _atan(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.binary("Atan2", op.operands[0], emit.unary("OnesLike", op.operands[0]))


def _reciprocal(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.binary("RealDiv", 1.0, op.operands[0])


def _unless_zero(emit: LiteRTBuilder, op: Operation, tested: int, value: Value) -> Value:
    """Returns zero where an operand is zero, else a value."""
    return emit.select(emit.compare("Equal", op.operands[tested], 0), 0, value)


def _div_no_nan(op: Operation, emit: LiteRTBuilder) -> Value:
    return _unless_zero(emit, op, 1, emit.binary("RealDiv", *op.operands))


def _mul_no_nan(op: Operation, emit: LiteRTBuilder) -> Value:
    return _unless_zero(emit, op, 1, emit.binary("Mul", *op.operands))


def _xdivy(op: Operation, emit: LiteRTBuilder) -> Value:
    return _unless_zero(emit, op, 0, emit.binary("RealDiv", *op.operands))


def _xlogy(op: Operation, emit: LiteRTBuilder) -> Value:
    return _unless_zero(emit, op, 0, emit.binary("Mul", op.operands[0], emit.unary("Log", op.operands[1])))


def _xlog1py(op: Operation, emit: LiteRTBuilder) -> Value:
    return _unless_zero(emit, op, 0, emit.binary("Mul", op.operands[0], emit.unary("Log1p", op.operands[1])))


def _is_nan(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.compare("NotEqual", op.operands[0], op.operands[0])


def _is_inf(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.compare("Equal", emit.unary("Abs", op.operands[0]), math.inf)


def _is_finite(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.compare("Equal", emit.binary("Sub", op.operands[0], op.operands[0]), 0.0)


def _approximate_equal(op: Operation, emit: LiteRTBuilder) -> Value:
    distance = emit.unary("Abs", emit.binary("Sub", *op.operands))
    return emit.compare("Less", distance, tf.get(op, "tolerance", 1e-5))


def _truncate_div(op: Operation, emit: LiteRTBuilder) -> Value:
    quotient = emit.binary("RealDiv", *op.operands)
    return emit.select(emit.compare("Less", quotient, 0.0), emit.unary("Ceil", quotient), emit.unary("Floor", quotient))


def _truncate_div_of_integers(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.binary("Div", *op.operands)


def _truncate_mod(op: Operation, emit: LiteRTBuilder) -> Value:
    """The remainder of the sizes, with the dividend's sign."""
    sizes = [emit.unary("Abs", operand) for operand in op.operands]
    return emit.binary("Mul", emit.binary("FloorMod", *sizes), emit.unary("Sign", op.operands[0]))


def _truncate_mod_of_integers(op: Operation, emit: LiteRTBuilder) -> Value:
    """The floored remainder, less the divisor where its sign is not the dividend's: no absolute value is computed."""
    x, y = op.operands
    floored = emit.binary("FloorMod", x, y)
    signs = [emit.compare("Less", value, 0) for value in (x, floored)]
    differ = emit.tf("NotEqual", signs, broadcast_type(signs[0], signs[1], types.I1))
    away = emit.tf("LogicalAnd", (differ, emit.compare("NotEqual", floored, 0)), differ.type)
    return emit.select(away, emit.binary("Sub", floored, y), floored)


def _clip(op: Operation, emit: LiteRTBuilder) -> Value:
    """Where the bounds are swapped, TensorFlow returns the lower one."""
    x, low, high = op.operands
    return emit.binary("Maximum", emit.binary("Minimum", x, high), low)


def _l2_loss(op: Operation, emit: LiteRTBuilder) -> Value:
    rank = len(types.shape_of(op.operands[0].type) or ())
    return emit.binary("Mul", emit.reduce("Sum", emit.unary("Square", op.operands[0]), range(rank)), 0.5)


def _sigmoid_grad(op: Operation, emit: LiteRTBuilder) -> Value:
    y, gradient = op.operands
    return emit.binary("Mul", emit.binary("Mul", gradient, y), emit.binary("Sub", 1.0, y))


def _tanh_grad(op: Operation, emit: LiteRTBuilder) -> Value:
    y, gradient = op.operands
    return emit.binary("Mul", gradient, emit.binary("Sub", 1.0, emit.unary("Square", y)))


def _where_sloped(emit: LiteRTBuilder, gradient: Value, result: Value) -> Value:
    """Returns zero where the gradient is zero, however steep the function is there, as TensorFlow does."""
    return emit.select(emit.compare("Equal", gradient, 0.0), 0.0, result)


def _rsqrt_grad(op: Operation, emit: LiteRTBuilder) -> Value:
    y, gradient = op.operands
    cube = emit.binary("Mul", emit.unary("Square", y), y)
    return _where_sloped(emit, gradient, emit.binary("Mul", emit.binary("Mul", gradient, cube), -0.5))


def _sqrt_grad(op: Operation, emit: LiteRTBuilder) -> Value:
    y, gradient = op.operands
    return _where_sloped(emit, gradient, emit.binary("RealDiv", emit.binary("Mul", gradient, 0.5), y))


def _reciprocal_grad(op: Operation, emit: LiteRTBuilder) -> Value:
    y, gradient = op.operands
    return _where_sloped(emit, gradient, emit.unary("Neg", emit.binary("Mul", gradient, emit.unary("Square", y))))


def _relu_grad(op: Operation, emit: LiteRTBuilder) -> Value:
    gradient, x = op.operands
    return emit.select(emit.compare("Greater", x, 0.0), gradient, 0.0)


def _relu6_grad(op: Operation, emit: LiteRTBuilder) -> Value:
    gradient, x = op.operands
    low, high = emit.compare("Greater", x, 0.0), emit.compare("Less", x, 6.0)
    return emit.select(emit.tf("LogicalAnd", (low, high), low.type), gradient, 0.0)


def _bias_add_grad(op: Operation, emit: LiteRTBuilder) -> Value:
    rank = len(types.shape_of(op.operands[0].type) or ())
    channel = 1 if tf.get(op, "data_format", "NHWC") == "NCHW" else rank - 1
    return emit.reduce("Sum", op.operands[0], [axis for axis in range(rank) if axis != channel])


# The note for models that look for such numbers; what the kernels make of them is in their table, as `special`.
_SPECIALS = (
    "before it, LiteRT's kernels may make something else of infinite numbers and NaN than TensorFlow's: convolutions, "
    "matrix products, extremes, pooling, sorting and resizing do"
)

ENTRIES: tuple[Entry, ...] = (
    Lowering("Erf", "Mul AddV2 RealDiv", _erf, _FLOAT),
    Lowering("Erfc", "Mul AddV2 Exp", _erfc, _FLOAT),
    Lowering("Erfinv", "Mul AddV2 Log Sqrt SelectV2", _erfinv, _FLOAT),
    Lowering("Expm1", "Tanh Exp Mul", _expm1, _FLOAT),
    Lowering("Log1p", "AddV2 Log", _log1p, _FLOAT),
    Lowering("Tan", "Sin Cos RealDiv", _tan, _FLOAT),
    Lowering("Sinh", "Tanh Exp Mul", _sinh, _FLOAT),
    Lowering("Cosh", "Exp AddV2", _cosh, _FLOAT),
    Lowering("Asinh", "Square Sqrt Log", _asinh, _FLOAT),
    Lowering("Acosh", "Sqrt Log", _acosh, _FLOAT),
    Lowering("Atanh", "RealDiv Log", _atanh, _FLOAT),
    Lowering("Asin", "Sqrt Atan2", _asin, _FLOAT),
    Lowering("Acos", "Sqrt Atan2", _acos, _FLOAT),
    Lowering("Atan", "OnesLike Atan2", _atan, _FLOAT),
    Lowering("Reciprocal", "RealDiv", _reciprocal, _FLOAT),
    Lowering("Inv", "RealDiv", _reciprocal, _FLOAT),
    Lowering("DivNoNan", "Equal RealDiv SelectV2", _div_no_nan, _FLOAT),
    Lowering("MulNoNan", "Equal Mul SelectV2", _mul_no_nan, _FLOAT, note=_SPECIALS),
    Lowering("Xdivy", "Equal RealDiv SelectV2", _xdivy, _FLOAT),
    Lowering("Xlogy", "Equal Log Mul SelectV2", _xlogy, _FLOAT),
    Lowering("Xlog1py", "Equal Log1p Mul SelectV2", _xlog1py, _FLOAT),
    Lowering("IsNan", "NotEqual", _is_nan, _FLOAT, note=_SPECIALS),
    Lowering("IsInf", "Abs Equal", _is_inf, _FLOAT, note=_SPECIALS),
    Lowering("IsFinite", "Sub Equal", _is_finite, _FLOAT, note=_SPECIALS),
    Lowering("ApproximateEqual", "Sub Abs Less", _approximate_equal, _FLOAT),
    Lowering("TruncateDiv", "RealDiv Ceil Floor SelectV2", _truncate_div, _FLOAT),
    Lowering("TruncateDiv", "Div", _truncate_div_of_integers, "i32"),
    *(Lowering(op, "Abs FloorMod Sign", _truncate_mod, _FLOAT) for op in ("TruncateMod", "Mod")),
    *(
        Lowering(op, "FloorMod Sub SelectV2", _truncate_mod_of_integers, "i32 i64", name=f"{op}-of-integers")
        for op in ("TruncateMod", "Mod")
    ),
    Lowering("SigmoidGrad", "Mul Sub", _sigmoid_grad, _FLOAT),
    Lowering("TanhGrad", "Square Sub Mul", _tanh_grad, _FLOAT),
    Lowering("RsqrtGrad", "Square Mul Equal SelectV2", _rsqrt_grad, _FLOAT),
    Lowering("SqrtGrad", "Mul RealDiv Equal SelectV2", _sqrt_grad, _FLOAT),
    Lowering("ReciprocalGrad", "Square Mul Neg Equal SelectV2", _reciprocal_grad, _FLOAT),
    Lowering("InvGrad", "Square Mul Neg Equal SelectV2", _reciprocal_grad, _FLOAT),
    Lowering("ReluGrad", "Greater SelectV2", _relu_grad, _FLOAT),
    Lowering("Relu6Grad", "Greater Less SelectV2", _relu6_grad, _FLOAT),
    Lowering("BiasAddGrad", "Sum", _bias_add_grad, "f32 i32 i64", rank_is_known),
    Lowering("ClipByValue", "Minimum Maximum", _clip, "f32 i32 i64"),
    Lowering("L2Loss", "Square Sum", _l2_loss, _FLOAT, rank_is_known),
)
