"""Blocks of space moved to the batch or to the channels and back, and the diagonals of matrices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tfconvert.ops.call import Array, Call, Kernel, Results, ints, scalar


def _blocked(call: Call) -> tuple[Array, tuple[int, ...], Array]:
    """Returns the operand, the block sizes, which the older ops have as an attribute, and the paddings or crops."""
    if call.op.endswith("ND"):
        x, sizes, margins = call.inputs
        return x, ints(sizes), margins
    x, margins = call.inputs
    return x, (call.integer("block_size"),) * 2, margins


def _space_to_batch(call: Call) -> Results:
    x, blocks, pads = _blocked(call)
    rank, rest = len(blocks), x.ndim - 1 - len(blocks)
    padded = np.pad(x, [(0, 0), *(ints(pair) for pair in pads), *[(0, 0)] * rest])
    dims, depth = padded.shape[1 : 1 + rank], padded.shape[1 + rank :]
    if any(dim % block for dim, block in zip(dims, blocks, strict=True)):
        raise call.bad(f"the padded dimensions {list(dims)} are not multiples of {list(blocks)}")
    split = [part for dim, block in zip(dims, blocks, strict=True) for part in (dim // block, block)]
    order = (*range(2, 2 * rank + 1, 2), 0, *range(1, 2 * rank, 2), *range(2 * rank + 1, 2 * rank + 1 + rest))
    cut = padded.reshape(x.shape[0], *split, *depth).transpose(order)
    return (cut.reshape(-1 if x.size else 0, *split[::2], *depth),)


def _batch_to_space(call: Call) -> Results:
    x, blocks, crops = _blocked(call)
    rank = len(blocks)
    dims, depth = x.shape[1 : 1 + rank], x.shape[1 + rank :]
    batch = x.shape[0] // int(np.prod(blocks))
    order = [rank]
    for i in range(rank):
        order += [rank + 1 + i, i]
    order += range(2 * rank + 1, 2 * rank + 1 + len(depth))
    merged = [dim * block for dim, block in zip(dims, blocks, strict=True)]
    whole = x.reshape(*blocks, batch, *dims, *depth).transpose(order).reshape(batch, *merged, *depth)
    spans = (slice(int(crop[0]), dim - int(crop[1])) for dim, crop in zip(merged, crops, strict=True))
    return (whole[(slice(None), *spans)],)


def _space_to_depth(call: Call) -> Results:
    (x,) = call.inputs
    block = call.integer("block_size")
    first = call.text("data_format", "NHWC") == "NCHW"
    images = np.moveaxis(x, 1, -1) if first else x
    batch, height, width, depth = images.shape
    cut = images.reshape(batch, height // block, block, width // block, block, depth).transpose(0, 1, 3, 2, 4, 5)
    result = cut.reshape(batch, height // block, width // block, depth * block * block)
    return (np.moveaxis(result, -1, 1) if first else result,)


def _depth_to_space(call: Call) -> Results:
    (x,) = call.inputs
    block = call.integer("block_size")
    first = call.text("data_format", "NHWC") == "NCHW"
    images = np.moveaxis(x, 1, -1) if first else x
    batch, height, width, depth = images.shape
    cut = images.reshape(batch, height, width, block, block, depth // (block * block)).transpose(0, 1, 3, 2, 4, 5)
    result = cut.reshape(batch, height * block, width * block, depth // (block * block))
    return (np.moveaxis(result, -1, 1) if first else result,)


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


_MAIN = np.zeros((), np.int32)
_UNKNOWN = np.full((), -1, np.int32)


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


KERNELS: Mapping[str, Kernel] = {
    "BatchToSpace": _batch_to_space,
    "BatchToSpaceND": _batch_to_space,
    "DepthToSpace": _depth_to_space,
    "Diag": _diag,
    "DiagPart": _diag_part,
    "MatrixBandPart": _matrix_band_part,
    "SpaceToBatch": _space_to_batch,
    "SpaceToBatchND": _space_to_batch,
    "SpaceToDepth": _space_to_depth,
    **{f"MatrixDiag{version}": _matrix_diag for version in ("", "V2", "V3")},
    **{f"MatrixDiagPart{version}": _matrix_diag_part for version in ("", "V2", "V3")},
    **{f"MatrixSetDiag{version}": _matrix_set_diag for version in ("", "V2", "V3")},
}
"""Op name -> kernel."""
