"""Functions of numbers by their formulas: normalizations, activations, powers.

By default, and for accelerators, microcontrollers and NPUs that don't have the operator or compute it wrongly. On a
processor:

    softmax(x)                ->  transpose(e / sum(e)), e = exp(y - max(y)), y = transpose(x)  of few classes
    log_softmax(x)            ->  y - log(sum(exp(y))), y = x - max(x)
    l2_normalization(x)       ->  x * rsqrt(maximum(sum(square(x)), 1e-12))
    squared_difference(x, m)  ->  square(d), d = sub(x, m)                where sub(x, m) is there, too
    squared_difference(x, m)  ->  mul(d, d), d = sub(x, m)                                      of what becomes integers

XNNPACK's softmax handles one vector after the other, which takes 40 ns even for two numbers, and the rest of a vector
beyond a multiple of 16 numbers as slowly. Its elementwise operators and reductions have no such cost. It multiplies
integers, while LiteRT's kernel of squared differences is slow; a normalization has the difference anyway.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure, Pattern, need
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, Rewrite, planned, worth
from tfconvert.converter.targets.litert.forms.questions import (
    PLAIN,
    array_of,
    elements,
    ints_of,
    is_float,
    large,
    need_floats,
    option,
    shape_of,
    small,
    static_shape,
)
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.quant import UniformType
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators


def _log_softmax(op: tfl.TFLOp, build: FormBuilder) -> Value:
    need_floats(op.operands[0])
    return build.reshape(_logarithms(build, build.low(op.operands[0])), static_shape(op.results[0]))


def _logarithms(build: FormBuilder, x: Value) -> Value:
    """Inserts `x - max(x)`, from which the logarithm of the sum of its exponentials is subtracted."""
    shifted = build.binary("sub", x, build.along_rows("reduce_max", x))
    return build.binary("sub", shifted, build.unary("log", build.along_rows("sum", build.unary("exp", shifted))))


def _softmax(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A softmax of a multiple, or of a vector: of the product, in rank 2 at least."""
    need_floats(op.operands[0])
    shape, beta = static_shape(op.operands[0]), option(op, "beta")
    value = op.operands[0] if beta == 1 else build.binary("mul", op.operands[0], beta)
    value = build.reshape(value, shape if len(shape) > 1 else (1, *shape))
    return build.reshape(build.tfl("softmax", (value,), value.type, {"beta": 1.0}), shape)


def _l2_normalization(op: tfl.TFLOp, build: FormBuilder) -> Value:
    need_floats(op.operands[0])
    value = _unit(build, build.low(op.operands[0]))
    return build.reshape(build.activated(op, value), static_shape(op.results[0]))


def _unit(build: FormBuilder, x: Value) -> Value:
    """Inserts `x * rsqrt(max(sum(x * x), epsilon))`."""
    total = build.along_rows("sum", build.unary("square", x))
    return build.binary("mul", x, build.unary("rsqrt", build.binary("maximum", total, _L2_EPSILON)))


# The square of the smallest norm that LiteRT divides by.
_L2_EPSILON = 1e-12


