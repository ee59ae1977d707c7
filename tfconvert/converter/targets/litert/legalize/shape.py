"""Shapes: reshapes, shapes as values, and values computed from shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import (
    BuiltinRow,
    Entry,
    Lowering,
    ResultType,
    ints,
    number_operand,
)
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.dims import constant_target
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _reshaped(op: Operation, emit: LiteRTBuilder) -> Value:
    shape = types.shape_of(op.results[0].type)
    assert shape is not None
    return emit.tfl("reshape", (op.operands[0], emit.ints(shape)), op.results[0].type, {"new_shape": shape})


def _reshape(op: Operation, emit: LiteRTBuilder) -> Value:
    if constant_target(types.shape_of(op.results[0].type)) is not None:
        return _reshaped(op, emit)
    return emit.tfl("reshape", (op.operands[0], emit.i32(op.operands[1])), op.results[0].type)


def _expand_dims(op: Operation, emit: LiteRTBuilder) -> Value:
    if constant_target(types.shape_of(op.results[0].type)) is not None:
        return _reshaped(op, emit)
    return emit.tfl("expand_dims", (op.operands[0], emit.i32(op.operands[1])), op.results[0].type)


def _squeeze(op: Operation, emit: LiteRTBuilder) -> Value:
    if constant_target(types.shape_of(op.results[0].type)) is not None:
        return _reshaped(op, emit)
    axes: Sequence[int] = tf.get(op, "squeeze_dims") or ()
    return emit.tfl("squeeze", op.operands, op.results[0].type, {"squeeze_dims": tuple(axes)})


def _shapes(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    pairs = zip(op.operands, op.results, strict=True)
    return [emit.tf("Shape", (operand,), result.type) for operand, result in pairs]


def _size(op: Operation, emit: LiteRTBuilder) -> Value:
    element = types.element_of(op.results[0].type)
    return emit.cast(emit.reduce("Prod", emit.shape(op.operands[0]), (0,)), element)


def _filled(emit: LiteRTBuilder, op: Operation, value: int) -> Value:
    fill = emit.scalar(value, types.element_of(op.results[0].type))
    return emit.tf("Fill", (emit.shape(op.operands[0]), fill), op.results[0].type)


def _zeros_like(op: Operation, emit: LiteRTBuilder) -> Value:
    return _filled(emit, op, 0)


def _ones_like(op: Operation, emit: LiteRTBuilder) -> Value:
    return _filled(emit, op, 1)


def _empty(op: Operation, emit: LiteRTBuilder) -> Value:
    """The elements of `Empty` are undefined; zeros are as good as anything, and the same every time."""
    return emit.tf("Fill", (op.operands[0], emit.scalar(0, types.element_of(op.results[0].type))), op.results[0].type)


def _lin_space(op: Operation, emit: LiteRTBuilder) -> Value:
    start, stop, number = op.operands
    (count,) = ints(number)
    part = emit.constant(np.linspace(0, 1, count, dtype=np.float32))
    return emit.binary("AddV2", start, emit.binary("Mul", emit.binary("Sub", stop, start), part))


def _broadcast_args_constraint(op: Operation) -> Failure | None:
    elements = {types.element_of(operand.type) for operand in op.operands}
    return None if len(elements) == 1 and elements <= {types.I32, types.I64} else Failure("shapes are i32 or i64")


def _broadcast_gradient_args(op: Operation, emit: LiteRTBuilder) -> Sequence[Value]:
    """Returns where each of two shapes has ones, counted from the longer one's front; nothing if they are equal."""
    element = types.element_of(op.operands[0].type)
    lengths = _lengths(op)
    rank = max(lengths)
    sides = [_as_long(emit, *side, rank) for side in zip(op.operands, lengths, strict=True)]
    differ = None
    if min(lengths) == rank:
        differ = emit.reduce("Any", emit.compare("NotEqual", *sides), (0,), keep_dims=True)
    results = []
    for side in sides:
        is_one = emit.compare("Equal", side, 1)
        if differ is not None:
            is_one = emit.tf("LogicalAnd", (is_one, differ), is_one.type)
        found = emit.tf("Where", (is_one,), types.tensor(types.I64, (-1, 1)))
        results.append(emit.cast(emit.reshape(found, (-1,)), element))
    return results


def _as_long(emit: LiteRTBuilder, shape: Value, length: int, rank: int) -> Value:
    """Returns a shape with ones before it, so that it has a certain length."""
    if not length:
        return emit.constant(np.ones(rank, types.numpy_dtype(types.element_of(shape.type))))
    return shape if length == rank else emit.pad(shape, [(rank - length, 0)], 1)


def _lengths(op: Operation) -> list[int]:
    return [(types.shape_of(operand.type) or (-1,))[0] for operand in op.operands]


def _lengths_are_known(op: Operation) -> Failure | None:
    return Failure("the rank of an operand is not known") if min(_lengths(op)) < 0 else None


def _concat_offset(op: Operation, emit: LiteRTBuilder) -> Sequence[Value]:
    """Adds up the dimensions along one axis; along the others, all offsets are zero."""
    (axis,), first = ints(op.operands[0]), op.operands[1]
    flags = np.zeros(types.shape_of(first.type) or (), types.numpy_dtype(types.element_of(first.type)))
    offsets = [emit.constant(flags.copy())]
    flags[axis] = 1
    flag = emit.constant(flags)
    for shape in op.operands[1:-1]:
        offsets.append(emit.binary("AddV2", offsets[-1], emit.binary("Mul", shape, flag)))
    return offsets


def _concat_offset_constraint(op: Operation) -> Failure | None:
    is_known = (types.shape_of(op.operands[1].type) or (-1,))[0] > 0
    return number_operand(0, "the axis")(op) or (None if is_known else Failure("the rank of an operand is not known"))


_NUMBERS = "f32 f16 bf16 f64 i8 ui8 i16 ui16 i32 ui32 i64 ui64 i1 complex<f32>"
_HAS_RANGE = "f32 i32 i64"

ENTRIES: tuple[Entry, ...] = (
    Lowering("Reshape", "reshape", _reshape),
    Lowering("ExpandDims", "reshape", _expand_dims),
    Lowering("Squeeze", "reshape", _squeeze),
    BuiltinRow("Shape", "shape", options={"out_type": ResultType()}),
    Lowering("ShapeN", "Shape", _shapes),
    BuiltinRow("Rank", "rank"),
    Lowering("Size", "shape reduce_prod", _size),
    BuiltinRow("Fill", "fill", f"{_NUMBERS} !tf_type.string", narrow=(0,), typed=1),
    BuiltinRow("Range", "range", _HAS_RANGE),
    BuiltinRow("ZerosLike", "zeros_like", "f32 i32 i64"),
    Lowering("ZerosLike", "Fill", _zeros_like, _NUMBERS),
    Lowering("OnesLike", "Fill", _ones_like, _NUMBERS),
    Lowering("Empty", "Fill", _empty),
    Lowering("LinSpace", "Mul AddV2", _lin_space, "f32", number_operand(2, "the number of values")),
    BuiltinRow("BroadcastTo", "broadcast_to", _NUMBERS, narrow=(1,)),
    BuiltinRow("BroadcastArgs", "broadcast_args", constraint=_broadcast_args_constraint),
    Lowering("ConcatOffset", "Mul AddV2", _concat_offset, "i32 i64", _concat_offset_constraint, typed=1),
    Lowering("BroadcastGradientArgs", "equal where", _broadcast_gradient_args, "i32 i64", _lengths_are_known),
)
