"""Derivatives, as graphs that were trained hold them: of functions of one operand, and of biases.

Those of activations take the gradient first and then the operand (elu and selu: the result), all others the result
first.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tfconvert.ops.call import Array, Call, Function, Results, typed, wide
from tfconvert.ops.declaration import OpDeclaration, op
from tfconvert.ops.operands import Operands
from tfconvert.ops.shape_functions import Shapes, all_equal
from tfconvert.ops.windows import channels_first
from tfconvert.schema.dialects.dims import with_rank_at_least
from tfconvert.schema.dialects.relations.rules import rank_at_least
from tfconvert.schema.dialects.relations.view import View

_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


def _bias_gradient_shape(operands: Operands) -> Shapes:
    shape = with_rank_at_least(operands.shape(0), 2)
    if shape is None:
        return ((-1,),)
    return ((shape[1 if operands.text("data_format") == "NCHW" else -1],),)


def _gradient(function: Function, call: Call) -> Results:
    """Computes a derivative; narrow floats in 32 bits. Nothing is broadcast."""
    x, y = call.inputs
    if x.shape != y.shape:
        raise call.bad(f"the operands' shapes {x.shape} and {y.shape} differ")
    return (typed(function(wide(x), wide(y)), x.dtype),)


def _unless_zero(gradient: Array, result: Array) -> Array:
    """Returns zero where the gradient is zero, however steep the function is there, as TensorFlow does."""
    return np.where(gradient == 0, typed(0, gradient.dtype), result)


def _of_reciprocal(y: Array, gradient: Array) -> Array:
    result = np.conj(y)
    return _unless_zero(gradient, -gradient * result * result)


def _of_rsqrt(y: Array, gradient: Array) -> Array:
    result = np.conj(y)
    return _unless_zero(gradient, (gradient * result) * (result * result) * typed(-0.5, y.dtype))


def _of_sqrt(y: Array, gradient: Array) -> Array:
    return _unless_zero(gradient, typed(0.5, y.dtype) * gradient / np.conj(y))


def _of_sigmoid(y: Array, gradient: Array) -> Array:
    return np.asarray(gradient * y * (1 - y))


def _of_tanh(y: Array, gradient: Array) -> Array:
    return np.asarray(gradient * (1 - y * y))


def _of_relu(gradient: Array, x: Array) -> Array:
    return np.where(x > 0, gradient, typed(0, gradient.dtype))


def _of_relu6(gradient: Array, x: Array) -> Array:
    return np.where((x > 0) & (x < 6), gradient, typed(0, gradient.dtype))


def _of_elu(gradient: Array, y: Array) -> Array:
    return np.where(y < 0, (y + 1) * gradient, gradient)


def _of_selu(gradient: Array, y: Array) -> Array:
    scale, scale_alpha = (typed(number, y.dtype) for number in (_SELU_SCALE, _SELU_SCALE_ALPHA))
    return np.where(y < 0, (y + scale_alpha) * gradient, scale * gradient)


def _of_softplus(gradient: Array, x: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(gradient / (np.exp(-x) + 1))


def _of_softsign(gradient: Array, x: Array) -> Array:
    return np.asarray(gradient / np.square(1 + np.abs(x)))


def _of_leaky_relu(call: Call) -> Results:
    slope = typed(call.number("alpha", 0.2), wide(call.inputs[0]).dtype)
    return _gradient(lambda gradient, x: np.where(x > 0, gradient, gradient * slope), call)


def _of_bias(call: Call) -> Results:
    """Adds up what reaches each channel, in the wider type of narrow floats."""
    (gradient,) = call.inputs
    channel = 1 if channels_first(call.text("data_format", "NHWC")) else gradient.ndim - 1
    axes = tuple(axis for axis in range(gradient.ndim) if axis != channel)
    return (typed(wide(gradient).sum(axes, dtype=wide(gradient).dtype), gradient.dtype),)


def _derivative(name: str, function: Function) -> OpDeclaration:
    return op(name, shape=all_equal, compute=partial(_gradient, function), verified=True)


def _image_rank(view: View) -> None:
    rank_at_least("out_backprop", 3 if view.string("data_format") == "NCHW" else 2)(view)


OPS = (
    op("BiasAddGrad", shape=_bias_gradient_shape, compute=_of_bias, relations=(_image_rank,)),
    _derivative("EluGrad", _of_elu),
    _derivative("InvGrad", _of_reciprocal),
    op("LeakyReluGrad", shape=all_equal, compute=_of_leaky_relu, verified=True),
    _derivative("ReciprocalGrad", _of_reciprocal),
    _derivative("Relu6Grad", _of_relu6),
    _derivative("ReluGrad", _of_relu),
    _derivative("RsqrtGrad", _of_rsqrt),
    _derivative("SeluGrad", _of_selu),
    _derivative("SigmoidGrad", _of_sigmoid),
    _derivative("SoftplusGrad", _of_softplus),
    _derivative("SoftsignGrad", _of_softsign),
    _derivative("SqrtGrad", _of_sqrt),
    _derivative("TanhGrad", _of_tanh),
)
