"""Activations, softmax, and sums of biases."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# `Selu`'s factors of exponentials, and of everything.
_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805


def _relu(op: Operation, emit: StableHLOBuilder) -> Value:
    return emit.binary("maximum", op.operands[0], 0)


def _relu6(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    element = types.element_of(value.type)
    bounds = emit.scalar(0, element), emit.scalar(6, element)
    return emit.one("clamp", (bounds[0], value, bounds[1]), element, emit.dims(value))


def _leaky_relu(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    scaled = emit.binary("multiply", value, float(tf.get(op, "alpha", 0.2)))
    return emit.select(emit.compare("GT", value, 0), value, scaled)


def _elu(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    return emit.select(emit.compare("GT", value, 0), value, emit.unary("exponential_minus_one", value))


def _selu(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits one choice for both factors, where a decomposition by `Relu` and `Elu` takes two."""
    value = op.operands[0]
    below = emit.binary("multiply", emit.unary("exponential_minus_one", value), _SELU_ALPHA)
    return emit.binary("multiply", emit.select(emit.compare("GT", value, 0), value, below), _SELU_SCALE)


def _shifted(emit: StableHLOBuilder, value: Value) -> Value:
    """Returns a value less its greatest element along the last axis, so that no exponential overflows."""
    last = len(emit.dims(value)) - 1
    greatest = emit.reduce("maximum", value, (last,), types.lowest(types.element_of(value.type)))
    return emit.binary("subtract", value, emit.broadcast(greatest, emit.dims(value), range(last)))


def _softmax(op: Operation, emit: StableHLOBuilder) -> Value:
    powers = emit.unary("exponential", _shifted(emit, op.operands[0]))
    dims = emit.dims(powers)
    total = emit.reduce("add", powers, (len(dims) - 1,), 0)
    return emit.binary("divide", powers, emit.broadcast(total, dims, range(len(dims) - 1)))


def _log_softmax(op: Operation, emit: StableHLOBuilder) -> Value:
    return log_softmax(emit, op.operands[0])


def log_softmax(emit: StableHLOBuilder, value: Value) -> Value:
    """Emits the logarithms of a softmax along the last axis."""
    shifted = _shifted(emit, value)
    dims = emit.dims(shifted)
    total = emit.reduce("add", emit.unary("exponential", shifted), (len(dims) - 1,), 0)
    return emit.binary("subtract", shifted, emit.broadcast(emit.unary("log", total), dims, range(len(dims) - 1)))


def _bias_add(op: Operation, emit: StableHLOBuilder) -> Value:
    value, bias = op.operands
    dims = emit.dims(value)
    axis = 1 if tf.get(op, "data_format", "NHWC") == "NCHW" else len(dims) - 1
    (size,) = emit.dims(bias)
    joined = tuple(size if at == axis and size >= 0 else dim for at, dim in enumerate(dims))
    return emit.binary("add", value, emit.broadcast(bias, joined, (axis,)))


LOWERINGS: Mapping[str, Rewrite] = {
    "BiasAdd": _bias_add,
    "BiasAddV1": _bias_add,
    "Elu": _elu,
    "LeakyRelu": _leaky_relu,
    "LogSoftmax": _log_softmax,
    "Relu": _relu,
    "Relu6": _relu6,
    "Selu": _selu,
    "Softmax": _softmax,
}
