"""Rolling: two slices are swapped where the shift is known, else each element is gathered from where it was."""

from __future__ import annotations

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering, constant_operand, ints
from tfconvert.converter.targets.litert.legalize.indexing import numbers, size_of
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_MOVABLE = "f32 f16 bf16 i8 ui8 i16 i32 i64 i1"


def _roll_constraint(op: Operation) -> Failure | None:
    shape = types.shape_of(op.operands[0].type)
    for index, what in ((1, "the shift"), (2, "the axis")):
        if (reason := constant_operand(index, what)(op)) is not None:
            return reason
    axes = ints(op.operands[2])
    if len(axes) != len(ints(op.operands[1])) or not all(-len(shape or ()) <= axis < len(shape or ()) for axis in axes):
        return Failure("there isn't one shift for each axis")
    if shape is None or any(shape[axis] < 0 for axis in axes):
        return Failure("the size of a rolled dimension is not known")
    return None


def _roll(op: Operation, emit: LiteRTBuilder) -> Value:
    value: Value = op.operands[0]
    shape, element = list(types.shape_of(value.type) or ()), types.element_of(value.type)
    for shift, axis in zip(ints(op.operands[1]), ints(op.operands[2]), strict=True):
        axis %= len(shape)
        if not shape[axis] or not (shift := shift % shape[axis]):
            continue
        parts = []
        for begin, count in ((shape[axis] - shift, shift), (0, shape[axis] - shift)):
            begins = [begin if i == axis else 0 for i in range(len(shape))]
            counts = [count if i == axis else -1 for i in range(len(shape))]
            part_type = types.tensor(element, [count if i == axis else dim for i, dim in enumerate(shape)])
            parts.append(emit.tf("Slice", (value, emit.ints(begins), emit.ints(counts)), part_type))
        value = emit.tfl("concatenation", parts, op.results[0].type, {"axis": axis})
    return value


def _gather_constraint(op: Operation) -> Failure | None:
    shape, shifts, places = (types.shape_of(operand.type) for operand in op.operands)
    if shape is None or shifts is None or places is None:
        return Failure("the operands' ranks are not known")
    if shifts != places or len(shifts) > 1:
        return Failure("there isn't one shift for each axis")
    axes = _axes(op)
    is_inside = axes is None or all(-len(shape) <= axis < len(shape) for axis in axes)
    return None if is_inside else Failure("there is no such axis")


def _axes(op: Operation) -> list[int] | None:
    """Returns the axes that are rolled, `None` if they are known at run time only."""
    return None if tensor_data.constant_of(op.operands[2]) is None else ints(op.operands[2])


def _roll_by_gathering(op: Operation, emit: LiteRTBuilder) -> Value:
    value: Value = op.operands[0]
    rank, axes = len(types.shape_of(value.type) or ()), _axes(op)
    for axis in sorted({axis % rank for axis in axes}) if axes is not None else range(rank):
        value = _rolled(emit, value, axis, _shift(emit, op, axis, rank))
    return value


def _shift(emit: LiteRTBuilder, op: Operation, axis: int, rank: int) -> Value:
    """Returns by how much an axis is rolled: the sum of the shifts that are for it, `i64`."""
    count = (types.shape_of(op.operands[1].type) or (1,))[0]
    shifts, axes = (emit.reshape(emit.cast(operand, types.I64), (count,)) for operand in op.operands[1:])
    if _axes(op) is not None and count == 1:
        return emit.reshape(shifts, ())
    is_meant = emit.compare("Equal", emit.binary("FloorMod", axes, rank), axis)
    return emit.reduce("Sum", emit.binary("Mul", shifts, emit.cast(is_meant, types.I64)), (0,))


def _rolled(emit: LiteRTBuilder, value: Value, axis: int, shift: Value) -> Value:
    """Gathers along an axis, shifted and wrapped around. An empty dimension is divided by one, not by zero."""
    shape = types.shape_of(value.type) or ()
    if not shape[axis]:
        return value
    if shape[axis] > 0:
        size, own = emit.scalar(shape[axis], types.I64), emit.constant(np.arange(shape[axis]))
    else:
        size = emit.binary("Maximum", emit.reshape(emit.cast(size_of(emit, value, axis), types.I64), ()), 1)
        own = emit.cast(numbers(emit, value, axis), types.I64)
    # The remaining shift is small, so that no difference overflows.
    shift = emit.binary("FloorMod", shift, size)
    index = emit.cast(emit.binary("FloorMod", emit.binary("Sub", own, shift), size), types.I32)
    return emit.tf("GatherV2", (value, index, emit.scalar(axis, types.I32)), value.type, {"batch_dims": 0})


ENTRIES: tuple[Entry, ...] = (
    Lowering("Roll", "Slice concatenation", _roll, _MOVABLE, _roll_constraint, benefit=2),
    Lowering("Roll", "FloorMod GatherV2", _roll_by_gathering, f"{_MOVABLE} !tf_type.string", _gather_constraint),
)
