"""Derivatives of activations that few trained graphs hold; `math.py` has the more common ones."""

from __future__ import annotations

from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tf
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_FLOAT = "f32"
_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


def _elu(op: Operation, emit: LiteRTBuilder) -> Value:
    """Below zero the derivative is `exp(x)`, which is one more than the result."""
    gradient, y = op.operands
    slope = emit.binary("Mul", emit.binary("AddV2", y, 1.0), gradient)
    return emit.select(emit.compare("Less", y, 0.0), slope, gradient)


def _selu(op: Operation, emit: LiteRTBuilder) -> Value:
    gradient, y = op.operands
    slope = emit.binary("Mul", emit.binary("AddV2", y, _SELU_SCALE_ALPHA), gradient)
    return emit.select(emit.compare("Less", y, 0.0), slope, emit.binary("Mul", gradient, _SELU_SCALE))


def _leaky_relu(op: Operation, emit: LiteRTBuilder) -> Value:
    gradient, x = op.operands
    slope = emit.binary("Mul", gradient, tf.get(op, "alpha", 0.2))
    return emit.select(emit.compare("Greater", x, 0.0), gradient, slope)


def _softplus(op: Operation, emit: LiteRTBuilder) -> Value:
    gradient, x = op.operands
    return emit.binary("RealDiv", gradient, emit.binary("AddV2", emit.unary("Exp", emit.unary("Neg", x)), 1.0))


def _softsign(op: Operation, emit: LiteRTBuilder) -> Value:
    gradient, x = op.operands
    return emit.binary("RealDiv", gradient, emit.unary("Square", emit.binary("AddV2", emit.unary("Abs", x), 1.0)))


ENTRIES: tuple[Entry, ...] = (
    Lowering("EluGrad", "AddV2 Mul Less SelectV2", _elu, _FLOAT),
    Lowering("LeakyReluGrad", "Mul Greater SelectV2", _leaky_relu, _FLOAT),
    Lowering("SeluGrad", "AddV2 Mul Less SelectV2", _selu, _FLOAT),
    Lowering("SoftplusGrad", "Neg Exp AddV2 RealDiv", _softplus, _FLOAT),
    Lowering("SoftsignGrad", "Abs AddV2 Square RealDiv", _softsign, _FLOAT),
)
