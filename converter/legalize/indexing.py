"""Indexing: slices, gathers, scatters, choices and searches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue

from converter.legalize.emit import Emit
from converter.legalize.row import Attr, Entry, Lowering, ResultType, Row, constant_number, ints, max_rank
from schema.dialects import tensor_data, tf, types

_ANY = "f32 f16 bf16 f64 i8 ui8 i16 ui16 i32 ui32 i64 ui64 i1 complex<f32>"
_PARAMS = "f32 f16 bf16 i32 i64 ui8 i8 i16 i1 !tf_type.string"
_SCATTERED = "f32 i32 i64 ui8 i8 i1"
_CHOSEN = _ANY


def _gather(op: Operation, emit: Emit) -> SSAValue:
    params, indices = op.operands[:2]
    axis = batch_dims = 0
    if len(op.operands) > 2:
        (axis,) = ints(op.operands[2])
        batch_dims = tf.get(op, "batch_dims", 0)
    ranks = [types.shape_of(value.type) for value in (params, indices)]
    if axis < 0 and ranks[0] is not None:
        axis += len(ranks[0])
    if batch_dims < 0 and ranks[1] is not None:
        batch_dims += len(ranks[1])
    return emit.tfl("gather", (params, indices), op.results[0].type, {"axis": axis, "batch_dims": batch_dims})


def _scatter_add(op: Operation, emit: Emit, name: str) -> SSAValue:
    tensor, indices, updates = op.operands
    scattered = emit.tf("ScatterNd", (indices, updates, emit.shape(tensor)), tensor.type)
    return emit.tf(name, (tensor, scattered), op.results[0].type)


def _tensor_scatter_add(op: Operation, emit: Emit) -> SSAValue:
    return _scatter_add(op, emit, "AddV2")


def _tensor_scatter_sub(op: Operation, emit: Emit) -> SSAValue:
    return _scatter_add(op, emit, "Sub")


def _update_constraint(op: Operation) -> str | None:
    shape, indices = (types.shape_of(operand.type) for operand in op.operands[:2])
    if not shape or not types.is_static(shape[1:]):
        return "only the first dimension may be of unknown size"
    if not indices or not 0 < indices[-1] <= len(shape):
        return "how many dimensions are indexed is not known"
    return "it has no elements" if 0 in shape else None


def _tensor_scatter_update(op: Operation, emit: Emit) -> SSAValue:
    """Takes each row from the tensor or, the last one that names its place winning, from the updates behind it.

    Scattering would add up the updates of one place.
    """
    tensor, indices, updates = op.operands
    shape = types.shape_of(tensor.type) or ()
    depth = (types.shape_of(indices.type) or ())[-1]
    width = math.prod(shape[depth:])
    rows = [emit.reshape(tensor, (_count(shape[:depth]), width))]
    rows.append(emit.reshape(updates, (_count((types.shape_of(indices.type) or ())[:-1]), width)))
    lengths = [(types.shape_of(value.type) or ())[0] for value in rows]
    both = types.tensor(types.element_of(tensor.type), (-1 if -1 in lengths else sum(lengths), width))
    axis = emit.scalar(0, types.I32)
    joined = emit.tf("ConcatV2", (*rows, axis), both)
    places = _places(emit, indices, shape[:depth], lengths[1])
    last = _last_writer(emit, rows, places)
    taken = emit.tf("GatherV2", (joined, last, axis), types.tensor(types.element_of(tensor.type), (lengths[0], width)))
    return emit.reshape(taken, shape)


def _count(shape: types.Shape) -> int:
    return -1 if -1 in shape else math.prod(shape)


def _places(emit: Emit, indices: SSAValue, shape: types.Shape, count: int) -> SSAValue:
    """Returns indices of several dimensions as indices of one, the dimensions laid out row by row."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    constant = tensor_data.constant_of(indices)
    if constant is not None:
        flat = tensor_data.to_array(constant).reshape(-1, len(shape)) @ np.array(strides, np.int64)
        return emit.constant(flat.astype(np.int32))
    flat_indices = emit.reshape(emit.i32(indices), (count, len(shape)))
    return emit.reduce("Sum", emit.binary("Mul", flat_indices, emit.ints(strides)), (1,))


def _last_writer(emit: Emit, rows: Sequence[SSAValue], places: SSAValue) -> SSAValue:
    """Returns, for each row of the first tensor, its own number or that of the last row of the second put there."""
    own = _numbers(emit, rows[0], 0)
    constants = [tensor_data.constant_of(value) for value in (own, places)]
    if constants[0] is not None and constants[1] is not None:
        writers = np.array(tensor_data.to_array(constants[0]))
        targets = tensor_data.to_array(constants[1])
        for number, place in enumerate(targets.tolist(), writers.size):
            writers[place] = number
        return emit.constant(writers)
    count = emit.reshape(_size(emit, rows[0], 0), ())
    numbers = emit.binary("AddV2", _numbers(emit, rows[1], 0), count)
    found = emit.tf("UnsortedSegmentMax", (numbers, places, count), own.type)
    return emit.binary("Maximum", found, own)


