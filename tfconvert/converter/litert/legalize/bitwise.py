"""Bits: the kernels support exclusive or and shifting to the right, from which the rest follows."""

from __future__ import annotations

import numpy as np

from tfconvert.converter.litert.legalize.builder import Emit
from tfconvert.converter.litert.legalize.entry import Entry, Lowering, Row
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_WORDS = "i8 ui8 i16 ui16 i32 ui32"
_SIGN_BIT = -(1 << 31)


def _invert(op: Operation, emit: Emit) -> Value:
    """Flips all bits: exclusive or with all ones."""
    ones = emit.constant(np.array(-1).astype(types.numpy_dtype(types.element_of(op.operands[0].type))))
    return emit.tf("BitwiseXor", (op.operands[0], ones), op.results[0].type)


def _bitwise_and(op: Operation, emit: Emit) -> Value:
    return _conjunction(emit, *op.operands)


def _conjunction(emit: Emit, x: Value, y: Value) -> Value:
    """`x + y` is `(x ^ y) + 2 * (x & y)`: all but the highest bit follows from that, which gets lost on the way."""
    twice = emit.binary("Sub", emit.binary("AddV2", x, y), emit.binary("BitwiseXor", x, y))
    unsigned = types.element_type(22)
    assert unsigned is not None
    lower = emit.cast(emit.binary("RightShift", emit.cast(twice, unsigned), 1), types.I32)
    negative = [emit.compare("Less", operand, 0) for operand in (x, y)]
    both = emit.tf("LogicalAnd", negative, types.tensor(types.I1, types.shape_of(lower.type)))
    return emit.binary("BitwiseXor", lower, emit.select(both, emit.scalar(_SIGN_BIT, types.I32), 0))


def _bitwise_or(op: Operation, emit: Emit) -> Value:
    x, y = op.operands
    return emit.binary("BitwiseXor", emit.binary("BitwiseXor", x, y), _conjunction(emit, x, y))


def _left_shift(op: Operation, emit: Emit) -> Value:
    x, y = op.operands
    places = emit.binary("Minimum", emit.binary("Maximum", y, 0), 31)
    return emit.binary("Mul", x, emit.binary("Pow", emit.scalar(2, types.I32), places))


ENTRIES: tuple[Entry, ...] = (
    Row("BitwiseXor", "bitwise_xor", _WORDS),
    Row("RightShift", "right_shift", _WORDS),
    Lowering("Invert", "BitwiseXor", _invert, _WORDS),
    Lowering("BitwiseAnd", "BitwiseXor RightShift Less", _bitwise_and, "i32"),
    Lowering("BitwiseOr", "BitwiseXor RightShift Less", _bitwise_or, "i32"),
    Lowering("LeftShift", "Pow Mul", _left_shift, "i32"),
)
