"""The product of two vectors in space that is perpendicular to both."""

from __future__ import annotations

from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering, rank_is_known
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _cross(op: Operation, emit: LiteRTBuilder) -> Value:
    """Multiplies each coordinate of one vector with the next of the other, and vice versa."""

    def permuted(vectors: Value, order: tuple[int, int, int]) -> Value:
        return emit.tf("GatherV2", (vectors, emit.ints(order), emit.scalar(-1, types.I32)), vectors.type)

    x, y = op.operands
    ahead, behind = (1, 2, 0), (2, 0, 1)
    first = emit.binary("Mul", permuted(x, ahead), permuted(y, behind))
    return emit.binary("Sub", first, emit.binary("Mul", permuted(x, behind), permuted(y, ahead)))


ENTRIES: tuple[Entry, ...] = (Lowering("Cross", "GatherV2 Mul Sub", _cross, "f32 i32 i64", rank_is_known),)
