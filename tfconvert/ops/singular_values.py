"""Singular values and eigenvalues of symmetric matrices, by Jacobi's rotations.

Rows are turned in pairs until all are orthogonal: their lengths are the singular values then (Hestenes, "Inversion of
matrices by biorthogonalization and related results", 1958). Half of the rows meet the other half at once, and change
partners as in a tournament (Brent and Luk, 1985): a step is a few operators for any size, which a loop repeats.

Vectors are determined up to their sign, and those of equal values up to a rotation: others than TensorFlow's are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tfconvert.ops.declaration import Decomposition, Formula, OpDeclaration, op
from tfconvert.ops.formula import Tensor
from tfconvert.ops.linear_algebra import MAX_SIZE, joined, part, product_of_reflections, reflected, turned
from tfconvert.ops.operands import Operands, ShapeFunction
from tfconvert.ops.shape_functions import Shapes
from tfconvert.schema.dialects import tf
from tfconvert.schema.dialects.dims import with_rank_at_least
from tfconvert.schema.ir.operation import Operation

MAX_ROWS = 64
"""The size up to which values are right to 1e-4 of the greatest one, whatever the matrix."""


def _rounds(matrix: Tensor, rows: int) -> int:
    """Returns how often all rows meet: once more than those of random and of singular matrices have shown to need."""
    return (5 if matrix.dtype.itemsize == 4 else 8) + rows.bit_length() // 2


def _orthogonal(matrix: Tensor, *, followed: bool) -> Tensor:
    """Returns the rows of matrices, turned until they are orthogonal, and behind them those of the identity.

    Args:
        matrix: The matrices; no element is greater than one.
        followed: Whether the identity's rows are turned, too: then they are the rotation.
    """
    rows, columns = (matrix.shape or ())[-2:]
    if followed:
        identity = part(matrix, (0, -1), (0, 1)) * 0 + matrix.of(np.eye(rows, dtype=matrix.dtype))
        matrix = matrix.concat([identity], matrix.rank - 1)
    if rows == 1:
        return matrix
    if rows % 2:
        # A row of zeros is never turned, and is back in its place at the end.
        matrix = matrix.concat([part(matrix, (0, 1), (0, -1)) * 0], matrix.rank - 2)
    turn = partial(_turned_in_pairs, columns)
    return part(matrix.repeated(_rounds(matrix, rows) * (rows - 1 + rows % 2), turn), (0, rows), (0, -1))


def _turned_in_pairs(columns: int, done: Tensor, matrix: Tensor) -> Tensor:
    """Makes each row of the upper half orthogonal to one of the lower half, in the first columns; rows change partners.

    The angle is the smaller one of the two that do: tan t = sign(z) / (|z| + sqrt(1 + z^2)), z = cot 2t.
    """
    rank, half = matrix.rank, (matrix.shape or ())[-2] // 2
    upper, lower = part(matrix, (0, half), (0, -1)), part(matrix, (half, half), (0, -1))
    one, other = part(upper, (0, -1), (0, columns)), part(lower, (0, -1), (0, columns))
    product = (one * other).sum([rank - 1], keep_dims=True)
    is_done = product.equal(0)
    difference = (other.square() - one.square()).sum([rank - 1], keep_dims=True)
    z = difference / is_done.where(1, product * 2)
    size = abs(z) + (z.square() + 1).sqrt()
    tangent = is_done.where(0, (z < 0).where(-1 / size, 1 / size))
    cosine = 1 / (tangent.square() + 1).sqrt()
    sine = cosine * tangent
    upper, lower = upper * cosine - lower * sine, upper * sine + lower * cosine
    if half == 1:
        return joined([upper, lower], rank - 2)
    last = half - 1
    return joined(
        [
            part(upper, (0, 1), (0, -1)),
            part(lower, (0, 1), (0, -1)),
            *([part(upper, (1, last - 1), (0, -1))] if last > 1 else []),
            part(lower, (1, last), (0, -1)),
            part(upper, (last, 1), (0, -1)),
        ],
        rank - 2,
    )


def _scaled(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Returns matrices without squares that are too large or too small for floats, and what they were divided by."""
    size = abs(matrix).reduce("Max", [matrix.rank - 2, matrix.rank - 1], keep_dims=True)
    size = size.equal(0).where(1, size)
    return matrix / size, size


def _sorted(matrix: Tensor, columns: int) -> tuple[Tensor, Tensor]:
    """Returns the lengths of rows in the first columns, the greatest one first, and the rows in that order."""
    rank = matrix.rank
    lengths = part(matrix, (0, -1), (0, columns)).square().sum([rank - 1]).sqrt()
    found, order = lengths.op("TopKV2", lengths, (matrix.shape or ())[-2], results=2)
    rows: Tensor = matrix.op("GatherV2", matrix, order, rank - 2, batch_dims=rank - 2)
    return found, rows


