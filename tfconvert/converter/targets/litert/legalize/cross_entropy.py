"""Losses of classifiers, with the gradients for training."""

from __future__ import annotations

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _known_classes(op: Operation) -> Failure | None:
    shape = types.shape_of(op.operands[0].type)
    return Failure("the number of classes is not known") if shape is None or shape[-1] < 1 else None


def _same_shapes(op: Operation) -> Failure | None:
    shapes = [types.shape_of(operand.type) for operand in op.operands]
    return (
        Failure("the labels' shape is not seen to be the logits'") if None in shapes or shapes[0] != shapes[1] else None
    )


def _loss_and_gradient(emit: LiteRTBuilder, logits: Value, labels: Value) -> list[Value]:
    logarithms = emit.unary("LogSoftmax", logits)
    loss = emit.unary("Neg", emit.reduce("Sum", emit.binary("Mul", labels, logarithms), (1,)))
    return [loss, emit.binary("Sub", emit.unary("Softmax", logits), labels)]


def _dense(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    logits, labels = op.operands
    return _loss_and_gradient(emit, logits, labels)


def _sparse(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    logits, classes = op.operands
    count = (types.shape_of(logits.type) or ())[-1]
    element = types.element_of(logits.type)
    operands = (classes, emit.scalar(count, types.I32), emit.scalar(1, element), emit.scalar(0, element))
    return _loss_and_gradient(emit, logits, emit.tf("OneHot", operands, logits.type, {"axis": -1}))


_BECOMES = "LogSoftmax Mul Sum Softmax Sub"

ENTRIES: tuple[Entry, ...] = (
    Lowering("SoftmaxCrossEntropyWithLogits", _BECOMES, _dense, "f32", _same_shapes),
    Lowering("SparseSoftmaxCrossEntropyWithLogits", f"OneHot {_BECOMES}", _sparse, "f32", _known_classes),
)
