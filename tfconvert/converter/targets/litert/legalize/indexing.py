"""Indexing: slices, gathers, scatters, choices and searches."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import (
    Attr,
    BuiltinRow,
    Entry,
    Lowering,
    element_of,
    ints,
    number_operand,
)
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_ANY = "f32 f16 bf16 f64 i8 ui8 i16 ui16 i32 ui32 i64 ui64 i1 complex<f32>"
_PARAMS = "f32 f16 bf16 i32 i64 ui8 i8 i16 i1"
_SCATTERED = "f32 i32 i64 ui8 i8 i1"
_CHOSEN = _ANY


def _gather(op: Operation, emit: LiteRTBuilder) -> Value:
    params, indices = op.operands[:2]
    axis = batch_dims = 0
    if len(op.operands) > 2:
        (axis,) = ints(op.operands[2])
        batch_dims = tf.get(op, "batch_dims", 0)
    ranks = [value.shape for value in (params, indices)]
    if axis < 0 and ranks[0] is not None:
        axis += len(ranks[0])
    if batch_dims < 0 and ranks[1] is not None:
        batch_dims += len(ranks[1])
    return emit.tfl("gather", (params, indices), op.results[0].type, {"axis": axis, "batch_dims": batch_dims})


def size_of(emit: LiteRTBuilder, value: Value, axis: int) -> Value:
    """Returns the size of a dimension, counted from the front, as a vector of one."""
    size = (value.shape or ())[axis]
    if size >= 0:
        return emit.ints((size,))
    place = types.tensor(types.I32, (1,))
    return emit.tf("Slice", (emit.shape(value), emit.ints((axis,)), emit.ints((1,))), place)


def numbers(emit: LiteRTBuilder, value: Value, axis: int) -> Value:
    """Returns the numbers from zero up to the size of a dimension."""
    size = (value.shape or ())[axis]
    if size >= 0:
        return emit.constant(np.arange(size, dtype=np.int32))
    limit = emit.reshape(size_of(emit, value, axis), ())
    bounds = (emit.scalar(0, types.I32), limit, emit.scalar(1, types.I32))
    return emit.tf("Range", bounds, types.tensor(types.I32, (-1,)))


def _is_without_indices(op: Operation) -> bool:
    """Returns whether each tuple of indices is empty, so that it chooses everything."""
    return (op.operands[1].shape or (-1,))[-1] == 0


def _has_indices(op: Operation) -> Failure | None:
    return Failure("the tuples of indices are empty", is_special=True) if _is_without_indices(op) else None


def _has_no_indices(op: Operation) -> Failure | None:
    return None if _is_without_indices(op) else Failure("the tuples of indices are not empty", is_special=True)


def _gather_everything(op: Operation, emit: LiteRTBuilder) -> Value:
    """Repeats the whole for each empty tuple: the kernel takes that to be out of bounds."""
    params, indices = op.operands
    result = op.results[0].shape
    if result is not None and -1 not in result:
        shape = emit.ints(result)
    else:
        shape = emit.concat((emit.part(emit.shape(indices), 0, -1), emit.shape(params)), (-1,))
    return emit.tf("BroadcastTo", (params, shape), op.results[0].type)


def _as(value: Value, element: Any) -> Any:
    return types.tensor(element, value.shape)


def _top_k(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    indices = op.results[1]
    found = emit.tfl_op(
        "topk_v2", (op.operands[0], emit.i32(op.operands[1])), (op.results[0].type, _as(indices, types.I32))
    )
    return [found.results[0], emit.cast(found.results[1], indices.element)]


def _known_ranks(op: Operation) -> Failure | None:
    """`Select` takes a vector as a choice between rows; so does the kernel, but only where that is known."""
    shapes = [operand.shape for operand in op.operands[:2]]
    return Failure("the operands' ranks are not known") if None in shapes else None


def _one_hot_axis(axis: int | None) -> int:
    return -1 if axis is None else axis


def _one_hot_indices(op: Operation) -> Failure | None:
    element = element_of(op)
    return None if element in ("i32", "i64") else Failure(f"the kernel takes indices of i32 or i64, not {element}")


def _one_hot(op: Operation, emit: LiteRTBuilder) -> Value:
    operands = (emit.i32(op.operands[0]), *op.operands[1:])
    return emit.tf("OneHot", operands, op.results[0].type, op.properties)


_REVERSE_SEQUENCE = {"seq_dim": Attr("seq_dim"), "batch_dim": Attr("batch_dim", 0)}


def _dynamic_slice(op: Operation, emit: LiteRTBuilder) -> Value:
    """Slices from the nearest start at which the slice is inside."""
    source, sizes = op.operands[0], emit.i32(op.operands[2])
    start = emit.limited_i32(op.operands[1])
    last = emit.binary("Sub", emit.shape(source), sizes)
    start = emit.binary("Maximum", emit.binary("Minimum", start, last), 0)
    return emit.tf("Slice", (source, start, sizes), op.results[0].type)


ENTRIES: tuple[Entry, ...] = (
    BuiltinRow("Slice", "slice", f"{_ANY} !tf_type.string", narrow=(1, 2)),
    Lowering("Gather", "gather", _gather, _PARAMS),
    Lowering("GatherV2", "gather", _gather, _PARAMS, number_operand(2, "the axis")),
    BuiltinRow("GatherNd", "gather_nd", f"{_PARAMS} !tf_type.string", constraint=_has_indices),
    Lowering("GatherNd", "BroadcastTo", _gather_everything, _ANY, _has_no_indices, benefit=3),
    BuiltinRow("ScatterNd", "scatter_nd", _SCATTERED, narrow=(0, 2), typed=1),
    Lowering("XlaDynamicSlice", "Minimum Maximum Slice", _dynamic_slice, _ANY),
    BuiltinRow("XlaDynamicUpdateSlice", "dynamic_update_slice", "f32 f16 i8 ui8 i16 i32 ui32 i64 i1", narrow=(2,)),
    BuiltinRow(
        "OneHot",
        "one_hot",
        "f32 i32 i64 ui8 i8 i1",
        narrow=(1,),
        typed=2,
        options={"axis": Attr("axis", -1, _one_hot_axis)},
        constraint=_one_hot_indices,
    ),
    Lowering("OneHot", "Cast OneHot", _one_hot, "i8 ui8"),
    BuiltinRow("Where", "where", "i1 f32 i32 i64 ui32 i8 ui8"),
    Lowering("TopKV2", "topk_v2", _top_k, "f32 i32 i64 ui8 i8 i16"),
    BuiltinRow("Select", "select", _CHOSEN, typed=1, constraint=_known_ranks),
    BuiltinRow("SelectV2", "select_v2", _CHOSEN, typed=1),
    BuiltinRow("ReverseSequence", "reverse_sequence", "f32 i32 i64 ui8 i16", options=_REVERSE_SEQUENCE),
)
