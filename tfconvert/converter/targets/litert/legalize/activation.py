"""Activations."""

from __future__ import annotations

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Attr, BuiltinRow, Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_FLOAT = "f32"


def _relu(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.binary("Maximum", op.operands[0], 0)


def _relu6(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.binary("Minimum", emit.binary("Maximum", op.operands[0], 0), 6)


def _has_axis(op: Operation) -> Failure | None:
    return Failure("a scalar has no axis to normalize along") if op.operands[0].shape == () else None


ENTRIES: tuple[Entry, ...] = (
    BuiltinRow("Relu", "relu", _FLOAT),
    Lowering("Relu", "Maximum", _relu, "i32 i64 i8 ui8 i16"),
    BuiltinRow("Relu6", "relu6", _FLOAT),
    Lowering("Relu6", "Maximum Minimum", _relu6, "i32 i64 i8 ui8 i16"),
    BuiltinRow("LeakyRelu", "leaky_relu", _FLOAT, options={"alpha": Attr("alpha", 0.2)}),
    BuiltinRow("Elu", "elu", _FLOAT),
    BuiltinRow("Sigmoid", "logistic", _FLOAT),
    BuiltinRow("Tanh", "tanh", _FLOAT),
    BuiltinRow("Softmax", "softmax", _FLOAT, options={"beta": 1.0}, constraint=_has_axis),
    BuiltinRow("LogSoftmax", "log_softmax", _FLOAT, constraint=_has_axis),
)
