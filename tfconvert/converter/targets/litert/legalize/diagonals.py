"""Diagonals that are taken from matrices, and tensors that have one."""

from __future__ import annotations

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import BuiltinRow, Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

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


def _set_flags(op: Operation, emit: LiteRTBuilder) -> Value:
    """Sets the diagonal of numbers that represent booleans."""
    matrix, diagonal = (emit.cast(operand, types.I8) for operand in op.operands[:2])
    result = types.tensor(types.I8, op.results[0].shape)
    created = emit.tf(op.name.removeprefix("tf."), (matrix, diagonal, *op.operands[2:]), result, op.properties)
    return emit.cast(created, types.I1)


ENTRIES: tuple[Entry, ...] = (
    BuiltinRow("MatrixDiag", "matrix_diag", _DIAGONAL),
    BuiltinRow("MatrixDiagV2", "matrix_diag", _DIAGONAL, operands=(0,), constraint=_plain_diagonal),
    BuiltinRow("MatrixDiagV3", "matrix_diag", _DIAGONAL, operands=(0,), constraint=_plain_diagonal),
    BuiltinRow("MatrixSetDiag", "matrix_set_diag", _DIAGONAL),
    BuiltinRow("MatrixSetDiagV2", "matrix_set_diag", _DIAGONAL, operands=(0, 1), constraint=_plain_set_diagonal),
    BuiltinRow("MatrixSetDiagV3", "matrix_set_diag", _DIAGONAL, operands=(0, 1), constraint=_plain_set_diagonal),
    *(Lowering(op, f"Cast {op}", _set_flags, "i1") for op in ("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")),
)
