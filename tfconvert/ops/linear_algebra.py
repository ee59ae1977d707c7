"""Decompositions of small matrices and systems of linear equations, row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from tfconvert.ops.call import Array, Call, Results, typed
from tfconvert.ops.declaration import Decomposition, op
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands
from tfconvert.ops.shape_functions import Shapes, same_with_rank_at_least
from tfconvert.schema.dialects.dims import broadcast, merge_dim, with_rank_at_least
from tfconvert.schema.dialects.relations.rules import rank_at_least
from tfconvert.schema.ir.operation import Operation

T = TypeVar("T", bound=Tensor)

MAX_SIZE = 32
"""The size of matrices up to which a model doesn't explode: each row costs about eight operators."""

_INDEX = np.dtype(np.int32)


def part(x: T, rows: tuple[int, int], columns: tuple[int, int]) -> T:
    """Returns a part of matrices, from a first position and of a length, -1 for all the rest."""
    rest = x.rank - 2
    begin, size = ([outer] * rest + [row, column] for outer, row, column in zip((0, -1), rows, columns, strict=True))
    return x.op("Slice", x, begin, size)  # type: ignore[no-any-return]


def turned(x: T) -> T:
    """Returns transposed matrices."""
    return x.transpose([*range(x.rank - 2), x.rank - 1, x.rank - 2])


def joined(parts: Sequence[T], axis: int) -> T:
    first, *others = parts
    return first.concat(others, axis)


def _padded(x: T, rows: tuple[int, int], columns: tuple[int, int]) -> T:
    """Returns matrices with zeros around them: numbers of rows and columns before and after."""
    if not any((*rows, *columns)):
        return x
    return x.op("Pad", x, [[0, 0]] * (x.rank - 2) + [[*rows], [*columns]])  # type: ignore[no-any-return]


def _sizes(x: Tensor) -> tuple[int, int]:
    rows, columns = (x.shape or ())[-2:]
    return rows, columns


def cholesky(matrix: T, *, is_lower: bool = True) -> tuple[T, T]:
    """Returns the triangle of a Cholesky decomposition, and the pivots, which are positive if there is one."""
    size = min(_sizes(matrix))
    left = matrix if is_lower else turned(matrix)
    columns, pivots = [], []
    for index in range(size):
        pivot = part(left, (0, 1), (0, 1))
        column = part(left, (0, -1), (0, 1)) * pivot.rsqrt()
        pivots.append(pivot)
        columns.append(_padded(column, (index, 0), (0, 0)))
        if index < size - 1:
            tail = part(column, (1, -1), (0, 1))
            left = part(left, (1, -1), (1, -1)) - tail * turned(tail)
    found = joined(columns, matrix.rank - 1)
    return found if is_lower else turned(found), joined(pivots, matrix.rank - 1)


def solved(matrix: T, other: T, *, is_lower: bool, has_ones: bool = False) -> T:
    """Returns the solution of a triangular system by substitution.

    Args:
        matrix: The triangle.
        other: The right side.
        is_lower: Whether the triangle is the lower one.
        has_ones: Whether its diagonal is taken to be ones.
    """
    size = min(_sizes(matrix))
    rows = []
    for step in range(size):
        index, count = (step, size - step - 1) if is_lower else (size - step - 1, size - step - 1)
        at, rest = (0, (1, -1)) if is_lower else (count, (0, count))
        row = part(other, (at, 1), (0, -1))
        row = row if has_ones else row / part(matrix, (index, 1), (index, 1))
        rows.append(row)
        if count:
            column = part(matrix, (index + 1, -1) if is_lower else (0, count), (index, 1))
            other = part(other, rest, (0, -1)) - column * row
    return joined(rows if is_lower else rows[::-1], rows[0].rank - 2)


class Elimination(NamedTuple, Generic[T]):
    """The result of eliminating columns, with the largest pivot of each.

    Attributes:
        matrix: Both triangles in one matrix.
        swaps: The row that each row was swapped with, counted from that row: matrices of one row.
        pivots: Matrices of one row.
    """

    matrix: T
    swaps: Sequence[T]
    pivots: T


