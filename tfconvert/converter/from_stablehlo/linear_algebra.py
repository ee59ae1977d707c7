"""Cholesky decompositions and triangular systems of small matrices, row by row; also LAPACK's as JAX calls it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import need

# Sizes of matrices up to which a model doesn't explode: each row costs about eight operators.
_MAX_SIZE = 32


def _size(raised: RaisedOp, matrix: EmittedTensor) -> int:
    size = raised.sizes(matrix)[-1]
    need(0 < size <= _MAX_SIZE, f"only matrices of 1 to {_MAX_SIZE} rows are decomposed, row by row")
    need(matrix.dtype == np.float32, f"it is computed for f32, not for {matrix.dtype}")
    return size


def _part(x: EmittedTensor, rows: tuple[int, int], columns: tuple[int, int]) -> EmittedTensor:
    """Returns a part of matrices, from a first position and of a length, -1 for all the rest."""
    rest = x.rank - 2
    begin, size = ([outer] * rest + [row, column] for outer, row, column in zip((0, -1), rows, columns, strict=True))
    return x.op("Slice", x, begin, size)  # type: ignore[no-any-return]


def _turned(x: EmittedTensor) -> EmittedTensor:
    return x.op("Transpose", x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])  # type: ignore[no-any-return]


def _decomposed(raised: RaisedOp, matrix: EmittedTensor, *, is_lower: bool) -> tuple[EmittedTensor, EmittedTensor]:
    """Returns the triangle of a Cholesky decomposition, and the pivots, which are positive if there is one."""
    size = _size(raised, matrix)
    left = matrix if is_lower else _turned(matrix)
    columns, pivots = [], []
    for index in range(size):
        pivot = _part(left, (0, 1), (0, 1))
        column = _part(left, (0, -1), (0, 1)) * pivot.rsqrt()
        pivots.append(pivot)
        above = [[0, 0]] * (matrix.rank - 2) + [[index, 0], [0, 0]]
        columns.append(column.op("Pad", column, above) if index else column)
        if index < size - 1:
            tail = _part(column, (1, -1), (0, 1))
            left = _part(left, (1, -1), (1, -1)) - tail * _turned(tail)
    found = _joined(columns, matrix.rank - 1)
    return found if is_lower else _turned(found), _joined(pivots, matrix.rank - 1)


def _joined(parts: Sequence[EmittedTensor], axis: int) -> EmittedTensor:
    first, *others = parts
    return first.concat(others, axis) if others else first


def _solved(
    raised: RaisedOp, matrix: EmittedTensor, other: EmittedTensor, *, is_lower: bool, has_ones: bool
) -> EmittedTensor:
    """Returns the solution of a triangular system by substitution.

    Args:
        raised: The op.
        matrix: The triangle.
        other: The right side.
        is_lower: Whether the triangle is the lower one.
        has_ones: Whether its diagonal is taken to be ones.
    """
    size = _size(raised, matrix)
    rows = []
    for step in range(size):
        index, count = (step, size - step - 1) if is_lower else (size - step - 1, size - step - 1)
        at, rest = (0, (1, -1)) if is_lower else (count, (0, count))
        row = _part(other, (at, 1), (0, -1))
        row = row if has_ones else row / _part(matrix, (index, 1), (index, 1))
        rows.append(row)
        if count:
            column = _part(matrix, (index + 1, -1) if is_lower else (0, count), (index, 1))
            other = _part(other, rest, (0, -1)) - column * row
    return _joined(rows if is_lower else rows[::-1], other.rank - 2)


def _system(raised: RaisedOp, *, is_left: bool, is_lower: bool, has_ones: bool, is_transposed: bool) -> EmittedTensor:
    matrix, other = raised.operands
    # A matrix on the right is the transposed one on the left of all that is transposed.
    if is_transposed == is_left:
        matrix, is_lower = _turned(matrix), not is_lower
    if is_left:
        return _solved(raised, matrix, other, is_lower=is_lower, has_ones=has_ones)
    return _turned(_solved(raised, matrix, _turned(other), is_lower=is_lower, has_ones=has_ones))


def _cholesky(raised: RaisedOp) -> EmittedTensor:
    return _decomposed(raised, raised.operands[0], is_lower=bool(raised.integer("lower")))[0]


def _triangular_solve(raised: RaisedOp) -> EmittedTensor:
    return _system(
        raised,
        is_left=bool(raised.integer("left_side")),
        is_lower=bool(raised.integer("lower")),
        has_ones=bool(raised.integer("unit_diagonal")),
        is_transposed=raised.text("transpose_a") in ("TRANSPOSE", "ADJOINT"),
    )


def _potrf(raised: RaisedOp) -> Sequence[EmittedTensor]:
    """LAPACK's decomposition has a second result: 0 where the matrix has one."""
    found, pivots = _decomposed(raised, raised.operands[0], is_lower=_letter(raised, "uplo") == "L")
    exists = (pivots > 0).reduce("All", [found.rank - 2, found.rank - 1])
    return [found, (~exists).cast(raised.dtype(1))]


def _trsm(raised: RaisedOp) -> EmittedTensor:
    return _system(
        raised,
        is_left=_letter(raised, "side") == "L",
        is_lower=_letter(raised, "uplo") == "L",
        has_ones=_letter(raised, "diag") == "U",
        is_transposed=_letter(raised, "trans_x") != "N",
    )


def _letter(raised: RaisedOp, name: str) -> str:
    return chr(raised.integer(name))


ROWS: Rows = {
    "@lapack_spotrf_ffi": _potrf,
    "@lapack_strsm_ffi": _trsm,
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
}
