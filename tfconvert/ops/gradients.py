"""Derivatives, as graphs that were trained hold them: of functions of one operand, and of biases."""

from __future__ import annotations

from tfconvert.ops.declaration import Decomposition, op
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands
from tfconvert.ops.requirements import rank_is_known
from tfconvert.ops.shape_functions import Shapes, all_equal
from tfconvert.schema.dialects.dims import with_rank_at_least
from tfconvert.schema.dialects.relations.rules import rank_at_least
from tfconvert.schema.dialects.relations.view import View

_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


def sigmoid_grad(y: Tensor, gradient: Tensor) -> Tensor:
    return gradient * y * (1 - y)


def tanh_grad(y: Tensor, gradient: Tensor) -> Tensor:
    return gradient * (1 - y.square())


def _where_sloped(gradient: Tensor, result: Tensor) -> Tensor:
    """Returns zero where the gradient is zero, however steep the function is there, as TensorFlow does."""
    return gradient.equal(0).where(0, result)


def rsqrt_grad(y: Tensor, gradient: Tensor) -> Tensor:
    y = y.conj()
    return _where_sloped(gradient, gradient * (y.square() * y) * -0.5)


def sqrt_grad(y: Tensor, gradient: Tensor) -> Tensor:
    return _where_sloped(gradient, gradient * 0.5 / y.conj())


def reciprocal_grad(y: Tensor, gradient: Tensor) -> Tensor:
    return _where_sloped(gradient, -(gradient * y.conj().square()))


def relu_grad(gradient: Tensor, x: Tensor) -> Tensor:
    return (x > 0).where(gradient, 0)


def relu6_grad(gradient: Tensor, x: Tensor) -> Tensor:
    return ((x > 0) & (x < 6)).where(gradient, 0)


def leaky_relu_grad(gradient: Tensor, x: Tensor, *, alpha: float = 0.2) -> Tensor:
    slope = gradient * alpha
    return (x > 0).where(gradient, slope)


def elu_grad(gradient: Tensor, y: Tensor) -> Tensor:
    """Below zero the derivative is `exp(x)`, which is one more than the result."""
    slope = (y + 1) * gradient
    return (y < 0).where(slope, gradient)


def selu_grad(gradient: Tensor, y: Tensor) -> Tensor:
    slope = (y + _SELU_SCALE_ALPHA) * gradient
    return (y < 0).where(slope, gradient * _SELU_SCALE)


def softplus_grad(gradient: Tensor, x: Tensor) -> Tensor:
    return gradient * x.sigmoid()


def softsign_grad(gradient: Tensor, x: Tensor) -> Tensor:
    return gradient / (abs(x) + 1).square()


def bias_add_grad(gradient: Tensor, *, data_format: str = "NHWC") -> Tensor:
    channel = 1 if data_format == "NCHW" else gradient.rank - 1
    return gradient.sum([axis for axis in range(gradient.rank) if axis != channel])


def _bias_gradient_shape(operands: Operands) -> Shapes:
    shape = with_rank_at_least(operands.shape(0), 2)
    if shape is None:
        return ((-1,),)
    return ((shape[1 if operands.text("data_format") == "NCHW" else -1],),)


def _image_rank(view: View) -> None:
    rank_at_least("out_backprop", 3 if view.string("data_format") == "NCHW" else 2)(view)


# Derivatives of activations take the gradient first and then the operand (elu and selu: the result), all others the
# result first.
OPS = (
    op(
        "BiasAddGrad",
        shape=_bias_gradient_shape,
        decompose=(Decomposition(bias_add_grad, "number", rank_is_known),),
        relations=(_image_rank,),
    ),
    op("InvGrad", shape=all_equal, decompose=reciprocal_grad, verified=True),
    op("EluGrad", shape=all_equal, decompose=elu_grad, verified=True),
    op("LeakyReluGrad", shape=all_equal, decompose=leaky_relu_grad, verified=True),
    op("ReciprocalGrad", shape=all_equal, decompose=reciprocal_grad, verified=True),
    op("Relu6Grad", shape=all_equal, decompose=relu6_grad, verified=True),
    op("ReluGrad", shape=all_equal, decompose=relu_grad, verified=True),
    op("RsqrtGrad", shape=all_equal, decompose=rsqrt_grad, verified=True),
    op("SeluGrad", shape=all_equal, decompose=selu_grad, verified=True),
    op("SigmoidGrad", shape=all_equal, decompose=sigmoid_grad, verified=True),
    op("SoftplusGrad", shape=all_equal, decompose=softplus_grad, verified=True),
    op("SoftsignGrad", shape=all_equal, decompose=softsign_grad, verified=True),
    op("SqrtGrad", shape=all_equal, decompose=sqrt_grad, verified=True),
    op("TanhGrad", shape=all_equal, decompose=tanh_grad, verified=True),
)
