"""Sets: the different elements of a vector, how often each occurs, and which of them are not in another vector."""

from __future__ import annotations

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering, ResultType, Row
from tfconvert.converter.targets.litert.legalize.indexing import size_of
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.converter.targets.litert.legalize.segments import segment_sizes
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_ELEMENTS = "f32 i32 i64 ui8 i8 i16"


def _unique(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    """Finds the different elements; counting them is adding up ones by their numbers."""
    x, (values, places, *counts) = op.operands[0], op.results
    found = emit.tf_op("Unique", (x,), (values.type, places.type))
    results: list[Value] = [*found.results]
    for count in counts:
        number = emit.reshape(size_of(emit, results[0], 0), ())
        sizes = segment_sizes(emit, emit.i32(results[1]), number, types.I32)
        results.append(emit.cast(sizes, types.element_of(count.type)))
    return results


def _is_vector(op: Operation) -> Failure | None:
    """Requires a vector: an op that may compare slices along an axis compares its elements then."""
    shape = types.shape_of(op.operands[0].type)
    if shape is None or len(shape) != 1:
        return Failure("only a vector's elements are compared, not slices of higher ranks")
    return None


def _list_diff(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    """Keeps the elements that equal none of the others, each compared with each."""
    x, y = op.operands
    axis = emit.scalar(1, types.I32)
    sizes = [(types.shape_of(value.type) or (-1,))[0] for value in (x, y)]
    column = emit.tf("ExpandDims", (x, axis), types.tensor(types.element_of(x.type), (sizes[0], 1)))
    found = emit.reduce("Any", emit.compare("Equal", column, y), (1,))
    kept = emit.tf("Where", (emit.unary("LogicalNot", found),), types.tensor(types.I64, (-1, 1)))
    places = emit.reshape(kept, (-1,))
    values = emit.tf("GatherV2", (x, places, emit.scalar(0, types.I32)), op.results[0].type)
    return [values, emit.cast(places, types.element_of(op.results[1].type))]


ENTRIES: tuple[Entry, ...] = (
    Row("Unique", "unique", _ELEMENTS, options={"idx_out_type": ResultType(1)}),
    Lowering("UniqueV2", "Unique", _unique, _ELEMENTS, _is_vector),
    *(
        Lowering(op, "Unique UnsortedSegmentSum", _unique, _ELEMENTS, _is_vector)
        for op in ("UniqueWithCounts", "UniqueWithCountsV2")
    ),
    Lowering("ListDiff", "Equal Any Where GatherV2", _list_diff, "f32 i32 i64 ui8 i8"),
)
