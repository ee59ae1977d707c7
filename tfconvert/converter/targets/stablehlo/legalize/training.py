"""Losses of classifiers, and gradients of activations, which models that were trained may still hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.targets.stablehlo.legalize.activations import SELU_ALPHA, SELU_SCALE, log_softmax
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite
from tfconvert.converter.targets.stablehlo.legalize.index_checks import require_indices
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _loss(emit: StableHLOBuilder, logits: Value, labels: Value) -> Sequence[Value]:
    """Emits the losses and their gradients."""
    logarithms = log_softmax(emit, logits)
    # Where a label is 0 nothing is lost, however unlikely it is.
    products = emit.select(emit.compare("EQ", labels, 0), 0, emit.binary("multiply", labels, logarithms))
    losses = emit.unary("negate", emit.reduce("add", products, (1,), 0))
    return losses, emit.binary("subtract", emit.unary("exponential", logarithms), labels)


def _cross_entropy(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    return _loss(emit, *emit.pair(*op.operands))


def _sparse_cross_entropy(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    logits, classes = op.operands
    dims, index = emit.dims(logits), types.element_of(classes.type)
    require_indices(emit, classes, dims[1])
    is_class = emit.compare("EQ", emit.iota(dims, 1, index), emit.broadcast(classes, dims, (0,)))
    return _loss(emit, logits, emit.convert(is_class, types.element_of(logits.type)))


def _product(*factors: Value, emit: StableHLOBuilder) -> Value:
    result = factors[0]
    for factor in factors[1:]:
        result = emit.binary("multiply", result, factor)
    return result


def _where(emit: StableHLOBuilder, condition: Value, gradient: Value) -> Value:
    return emit.select(condition, gradient, 0)


def _relu(op: Operation, emit: StableHLOBuilder) -> Value:
    gradient, value = op.operands
    return _where(emit, emit.compare("GT", value, 0), gradient)


def _relu6(op: Operation, emit: StableHLOBuilder) -> Value:
    gradient, value = op.operands
    is_inside = emit.binary("and", emit.compare("GT", value, 0), emit.compare("LT", value, 6))
    return _where(emit, is_inside, gradient)


def _leaky_relu(op: Operation, emit: StableHLOBuilder) -> Value:
    gradient, value = op.operands
    scaled = emit.binary("multiply", gradient, float(tf.get(op, "alpha", 0.2)))
    return emit.select(emit.compare("GT", value, 0), gradient, scaled)


def _elu(op: Operation, emit: StableHLOBuilder) -> Value:
    gradient, result = op.operands
    below = _product(gradient, emit.binary("add", result, 1), emit=emit)
    return emit.select(emit.compare("LT", result, 0), below, gradient)


def _selu(op: Operation, emit: StableHLOBuilder) -> Value:
    gradient, result = op.operands
    below = _product(gradient, emit.binary("add", result, SELU_SCALE * SELU_ALPHA), emit=emit)
    return emit.select(emit.compare("LT", result, 0), below, emit.binary("multiply", gradient, SELU_SCALE))


def _softplus(op: Operation, emit: StableHLOBuilder) -> Value:
    gradient, value = op.operands
    return _product(gradient, emit.unary("logistic", value), emit=emit)


def _softsign(op: Operation, emit: StableHLOBuilder) -> Value:
    gradient, value = op.operands
    divisor = emit.binary("add", emit.unary("abs", value), 1)
    return emit.binary("divide", gradient, emit.binary("multiply", divisor, divisor))


def _sigmoid(op: Operation, emit: StableHLOBuilder) -> Value:
    result, gradient = op.operands
    return _product(gradient, result, emit.binary("subtract", 1, result), emit=emit)


def _tanh(op: Operation, emit: StableHLOBuilder) -> Value:
    result, gradient = op.operands
    return _product(gradient, emit.binary("subtract", 1, emit.binary("multiply", result, result)), emit=emit)


def _reciprocal(op: Operation, emit: StableHLOBuilder) -> Value:
    result, gradient = op.operands
    return emit.unary("negate", _product(gradient, result, result, emit=emit))


def _sqrt(op: Operation, emit: StableHLOBuilder) -> Value:
    result, gradient = op.operands
    return emit.binary("divide", emit.binary("multiply", gradient, 0.5), result)


def _rsqrt(op: Operation, emit: StableHLOBuilder) -> Value:
    result, gradient = op.operands
    return emit.binary("multiply", _product(gradient, result, result, result, emit=emit), -0.5)


def _bias_add(op: Operation, emit: StableHLOBuilder) -> Value:
    gradient = op.operands[0]
    rank = len(emit.dims(gradient))
    axis = 1 if tf.get(op, "data_format", "NHWC") == "NCHW" else rank - 1
    return emit.reduce("add", gradient, [at for at in range(rank) if at != axis], 0)


LOWERINGS: Mapping[str, Rewrite] = {
    "BiasAddGrad": _bias_add,
    "EluGrad": _elu,
    "InvGrad": _reciprocal,
    "LeakyReluGrad": _leaky_relu,
    "ReciprocalGrad": _reciprocal,
    "Relu6Grad": _relu6,
    "ReluGrad": _relu,
    "RsqrtGrad": _rsqrt,
    "SeluGrad": _selu,
    "SigmoidGrad": _sigmoid,
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    "SoftplusGrad": _softplus,
    "SoftsignGrad": _softsign,
    "SparseSoftmaxCrossEntropyWithLogits": _sparse_cross_entropy,
    "SqrtGrad": _sqrt,
    "TanhGrad": _tanh,
}
