"""Bits: the kernels support exclusive or and shifting to the right, from which the rest follows."""

from __future__ import annotations

import numpy as np

from tfconvert.converter.ir.constants import constant_int
from tfconvert.converter.targets.litert.legalize.entry import BuiltinRow, Entry, Lowering, element_name
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_SMALL = "i8 ui8 i16 ui16"
_WORDS = f"{_SMALL} i32 ui32"
_WIDER = {**dict.fromkeys(_SMALL.split(), types.I32), "ui32": types.I64}
_SIGN_BIT = -(1 << 31)


def _invert(op: Operation, emit: LiteRTBuilder) -> Value:
    """Flips all bits: exclusive or with all ones."""
    ones = emit.constant(np.array(-1).astype(types.numpy_dtype(types.element_of(op.operands[0].type))))
    return emit.tf("BitwiseXor", (op.operands[0], ones), op.results[0].type)


def _bitwise_and(op: Operation, emit: LiteRTBuilder) -> Value:
    """The sign bit is there in negative numbers; other bits take more work."""
    for x, y in (op.operands, op.operands[::-1]):
        if constant_int(y) == _SIGN_BIT:
            return emit.select(emit.compare("Less", x, 0), emit.scalar(_SIGN_BIT, types.I32), 0)
    return _conjunction(emit, *op.operands)


def _conjunction(emit: LiteRTBuilder, x: Value, y: Value) -> Value:
    """`x + y` is `(x ^ y) + 2 * (x & y)`: all but the highest bit follows from that, which gets lost on the way."""
    twice = emit.binary("Sub", emit.binary("AddV2", x, y), emit.binary("BitwiseXor", x, y))
    unsigned = types.element_type(22)
    assert unsigned is not None
    lower = emit.cast(emit.binary("RightShift", emit.cast(twice, unsigned), 1), types.I32)
    negative = [emit.compare("Less", operand, 0) for operand in (x, y)]
    both = emit.tf("LogicalAnd", negative, types.tensor(types.I1, types.shape_of(lower.type)))
    return emit.binary("BitwiseXor", lower, emit.select(both, emit.scalar(_SIGN_BIT, types.I32), 0))


def _bitwise_or(op: Operation, emit: LiteRTBuilder) -> Value:
    x, y = op.operands
    return emit.binary("BitwiseXor", emit.binary("BitwiseXor", x, y), _conjunction(emit, x, y))


def _left_shift(op: Operation, emit: LiteRTBuilder) -> Value:
    """Multiplies by a power of two from a table: `pow` of integers is a machine's power of doubles, cut off.

    A negative shift counts as 0, and one of more bits than there are as one bit less than there are.
    """
    x, places = op.operands
    narrow = types.element_of(x.type)
    wide = _WIDER.get(element_name(narrow), narrow)
    x, places = emit.cast(x, wide), emit.cast(places, wide)
    bits = types.numpy_dtype(narrow).itemsize * 8
    places = emit.i32(emit.binary("Minimum", emit.binary("Maximum", places, 0), bits - 1))
    powers = [np.uint64(1 << place) for place in range(bits)]
    table = emit.constant(np.array(powers).astype(types.numpy_dtype(wide)))
    factors = emit.tf("Gather", (table, places), types.tensor(wide, types.shape_of(places.type)))
    shifted = emit.binary("Mul", x, factors)
    return emit.cast(shifted, narrow)


ENTRIES: tuple[Entry, ...] = (
    BuiltinRow("BitwiseXor", "bitwise_xor", _WORDS),
    BuiltinRow("RightShift", "right_shift", _WORDS),
    Lowering("Invert", "BitwiseXor", _invert, _WORDS),
    Lowering("BitwiseAnd", "BitwiseXor RightShift Less SelectV2", _bitwise_and, "i32"),
    Lowering("BitwiseOr", "BitwiseXor RightShift Less", _bitwise_or, "i32"),
    Lowering("LeftShift", "Gather Mul", _left_shift, f"{_SMALL} i32 ui32 i64"),
)