def _size(emit: Emit, value: SSAValue, axis: int) -> SSAValue:
    """Returns the size of a dimension, counted from the front, as a vector of one."""
    size = (types.shape_of(value.type) or ())[axis]
    if size >= 0:
        return emit.ints((size,))
    place = types.tensor(types.I32, (1,))
    return emit.tf("Slice", (emit.shape(value), emit.ints((axis,)), emit.ints((1,))), place)


def _numbers(emit: Emit, value: SSAValue, axis: int) -> SSAValue:
    """Returns the numbers from zero up to the size of a dimension."""
    size = (types.shape_of(value.type) or ())[axis]
    if size >= 0:
        return emit.constant(np.arange(size, dtype=np.int32))
    limit = emit.reshape(_size(emit, value, axis), ())
    bounds = (emit.scalar(0, types.I32), limit, emit.scalar(1, types.I32))
    return emit.tf("Range", bounds, types.tensor(types.I32, (-1,)))


def _as(value: SSAValue, element: Any) -> Any:
    return types.tensor(element, types.shape_of(value.type))


def _top_k(op: Operation, emit: Emit) -> list[SSAValue]:
    indices = op.results[1]
    found = emit.tfl_op(
        "topk_v2", (op.operands[0], emit.i32(op.operands[1])), (op.results[0].type, _as(indices, types.I32))
    )
    return [found.results[0], emit.cast(found.results[1], types.element_of(indices.type))]


def _known_ranks(op: Operation) -> str | None:
    """`Select` takes a vector as a choice between rows; the kernel does too, but only where it knows that."""
    shapes = [types.shape_of(operand.type) for operand in op.operands[:2]]
    return "the operands' ranks are not known" if None in shapes else None


def _matrix_size_is_known(op: Operation) -> str | None:
    shape = types.shape_of(op.operands[0].type)
    return None if shape is not None and len(shape) >= 2 else "the matrices' rank is not known"


def _matrix_band_part(op: Operation, emit: Emit) -> SSAValue:
    """Keeps what is at most so far below and above the diagonal; a negative limit is none."""
    matrix, lower, upper = op.operands
    rank = len(types.shape_of(matrix.type) or ())
    height, width = (types.shape_of(matrix.type) or ())[-2:]
    rows = emit.reshape(_numbers(emit, matrix, rank - 2), (height, 1))
    columns = emit.reshape(_numbers(emit, matrix, rank - 1), (1, width))
    below = emit.binary("Sub", rows, columns)
    kept = []
    for limit, distance in ((lower, below), (upper, emit.unary("Neg", below))):
        number = emit.limited_i32(limit)
        within = emit.compare("LessEqual", distance, number)
        kept.append(emit.tf("LogicalOr", (within, emit.compare("Less", number, 0)), within.type))
    return emit.select(emit.tf("LogicalAnd", kept, kept[0].type), matrix, 0)


def _main_diagonal(op: Operation, first: int) -> str | None:
    """Says why operands from `first` on (k, and what else `MatrixDiagV3` has) ask for more than the diagonal."""
    for operand, expected in zip(op.operands[first:], (0, -1, -1, 0), strict=False):
        constant = tensor_data.constant_of(operand)
        if constant is None:
            return "which diagonals are meant is not a constant"
        if (tensor_data.to_array(constant) != expected).any():
            return "it is not about the main diagonal alone"
    return None


def _plain_diagonal(op: Operation) -> str | None:
    return _main_diagonal(op, 1)


def _plain_set_diagonal(op: Operation) -> str | None:
    return _main_diagonal(op, 2)


def _dynamic_stitch(op: Operation, emit: Emit) -> SSAValue:
    """Joins all rows and picks, for each place, the last that is meant for it."""
    half = len(op.operands) // 2
    rows = [value if types.shape_of(index.type) else emit.tf("ExpandDims", (value, emit.ints([0])), _first(op, 1))
            for index, value in zip(op.operands[:half], op.operands[half:], strict=True)]  # fmt: skip
    places = [place for index in op.operands[:half] for place in ints(index)]
    last = dict(zip(places, range(len(places)), strict=True))
    joined = emit.tf("ConcatV2", (*rows, emit.ints([0])), _first(op, len(places))) if half > 1 else rows[0]
    order = emit.ints([last[place] for place in range(len(last))])
    return emit.tf("GatherV2", (joined, order, emit.ints([0])), _first(op, len(last)), {"batch_dims": 0})


