"""Operators that microcontrollers or NPUs don't have, by others that they have."""

from __future__ import annotations

import math

import numpy as np

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.accelerators.builder import (
    AcceleratorBuilder,
    Rewrite,
    array_of,
    ints_of,
    option,
    static_shape,
)
from tfconvert.converter.targets.litert.accelerators.pieces import part
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.quant import UniformType
from tfconvert.schema.ir.values import Value

# x * logistic(x * (_LINEAR + _CUBIC * x * x)) is 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))).
_LINEAR = 2 * math.sqrt(2 / math.pi)
_CUBIC = _LINEAR * 0.044715

# The maximum exponent of a power that is done by multiplications.
_MAX_EXPONENT = 64


def _float(op: tfl.TFLOp, operand: int = 0) -> Value:
    value = op.operands[operand]
    need(types.element_of(value.type) == types.F32, "it is not of floats")
    return value


def _gelu(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """GELU by the logistic function; the exact one differs by at most 5e-4."""
    x = _float(op)
    factor = build.binary("add", build.binary("mul", build.binary("mul", x, x), _CUBIC), _LINEAR)
    return build.binary("mul", x, build.unary("logistic", build.binary("mul", x, factor)))


def _relu6(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    return build.binary("minimum", build.unary("relu", _float(op)), 6.0)


def _neg(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    need(types.element_of(op.operands[0].type) in (types.F32, types.I32), "it is quantized")
    return build.binary("mul", op.operands[0], -1)


def _sign(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    x = _float(op)
    above, below = (build.to(build.binary(name, x, 0.0, types.I1), types.F32) for name in ("greater", "less"))
    return build.binary("sub", above, below)


def _elu(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    x = _float(op)
    below = build.binary("sub", build.unary("exp", build.binary("minimum", x, 0.0)), 1.0)
    return build.binary("add", build.unary("relu", x), below)


def _down(x: Value, build: AcceleratorBuilder) -> Value:
    return build.binary("floor_div", x, 1.0)


def _floor(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    return _down(_float(op), build)


def _ceil(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    return build.binary("mul", _down(build.binary("mul", _float(op), -1.0), build), -1.0)


def _round(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """Rounds half up, and subtracts 1 from odd results of halves."""
    shifted = build.binary("add", _float(op), 0.5)
    up = _down(shifted, build)
    is_half = build.to(build.binary("equal", shifted, up, types.I1), types.F32)
    return build.binary("sub", up, build.binary("mul", is_half, build.binary("floor_mod", up, 2.0)))


def _pow(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A power with a constant exponent: products, roots, or `exp(exponent * log(x))`."""
    x, exponents = op.operands[0], np.unique(array_of(op.operands[1]))
    if types.element_of(x.type) != types.I32 or exponents[0] < 0:
        _float(op)
    need(exponents.size == 1, "it has several exponents")
    need(static_shape(x) == static_shape(op.results[0]), "its exponent has another shape")
    exponent = float(exponents[0])
    if exponent == 0.5:
        return build.unary("sqrt", x)
    if exponent == -0.5:
        return build.unary("rsqrt", x)
    if not exponent.is_integer():
        return build.unary("exp", build.binary("mul", build.unary("log", x), exponent))
    need(0 < abs(exponent) <= _MAX_EXPONENT, "its exponent is large")
    power = _product(x, int(abs(exponent)), build)
    return power if exponent > 0 else build.binary("div", 1.0, power)


def _product(x: Value, exponent: int, build: AcceleratorBuilder) -> Value:
    if exponent == 1:
        return x
    half = _product(x, exponent // 2, build)
    square = build.binary("mul", half, half)
    return build.binary("mul", square, x) if exponent % 2 else square


def _rsqrt(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    return build.binary("div", 1.0, build.unary("sqrt", _float(op)))


def _square(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    return build.binary("mul", _float(op), op.operands[0])


def _select(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A choice by rows or by elements as one that broadcasts."""
    condition, *others = op.operands
    mask, shape = static_shape(condition), static_shape(op.results[0])
    if len(mask) == 1 < len(shape):
        condition = build.reshape(condition, (*mask, *[1] * (len(shape) - 1)))
    return build.tfl("select_v2", (condition, *others), op.results[0].type)


def _integer_choice(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A choice of integers as `y + condition * (x - y)`, which wraps around to the right numbers."""
    condition, x, y = op.operands
    element = types.element_of(op.results[0].type)
    need(element == types.I32, "it is not of integers")
    mask, shape = static_shape(condition), static_shape(op.results[0])
    if op.op_name == "select" and len(mask) == 1 < len(shape):
        condition = build.reshape(condition, (*mask, *[1] * (len(shape) - 1)))
    chosen = build.binary("mul", build.to(condition, element), build.binary("sub", x, y))
    return build.binary("add", y, chosen)


def _reduce_min(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    opposite = build.binary("mul", _float(op), -1.0)
    largest = build.tfl("reduce_max", (opposite, op.operands[1]), op.results[0].type, _kept(op))
    return build.binary("mul", largest, -1.0)


def _reduce_any(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    opposite = build.unary("logical_not", op.operands[0])
    return build.unary(
        "logical_not", build.tfl("reduce_all", (opposite, op.operands[1]), op.results[0].type, _kept(op))
    )


def _kept(op: tfl.TFLOp) -> dict[str, bool]:
    return {"keep_dims": bool(option(op, "keep_dims"))}


def _reduce_prod(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """Products of halves."""
    value = _float(op)
    rank = len(static_shape(value))
    for axis in sorted({axis % rank for axis in ints_of(op.operands[1])}):
        while (size := static_shape(value)[axis]) > 1:
            half = size // 2
            first, second = (part(build, value, axis, start, half) for start in (0, half))
            rest = [part(build, value, axis, size - 1, 1)] if size % 2 else []
            value = build.concatenation([build.binary("mul", first, second), *rest], axis)
    return build.reshape(value, static_shape(op.results[0]))


def _mean_by_rows(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A mean along the last axis and others: of each row, then of the rows."""
    value = _float(op)
    shape = static_shape(value)
    axes = {axis % len(shape) for axis in ints_of(op.operands[1])}
    need(len(shape) - 1 in axes and len(shape) > 2, "it does not go along the last axis of several")
    count = math.prod(shape[:-1])
    rows = build.reshape(value, (count, shape[-1]))
    kind = types.tensor(types.F32, (count, 1))
    means = build.tfl("mean", (rows, build.ints((1,))), kind, {"keep_dims": True})
    others = sorted(axes - {len(shape) - 1})
    if others:
        kind = types.tensor(types.F32, [1 if axis in others else size for axis, size in enumerate(shape[:-1])])
        means = build.tfl("mean", (build.reshape(means, shape[:-1]), build.ints(others)), kind, {"keep_dims": True})
    return build.reshape(means, static_shape(op.results[0]))


def _with_floats(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """An operator of integers as one of floats between conversions."""
    kind = op.results[0].type
    is_quantized = [isinstance(types.element_of(each), UniformType) for each in (op.operands[0].type, kind)]
    need(all(is_quantized), "it is not quantized")
    floats = types.tensor(types.F32, static_shape(op.operands[0]))
    value = build.tfl("dequantize", op.operands[:1], floats)
    result = build.tfl(op.op_name, (value,), types.tensor(types.F32, static_shape(op.results[0])))
    return build.tfl("quantize", (result,), kind)


# Operators of which a runtime may have a kernel for floats only.
_OF_FLOATS = ("exp", "log", "sqrt")

REWRITES = (
    Rewrite("gelu-by-logistic", "gelu", _gelu),
    Rewrite("relu6-as-minimum", "relu6", _relu6),
    Rewrite("neg-as-product", "neg", _neg, 1, (types.F32,)),
    Rewrite("sign-by-comparison", "sign", _sign),
    Rewrite("elu-by-exp", "elu", _elu),
    Rewrite("floor-as-quotient", "floor", _floor),
    Rewrite("ceil-as-quotient", "ceil", _ceil),
    Rewrite("round-as-quotient", "round", _round),
    Rewrite("pow-as-products", "pow", _pow),
    Rewrite("rsqrt-as-quotient", "rsqrt", _rsqrt),
    Rewrite("square-as-product", "square", _square),
    Rewrite("select-that-broadcasts", "select", _select, 2),
    Rewrite("choice-by-rows-as-product", "select", _integer_choice),
    Rewrite("choice-as-product", "select_v2", _integer_choice),
    Rewrite("minimum-by-maximum", "reduce_min", _reduce_min),
    Rewrite("any-by-all", "reduce_any", _reduce_any),
    Rewrite("products-of-halves", "reduce_prod", _reduce_prod),
    Rewrite("mean-by-rows", "mean", _mean_by_rows, -1),
    *(Rewrite(f"{name}-of-floats", name, _with_floats, -1) for name in _OF_FLOATS),
)