def eliminated(left: T, carried: int = 0) -> Elimination[T]:
    """Returns an LU decomposition; the first `carried` columns are only moved, as their rows are swapped."""
    axis = left.rank - 1
    count, width = _sizes(left)
    size = min(count, width - carried)
    rows, swaps, pivots = [], [], []
    for step in range(size):
        at = step + carried
        column = abs(part(left, (0, -1), (at, 1)))
        found = column.op("ArgMax", column, axis - 1, output_type=_INDEX)
        row = left.op("GatherV2", left, found, axis - 1, batch_dims=axis - 1)
        rows.append(row)
        swaps.append(found)
        pivots.append(part(row, (0, 1), (at, 1)))
        if step == count - 1:
            break
        # The first row takes the place of the one with the pivot.
        places = left.of(np.arange(1, count - step, dtype=np.int32).reshape(-1, 1))
        others = places.equal(found.expand_dims(-1)).where(part(left, (0, 1), (0, -1)), part(left, (1, -1), (0, -1)))
        factors = part(others, (0, -1), (at, 1)) / pivots[-1].equal(0).where(1.0, pivots[-1])
        rest = [part(others, (0, -1), (0, at)), factors] if at else [factors]
        if at + 1 < width:
            below = part(others, (0, -1), (at + 1, -1)) - factors * part(row, (0, 1), (at + 1, -1))
            rest.append(below)
        left = joined(rest, axis)
    if count > size:
        rows.append(left)
    return Elimination(joined(rows, axis - 1), swaps, joined(pivots, axis))


def reflected(left: T) -> tuple[T, T]:
    """Returns R with the reflections below it, whose first elements are 1 and left out, and their factors."""
    height, width = _sizes(left)
    axis = left.rank - 1
    parts: list[T] = []
    factors: list[T] = []
    for step in range(min(height, width)):
        pivot, below = part(left, (0, 1), (0, 1)), part(left, (1, -1), (0, 1))
        if step == height - 1:
            # Nothing is below the last row.
            factors.append(pivot * 0)
            parts.append(_padded(left, (step, 0), (step, 0)))
            break
        norm = below.square().sum([axis - 1], keep_dims=True)
        is_done = norm.equal(0)
        length = (pivot.square() + norm).sqrt()
        new = is_done.where(pivot, (pivot < 0).where(length, -length))
        vector = is_done.where(0.0, below / is_done.where(1.0, pivot - new))
        factors.append(is_done.where(0.0, (new - pivot) / is_done.where(1.0, new)))
        parts.append(_padded(joined([new, vector], axis - 1), (step, 0), (step, width - step - 1)))
        if step < width - 1:
            row, rest = part(left, (0, 1), (1, -1)), part(left, (1, -1), (1, -1))
            change = factors[-1] * (row + (vector * rest).sum([axis - 1], keep_dims=True))
            parts.append(_padded(row - change, (step, height - step - 1), (step + 1, 0)))
            left = rest - vector * change
    first, *others = parts
    return first.op("AddN", *parts) if others else first, joined(factors, axis)


def product_of_reflections(matrix: T, factors: T) -> T:
    """Returns the first columns of the product of reflections, as many as there are, from the last one on.

    Args:
        matrix: The reflections, below the diagonal.
        factors: Their factors: matrices of one row.
    """
    axis = matrix.rank - 1
    height, size = _sizes(matrix)
    found: T | None = None
    for step in reversed(range(size)):
        factor = part(factors, (0, 1), (step, 1))
        columns = [1 - factor]
        if step < height - 1:
            vector = part(matrix, (step + 1, -1), (step, 1))
            columns = [joined([columns[0], -factor * vector], axis - 1)]
            if found is not None:
                change = -factor * (vector * found).sum([axis - 1], keep_dims=True)
                columns.append(joined([change, found + vector * change], axis - 1))
        found = joined(columns, axis)
    assert found is not None, "there is at least one"
    return found


def _band(x: Tensor, below: int, above: int) -> Tensor:
    return x.op("MatrixBandPart", x, below, above)  # type: ignore[no-any-return]


def _lower(matrix: Tensor) -> Tensor:
    return cholesky(matrix)[0]


def triangular_solve(matrix: Tensor, other: Tensor, *, lower: bool = True, adjoint: bool = False) -> Tensor:
    return solved(turned(matrix) if adjoint else matrix, other, is_lower=lower != adjoint)


