"""Shapes: reshapes, shapes as values, and values computed from shapes."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import BuiltinRow, Entry, Lowering, ResultType
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.dims import constant_target
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _reshaped(op: Operation, emit: LiteRTBuilder) -> Value:
    shape = op.results[0].shape
    assert shape is not None
    return emit.tfl("reshape", (op.operands[0], emit.ints(shape)), op.results[0].type, {"new_shape": shape})


def _reshape(op: Operation, emit: LiteRTBuilder) -> Value:
    if constant_target(op.results[0].shape) is not None:
        return _reshaped(op, emit)
    return emit.tfl("reshape", (op.operands[0], emit.i32(op.operands[1])), op.results[0].type)


def _expand_dims(op: Operation, emit: LiteRTBuilder) -> Value:
    if constant_target(op.results[0].shape) is not None:
        return _reshaped(op, emit)
    return emit.tfl("expand_dims", (op.operands[0], emit.i32(op.operands[1])), op.results[0].type)


def _squeeze(op: Operation, emit: LiteRTBuilder) -> Value:
    if constant_target(op.results[0].shape) is not None:
        return _reshaped(op, emit)
    axes: Sequence[int] = tf.get(op, "squeeze_dims") or ()
    return emit.tfl("squeeze", op.operands, op.results[0].type, {"squeeze_dims": tuple(axes)})


def _size(op: Operation, emit: LiteRTBuilder) -> Value:
    element = op.results[0].element
    return emit.cast(emit.reduce("Prod", emit.shape(op.operands[0]), (0,)), element)


def _filled(emit: LiteRTBuilder, op: Operation, value: int) -> Value:
    fill = emit.scalar(value, op.results[0].element)
    return emit.tf("Fill", (emit.shape(op.operands[0]), fill), op.results[0].type)


def _zeros_like(op: Operation, emit: LiteRTBuilder) -> Value:
    return _filled(emit, op, 0)


def _ones_like(op: Operation, emit: LiteRTBuilder) -> Value:
    return _filled(emit, op, 1)


def _broadcast_args_constraint(op: Operation) -> Failure | None:
    elements = {operand.element for operand in op.operands}
    return None if len(elements) == 1 and elements <= {types.I32, types.I64} else Failure("shapes are i32 or i64")


def _empty(op: Operation, emit: LiteRTBuilder) -> Value:
    """The elements of `Empty` are undefined; zeros are as good as anything, and the same every time."""
    return emit.tf("Fill", (op.operands[0], emit.scalar(0, op.results[0].element)), op.results[0].type)


_NUMBERS = "f32 f16 bf16 f64 i8 ui8 i16 ui16 i32 ui32 i64 ui64 i1 complex<f32>"
_HAS_RANGE = "f32 i32 i64"

ENTRIES: tuple[Entry, ...] = (
    Lowering("Reshape", "reshape", _reshape),
    Lowering("ExpandDims", "reshape", _expand_dims),
    Lowering("Squeeze", "reshape", _squeeze),
    BuiltinRow("Shape", "shape", options={"out_type": ResultType()}),
    BuiltinRow("Rank", "rank"),
    Lowering("Size", "shape reduce_prod", _size),
    BuiltinRow("Fill", "fill", f"{_NUMBERS} !tf_type.string", narrow=(0,), typed=1),
    BuiltinRow("Range", "range", _HAS_RANGE),
    BuiltinRow("ZerosLike", "zeros_like", "f32 i32 i64"),
    Lowering("ZerosLike", "Fill", _zeros_like, _NUMBERS),
    Lowering("OnesLike", "Fill", _ones_like, _NUMBERS),
    Lowering("Empty", "Fill", _empty),
    BuiltinRow("BroadcastTo", "broadcast_to", _NUMBERS, narrow=(1,)),
    BuiltinRow("BroadcastArgs", "broadcast_args", constraint=_broadcast_args_constraint),
)
