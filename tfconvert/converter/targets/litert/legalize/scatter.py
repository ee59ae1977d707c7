"""Scattering: some elements of tensors are replaced by, or combined with, others.

Segments: rows that are combined with those of the same number, whether the numbers are sorted or not.

LiteRT's kernel for sorted numbers requires that none is left out, so that it is used for constants only; others
go to the kernels for numbers in any order, with as many segments as the largest number requires.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from tfconvert.converter.ir.constants import Scalar, constant_int
from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import BuiltinRow, Entry, Lowering, element_of
from tfconvert.converter.targets.litert.legalize.indexing import numbers, size_of
from tfconvert.converter.targets.litert.legalize.litert_builder import INT32, LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _constraint(op: Operation) -> Failure | None:
    shape, indices = (operand.shape for operand in op.operands[:2])
    if not shape:
        return Failure("the tensor's rank is not known, or it has no dimensions")
    if not indices or not 0 < indices[-1] <= len(shape):
        return Failure("how many dimensions are indexed is not known")
    constant = tensor_data.constant_of(op.operands[1])
    if constant is not None and not _fit(tensor_data.to_array(constant), shape):
        return Failure("an index is out of range")
    return Failure("it has no elements") if 0 in shape else None


def _fit(indices: Array, shape: types.Shape) -> bool:
    """Returns whether constant indices are within a shape, as far as that is known."""
    limits = [dim if dim >= 0 else INT32[1] for dim in shape[: indices.shape[-1]]]
    return bool(np.all((indices >= 0) & (indices < limits)))


def _rows(op: Operation, emit: LiteRTBuilder) -> tuple[Value, Value, Value]:
    """Returns matrices of the rows that are indexed and of their updates, and for each update its row's number."""
    tensor, indices, updates = op.operands
    indexed = (indices.shape or ())[-1]
    rank = len(tensor.shape or ())
    width = _steps(emit, tensor, range(indexed, rank))[0]
    count = _count((indices.shape or ())[:-1])
    matrix = _matrix(emit, tensor, _count((tensor.shape or ())[:indexed]), width)
    rows = _matrix(emit, updates, count, width)
    steps = _steps(emit, tensor, range(1, indexed))
    return matrix, rows, _places(emit, indices, steps, count)


def _steps(emit: LiteRTBuilder, tensor: Value, axes: Sequence[int]) -> list[Scalar]:
    """Returns how many elements of some neighbouring dimensions are in one step along each of them, and along none."""
    steps: list[Scalar] = [1]
    for axis in reversed(axes):
        size = emit.size(tensor, axis)
        steps.insert(0, size if steps[0] == 1 else emit.compute("multiply", steps[0], size))
    return steps


def _matrix(emit: LiteRTBuilder, value: Value, height: int, width: Scalar) -> Value:
    known = constant_int(width)
    if known is not None:
        return emit.reshape(value, (height, known))
    if height >= 0:
        return emit.reshape(value, (height, -1))
    kind = types.tensor(value.element, (-1, -1))
    return emit.tf("Reshape", (value, emit.pack((-1, width))), kind)


def _as_before(emit: LiteRTBuilder, op: Operation, matrix: Value) -> Value:
    tensor = op.operands[0]
    shape = tensor.shape or ()
    if shape.count(-1) <= 1:
        return emit.reshape(matrix, shape)
    return emit.tf("Reshape", (matrix, emit.shape(tensor)), tensor.type)


def _count(shape: types.Shape) -> int:
    return -1 if -1 in shape else math.prod(shape)


def _places(emit: LiteRTBuilder, indices: Value, steps: Sequence[Scalar], count: int) -> Value:
    """Returns indices of several dimensions as indices of one, the dimensions laid out row by row."""
    constant, known = tensor_data.constant_of(indices), [constant_int(step) for step in steps]
    if constant is not None and None not in known:
        flat = tensor_data.to_array(constant).reshape(-1, len(steps)) @ np.array(known, np.int64)
        return emit.constant(flat.astype(np.int32))
    flat_indices = emit.reshape(emit.i32(indices), (count, len(steps)))
    if len(steps) == 1:
        return emit.reshape(flat_indices, (count,))
    return emit.reduce("Sum", emit.binary("Mul", flat_indices, emit.pack(steps)), (1,))


def _update(op: Operation, emit: LiteRTBuilder) -> Value:
    """Takes each row from the tensor or, the last one that names its place winning, from the updates after it.

    Scattering would add up the updates of one place.
    """
    *both, places = _rows(op, emit)
    lengths = [(value.shape or ())[0] for value in both]
    axis = emit.scalar(0, types.I32)
    joined = emit.tf("ConcatV2", (*both, axis), _resized(both[0], -1 if -1 in lengths else sum(lengths)))
    last = _last_writer(emit, both, places)
    return _as_before(emit, op, emit.tf("GatherV2", (joined, last, axis), both[0].type))


