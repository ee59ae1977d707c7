"""Decompositions and triangular systems of small matrices, row by row; also those of LAPACK as JAX calls it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import need

# Sizes of matrices up to which a model doesn't explode: each row costs about eight operators.
_MAX_SIZE = 32

_INDEX = np.dtype(np.int32)


def _size(raised: RaisedOp, matrix: EmittedTensor) -> int:
    """Returns the number of steps that a decomposition takes, the smaller one of a matrix's sizes."""
    sizes = raised.sizes(matrix)
    need(len(sizes) >= 2, "it is computed for matrices")
    rows, size = sizes[-2:]
    size = min(rows, size)
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
    # Sizes of the result may be another operand.
    matrix, other = raised.operands[:2]
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


def _getrf(raised: RaisedOp) -> Sequence[EmittedTensor]:
    """Returns the triangles of an LU decomposition in one matrix, the swapped rows, counted from 1, and the status.

    The status is the number of the first pivot that is 0, or 0.
    """
    left = raised.operands[0]
    size, axis = _size(raised, left), left.rank - 1
    count = raised.sizes(left)[-2]
    need(count >= 0, "the number of rows isn't known")
    rows, swaps, pivots = [], [], []
    for step in range(size):
        column = abs(_part(left, (0, -1), (step, 1)))
        found = column.op("ArgMax", column, axis - 1, output_type=_INDEX)
        row = left.op("GatherV2", left, found, axis - 1, batch_dims=axis - 1)
        rows.append(row)
        swaps.append(found + (step + 1))
        pivots.append(_part(row, (0, 1), (step, 1)))
        if step == count - 1:
            break
        # The first row takes the place of the one with the pivot.
        places = raised.constant(np.arange(1, count - step).reshape(-1, 1), np.int32)
        others = places.equal(found.expand_dims(-1)).where(_part(left, (0, 1), (0, -1)), _part(left, (1, -1), (0, -1)))
        factors = _part(others, (0, -1), (step, 1)) / pivots[-1].equal(0).where(raised.constant(1), pivots[-1])
        rest = _part(others, (0, -1), (step + 1, -1)) - factors * _part(row, (0, 1), (step + 1, -1))
        left = _joined([*([_part(others, (0, -1), (0, step))] if step else []), factors, rest], axis)
    if count > size:
        rows.append(left)
    missing = _joined(pivots, axis).equal(0)
    status = missing.reduce("Any", [axis - 1, axis]).where(_first(missing) + 1, raised.constant(0, np.int32))
    return [_joined(rows, axis - 1), _joined(swaps, axis - 1), status]


def _first(flags: EmittedTensor) -> EmittedTensor:
    """Returns the index of the first column that is true, of matrices of one row."""
    numbers = flags.cast(np.int32)
    found: EmittedTensor = numbers.op("ArgMax", numbers, flags.rank - 1, output_type=_INDEX)
    return found.reduce("Min", [flags.rank - 2])


def _padded(x: EmittedTensor, rows: tuple[int, int], columns: tuple[int, int]) -> EmittedTensor:
    """Returns matrices with zeros around them: numbers of rows and columns before and after."""
    if not any((*rows, *columns)):
        return x
    return x.op("Pad", x, [[0, 0]] * (x.rank - 2) + [[*rows], [*columns]])  # type: ignore[no-any-return]


def _geqrf(raised: RaisedOp) -> Sequence[EmittedTensor]:
    """Returns R with the reflections below it, whose first elements are 1 and left out, and their factors."""
    left = raised.operands[0]
    size, axis = _size(raised, left), left.rank - 1
    height, width = raised.sizes(left)[-2:]
    need(min(height, width) >= 0, "the sizes of the matrix aren't known")
    zero, one = raised.constant(0), raised.constant(1)
    parts: list[EmittedTensor] = []
    factors: list[EmittedTensor] = []
    for step in range(size):
        row, rest = _part(left, (0, 1), (1, -1)), _part(left, (1, -1), (1, -1))
        pivot, below = _part(left, (0, 1), (0, 1)), _part(left, (1, -1), (0, 1))
        if step == height - 1:
            # Nothing is below the last row.
            factors.append(pivot * 0)
            parts.append(_padded(left, (step, 0), (step, 0)))
            break
        norm = below.square().sum([axis - 1], keep_dims=True)
        is_done = norm.equal(0)
        length = (pivot.square() + norm).sqrt()
        new = is_done.where(pivot, (pivot < 0).where(length, -length))
        vector = is_done.where(zero, below / is_done.where(one, pivot - new))
        factors.append(is_done.where(zero, (new - pivot) / is_done.where(one, new)))
        parts.append(_padded(_joined([new, vector], axis - 1), (step, 0), (step, width - step - 1)))
        if step < width - 1:
            change = factors[-1] * (row + (vector * rest).sum([axis - 1], keep_dims=True))
            parts.append(_padded(row - change, (step, height - step - 1), (step + 1, 0)))
            left = rest - vector * change
    first, *others = parts
    return [first.op("AddN", *parts) if others else first, _joined(factors, axis).reduce("Sum", [axis - 1])]


def _orgqr(raised: RaisedOp) -> EmittedTensor:
    """Returns the first columns of the product of reflections, from the last one on."""
    matrix, factors = raised.operands[:2]
    size, axis = _size(raised, matrix), matrix.rank - 1
    height, width = raised.sizes(matrix)[-2:]
    need(
        width == size == raised.sizes(factors)[-1] and height >= 0, "it has another number of columns than reflections"
    )
    found: EmittedTensor | None = None
    for step in reversed(range(size)):
        factor = _part(factors.expand_dims(axis - 1), (0, 1), (step, 1))
        columns = [1 - factor]
        if step < height - 1:
            vector = _part(matrix, (step + 1, -1), (step, 1))
            columns = [_joined([columns[0], -factor * vector], axis - 1)]
            if found is not None:
                change = -factor * (vector * found).sum([axis - 1], keep_dims=True)
                columns.append(_joined([change, found + vector * change], axis - 1))
        found = _joined(columns, axis)
    assert found is not None
    return found


def _letter(raised: RaisedOp, name: str) -> str:
    code = raised.integer(name)
    need(0 < code < 128, f"its {name} is no letter")
    return chr(code)


ROWS: Rows = {
    "@lapack_sgeqrf_ffi": _geqrf,
    "@lapack_sgetrf_ffi": _getrf,
    "@lapack_sorgqr_ffi": _orgqr,
    "@lapack_spotrf_ffi": _potrf,
    "@lapack_strsm_ffi": _trsm,
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
}
