"""Diagonals that are taken from matrices, and tensors that have one."""

from __future__ import annotations

import math

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import BuiltinRow, Entry, Lowering
from tfconvert.converter.targets.litert.legalize.indexing import numbers, size_of
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_ELEMENTS = "f32 i32 i64 ui8 i8 i16 i1"
_DIAGONAL = "f32 i32 i64 ui8 i8 i16 ui32"


def _main_diagonal(op: Operation, first: int) -> Failure | None:
    """Returns why operands from `first` on (k, and the others of `MatrixDiagV3`) select more than the main diagonal."""
    for operand, expected in zip(op.operands[first:], (0, -1, -1, 0), strict=False):
        constant = tensor_data.constant_of(operand)
        if constant is None:
            return Failure("which diagonals are meant is not a constant")
        if (tensor_data.to_array(constant) != expected).any():
            return Failure("it is not about the main diagonal alone")
    return None


def _plain_diagonal(op: Operation) -> Failure | None:
    return _main_diagonal(op, 1)


def _plain_set_diagonal(op: Operation) -> Failure | None:
    return _main_diagonal(op, 2)


def _offset(op: Operation) -> int | None:
    """Returns how far right of the main diagonal the selected one is, `None` if that is not known or several."""
    if len(op.operands) < 2:
        return 0
    constant = tensor_data.constant_of(op.operands[1])
    numbers = set() if constant is None else set(tensor_data.to_array(constant).reshape(-1).tolist())
    return int(numbers.pop()) if len(numbers) == 1 else None


def _length(height: int, width: int, offset: int) -> int:
    """Returns the length of a diagonal."""
    return min(height + min(offset, 0), width - max(offset, 0))


def _diagonal_is_known(op: Operation) -> Failure | None:
    shape, offset = types.shape_of(op.operands[0].type), _offset(op)
    if offset is None:
        return Failure("which diagonal is meant is not known, or there are several")
    if shape is None or len(shape) < 2 or min(shape[-2:]) < 0 or shape[:-2].count(-1) > 1:
        return Failure("the matrices' size is not known")
    return None if _length(shape[-2], shape[-1], offset) > 0 else Failure("there is no such diagonal")


def _diagonal(op: Operation, emit: LiteRTBuilder) -> Value:
    """Takes the elements that are one row and one column apart, at a constant stride of the flat matrix."""
    matrix, offset = op.operands[0], _offset(op)
    assert offset is not None, "checked by the constraint"
    *batch, height, width = types.shape_of(matrix.type) or ()
    count = -1 if -1 in batch else math.prod(batch)
    length = _length(height, width, offset)
    start = max(offset, 0) - min(offset, 0) * width
    flat = emit.reshape(matrix, (count, height * width))
    bounds = [emit.ints(each) for each in ((0, start), (0, start + (length - 1) * (width + 1) + 1), (1, width + 1))]
    found = types.tensor(types.element_of(matrix.type), (count, length))
    taken = emit.tf("StridedSlice", (flat, *bounds), found, {"begin_mask": 1, "end_mask": 1})
    return emit.reshape(taken, (*batch, length))


def _rank_and_diagonal_are_known(op: Operation) -> Failure | None:
    shape = types.shape_of(op.operands[0].type)
    if _offset(op) is None or shape is None or len(shape) < 2:
        return Failure("which diagonal is meant, or the rank, is not known")
    return None


def _masked_diagonal(op: Operation, emit: LiteRTBuilder) -> Value:
    """Adds up the columns of matrices that are zero outside the diagonal."""
    matrix, offset = op.operands[0], _offset(op)
    assert offset is not None, "checked by the constraint"
    *batch, height, width = types.shape_of(matrix.type) or ()
    rows = emit.reshape(numbers(emit, matrix, len(batch)), (height, 1))
    columns = emit.reshape(numbers(emit, matrix, len(batch) + 1), (1, width))
    is_meant = emit.compare("Equal", emit.binary("Sub", columns, rows), offset)
    summed = emit.reduce("Sum", emit.select(is_meant, matrix, 0), (len(batch),))
    below, right = (
        emit.binary("AddV2", size_of(emit, matrix, axis), by)
        for axis, by in ((len(batch), min(offset, 0)), (len(batch) + 1, -max(offset, 0)))
    )
    length = emit.binary("Minimum", below, right)
    sizes = (emit.ints([-1] * len(batch)), length, emit.scalar(0, types.I32))
    size = emit.tf("ConcatV2", sizes, types.tensor(types.I32, (len(batch) + 1,))) if batch else length
    begin = emit.ints((*[0] * len(batch), max(offset, 0)))
    return emit.tf("Slice", (summed, begin, size), op.results[0].type)