def _resized(matrix: Value, height: int) -> Attribute:
    return types.tensor(matrix.element, (height, *(matrix.shape or ())[1:]))


def _last_writer(emit: LiteRTBuilder, rows: Sequence[Value], places: Value) -> Value:
    """Returns, for each row of the first tensor, its own number or that of the last row that replaces it."""
    own = numbers(emit, rows[0], 0)
    constants = [tensor_data.constant_of(value) for value in (own, places)]
    if constants[0] is not None and constants[1] is not None:
        writers = np.array(tensor_data.to_array(constants[0]))
        targets = tensor_data.to_array(constants[1])
        for number, place in enumerate(targets.tolist(), writers.size):
            writers[place] = number
        return emit.constant(writers)
    count = emit.reshape(size_of(emit, rows[0], 0), ())
    numbered = emit.binary("AddV2", numbers(emit, rows[1], 0), count)
    found = emit.tf("UnsortedSegmentMax", (numbered, places, count), own.type)
    return emit.binary("Maximum", found, own)


def _extreme(name: str, op: Operation, emit: LiteRTBuilder) -> Value:
    """Finds the extreme of the updates of each row, and compares the row with that.

    Without one, the kernel returns the last finite number; an infinity in the row is beyond that and stays.
    """
    rows, updates, places = _rows(op, emit)
    count = emit.reshape(size_of(emit, rows, 0), ())
    found = emit.tf(f"UnsortedSegment{name}", (updates, places, count), rows.type)
    changed = emit.binary(f"{name}imum", rows, found)
    if element_of(op) == "f32":
        limit = float(np.finfo(np.float32).max) * (-1 if name == "Max" else 1)
        changed = emit.select(emit.compare("Equal", found, limit), rows, changed)
    return _as_before(emit, op, changed)


def _extreme_entry(name: str) -> Lowering:
    becomes = f"UnsortedSegment{name} {name}imum SelectV2"
    return Lowering(f"TensorScatter{name}", becomes, partial(_extreme, name), "f32 i32", _constraint)


# Element types that LiteRT combines.
_NUMBERS = "f32 i32"

# The initial value of LiteRT's kernel for minima; negated, that of the kernel for maxima.
_LIMIT = float(np.finfo(np.float32).max)


def _is_dense(op: Operation) -> Failure | None:
    constant = tensor_data.constant_of(op.operands[1])
    if constant is None:
        return Failure("the segments are not known")
    ids = tensor_data.to_array(constant)
    steps = np.diff(ids, prepend=-1)
    return (
        None if ids.size and (steps >= 0).all() and (steps <= 1).all() else Failure("there are segments without rows")
    )


def _unsorted_sum_of_longs(op: Operation, emit: LiteRTBuilder) -> Value:
    """Scatters, which adds up the updates of one place; a row before all others takes those that are dropped."""
    data, ids, count = op.operands
    rank = len(ids.shape or ())
    shape = data.shape or ()
    places = emit.binary("AddV2", emit.binary("Maximum", emit.i32(ids), -1), 1)
    indices = types.tensor(types.I32, (*shape[:rank], 1))
    places = emit.tf("ExpandDims", (places, emit.scalar(-1, types.I32)), indices)
    height = emit.reshape(emit.binary("AddV2", emit.i32(count), 1), (1,))
    width = shape[rank:]
    target = height
    if width:
        target = emit.tf(
            "ConcatV2",
            (height, emit.ints(width), emit.scalar(0, types.I32)),
            types.tensor(types.I32, (1 + len(width),)),
        )
    summed = emit.tf("ScatterNd", (places, data, target), types.tensor(types.I64, (-1, *width)))
    begin, size = emit.ints([1, *[0] * len(width)]), emit.ints([-1] * (1 + len(width)))
    return emit.tf("Slice", (summed, begin, size), op.results[0].type)


def _longs_constraint(op: Operation) -> Failure | None:
    shape, ids = (operand.shape for operand in op.operands[:2])
    if shape is None or ids is None:
        return Failure("the operands' ranks are not known")
    return None if types.is_static(shape[len(ids) :]) else Failure("the size of the summed rows is not known")


_UNSORTED = ("Sum", "Prod", "Max", "Min")


ENTRIES: tuple[Entry, ...] = (
    Lowering(
        "TensorScatterUpdate", "UnsortedSegmentMax ConcatV2 GatherV2", _update, "f32 i32 i64 ui8 i8 i1 i16", _constraint
    ),
    _extreme_entry("Max"),
    _extreme_entry("Min"),
    BuiltinRow("SegmentSum", "segment_sum", _NUMBERS, narrow=(1,), constraint=_is_dense),
    *(
        BuiltinRow(f"UnsortedSegment{how}", f"unsorted_segment_{how.lower()}", _NUMBERS, narrow=(1, 2))
        for how in _UNSORTED
    ),
    Lowering("UnsortedSegmentSum", "ScatterNd Slice", _unsorted_sum_of_longs, "i64", _longs_constraint),
)
