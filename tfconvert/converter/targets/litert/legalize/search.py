"""Searches in sorted rows."""

from __future__ import annotations

from functools import partial

from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _bound(comparison: str, op: Operation, emit: LiteRTBuilder) -> Value:
    """Counts the elements of a row that come before a value."""
    rows, values = op.operands
    (height, length), (_, count) = (types.shape_of(operand.type) or (-1, -1) for operand in op.operands)
    element, axis = types.element_of(rows.type), emit.scalar(1, types.I32)
    across = emit.tf("ExpandDims", (rows, axis), types.tensor(element, (height, 1, length)))
    last = emit.scalar(2, types.I32)
    down = emit.tf("ExpandDims", (values, last), types.tensor(element, (height, count, 1)))
    before = emit.cast(emit.compare(comparison, across, down), types.I32)
    return emit.cast(emit.reduce("Sum", before, (2,)), types.element_of(op.results[0].type))


ENTRIES: tuple[Entry, ...] = (
    Lowering("LowerBound", "Less Sum", partial(_bound, "Less"), "f32 i32 i64 ui8 i8"),
    Lowering("UpperBound", "LessEqual Sum", partial(_bound, "LessEqual"), "f32 i32 i64 ui8 i8"),
)
