"""Bits: the kernels support exclusive or and shifting to the right, from which the rest follows.

Words of 64 bits are two of 32 bits, and unsigned ones of 64 bits are signed ones whose bits are the same.
"""

from __future__ import annotations

import numpy as np

from tfconvert.converter.ir.constants import constant_int
from tfconvert.converter.rewrite.pattern import Failure
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
    ones = emit.constant(np.array(-1).astype(types.numpy_dtype(op.operands[0].element)))
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
    both = emit.tf("LogicalAnd", negative, types.tensor(types.I1, lower.shape))
    return emit.binary("BitwiseXor", lower, emit.select(both, emit.scalar(_SIGN_BIT, types.I32), 0))


def _bitwise_or(op: Operation, emit: LiteRTBuilder) -> Value:
    x, y = op.operands
    return emit.binary("BitwiseXor", emit.binary("BitwiseXor", x, y), _conjunction(emit, x, y))


def _left_shift(op: Operation, emit: LiteRTBuilder) -> Value:
    """Multiplies by a power of two from a table: `pow` of integers is a machine's power of doubles, cut off.

    A negative shift counts as 0, and one of more bits than there are as one bit less than there are.
    """
    x, places = op.operands
    narrow = x.element
    wide = _WIDER.get(element_name(narrow), narrow)
    x, places = emit.cast(x, wide), emit.cast(places, wide)
    bits = types.numpy_dtype(narrow).itemsize * 8
    places = emit.i32(emit.binary("Minimum", emit.binary("Maximum", places, 0), bits - 1))
    powers = [np.uint64(1 << place) for place in range(bits)]
    table = emit.constant(np.array(powers).astype(types.numpy_dtype(wide)))
    factors = emit.tf("Gather", (table, places), types.tensor(wide, places.shape))
    shifted = emit.binary("Mul", x, factors)
    return emit.cast(shifted, narrow)


def _as_words(op: Operation, emit: LiteRTBuilder) -> Value:
    """Applies the op to signed words of 32 bits, of which a word of 64 has two in a dimension more."""
    found = op.results[0].type
    wide, shape = types.numpy_dtype(types.element_of(found)), types.shape_of(found)
    dims = () if wide.itemsize == 4 else (2,)

    def viewed(value: Value) -> Value:
        own = value.shape
        return emit.tf("Bitcast", (value,), types.tensor(types.I32, None if own is None else (*own, *dims)))

    words = types.tensor(types.I32, None if shape is None else (*shape, *dims))
    return emit.tf(
        "Bitcast", (emit.tf(op.name.removeprefix("tf."), [viewed(operand) for operand in op.operands], words),), found
    )


def _signed(emit: LiteRTBuilder, value: Value) -> Value:
    return emit.tf("Bitcast", (value,), types.tensor(types.I64, value.shape))


def _as_signed(op: Operation, emit: LiteRTBuilder) -> Value:
    found, operands = op.results[0].type, [_signed(emit, operand) for operand in op.operands]
    kept = found if types.element_of(found) == types.I1 else types.tensor(types.I64, types.shape_of(found))
    result = emit.tf(op.name.removeprefix("tf."), operands, kept, op.properties)
    return result if kept == found else emit.tf("Bitcast", (result,), found)


def _left_shift_of_longs(op: Operation, emit: LiteRTBuilder) -> Value:
    """Shifts signed words; a number of places beyond them is negative as a signed one."""
    value, places = (_signed(emit, operand) for operand in op.operands)
    places = emit.select(emit.compare("Less", places, 0), emit.scalar(63, types.I64), places)
    shape = op.results[0].shape
    return emit.tf(
        "Bitcast", (emit.tf("LeftShift", (value, places), types.tensor(types.I64, shape)),), op.results[0].type
    )


def _is_of_longs(op: Operation) -> Failure | None:
    kinds = {types.numpy_dtype(value.element) for value in (op.operands[0], op.results[0])}
    if np.dtype(np.uint64) in kinds and all(kind.kind in "iu" for kind in kinds):
        return None
    return Failure("the kernel converts it, or it isn't an integer", is_special=True)


def _cast_of_longs(op: Operation, emit: LiteRTBuilder) -> Value:
    (value,), found = op.operands, op.results[0].type
    if types.numpy_dtype(value.element) == np.uint64:
        return emit.cast(_signed(emit, value), types.element_of(found))
    return emit.tf("Bitcast", (emit.cast(value, types.I64),), found)


ENTRIES: tuple[Entry, ...] = (
    BuiltinRow("BitwiseXor", "bitwise_xor", _WORDS),
    BuiltinRow("RightShift", "right_shift", _WORDS),
    Lowering("Invert", "BitwiseXor", _invert, _WORDS),
    Lowering("BitwiseAnd", "BitwiseXor RightShift Less SelectV2", _bitwise_and, "i32"),
    Lowering("BitwiseOr", "BitwiseXor RightShift Less", _bitwise_or, "i32"),
    Lowering("LeftShift", "Gather Mul", _left_shift, f"{_SMALL} i32 ui32 i64"),
    *(
        Lowering(op, f"Bitcast {op}", _as_words, "ui32 i64 ui64", name=f"{op}-of-words")
        for op in ("BitwiseAnd", "BitwiseOr")
    ),
    Lowering("BitwiseXor", "Bitcast BitwiseXor", _as_words, "i64 ui64", name="BitwiseXor-of-words"),
    *(
        Lowering(op, f"Bitcast {op}", _as_signed, "ui64", name=f"{op}-as-signed")
        for op in ("AddV2", "Equal", "Mul", "NotEqual", "Pack", "Sub")
    ),
    Lowering("LeftShift", "Bitcast LeftShift", _left_shift_of_longs, "ui64", name="LeftShift-as-signed"),
    Lowering("Cast", "Bitcast Cast", _cast_of_longs, constraint=_is_of_longs, benefit=3, name="Cast-of-longs"),
)
