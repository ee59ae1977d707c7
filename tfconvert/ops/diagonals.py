"""Diagonals and bands of matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tfconvert.ops.call import Array, Call, Results, scalar
from tfconvert.ops.declaration import Decomposition, OpDeclaration, op, ops_like
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands
from tfconvert.ops.shape_functions import Shapes, same, same_with_rank_at_least
from tfconvert.schema.dialects.dims import MismatchError, merge, text, with_rank_at_least
from tfconvert.schema.dialects.relations.rules import is_scalar
from tfconvert.schema.dialects.types import Shape

_MAIN = np.zeros((), np.int32)
_UNKNOWN = np.full((), -1, np.int32)


def _diagonal_shape(operands: Operands) -> Shapes:
    shape = operands.shape(0)
    return (None if shape is None else shape + shape,)


def _diagonal_part_shape(operands: Operands) -> Shapes:
    shape = operands.shape(0)
    if shape is None:
        return (None,)
    if len(shape) % 2:
        raise MismatchError(f"the rank of {text(shape)} should be even")
    return (merge(shape[: len(shape) // 2], shape[len(shape) // 2 :]),)


def _matrix_diagonal_shape(operands: Operands) -> Shapes:
    """`MatrixDiag` and, for the main diagonal alone, its later versions."""
    shape = with_rank_at_least(operands.shape(0), 1)
    if shape is None:
        return (None,)
    is_plain = operands.count == 1 or (
        operands.ints(1) in ((0,), (0, 0)) and operands.ints(2) == (-1,) and operands.ints(3) == (-1,)
    )
    return ((*shape, shape[-1]) if is_plain else None,)


def _matrix_diagonal_part_shape(operands: Operands) -> Shapes:
    shape = with_rank_at_least(operands.shape(0), 2)
    if shape is None or (operands.count > 1 and operands.ints(1) not in ((0,), (0, 0))):
        return (None,)
    return ((*shape[:-2], min(shape[-2:]) if min(shape[-2:]) >= 0 else -1),)


class _Band(NamedTuple):
    """Diagonals `low` to `high` of a matrix, packed as rows, the highest first.

    Attributes:
        rows: The matrix's rows.
        columns: The matrix's columns.
        low: Lowest diagonal; negative ones are below the main diagonal.
        high: Highest diagonal.
        align: `RIGHT_LEFT` and the like: on which side the superdiagonals, then the subdiagonals, lie in their rows.
    """

    rows: int
    columns: int
    low: int
    high: int
    align: str

    def length(self, diagonal: int) -> int:
        """Returns a diagonal's number of elements."""
        return max(min(self.rows + min(diagonal, 0), self.columns - max(diagonal, 0)), 0)

    @property
    def width(self) -> int:
        """The longest diagonal's number of elements."""
        return max(self.length(diagonal) for diagonal in range(self.low, self.high + 1))

    def places(self) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
        """Yields each diagonal's index in the matrix and in the packed rows."""
        above, _, below = self.align.partition("_")
        for diagonal in range(self.low, self.high + 1):
            length = self.length(diagonal)
            steps = np.arange(length)
            side = above if diagonal >= 0 else below
            offset = self.width - length if side == "RIGHT" else 0
            matrix = (..., steps - min(diagonal, 0), steps + max(diagonal, 0))
            yield matrix, (..., self.high - diagonal, steps + offset)


def _band_of(call: Call, k: Array, rows: int, columns: int) -> _Band:
    low, high = int(k.reshape(-1)[0]), int(k.reshape(-1)[-1])
    default = "RIGHT_LEFT" if call.op.endswith("V3") else "LEFT_LEFT"
    return _Band(rows, columns, low, high, call.text("align", default))


def _packed(diagonals: Array, band: _Band) -> Array:
    """Gives a single diagonal the dimension that several have."""
    return diagonals[..., None, :] if band.low == band.high else diagonals