def _l2_pool(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """The root of the mean square."""
    need_floats(op.operands[0])
    options: dict[str, Any] = {name: option(op, name) for name in tfl.option_fields("l2_pool_2d")}
    options["fused_activation_function"] = "NONE"
    mean = build.tfl("average_pool_2d", (build.unary("square", op.operands[0]),), op.results[0].type, options)
    return build.activated(op, build.unary("sqrt", mean))


def _local_response(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """`x * (bias + alpha * sum of the squares nearby) ** -beta`, the sum by a convolution with a band."""
    value = op.operands[0]
    need_floats(value)
    depth = static_shape(value)[-1]
    distance = np.abs(np.subtract.outer(np.arange(depth), np.arange(depth)))
    band = np.where(distance <= option(op, "radius"), np.float32(option(op, "alpha")), np.float32(0))
    small(band.size)
    operands = (
        build.unary("square", value),
        build.constant(band.astype(np.float32).reshape(depth, 1, 1, depth)),
        build.constant(np.full(depth, option(op, "bias"), np.float32)),
    )
    options: dict[str, Any] = {"padding": "VALID", "stride_w": 1, "stride_h": 1, "fused_activation_function": "NONE"}
    total = build.tfl("conv_2d", operands, value.type, {**options, "dilation_w_factor": 1, "dilation_h_factor": 1})
    return build.binary("mul", value, build.binary("pow", total, -option(op, "beta")))


def _relu_0_to_1(op: tfl.TFLOp, build: FormBuilder) -> Value:
    need_floats(op.operands[0])
    value = build.binary("minimum", build.unary("relu", build.low(op.operands[0])), 1.0)
    return build.reshape(value, static_shape(op.results[0]))


def _relu_n1_to_1(op: tfl.TFLOp, build: FormBuilder) -> Value:
    need_floats(op.operands[0])
    return build.binary("minimum", build.binary("maximum", op.operands[0], -1.0), 1.0)


def _prelu_of_channels(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A slope that varies along the channels at most: one number a channel, in one dimension less."""
    shape = shape_of(op.operands[0])
    slope, depth = array_of(op.operands[1]), shape[-1]
    need(depth > 0 and slope.size in (1, depth), "the slope varies elsewhere, or the number of channels is unknown")
    need(slope.size == 1 or slope.shape[-1] == depth, "the slope varies elsewhere")
    low = (1,) * (len(shape) - 2) * build.is_default + (depth,)
    need(slope.shape != low and not (build.is_default and slope.size > 1), "there is a slope for each channel")
    whole = build.array(np.ascontiguousarray(np.broadcast_to(slope.reshape(-1), (depth,)).reshape(low)), op.operands[1])
    return build.again(op, (op.operands[0], whole)).results[0]


def _prelu(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """`max(x, 0) + slope * min(x, 0)`."""
    value, slope = op.operands
    need_floats(value, slope)
    rank = len(static_shape(value))
    slope = build.reshape(slope, (*[1] * (rank - len(static_shape(slope))), *static_shape(slope)))
    return build.binary(
        "add", build.unary("relu", value), build.binary("mul", build.binary("minimum", value, 0.0), slope)
    )


def _squared_difference(op: tfl.TFLOp, build: FormBuilder) -> Value:
    # A constant first operand of integers is misread.
    x, y = sorted((build.lifted(value) for value in op.operands), key=tfl.is_constant)
    return build.reshape(_squared_of(build, x, y), static_shape(op.results[0]))


def _squared_of(build: FormBuilder, x: Value, y: Value) -> Value:
    difference = build.binary("sub", x, y)
    return build.binary("mul", difference, difference)


def sums_of_two(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A sum of many: sums of two."""
    total, *others = op.operands
    for value in others:
        total = build.binary("add", total, value)
    return total


def _mean_of_integers(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A mean of integers: their sum, divided."""
    need(op.operands[0].element == types.I32, "its elements are not i32")
    options = {"keep_dims": option(op, "keep_dims")}
    total = build.tfl("sum", op.operands, op.results[0].type, options)
    count = math.prod(static_shape(op.operands[0])) // max(math.prod(static_shape(op.results[0])), 1)
    return build.binary("div", total, count)


def _exclusive_or(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """Of booleans: one of them, but not both."""
    need(op.operands[0].element == types.I1, "its elements are not booleans")
    either, both = (build.binary(name, op.operands[0], op.operands[1]) for name in ("logical_or", "logical_and"))
    return build.binary("logical_and", either, build.unary("logical_not", both))


def _not_equal(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """Booleans that are equal or not: by logic."""
    differs = _exclusive_or(op, build)
    return differs if op.op_name == "not_equal" else build.unary("logical_not", differs)


def _constant_behind(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """An operator whose first operand is a constant: the one with exchanged operands."""
    x, y = (build.lifted(value) for value in op.operands)
    need(tfl.is_constant(x) and not tfl.is_constant(y), "the first operand is computed")
    if op.op_name == "sub":
        value = build.activated(op, build.binary("add", build.unary("neg", y), x))
    else:
        value = build.compare(operators.having("swapped")[op.op_name], y, x)
    return build.reshape(value, static_shape(op.results[0]))


# x * logistic(x * (_LINEAR + _CUBIC * x * x)) is 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))).
_LINEAR = 2 * math.sqrt(2 / math.pi)
_CUBIC = _LINEAR * 0.044715

# The maximum exponent of a power that is done by multiplications.
_MAX_EXPONENT = 64


def _float(op: tfl.TFLOp, operand: int = 0) -> Value:
    value = op.operands[operand]
    need(value.element == types.F32, "it is not of floats")
    return value


def _gelu(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """GELU by the logistic function; the exact one differs by at most 5e-4."""
    x = _float(op)
    factor = build.binary("add", build.binary("mul", build.binary("mul", x, x), _CUBIC), _LINEAR)
    return build.binary("mul", x, build.unary("logistic", build.binary("mul", x, factor)))


def _relu6(op: tfl.TFLOp, build: FormBuilder) -> Value:
    return build.binary("minimum", build.unary("relu", _float(op)), 6.0)


def negated(op: tfl.TFLOp, build: FormBuilder) -> Value:
    need(op.operands[0].element in (types.F32, types.I32), "it is quantized")
    return build.binary("mul", op.operands[0], -1)


def _sign(op: tfl.TFLOp, build: FormBuilder) -> Value:
    x = _float(op)
    above, below = (build.cast(build.compare(name, x, 0.0), types.F32) for name in ("greater", "less"))
    return build.binary("sub", above, below)


def _elu(op: tfl.TFLOp, build: FormBuilder) -> Value:
    x = _float(op)
    below = build.binary("sub", build.unary("exp", build.binary("minimum", x, 0.0)), 1.0)
    return build.binary("add", build.unary("relu", x), below)


def _down(x: Value, build: FormBuilder) -> Value:
    return build.binary("floor_div", x, 1.0)


def _floor(op: tfl.TFLOp, build: FormBuilder) -> Value:
    return _down(_float(op), build)


def _ceil(op: tfl.TFLOp, build: FormBuilder) -> Value:
    return build.binary("mul", _down(build.binary("mul", _float(op), -1.0), build), -1.0)


def _round(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """Rounds half up, and subtracts 1 from odd results of halves."""
    shifted = build.binary("add", _float(op), 0.5)
    up = _down(shifted, build)
    is_half = build.cast(build.compare("equal", shifted, up), types.F32)
    return build.binary("sub", up, build.binary("mul", is_half, build.binary("floor_mod", up, 2.0)))


def _pow(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A power with a constant exponent: products, roots, or `exp(exponent * log(x))`."""
    x, exponents = op.operands[0], np.unique(array_of(op.operands[1]))
    if x.element != types.I32 or exponents[0] < 0:
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


def _product(x: Value, exponent: int, build: FormBuilder) -> Value:
    if exponent == 1:
        return x
    half = _product(x, exponent // 2, build)
    square = build.binary("mul", half, half)
    return build.binary("mul", square, x) if exponent % 2 else square


def _rsqrt(op: tfl.TFLOp, build: FormBuilder) -> Value:
    return build.binary("div", 1.0, build.unary("sqrt", _float(op)))


def squared(op: tfl.TFLOp, build: FormBuilder) -> Value:
    return build.binary("mul", _float(op), op.operands[0])


def _select(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A choice by rows or by elements as one that broadcasts."""
    condition, *others = op.operands
    mask, shape = static_shape(condition), static_shape(op.results[0])
    if len(mask) == 1 < len(shape):
        condition = build.reshape(condition, (*mask, *[1] * (len(shape) - 1)))
    return build.tfl("select_v2", (condition, *others), op.results[0].type)


def _integer_choice(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A choice of integers as `y + condition * (x - y)`, which wraps around to the right numbers."""
    condition, x, y = op.operands
    element = op.results[0].element
    need(element == types.I32, "it is not of integers")
    mask, shape = static_shape(condition), static_shape(op.results[0])
    if op.op_name == "select" and len(mask) == 1 < len(shape):
        condition = build.reshape(condition, (*mask, *[1] * (len(shape) - 1)))
    chosen = build.binary("mul", build.cast(condition, element), build.binary("sub", x, y))
    return build.binary("add", y, chosen)


def _reduce_min(op: tfl.TFLOp, build: FormBuilder) -> Value:
    opposite = build.binary("mul", _float(op), -1.0)
    largest = build.tfl("reduce_max", (opposite, op.operands[1]), op.results[0].type, _kept(op))
    return build.binary("mul", largest, -1.0)


def _reduce_any(op: tfl.TFLOp, build: FormBuilder) -> Value:
    opposite = build.unary("logical_not", op.operands[0])
    return build.unary(
        "logical_not", build.tfl("reduce_all", (opposite, op.operands[1]), op.results[0].type, _kept(op))
    )


def _kept(op: tfl.TFLOp) -> dict[str, bool]:
    return {"keep_dims": bool(option(op, "keep_dims"))}


def _reduce_prod(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """Products of halves."""
    value = _float(op)
    rank = len(static_shape(value))
    for axis in sorted({axis % rank for axis in ints_of(op.operands[1])}):
        while (size := static_shape(value)[axis]) > 1:
            half = size // 2
            first, second = (build.cut(value, axis, start, half) for start in (0, half))
            rest = [build.cut(value, axis, size - 1, 1)] if size % 2 else []
            value = build.concatenation([build.binary("mul", first, second), *rest], axis)
    return build.reshape(value, static_shape(op.results[0]))


def _mean_by_rows(op: tfl.TFLOp, build: FormBuilder) -> Value:
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


def _with_floats(op: tfl.TFLOp, build: FormBuilder) -> Value:
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


# The numbers of vectors and of classes with which the rows of `speed.tsv` are several times faster.
_MIN_VECTORS = 512
_MAX_CLASSES = 31
_MIN_LOGARITHMS = 1024
# The length of vectors from which the row of normalization is several times faster; with 8 numbers it is slower.
_MIN_VECTOR = 16
# How many ops further on a difference is looked for.
_NEAR = 16


def _softmax_by_steps(op: Operation) -> Emit:
    x = op.operands[0]
    shape = large(x)
    classes = shape[-1]
    need(is_float(x) and option(op, "beta") == 1, "it isn't of 32-bit floats, or has a factor")
    need(classes > 1, "there is one class")
    worth(elements(shape[:-1]) >= _MIN_VECTORS and classes <= _MAX_CLASSES, "there are few vectors, or many classes")

    def emit_steps(build: FormBuilder) -> Value:
        vectors = -1 if -1 in shape else elements(shape[:-1])
        y = build.transpose(build.reshape(x, (vectors, classes)), (1, 0))
        powers = build.unary("exp", build.binary("sub", y, build.reduce("reduce_max", y, (0,), keep_dims=True)))
        factors = build.binary("div", 1.0, build.reduce("sum", powers, (0,), keep_dims=True))
        return build.reshape(build.transpose(build.binary("mul", powers, factors), (1, 0)), shape)

    return emit_steps


def _log_softmax_by_steps(op: Operation) -> Emit:
    x = op.operands[0]
    need_floats(x)
    worth(elements(large(x)) >= _MIN_LOGARITHMS, "the tensor is small")
    return lambda build: _logarithms(build, x)


def _normalized(op: Operation) -> Emit:
    x = op.operands[0]
    shape = large(x)
    need(is_float(x) and option(op, "fused_activation_function") == "NONE", "it isn't of 32-bit floats")
    worth(shape[-1] >= _MIN_VECTOR, "the vectors are short")
    return lambda build: _unit(build, x)


def _match_difference(op: Operation) -> Operation | Failure:
    """Returns the next op that computes the difference of the operands."""
    x, y = op.operands
    shape = x.shape
    if not is_float(x) or shape is None or shape != op.results[0].shape:
        return Failure("it isn't of 32-bit floats, or may broadcast its first operand")
    following = op.next_op
    for _ in range(_NEAR):
        if following is None:
            break
        if following.name == "tfl.sub" and list(following.operands) == [x, y] and questions.is_plain(following):
            return following
        following = following.next_op
    return Failure("the difference isn't used soon")


def _square_difference(op: Operation, match: Operation, rewriter: Rewriter) -> None:
    build, kind = FormBuilder(rewriter, is_fast=True), op.results[0].type
    difference = build.tfl("sub", op.operands, kind, PLAIN)
    rewriter.replace_value(match.results[0], difference)
    rewriter.replace(build.unary("square", difference))


def _squared(op: Operation) -> Emit:
    large(op.results[0])
    need_floats(op.results[0])
    return lambda build: _squared_of(build, *op.operands)


FAST_FLOATS: tuple[Pattern[Any], ...] = (
    planned("softmax-by-steps", "softmax", _softmax_by_steps),
    planned("log-softmax-by-steps", "log_softmax", _log_softmax_by_steps),
    planned("normalize-by-steps", "l2_normalization", _normalized),
    Pattern("square-of-difference", "tfl.squared_difference", _match_difference, _square_difference),
)
FAST_INTEGERS: tuple[Pattern[Any], ...] = (planned("square-by-product", "squared_difference", _squared),)

REWRITES = (
    Rewrite("log-softmax-by-formula", "log_softmax", _log_softmax, 2),
    Rewrite("softmax-of-product", "softmax", _softmax, 2),
    Rewrite("l2-normalization-by-formula", "l2_normalization", _l2_normalization),
    Rewrite("l2-pool-by-formula", "l2_pool_2d", _l2_pool),
    Rewrite("local-response-by-convolution", "local_response_normalization", _local_response),
    Rewrite("relu-0-to-1-as-minimum", "relu_0_to_1", _relu_0_to_1),
    Rewrite("relu-n1-to-1-as-minimum", "relu_n1_to_1", _relu_n1_to_1, 0),
    Rewrite("prelu-of-channels", "prelu", _prelu_of_channels, 4, (types.F32,)),
    Rewrite("prelu-by-formula", "prelu", _prelu, -1),
    Rewrite("squared-difference-as-product", "squared_difference", _squared_difference, 0),
    Rewrite("add-n-as-sums", "add_n", sums_of_two, 1, (types.F32,)),
    Rewrite("mean-of-integers", "mean", _mean_of_integers),
    Rewrite("exclusive-or-by-logic", "bitwise_xor", _exclusive_or),
    *(Rewrite(f"{name}-of-booleans", name, _not_equal, 0) for name in ("equal", "not_equal")),
    *(Rewrite(f"{name}-exchanged", name, _constant_behind, 5) for name in ("sub", *operators.having("swapped"))),
    Rewrite("gelu-by-logistic", "gelu", _gelu),
    Rewrite("relu6-as-minimum", "relu6", _relu6),
    Rewrite("neg-as-product", "neg", negated, 1, (types.F32,)),
    Rewrite("sign-by-comparison", "sign", _sign),
    Rewrite("elu-by-exp", "elu", _elu),
    Rewrite("floor-as-quotient", "floor", _floor),
    Rewrite("ceil-as-quotient", "ceil", _ceil),
    Rewrite("round-as-quotient", "round", _round),
    Rewrite("pow-as-products", "pow", _pow),
    Rewrite("rsqrt-as-quotient", "rsqrt", _rsqrt),
    Rewrite("square-as-product", "square", squared),
    Rewrite("select-that-broadcasts", "select", _select, 2),
    Rewrite("choice-by-rows-as-product", "select", _integer_choice),
    Rewrite("choice-as-product", "select_v2", _integer_choice),
    Rewrite("minimum-by-maximum", "reduce_min", _reduce_min),
    Rewrite("any-by-all", "reduce_any", _reduce_any),
    Rewrite("products-of-halves", "reduce_prod", _reduce_prod),
    Rewrite("mean-by-rows", "mean", _mean_by_rows, -1),
    *(Rewrite(f"{name}-of-floats", name, _with_floats, -1) for name in _OF_FLOATS),
)
