"""Functions of numbers by their formulas: normalizations, activations, powers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.accelerators.builder import (
    AcceleratorBuilder,
    Rewrite,
    array_of,
    option,
    shape_of,
    static_shape,
)
from tfconvert.converter.targets.litert.accelerators.pieces import activated, lifted, low, need_floats, reduced, small
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.values import Value


def _log_softmax(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """`x - max(x)`, from which the logarithm of the sum of its exponentials is subtracted."""
    need_floats(op.operands[0])
    value = low(build, op.operands[0])
    shifted = build.binary("sub", value, reduced(build, "reduce_max", value, -1))
    total = reduced(build, "sum", build.unary("exp", shifted), -1)
    return build.reshape(build.binary("sub", shifted, build.unary("log", total)), static_shape(op.results[0]))


def _softmax(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A softmax of a multiple, or of a vector: of the product, in rank 2 at least."""
    need_floats(op.operands[0])
    shape, beta = static_shape(op.operands[0]), option(op, "beta")
    value = op.operands[0] if beta == 1 else build.binary("mul", op.operands[0], beta)
    value = build.reshape(value, shape if len(shape) > 1 else (1, *shape))
    return build.reshape(build.tfl("softmax", (value,), value.type, {"beta": 1.0}), shape)


def _l2_normalization(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """`x * rsqrt(max(sum(x * x), epsilon))`."""
    need_floats(op.operands[0])
    value = low(build, op.operands[0])
    total = reduced(build, "sum", build.unary("square", value), -1)
    inverse = build.unary("rsqrt", build.binary("maximum", total, _L2_EPSILON))
    return build.reshape(activated(build, op, build.binary("mul", value, inverse)), static_shape(op.results[0]))


# The square of the smallest norm that LiteRT divides by.
_L2_EPSILON = 1e-12


def _l2_pool(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """The root of the mean square."""
    need_floats(op.operands[0])
    options: dict[str, Any] = {name: option(op, name) for name in tfl.option_fields("l2_pool_2d")}
    options["fused_activation_function"] = "NONE"
    mean = build.tfl("average_pool_2d", (build.unary("square", op.operands[0]),), op.results[0].type, options)
    return activated(build, op, build.unary("sqrt", mean))


def _local_response(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """`x * (bias + alpha * sum of the squares nearby) ** -beta`, the sum by a convolution with a band."""
    value = op.operands[0]
    need_floats(value)
    depth = static_shape(value)[-1]
    distance = np.abs(np.subtract.outer(np.arange(depth), np.arange(depth)))
    band = np.where(distance <= option(op, "radius"), np.float32(option(op, "alpha")), np.float32(0))
    small(band)
    operands = (
        build.unary("square", value),
        build.constant(band.astype(np.float32).reshape(depth, 1, 1, depth)),
        build.constant(np.full(depth, option(op, "bias"), np.float32)),
    )
    options: dict[str, Any] = {"padding": "VALID", "stride_w": 1, "stride_h": 1, "fused_activation_function": "NONE"}
    total = build.tfl("conv_2d", operands, value.type, {**options, "dilation_w_factor": 1, "dilation_h_factor": 1})
    return build.binary("mul", value, build.binary("pow", total, -option(op, "beta")))


def _relu_0_to_1(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    need_floats(op.operands[0])
    value = build.binary("minimum", build.unary("relu", low(build, op.operands[0])), 1.0)
    return build.reshape(value, static_shape(op.results[0]))


def _relu_n1_to_1(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    need_floats(op.operands[0])
    return build.binary("minimum", build.binary("maximum", op.operands[0], -1.0), 1.0)


def _prelu_of_channels(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A slope that varies along the channels at most: one number a channel, in one dimension less."""
    shape = shape_of(op.operands[0])
    slope, depth = array_of(op.operands[1]), shape[-1]
    need(depth > 0 and slope.size in (1, depth), "the slope varies elsewhere, or the number of channels is unknown")
    need(slope.size == 1 or slope.shape[-1] == depth, "the slope varies elsewhere")
    low = (1,) * (len(shape) - 2) * build.is_default + (depth,)
    need(slope.shape != low and not (build.is_default and slope.size > 1), "there is a slope for each channel")
    whole = build.array(np.ascontiguousarray(np.broadcast_to(slope.reshape(-1), (depth,)).reshape(low)), op.operands[1])
    return build.again(op, (op.operands[0], whole)).results[0]


def _prelu(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """`max(x, 0) + slope * min(x, 0)`."""
    value, slope = op.operands
    need_floats(value, slope)
    rank = len(static_shape(value))
    slope = build.reshape(slope, (*[1] * (rank - len(static_shape(slope))), *static_shape(slope)))
    return build.binary(
        "add", build.unary("relu", value), build.binary("mul", build.binary("minimum", value, 0.0), slope)
    )


def _squared_difference(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    # A constant first operand of integers is misread.
    x, y = sorted((lifted(build, value) for value in op.operands), key=tfl.is_constant)
    difference = build.binary("sub", x, y)
    return build.reshape(build.binary("mul", difference, difference), static_shape(op.results[0]))


def _sums_of_two(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A sum of many: sums of two."""
    total, *others = op.operands
    need(bool(others), "it has one operand")
    for value in others:
        total = build.binary("add", total, value)
    return total


def _mean_of_integers(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A mean of integers: their sum, divided."""
    need(types.element_of(op.operands[0].type) == types.I32, "its elements are not i32")
    options = {"keep_dims": option(op, "keep_dims")}
    total = build.tfl("sum", op.operands, op.results[0].type, options)
    count = math.prod(static_shape(op.operands[0])) // max(math.prod(static_shape(op.results[0])), 1)
    return build.binary("div", total, count)


def _exclusive_or(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """Of booleans: one of them, but not both."""
    need(types.element_of(op.operands[0].type) == types.I1, "its elements are not booleans")
    either, both = (build.binary(name, op.operands[0], op.operands[1]) for name in ("logical_or", "logical_and"))
    return build.binary("logical_and", either, build.unary("logical_not", both))


def _not_equal(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """Booleans that are equal or not: by logic."""
    differs = _exclusive_or(op, build)
    return differs if op.op_name == "not_equal" else build.unary("logical_not", differs)


def _constant_behind(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """An operator whose first operand is a constant: the one with exchanged operands."""
    x, y = (lifted(build, value) for value in op.operands)
    need(tfl.is_constant(x) and not tfl.is_constant(y), "the first operand is computed")
    if op.op_name == "sub":
        value = activated(build, op, build.binary("add", build.unary("neg", y), x))
    else:
        value = build.binary(_EXCHANGED[op.op_name], y, x, types.element_of(op.results[0].type))
    return build.reshape(value, static_shape(op.results[0]))


# Comparisons with those that have their operands exchanged.
_EXCHANGED = {
    "greater": "less",
    "greater_equal": "less_equal",
    "less": "greater",
    "less_equal": "greater_equal",
    "equal": "equal",
    "not_equal": "not_equal",
}


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
    Rewrite("add-n-as-sums", "add_n", _sums_of_two, 1, (types.F32,)),
    Rewrite("mean-of-integers", "mean", _mean_of_integers),
    Rewrite("exclusive-or-by-logic", "bitwise_xor", _exclusive_or),
    *(Rewrite(f"{name}-of-booleans", name, _not_equal, 0) for name in ("equal", "not_equal")),
    *(Rewrite(f"{name}-exchanged", name, _constant_behind, 5) for name in ("sub", *_EXCHANGED)),
)
