"""Diagonals and bands of matrices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tfconvert.ops.call import Array, Call, Results, scalar
from tfconvert.ops.declaration import Decomposition, OpDeclaration, op, ops_like
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands
from tfconvert.ops.requirements import Requirement
from tfconvert.ops.shape_functions import Shapes, same, same_with_rank_at_least
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.dims import MismatchError, merge, text, with_rank_at_least
from tfconvert.schema.dialects.relations.rules import is_scalar
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation

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


def _offset(k: Array | None) -> int | None:
    """Returns how far right of the main diagonal the selected one is, `None` if that is not known or several."""
    numbers = set() if k is None else set(k.reshape(-1).tolist())
    return int(numbers.pop()) if len(numbers) == 1 else None


def diagonal_part(matrix: Tensor, *others: Tensor) -> Tensor:
    """Takes a diagonal of matrices, which are of static sizes if possible."""
    offset = _offset(others[0].constant) if others else 0
    *batch, height, width = matrix.shape or ()
    right, below = max(offset or 0, 0), max(-(offset or 0), 0)
    if _is_sized(matrix.shape):
        # Its elements are one row and one column apart, at a constant stride of the flat matrix.
        length, start = min(height - below, width - right), right + below * width
        flat = matrix.reshape([-1 if -1 in batch else math.prod(batch), height * width])
        bounds = [0, start], [0, start + (length - 1) * (width + 1) + 1], [1, width + 1]
        return flat.op("StridedSlice", flat, *bounds, begin_mask=1, end_mask=1).reshape([*batch, length])  # type: ignore[no-any-return]
    # The columns of matrices that are zero outside the diagonal are added up.
    distance = matrix.numbers(-1) - matrix.numbers(-2).expand_dims(1)
    summed = distance.equal(right - below).where(matrix, 0).sum([len(batch)])
    sizes = (matrix.of(np.array(-by, np.int32)) + matrix.size(axis) for axis, by in ((-2, below), (-1, right)))
    length = matrix.op("Minimum", *sizes)
    size = matrix.op("Pack", *[-1] * len(batch), length, N=len(batch) + 1)
    return matrix.op("Slice", summed, [*[0] * len(batch), right], size)  # type: ignore[no-any-return]


def _is_sized(shape: Shape | None) -> bool:
    return shape is not None and min(shape[-2:]) >= 0 and shape[:-2].count(-1) <= 1


def _diagonal_is_known(op: Operation) -> str | None:
    shape, constant = op.operands[0].shape, None
    if len(op.operands) > 1 and (found := tensor_data.constant_of(op.operands[1])) is not None:
        constant = tensor_data.to_array(found)
    offset = _offset(constant) if len(op.operands) > 1 else 0
    if offset is None or shape is None or len(shape) < 2:
        return "which diagonal is meant, or the rank, is not known"
    if _is_sized(shape):
        is_there = -shape[-2] < offset < shape[-1]
        return None if is_there else "there is no such diagonal"
    is_summed = op.operands[0].element in (types.F32, types.I32, types.I64)
    return None if is_summed else "the matrices' size is not known"


def band_part(matrix: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Keeps the elements up to a limit below and above the diagonal; a negative limit keeps all."""
    below = matrix.numbers(-2).expand_dims(1) - matrix.numbers(-1)
    kept = [(far.cast(limit.dtype) <= limit) | (limit < 0) for limit, far in ((lower, below), (upper, -below))]
    return (kept[0] & kept[1]).where(matrix, 0)


def _is_matrix(op: Operation) -> str | None:
    shape = op.operands[0].shape
    return None if shape is None or len(shape) >= 2 else "it has fewer than two dimensions"


def tensor_of_diagonal(x: Tensor) -> Tensor:
    """Puts all elements on a matrix's diagonal."""
    shape = x.shape or ()
    flat = x if len(shape) == 1 else x.reshape([math.prod(shape)])
    matrix: Tensor = x.op("MatrixDiag", flat)
    return matrix if len(shape) == 1 else matrix.reshape([*shape, *shape])


def diagonal_of_tensor(x: Tensor) -> Tensor:
    """Takes the diagonal of a matrix that has the first half of the dimensions as rows."""
    half = (x.shape or ())[: x.rank // 2]
    matrix = x if len(half) == 1 else x.reshape([math.prod(half)] * 2)
    diagonal: Tensor = x.op("MatrixDiagPart", matrix)
    return diagonal if len(half) == 1 else diagonal.reshape(half)


def _is_static(rank: int) -> Requirement:
    """Returns the requirement that the operand's shape is known, or only a rank for which that is enough."""

    def check(op: Operation) -> str | None:
        shape = op.operands[0].shape
        is_known = bool(shape) and (types.is_static(shape) or len(shape or ()) == rank)
        return None if is_known else "the operand's shape is not known"

    return check


OPS = (
    _older("MatrixBandPart"),
    _older("MatrixDiag"),
    _older("MatrixDiagPart"),
    _older("MatrixSetDiag"),
    op(
        "Diag",
        shape=_diagonal_shape,
        compute=_diag,
        decompose=(Decomposition(tensor_of_diagonal, "", _is_static(1), example=((2, 2),)),),
    ),
    op(
        "DiagPart",
        shape=_diagonal_part_shape,
        compute=_diag_part,
        decompose=(Decomposition(diagonal_of_tensor, "", _is_static(2), example=((2, 2, 2, 2),)),),
    ),
    op(
        "MatrixBandPart",
        shape=same_with_rank_at_least(2),
        compute=_matrix_band_part,
        decompose=(Decomposition(band_part, "", _is_matrix, example=((4, 4), (), ())),),
        relations=(is_scalar("num_lower", "num_upper"),),
        verified=True,
    ),
    *ops_like("MatrixDiag MatrixDiagV2 MatrixDiagV3", shape=_matrix_diagonal_shape, compute=_matrix_diag),
    *ops_like(
        "MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3",
        shape=_matrix_diagonal_part_shape,
        compute=_matrix_diag_part,
        decompose=(Decomposition(diagonal_part, "f32 i32 i64 ui8 i8 i16 i1", _diagonal_is_known),),
    ),
    *ops_like("MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3", shape=same, compute=_matrix_set_diag),
)
