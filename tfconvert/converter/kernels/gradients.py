"""Derivatives, as graphs that were trained hold them: of functions of one operand, and of biases."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from tfconvert.converter.kernels.call import Array, Call, Function, Kernel, Results, typed, wide
from tfconvert.converter.kernels.windows import channels_first


def _gradient(function: Function, call: Call) -> Results:
    """Computes a derivative; narrow floats in 32 bits. Nothing is broadcast."""
    x, y = call.inputs
    if x.shape != y.shape:
        raise call.bad(f"the operands' shapes {x.shape} and {y.shape} differ")
    return (typed(function(wide(x), wide(y)), x.dtype),)


def _of_reciprocal(y: Array, gradient: Array) -> Array:
    result = np.conj(y)
    return np.asarray(-gradient * result * result)


def _of_rsqrt(y: Array, gradient: Array) -> Array:
    result = np.conj(y)
    return np.asarray((gradient * result) * (result * result) * typed(-0.5, y.dtype))


def _of_sqrt(y: Array, gradient: Array) -> Array:
    return np.asarray(typed(0.5, y.dtype) * gradient / np.conj(y))


def _of_sigmoid(y: Array, gradient: Array) -> Array:
    return np.asarray(gradient * y * (1 - y))


def _of_tanh(y: Array, gradient: Array) -> Array:
    return np.asarray(gradient * (1 - y * y))


def _of_relu(gradient: Array, x: Array) -> Array:
    return np.where(x > 0, gradient, typed(0, gradient.dtype))


def _of_relu6(gradient: Array, x: Array) -> Array:
    return np.where((x > 0) & (x < 6), gradient, typed(0, gradient.dtype))


def _of_bias(call: Call) -> Results:
    """Adds up what reaches each channel, in the wider type of narrow floats."""
    (gradient,) = call.inputs
    channel = 1 if channels_first(call.text("data_format", "NHWC")) else gradient.ndim - 1
    axes = tuple(axis for axis in range(gradient.ndim) if axis != channel)
    return (typed(wide(gradient).sum(axes, dtype=wide(gradient).dtype), gradient.dtype),)


_GRADIENTS: Mapping[str, Function] = {
    "InvGrad": _of_reciprocal,
    "ReciprocalGrad": _of_reciprocal,
    "Relu6Grad": _of_relu6,
    "ReluGrad": _of_relu,
    "RsqrtGrad": _of_rsqrt,
    "SigmoidGrad": _of_sigmoid,
    "SqrtGrad": _of_sqrt,
    "TanhGrad": _of_tanh,
}
"""Those of activations take the gradient first and then the operand, all others the result first."""

KERNELS: Mapping[str, Kernel] = {
    **{name: partial(_gradient, function) for name, function in _GRADIENTS.items()},
    "BiasAddGrad": _of_bias,
}
"""Op name -> kernel."""