def _set_flags(op: Operation, emit: LiteRTBuilder) -> Value:
    """Sets the diagonal of numbers that represent booleans."""
    matrix, diagonal = (emit.cast(operand, types.I8) for operand in op.operands[:2])
    result = types.tensor(types.I8, types.shape_of(op.results[0].type))
    created = emit.tf(op.name.removeprefix("tf."), (matrix, diagonal, *op.operands[2:]), result, op.properties)
    return emit.cast(created, types.I1)


def _diagonal_of_tensor(op: Operation, emit: LiteRTBuilder) -> Value:
    """Takes the diagonal of a matrix that has the first half of the dimensions as rows."""
    shape = types.shape_of(op.operands[0].type) or ()
    half = shape[: len(shape) // 2]
    size = math.prod(half)
    matrix = emit.reshape(op.operands[0], (size, size))
    diagonal = emit.tf("MatrixDiagPart", (matrix,), types.tensor(types.element_of(matrix.type), (size,)))
    return emit.reshape(diagonal, half)


def _tensor_of_diagonal(op: Operation, emit: LiteRTBuilder) -> Value:
    """Puts all elements on a matrix's diagonal."""
    shape = types.shape_of(op.operands[0].type) or ()
    size = math.prod(shape)
    vector = emit.reshape(op.operands[0], (size,))
    matrix = emit.tf("MatrixDiag", (vector,), types.tensor(types.element_of(vector.type), (size, size)))
    return emit.reshape(matrix, (*shape, *shape))


def _is_static(op: Operation) -> Failure | None:
    shape = types.shape_of(op.operands[0].type)
    return None if types.is_static(shape) and shape else Failure("the operand's shape is not known")


def _is_vector(op: Operation) -> Failure | None:
    shape = types.shape_of(op.operands[0].type)
    return None if shape is not None and len(shape) == 1 else Failure("it is not a vector")


def _matrix_of_vector(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.tf("MatrixDiag", op.operands, op.results[0].type)


ENTRIES: tuple[Entry, ...] = (
    BuiltinRow("MatrixDiag", "matrix_diag", _DIAGONAL),
    BuiltinRow("MatrixDiagV2", "matrix_diag", _DIAGONAL, operands=(0,), constraint=_plain_diagonal),
    BuiltinRow("MatrixDiagV3", "matrix_diag", _DIAGONAL, operands=(0,), constraint=_plain_diagonal),
    BuiltinRow("MatrixSetDiag", "matrix_set_diag", _DIAGONAL),
    BuiltinRow("MatrixSetDiagV2", "matrix_set_diag", _DIAGONAL, operands=(0, 1), constraint=_plain_set_diagonal),
    BuiltinRow("MatrixSetDiagV3", "matrix_set_diag", _DIAGONAL, operands=(0, 1), constraint=_plain_set_diagonal),
    *(
        Lowering(op, "reshape StridedSlice", _diagonal, _ELEMENTS, _diagonal_is_known)
        for op in ("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
    ),
    *(
        Lowering(
            op, "Equal SelectV2 Sum Slice", _masked_diagonal, "f32 i32 i64", _rank_and_diagonal_are_known, benefit=0
        )
        for op in ("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
    ),
    *(Lowering(op, f"Cast {op}", _set_flags, "i1") for op in ("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")),
    Lowering("DiagPart", "reshape MatrixDiagPart", _diagonal_of_tensor, _ELEMENTS, _is_static),
    Lowering("Diag", "MatrixDiag", _matrix_of_vector, _DIAGONAL, _is_vector, benefit=2),
    Lowering("Diag", "reshape MatrixDiag", _tensor_of_diagonal, _DIAGONAL, _is_static),
)