def _matrix_diag(call: Call) -> Results:
    diagonals = call.inputs[0]
    k, given_rows, given_columns, fill = call.inputs[1:] if len(call.inputs) > 1 else (_MAIN, _UNKNOWN, _UNKNOWN, _MAIN)
    low, high = int(k.reshape(-1)[0]), int(k.reshape(-1)[-1])
    least_rows, least_columns = diagonals.shape[-1] - min(high, 0), diagonals.shape[-1] + max(low, 0)
    rows, columns = scalar(given_rows), scalar(given_columns)
    if rows == -1 and columns == -1:
        rows = columns = max(least_rows, least_columns)
    band = _band_of(call, k, least_rows if rows == -1 else rows, least_columns if columns == -1 else columns)
    packed = _packed(diagonals, band)
    result = np.full((*packed.shape[:-2], band.rows, band.columns), fill.reshape(())[()], diagonals.dtype)
    for matrix, row in band.places():
        result[matrix] = packed[row]
    return (result,)


def _matrix_diag_part(call: Call) -> Results:
    x = call.inputs[0]
    k, fill = call.inputs[1:] if len(call.inputs) > 1 else (_MAIN, _MAIN)
    band = _band_of(call, k, *x.shape[-2:])
    result = np.full((*x.shape[:-2], band.high - band.low + 1, band.width), fill.reshape(())[()], x.dtype)
    for matrix, row in band.places():
        result[row] = x[matrix]
    return (result[..., 0, :] if band.low == band.high else result,)


def _matrix_set_diag(call: Call) -> Results:
    x, diagonals = call.inputs[:2]
    band = _band_of(call, call.inputs[2] if len(call.inputs) > 2 else _MAIN, *x.shape[-2:])
    packed = _packed(diagonals, band)
    result = x.copy()
    for matrix, row in band.places():
        result[matrix] = packed[row]
    return (result,)


def _matrix_band_part(call: Call) -> Results:
    x, lower, upper = call.inputs
    rows, columns = np.arange(x.shape[-2])[:, None], np.arange(x.shape[-1])
    below, above = scalar(lower), scalar(upper)
    kept = ((below < 0) | (rows - columns <= below)) & ((above < 0) | (columns - rows <= above))
    return (np.where(kept, x, np.zeros((), x.dtype)),)


def _diag(call: Call) -> Results:
    (x,) = call.inputs
    result = np.zeros((x.size, x.size), x.dtype)
    np.fill_diagonal(result, x.reshape(-1))
    return (result.reshape(x.shape * 2),)


def _diag_part(call: Call) -> Results:
    (x,) = call.inputs
    shape = x.shape[: x.ndim // 2]
    size = int(np.prod(shape))
    return (x.reshape(size, size).diagonal().reshape(shape),)


def _older(name: str) -> OpDeclaration:
    """Declares an op that is a newer one by another name."""
    example: tuple[Shape, ...] = ((4, 4), (), ()) if name == "MatrixBandPart" else ((4, 4), (4,))

    def renamed(x: Tensor, *others: Tensor) -> Tensor:
        return x.op(name, x, *others)  # type: ignore[no-any-return]

    return op(f"Batch{name}", decompose=(Decomposition(renamed, "", example=example),))


OPS = (
    _older("MatrixBandPart"),
    _older("MatrixDiag"),
    _older("MatrixDiagPart"),
    _older("MatrixSetDiag"),
    op("Diag", shape=_diagonal_shape, compute=_diag),
    op("DiagPart", shape=_diagonal_part_shape, compute=_diag_part),
    op(
        "MatrixBandPart",
        shape=same_with_rank_at_least(2),
        compute=_matrix_band_part,
        relations=(is_scalar("num_lower", "num_upper"),),
        verified=True,
    ),
    *ops_like("MatrixDiag MatrixDiagV2 MatrixDiagV3", shape=_matrix_diagonal_shape, compute=_matrix_diag),
    *ops_like(
        "MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3", shape=_matrix_diagonal_part_shape, compute=_matrix_diag_part
    ),
    *ops_like("MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3", shape=same, compute=_matrix_set_diag),
)