def _first(op: Operation, count: int) -> Attribute:
    """Returns the type of an op's result with another first dimension."""
    shape = types.shape_of(op.results[0].type)
    return types.tensor(types.element_of(op.results[0].type), None if shape is None else (count, *shape[1:]))


def _stitch_constraint(op: Operation) -> str | None:
    indices = [tensor_data.constant_of(value) for value in op.operands[: len(op.operands) // 2]]
    arrays = [tensor_data.to_array(constant) for constant in indices if constant is not None]
    if len(arrays) < len(indices) or max(array.ndim for array in arrays) > 1:
        return "the indices are no constant scalars and vectors"
    places = {int(place) for array in arrays for place in array.reshape(-1)}
    return None if places and places == set(range(len(places))) else "there are rows that no index names"


def _one_hot_axis(axis: int | None) -> int:
    return -1 if axis is None else axis


_REVERSE_SEQUENCE = {"seq_dim": Attr("seq_dim"), "batch_dim": Attr("batch_dim", 0)}


_SEGMENTS = ("Sum", "Prod", "Max", "Min")
_DIAGONAL = "f32 i32 i64 ui8 i8 i16 ui32"

ENTRIES: tuple[Entry, ...] = (
    Row("Slice", "slice", f"{_ANY} !tf_type.string", narrow=(1, 2), constraint=max_rank(5)),
    Lowering("Gather", "gather", _gather, _PARAMS),
    Lowering("GatherV2", "gather", _gather, _PARAMS, constant_number(2, "the axis")),
    Row("GatherNd", "gather_nd", _PARAMS),
    Row("ScatterNd", "scatter_nd", _SCATTERED, narrow=(0, 2), typed=1),
    Lowering("TensorScatterAdd", "ScatterNd AddV2", _tensor_scatter_add, "f32 i32 i64"),
    Lowering("TensorScatterSub", "ScatterNd Sub", _tensor_scatter_sub, "f32 i32 i64"),
    Lowering("TensorScatterUpdate", "UnsortedSegmentMax ConcatV2 GatherV2", _tensor_scatter_update, f"{_SCATTERED} i16",
             _update_constraint),
    Row("XlaDynamicUpdateSlice", "dynamic_update_slice", "f32 f16 i8 ui8 i16 i32 ui32 i64 i1", narrow=(2,)),
    Lowering("DynamicStitch", "ConcatV2 GatherV2", _dynamic_stitch, constraint=_stitch_constraint),
    Row("OneHot", "one_hot", "f32 i32 i64 ui8 i8 i1", narrow=(1,), typed=2,
        options={"axis": Attr("axis", -1, _one_hot_axis)}),
    Row("Where", "where", "i1 f32 i32 i64 ui32 i8 ui8"),
    Lowering("TopKV2", "topk_v2", _top_k, "f32 i32 i64 ui8 i8 i16"),
    Row("Select", "select", _CHOSEN, typed=1, constraint=_known_ranks),
    Row("SelectV2", "select_v2", _CHOSEN, typed=1),
    Row("ReverseSequence", "reverse_sequence", "f32 i32 i64 ui8 i16", options=_REVERSE_SEQUENCE),
    Row("Unique", "unique", "f32 i32 i64 ui8 i8 i16", options={"idx_out_type": ResultType(1)}),
    Lowering("MatrixBandPart", "SelectV2", _matrix_band_part, _CHOSEN, _matrix_size_is_known),
    Row("MatrixDiag", "matrix_diag", _DIAGONAL),
    Row("MatrixDiagV2", "matrix_diag", _DIAGONAL, operands=(0,), constraint=_plain_diagonal),
    Row("MatrixDiagV3", "matrix_diag", _DIAGONAL, operands=(0,), constraint=_plain_diagonal),
    Row("MatrixSetDiag", "matrix_set_diag", _DIAGONAL),
    Row("MatrixSetDiagV2", "matrix_set_diag", _DIAGONAL, operands=(0, 1), constraint=_plain_set_diagonal),
    Row("MatrixSetDiagV3", "matrix_set_diag", _DIAGONAL, operands=(0, 1), constraint=_plain_set_diagonal),
    Row("SegmentSum", "segment_sum", "f32 i32", narrow=(1,)),
    *(Row(f"UnsortedSegment{name}", f"unsorted_segment_{name.lower()}", "f32 i32", narrow=(1, 2))
      for name in _SEGMENTS),
    Row("SparseToDense", "sparse_to_dense", "f32 i32 i64 i8 ui8", typed=2,
        options={"validate_indices": Attr("validate_indices", True)}),
)  # fmt: skip