def solve(matrix: Tensor, other: Tensor, *, adjoint: bool = False) -> Tensor:
    """Eliminates the columns of the matrix in both, and substitutes."""
    size = _sizes(matrix)[0]
    matrix = turned(matrix) if adjoint else matrix
    whole = eliminated(matrix.concat([other], matrix.rank - 1)).matrix
    return solved(part(whole, (0, -1), (0, size)), part(whole, (0, -1), (size, -1)), is_lower=False)


def inverse(matrix: Tensor, *, adjoint: bool = False) -> Tensor:
    unit = matrix.of(np.eye(_sizes(matrix)[0], dtype=matrix.dtype))
    return solve(matrix, matrix.op("BroadcastTo", unit, matrix.sizes()), adjoint=adjoint)


def _sign_and_pivots(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the sign that rows give the determinant as they are swapped, and the pivots, in the last dimension."""
    found = eliminated(matrix)
    swaps = joined(found.swaps, matrix.rank - 2)
    signs = swaps.equal(0).cast(matrix.dtype) * 2 - 1
    pivots = found.pivots.op("Squeeze", found.pivots, squeeze_dims=[matrix.rank - 2])
    # The last row is not swapped.
    return signs.reduce("Prod", [matrix.rank - 2]), pivots


def determinant(matrix: Tensor) -> Tensor:
    sign, pivots = _sign_and_pivots(matrix)
    return sign * pivots.reduce("Prod", [matrix.rank - 2])


def log_determinant(matrix: Tensor) -> Sequence[Tensor]:
    sign, pivots = _sign_and_pivots(matrix)
    axes = [matrix.rank - 2]
    return sign * pivots.sign().reduce("Prod", axes), abs(pivots).log().sum(axes)


def lu(matrix: Tensor, *, output_idx_type: np.dtype[np.generic] = _INDEX) -> Sequence[Tensor]:
    """Both triangles, and the rows' indices, which are carried along as a column."""
    rank, rows = matrix.rank, _sizes(matrix)[0]
    column = matrix.of(np.arange(rows, dtype=matrix.dtype).reshape(rows, 1))
    indices = part(matrix, (0, -1), (0, 1)) * 0 + column
    found = eliminated(indices.concat([matrix], rank - 1), carried=1).matrix
    order = part(found, (0, -1), (0, 1))
    order = order.op("Squeeze", order, squeeze_dims=[rank - 1])
    return part(found, (0, -1), (1, -1)), order.cast(output_idx_type)


def qr(matrix: Tensor, *, full_matrices: bool = False) -> Sequence[Tensor]:
    rows, columns = _sizes(matrix)
    size = min(rows, columns)
    found, factors = reflected(matrix)
    reflections = part(found, (0, -1), (0, size))
    if full_matrices and rows > columns:
        # Reflections with the factor 0 change nothing.
        reflections = _padded(reflections, (0, 0), (0, rows - columns))
        factors = _padded(factors, (0, 0), (0, rows - columns))
    upper = found if full_matrices else part(found, (0, size), (0, -1))
    return product_of_reflections(reflections, factors), _band(upper, 0, -1)


def _is_small(op: Operation) -> str | None:
    shape = op.operands[0].shape
    if shape is None or len(shape) < 2 or not min(shape[-2:]) > 0:
        return "the sizes of its matrices are not known"
    large = max(shape[-2:]) if op.name == "tf.Qr" else min(shape[-2:])
    return None if large <= MAX_SIZE else f"only matrices of 1 to {MAX_SIZE} rows are decomposed, row by row"


def _determinant_shape(operands: Operands) -> Shapes:
    shape = with_rank_at_least(operands.shape(0), 2)
    return (None if shape is None else shape[:-2],) * len(operands.op.results)


def _solve_shape(operands: Operands) -> Shapes:
    matrix, right = operands.shape(0), operands.shape(1)
    with_rank_at_least(matrix, 2)
    with_rank_at_least(right, 2)
    if matrix is None or right is None:
        return (None,)
    batch = broadcast(matrix[:-2], right[:-2])
    assert batch is not None
    return ((*batch, merge_dim(matrix[-1], right[-2]), right[-1]),)


def _lu_shape(operands: Operands) -> Shapes:
    shape = with_rank_at_least(operands.shape(0), 2)
    return (shape, None if shape is None else shape[:-1])


def _qr_shape(operands: Operands) -> Shapes:
    shape = with_rank_at_least(operands.shape(0), 2)
    if shape is None:
        return (None, None)
    *batch, rows, columns = shape
    less = min(rows, columns) if rows >= 0 and columns >= 0 else -1
    if operands.attribute("full_matrices", False):
        return ((*batch, rows, rows), (*batch, rows, columns))
    return ((*batch, rows, less), (*batch, less, columns))


def _svd_shape(operands: Operands) -> Shapes:
    shape = with_rank_at_least(operands.shape(0), 2)
    if shape is None:
        return (None, None, None)
    *batch, rows, columns = shape
    less = min(rows, columns) if rows >= 0 and columns >= 0 else -1
    if not operands.attribute("compute_uv", True):
        return ((*batch, less), (0,), (0,))
    if operands.attribute("full_matrices", False):
        return ((*batch, less), (*batch, rows, rows), (*batch, columns, columns))
    return ((*batch, less), (*batch, rows, less), (*batch, columns, less))


def _adjoint(x: Array) -> Array:
    return np.asarray(np.conj(np.swapaxes(x, -1, -2)))


def _solution(call: Call) -> Results:
    matrix, right = call.inputs
    if call.op == "MatrixTriangularSolve":
        matrix = np.tril(matrix) if call.flag("lower", True) else np.triu(matrix)
    matrix = _adjoint(matrix) if call.flag("adjoint") else matrix
    return (typed(np.linalg.solve(matrix, right), right.dtype),)


def _inverse(call: Call) -> Results:
    (matrix,) = call.inputs
    return (typed(np.linalg.inv(_adjoint(matrix) if call.flag("adjoint") else matrix), matrix.dtype),)


def _of_numpy(function: Callable[[Array], object], call: Call) -> Results:
    found = function(call.inputs[0])
    results = found if isinstance(found, tuple) else (found,)
    return tuple(typed(each, call.inputs[0].dtype) for each in results)


def _qr(call: Call) -> Results:
    found = np.linalg.qr(call.inputs[0], "complete" if call.flag("full_matrices") else "reduced")
    return tuple(typed(each, call.inputs[0].dtype) for each in found)


_MATRIX = ((2, 3, 3),)
_FLOATS = "f32 f64"

OPS = (
    op(
        "Cholesky",
        shape=same_with_rank_at_least(2),
        compute=partial(_of_numpy, np.linalg.cholesky),
        decompose=(Decomposition(_lower, _FLOATS, _is_small, example=_MATRIX),),
    ),
    op(
        "LogMatrixDeterminant",
        shape=_determinant_shape,
        compute=partial(_of_numpy, np.linalg.slogdet),
        decompose=(Decomposition(log_determinant, _FLOATS, _is_small, example=_MATRIX),),
    ),
    op("Lu", shape=_lu_shape, decompose=(Decomposition(lu, _FLOATS, _is_small, example=_MATRIX),)),
    op(
        "MatrixDeterminant",
        shape=_determinant_shape,
        compute=partial(_of_numpy, np.linalg.det),
        decompose=(Decomposition(determinant, _FLOATS, _is_small, example=_MATRIX),),
    ),
    *(op(f"Matrix{name}", shape=same_with_rank_at_least(2)) for name in ("Exponential", "Logarithm", "SquareRoot")),
    op(
        "MatrixInverse",
        shape=same_with_rank_at_least(2),
        compute=_inverse,
        decompose=(Decomposition(inverse, _FLOATS, _is_small, example=_MATRIX),),
    ),
    op(
        "MatrixSolve",
        shape=_solve_shape,
        compute=_solution,
        decompose=(Decomposition(solve, _FLOATS, _is_small, example=_MATRIX * 2),),
    ),
    op(
        "MatrixTriangularSolve",
        shape=_solve_shape,
        compute=_solution,
        decompose=(Decomposition(triangular_solve, _FLOATS, _is_small, example=_MATRIX * 2),),
    ),
    op(
        "Qr",
        shape=_qr_shape,
        compute=_qr,
        decompose=(Decomposition(qr, _FLOATS, _is_small, example=((2, 4, 3),)),),
        relations=(rank_at_least("input", 2),),
    ),
    op("Svd", shape=_svd_shape),
)
