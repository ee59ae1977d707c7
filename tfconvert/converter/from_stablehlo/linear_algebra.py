"""Decompositions and triangular systems of small matrices; also those of LAPACK as JAX calls it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import need
from tfconvert.ops import linear_algebra
from tfconvert.ops.linear_algebra import MAX_SIZE, turned

_INDEX = np.dtype(np.int32)


def _check(raised: RaisedOp, matrix: EmittedTensor) -> None:
    """Declines matrices that are too large, or whose sizes aren't known."""
    sizes = raised.sizes(matrix)
    need(len(sizes) >= 2, "it is computed for matrices")
    need(0 < min(sizes[-2:]) <= MAX_SIZE, f"only matrices of 1 to {MAX_SIZE} rows are decomposed, row by row")
    need(matrix.dtype == np.float32, f"it is computed for f32, not for {matrix.dtype}")


def _system(raised: RaisedOp, *, is_left: bool, is_lower: bool, has_ones: bool, is_transposed: bool) -> EmittedTensor:
    # Sizes of the result may be another operand.
    matrix, other = raised.operands[:2]
    _check(raised, matrix)
    # A matrix on the right is the transposed one on the left of all that is transposed.
    if is_transposed == is_left:
        matrix, is_lower = turned(matrix), not is_lower
    if is_left:
        return linear_algebra.solved(matrix, other, is_lower=is_lower, has_ones=has_ones)
    return turned(linear_algebra.solved(matrix, turned(other), is_lower=is_lower, has_ones=has_ones))


def _cholesky(raised: RaisedOp) -> EmittedTensor:
    (matrix,) = raised.operands
    _check(raised, matrix)
    return linear_algebra.cholesky(matrix, is_lower=bool(raised.integer("lower")))[0]


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
    _check(raised, raised.operands[0])
    found, pivots = linear_algebra.cholesky(raised.operands[0], is_lower=_letter(raised, "uplo") == "L")
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
    left, axis = raised.operands[0], raised.operands[0].rank - 1
    _check(raised, left)
    need(raised.sizes(left)[-2] >= 0, "the number of rows isn't known")
    matrix, found, pivots = linear_algebra.eliminated(left)
    swaps = [each + (step + 1) for step, each in enumerate(found)]
    missing = pivots.equal(0)
    status = missing.reduce("Any", [axis - 1, axis]).where(_first(missing) + 1, raised.constant(0, np.int32))
    return [matrix, linear_algebra.joined(swaps, axis - 1), status]


def _first(flags: EmittedTensor) -> EmittedTensor:
    """Returns the index of the first column that is true, of matrices of one row."""
    numbers = flags.cast(np.int32)
    found: EmittedTensor = numbers.op("ArgMax", numbers, flags.rank - 1, output_type=_INDEX)
    return found.reduce("Min", [flags.rank - 2])


def _geqrf(raised: RaisedOp) -> Sequence[EmittedTensor]:
    left = raised.operands[0]
    _check(raised, left)
    need(min(raised.sizes(left)[-2:]) >= 0, "the sizes of the matrix aren't known")
    found, factors = linear_algebra.reflected(left)
    return [found, factors.reduce("Sum", [left.rank - 2])]


def _orgqr(raised: RaisedOp) -> EmittedTensor:
    matrix, factors = raised.operands[:2]
    _check(raised, matrix)
    height, width = raised.sizes(matrix)[-2:]
    need(
        height >= width == raised.sizes(factors)[-1] and height >= 0,
        "it has another number of columns than reflections",
    )
    return linear_algebra.product_of_reflections(matrix, factors.expand_dims(matrix.rank - 2))


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
