"""Indexing: slices, gathers, scatters, choices and searches."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from converter.legalize.emit import Emit
from converter.legalize.row import Attr, Entry, Lowering, ResultType, Row, constant_operand, max_rank
from schema.dialects import tensor_data, tf, types

_ANY = "f32 f16 bf16 f64 i8 ui8 i16 ui16 i32 ui32 i64 ui64 i1 complex<f32>"
_PARAMS = "f32 f16 bf16 i32 i64 ui8 i8 i16 i1 !tf_type.string"
_SCATTERED = "f32 i32 i64 ui8 i8 i1"
_CHOSEN = _ANY


def _gather(op: Operation, emit: Emit) -> SSAValue:
    params, indices = op.operands[:2]
    axis = batch_dims = 0
    if len(op.operands) > 2:
        constant = tensor_data.constant_of(op.operands[2])
        assert constant is not None
        axis = int(tensor_data.to_array(constant).reshape(-1)[0])
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


def _tensor_scatter_update(op: Operation, emit: Emit) -> SSAValue:
    """Scatters the updates and, apart, ones, which tell where the updates are to be taken."""
    tensor, indices, updates = op.operands
    shape = emit.shape(tensor)
    scattered = emit.tf("ScatterNd", (indices, updates, shape), tensor.type)
    ones = emit.tf("Fill", (emit.shape(updates), emit.scalar(1, types.I32)), _as(updates, types.I32))
    touched = emit.tf("ScatterNd", (indices, ones, shape), _as(tensor, types.I32))
    return emit.tf("SelectV2", (emit.compare("Greater", touched, 0), scattered, tensor), op.results[0].type)


def _as(value: SSAValue, element: Any) -> Any:
    return types.tensor(element, types.shape_of(value.type))


def _top_k(op: Operation, emit: Emit) -> list[SSAValue]:
    indices = op.results[1]
    found = emit.tfl_op(
        "topk_v2", (op.operands[0], emit.i32(op.operands[1])), (op.results[0].type, _as(indices, types.I32))
    )
    return [found.results[0], emit.cast(found.results[1], types.element_of(indices.type))]


def _same_shapes(op: Operation) -> str | None:
    """`Select` takes a vector as a choice between rows; the kernel does too, but only where it knows that."""
    condition, x = types.shape_of(op.operands[0].type), types.shape_of(op.operands[1].type)
    if condition is None or x is None:
        return "the operands' ranks are not known"
    return None


def _matrix_size_is_known(op: Operation) -> str | None:
    shape = types.shape_of(op.operands[0].type)
    return None if shape is not None and len(shape) >= 2 else "the matrices' rank is not known"


def _matrix_band_part(op: Operation, emit: Emit) -> SSAValue:
    """Keeps what is at most so far below and above the diagonal; a negative limit is none."""
    matrix, lower, upper = op.operands
    rows = _places(emit, matrix, -2)
    columns = _places(emit, matrix, -1)
    below = emit.binary("Sub", rows, columns)
    kept = []
    for limit, distance in ((lower, below), (upper, emit.unary("Neg", below))):
        number = emit.i32(limit)
        within = emit.compare("LessEqual", distance, number)
        kept.append(emit.tf("LogicalOr", (within, emit.compare("Less", number, 0)), within.type))
    return emit.select(emit.tf("LogicalAnd", kept, kept[0].type), matrix, 0)


def _places(emit: Emit, matrix: SSAValue, axis: int) -> SSAValue:
    """Returns the number of each row (as a column) or column (as a row)."""
    size = (types.shape_of(matrix.type) or ())[axis]
    shape = (size, 1) if axis == -2 else (1, size)
    if size >= 0:
        return emit.constant(np.arange(size, dtype=np.int32).reshape(shape))
    rank = len(types.shape_of(matrix.type) or ())
    place = types.tensor(types.I32, (1,))
    count = emit.tf("Slice", (emit.shape(matrix), emit.ints((rank + axis,)), emit.ints((1,))), place)
    limit = emit.reshape(count, ())
    bounds = (emit.scalar(0, types.I32), limit, emit.scalar(1, types.I32))
    return emit.reshape(emit.tf("Range", bounds, types.tensor(types.I32, (-1,))), shape)


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


def _one_hot_axis(axis: int | None) -> int:
    return -1 if axis is None else axis


_REVERSE_SEQUENCE = {"seq_dim": Attr("seq_dim"), "batch_dim": Attr("batch_dim", 0)}


_SEGMENTS = ("Sum", "Prod", "Max", "Min")
_DIAGONAL = "f32 i32 i64 ui8 i8 i16 ui32"

ENTRIES: tuple[Entry, ...] = (
    Row("Slice", "slice", f"{_ANY} !tf_type.string", narrow=(1, 2), constraint=max_rank(5)),
    Lowering("Gather", "gather", _gather, _PARAMS),
    Lowering("GatherV2", "gather", _gather, _PARAMS, constant_operand(2, "the axis")),
    Row("GatherNd", "gather_nd", _PARAMS),
    Row("ScatterNd", "scatter_nd", _SCATTERED, narrow=(0, 2), typed=1),
    Lowering("TensorScatterAdd", "ScatterNd AddV2", _tensor_scatter_add, "f32 i32 i64"),
    Lowering("TensorScatterSub", "ScatterNd Sub", _tensor_scatter_sub, "f32 i32 i64"),
    Lowering("TensorScatterUpdate", "ScatterNd SelectV2", _tensor_scatter_update, _SCATTERED),
    Row("OneHot", "one_hot", "f32 i32 i64 ui8 i8 i1", narrow=(1,), typed=2,
        options={"axis": Attr("axis", -1, _one_hot_axis)}),
    Row("Where", "where", "i1 f32 i32 i64 ui32 i8 ui8"),
    Lowering("TopKV2", "topk_v2", _top_k, "f32 i32 i64 ui8 i8 i16"),
    Row("Select", "select", _CHOSEN, typed=1, constraint=_same_shapes),
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
