"""Taking tensors apart by numbers, and putting parts together: as lookups in sharded tables do."""

from __future__ import annotations

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering
from tfconvert.converter.targets.litert.legalize.indexing import numbers
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.converter.targets.litert.legalize.scatter import segment_count
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _partition(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    """Gathers, for each part, the elements whose number it is."""
    data, parts = op.operands
    shape = types.shape_of(parts.type)
    assert shape is not None, "checked by the constraint"
    if not shape:
        one = types.tensor(types.element_of(data.type), (1, *(types.shape_of(data.type) or ())))
        data = emit.tf("ExpandDims", (data, emit.scalar(0, types.I32)), one)
        parts = emit.reshape(parts, (1,))
    return [
        emit.tf("GatherNd", (data, _places(emit, parts, number)), result.type)
        for number, result in enumerate(op.results)
    ]


def _places(emit: LiteRTBuilder, parts: Value, number: int) -> Value:
    """Returns the indices of the elements that equal a number."""
    known = tensor_data.constant_of(parts)
    if known is not None:
        return emit.constant(np.argwhere(tensor_data.to_array(known) == number).astype(np.int32))
    rank = len(types.shape_of(parts.type) or ())
    return emit.tf("Where", (emit.compare("Equal", parts, number),), types.tensor(types.I64, (-1, rank)))


def _parts_constraint(op: Operation) -> Failure | None:
    if types.shape_of(op.operands[1].type) is None:
        return Failure("the rank of the numbers is not known")
    return None if types.shape_of(op.operands[0].type) is not None else Failure("the operand's rank is not known")


def _stitch(op: Operation, emit: LiteRTBuilder) -> Value:
    """Joins all rows and picks, for each place, the last one that goes there.

    A place that no row goes to gets a row of zeros, which comes before all others.
    """
    half = len(op.operands) // 2
    indices = [_flat(emit, emit.i32(index)) for index in op.operands[:half]]
    rest = _rest(op)
    rows = [_rows(emit, *pair, rest) for pair in zip(op.operands[:half], op.operands[half:], strict=True)]
    places = _joined(emit, indices)
    known = tensor_data.constant_of(places)
    if known is not None:
        array = tensor_data.to_array(known)
        order = np.zeros(int(array.max(initial=-1)) + 1, np.int32)
        for number, place in enumerate(array.tolist(), 1):
            order[place] = number
        has_holes = bool((order == 0).any())
        source = emit.ints((order if has_holes else order - 1).tolist())
    else:
        has_holes = types.is_static(rest)
        source = _last_of_each(emit, places, has_holes)
    if has_holes:
        element = types.element_of(rows[0].type)
        rows = [emit.constant(np.zeros((1, *rest), types.numpy_dtype(element))), *rows]
    height = (types.shape_of(source.type) or (-1,))[0]
    result = types.tensor(types.element_of(rows[0].type), (height, *rest))
    return emit.tf("GatherV2", (_joined(emit, rows), source, emit.scalar(0, types.I32)), result)


def _last_of_each(emit: LiteRTBuilder, places: Value, has_holes: bool) -> Value:
    """Returns, for each place, the number of the last row that goes there."""
    count = segment_count(emit, places)
    last = emit.tf("UnsortedSegmentMax", (numbers(emit, places, 0), places, count), types.tensor(types.I32, (-1,)))
    return emit.binary("AddV2", emit.binary("Maximum", last, -1), 1) if has_holes else last


def _rest(op: Operation) -> types.Shape:
    """Returns the shape of the element that each index selects."""
    half = len(op.operands) // 2
    index, data = (types.shape_of(op.operands[at].type) for at in (0, half))
    assert index is not None, "checked by the constraint"
    assert data is not None
    return data[len(index) :]


def _flat(emit: LiteRTBuilder, index: Value) -> Value:
    shape = types.shape_of(index.type) or ()
    return index if len(shape) == 1 else emit.reshape(index, (_count(shape),))


def _rows(emit: LiteRTBuilder, index: Value, data: Value, rest: types.Shape) -> Value:
    """Returns the elements that the indices select, as rows."""
    shape = types.shape_of(index.type) or ()
    if len(shape) == 1:
        return data
    if not shape:
        result = types.tensor(types.element_of(data.type), (1, *rest))
        return emit.tf("ExpandDims", (data, emit.scalar(0, types.I32)), result)
    return emit.reshape(data, (_count(shape), *rest))


def _count(shape: types.Shape) -> int:
    return -1 if -1 in shape else int(np.prod(shape, dtype=np.int64))


def _joined(emit: LiteRTBuilder, values: list[Value]) -> Value:
    """Joins tensors one after the other, now if they are constants of indices."""
    constants = [tensor_data.constant_of(value) for value in values]
    if types.element_of(values[0].type) == types.I32 and all(len(types.shape_of(v.type) or ()) == 1 for v in values):
        arrays = [tensor_data.to_array(constant) for constant in constants if constant is not None]
        if len(arrays) == len(values):
            return emit.constant(np.concatenate(arrays))
    if len(values) == 1:
        return values[0]
    shapes = [types.shape_of(value.type) or () for value in values]
    heights = [shape[0] for shape in shapes]
    height = -1 if -1 in heights else sum(heights)
    result = types.tensor(types.element_of(values[0].type), (height, *shapes[-1][1:]))
    return emit.tf("ConcatV2", (*values, emit.scalar(0, types.I32)), result)


def _stitch_constraint(op: Operation) -> Failure | None:
    half = len(op.operands) // 2
    for index, data in zip(op.operands[:half], op.operands[half:], strict=True):
        places, shape = types.shape_of(index.type), types.shape_of(data.type)
        if places is None or shape is None:
            return Failure("the operands' ranks are not known")
        rest = shape[len(places) :]
        if len(places) > 1 and not (types.is_static(rest) or (types.is_static(places) and rest.count(-1) == 1)):
            return Failure("the shape that each index selects is not known")
    return None


def _invert_permutation(op: Operation, emit: LiteRTBuilder) -> Value:
    """Scatters the places' numbers to where the elements point."""
    shape = types.shape_of(op.operands[0].type) or ()
    element = types.element_of(op.operands[0].type)
    column = types.tensor(types.I32, (*shape, 1))
    indices = emit.tf("ExpandDims", (emit.i32(op.operands[0]), emit.scalar(-1, types.I32)), column)
    updates = emit.cast(numbers(emit, op.operands[0], 0), element)
    return emit.tf("ScatterNd", (indices, updates, emit.shape(op.operands[0])), op.results[0].type)


def _is_vector(op: Operation) -> Failure | None:
    return None if types.shape_of(op.operands[0].type) is not None else Failure("the operand's rank is not known")


ENTRIES: tuple[Entry, ...] = (
    Lowering("DynamicPartition", "Equal Where GatherNd", _partition, constraint=_parts_constraint),
    *(
        Lowering(op, "UnsortedSegmentMax ConcatV2 GatherV2", _stitch, constraint=_stitch_constraint)
        for op in ("DynamicStitch", "ParallelDynamicStitch")
    ),
    Lowering("InvertPermutation", "ScatterNd", _invert_permutation, "i32 i64", _is_vector),
)