def svd(matrix: Tensor, *, compute_uv: bool = True, full_matrices: bool = False) -> Sequence[Tensor]:
    """Returns the singular values of matrices, and their vectors as columns, or two empty tensors."""
    rows, columns = (matrix.shape or ())[-2:]
    is_tall = rows > columns
    scaled, size = _scaled(turned(matrix) if is_tall else matrix)
    width = max(rows, columns)
    lengths, found = _sorted(_orthogonal(scaled, followed=compute_uv), width)
    values = lengths * size.op("Squeeze", size, squeeze_dims=[matrix.rank - 1])
    if not compute_uv:
        return values, values.of(np.zeros(0, matrix.dtype)), values.of(np.zeros(0, matrix.dtype))
    short = turned(part(found, (0, -1), (width, -1)))
    # Shorter rows have directions of rounding, of which the squares are no floats.
    longer = (lengths > 1e-9).expand_dims(-1).where(part(found, (0, -1), (0, width)), 0)
    long = _basis(turned(longer), is_full=full_matrices)
    return (values, long, short) if is_tall else (values, short, long)


def _basis(columns: Tensor, *, is_full: bool) -> Tensor:
    """Returns orthogonal columns of length one in the directions of some; any others for those that are zero."""
    height, width = (columns.shape or ())[-2:]
    axis = columns.rank - 1
    reflections, factors = reflected(columns)
    diagonal = part(reflections, (0, width), (0, -1)) * columns.of(np.eye(width, dtype=columns.dtype))
    signs = (diagonal.sum([axis - 1], keep_dims=True) < 0).where(-1.0, factors * 0 + 1)
    if is_full and height > width:
        more = [(0, 0)] * (columns.rank - 1) + [(0, height - width)]
        reflections, factors = (each.op("Pad", each, np.array(more, np.int32)) for each in (reflections, factors))
        signs = signs.op("PadV2", signs, np.array(more, np.int32), np.ones((), columns.dtype))
    return product_of_reflections(reflections, factors) * signs


def symmetric_eigenvalues(matrix: Tensor, *, is_lower: bool = True, compute_v: bool = True) -> Sequence[Tensor]:
    """Returns the eigenvalues of symmetric matrices, the least one first, and their vectors as columns.

    Vectors of matrices that are moved by a number are the same, and values are moved by it. Moved beyond zero, they are
    singular values.

    Args:
        matrix: The matrices, of which one triangle is read.
        is_lower: Whether that is the lower one.
        compute_v: Whether vectors are returned; otherwise an empty tensor.
    """
    count, rank = (matrix.shape or ())[-1], matrix.rank
    triangle = np.tri(count, dtype=np.bool_)
    matrix = matrix.of(triangle if is_lower else triangle.T).where(matrix, turned(matrix))
    scaled, size = _scaled(matrix)
    # No eigenvalue is below the largest sum of magnitudes of a row; its negative makes the least value the longest row.
    reach = abs(scaled).sum([rank - 1], keep_dims=True).reduce("Max", [rank - 2], keep_dims=True)
    moved = reach * matrix.of(np.eye(count, dtype=matrix.dtype)) - scaled
    values, found = _sorted(_orthogonal(moved, followed=compute_v), count)
    size, reach = (each.op("Squeeze", each, squeeze_dims=[rank - 1]) for each in (size, reach))
    values = (reach - values) * size
    return values, turned(part(found, (0, -1), (count, -1))) if compute_v else values.of(np.zeros(0, matrix.dtype))


def _xla_svd(matrix: Tensor) -> Sequence[Tensor]:
    return svd(matrix)


def _xla_eigenvalues(matrix: Tensor, *, lower: bool = True) -> Sequence[Tensor]:
    return symmetric_eigenvalues(matrix, is_lower=lower)


def _is_small(op: Operation) -> str | None:
    shape = op.operands[0].shape
    if shape is None or len(shape) < 2 or not min(shape[-2:]) > 0:
        return "the sizes of its matrices are not known"
    values = "Eig" in op.name or not tf.get(op, "compute_uv", True)
    largest = MAX_ROWS if values else MAX_SIZE
    if (max if tf.get(op, "full_matrices", False) else min)(shape[-2:]) <= largest:
        return None
    return f"only matrices of 1 to {largest} rows are decomposed so"


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


def _eigenvalues_shape(operands: Operands) -> Shapes:
    shape = with_rank_at_least(operands.shape(0), 2)
    if shape is None:
        return (None, None)
    return (shape[:-1], shape if operands.attribute("compute_v", True) else (0,))


_FLOATS = "f32 f64"


def _declared(name: str, formula: Formula, shape: ShapeFunction) -> OpDeclaration:
    return op(
        name, shape=shape, decompose=(Decomposition(formula, _FLOATS, _is_small, example=((2, 4, 4),), loops=True),)
    )


OPS = (
    _declared("SelfAdjointEigV2", symmetric_eigenvalues, _eigenvalues_shape),
    _declared("Svd", svd, _svd_shape),
    _declared("XlaSelfAdjointEig", _xla_eigenvalues, _eigenvalues_shape),
    _declared("XlaSvd", _xla_svd, _svd_shape),
)
