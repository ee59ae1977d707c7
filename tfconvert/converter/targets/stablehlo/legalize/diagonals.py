"""Diagonals: taken from matrices, put into them, and what is beside them cut off.

An element is on diagonal d where its column less its row is d. Each diagonal is found by comparing counted rows and
columns, so that sizes may be open; only several diagonals of different lengths need known sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.ir.constants import constant_int
from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite, ints
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, padded, part
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class _Band(NamedTuple):
    """Diagonals from the lowest to the highest, and at which end the shorter ones are aligned."""

    low: int
    high: int
    align: str

    def offset(self, diagonal: int, length: int, longest: int) -> int:
        """Returns where a diagonal begins in a row as long as the longest one."""
        above, below = self.align.split("_")
        return 0 if (above if diagonal >= 0 else below) == "LEFT" else longest - length


def _band(op: Operation, index: int) -> _Band:
    if len(op.operands) <= index:
        return _Band(0, 0, "LEFT_LEFT")
    numbers = ints(op, index, "the numbers of the diagonals")
    return _Band(numbers[0], numbers[-1], str(tf.get(op, "align", "LEFT_LEFT")))


def _length(emit: StableHLOBuilder, rows: int, columns: int, diagonal: int) -> int:
    """Returns how many elements a diagonal has."""
    if rows == columns and diagonal == 0:
        return rows
    below = emit.compute("add", emit.size(rows), min(diagonal, 0))
    length = emit.compute("minimum", below, emit.compute("subtract", emit.size(columns), max(diagonal, 0)))
    return length if isinstance(length, int) else emit.sizes.fresh(length)


def _known_length(emit: StableHLOBuilder, rows: int, columns: int, diagonal: int) -> int:
    """Returns how many elements one of several diagonals has.

    Raises:
        Declined: That is not known.
    """
    length = _length(emit, rows, columns, diagonal)
    if length < 0:
        raise Declined("the sizes of its matrices are not known, and several diagonals are meant")
    return length


def _distance(emit: StableHLOBuilder, dims: Sequence[int]) -> Value:
    """Emits the number of the diagonal of each element."""
    last = len(dims) - 1
    return emit.binary("subtract", emit.iota(dims, last, types.I32), emit.iota(dims, last - 1, types.I32))


def _spread(emit: StableHLOBuilder, row: Value, diagonal: int, dims: Sequence[int]) -> Value:
    """Emits matrices that have a vector on a diagonal; what they have elsewhere is of no use."""
    own = emit.dims(row)
    last = len(dims) - 1
    # Above the main diagonal the row tells which element it is, below it the column.
    axis = last - 1 if diagonal >= 0 else last
    if own[-1] != dims[axis]:
        missing = emit.compute("subtract", emit.size(dims[axis]), emit.size(own[-1]))
        more = missing if isinstance(missing, int) else emit.sizes.fresh(missing)
        element, wide = types.element_of(row.type), (*own[:-1], dims[axis])
        zeros = emit.broadcast(emit.scalar(0, element), (*own[:-1], more), ())
        row = emit.one("concatenate", (row, zeros), element, wide, {"dimension": len(own) - 1})
    return emit.broadcast(row, dims, [*range(last - 1), axis])


def _set(emit: StableHLOBuilder, value: Value, diagonals: Value, band: _Band) -> Value:
    """Emits matrices with diagonals replaced."""
    dims = emit.dims(value)
    rows, columns = dims[-2:]
    distance = _distance(emit, dims)
    longest = emit.dims(diagonals)[-1]
    for number in range(band.low, band.high + 1):
        row = diagonals
        if band.low != band.high:
            axis = len(dims) - 2
            length = _known_length(emit, rows, columns, number)
            start = band.offset(number, length, longest)
            row = part(emit, diagonals, axis, band.high - number, band.high - number + 1)
            row = part(emit, emit.reshape(row, (*dims[:-2], longest)), axis, start, start + length)
        value = emit.select(emit.compare("EQ", distance, number), _spread(emit, row, number, dims), value)
    return value


def _set_diag(op: Operation, emit: StableHLOBuilder) -> Value:
    value, diagonals = op.operands[:2]
    return _set(emit, value, diagonals, _band(op, 2))


def _matrix_size(op: Operation, index: int) -> int:
    """Returns a size that an operand asks for, -1 if it asks for none."""
    if len(op.operands) <= index:
        return -1
    found = constant_int(op.operands[index])
    if found is None:
        raise Declined("the sizes of its matrices must be constant")
    return found


def _matrix_diag(op: Operation, emit: StableHLOBuilder) -> Value:
    diagonals = op.operands[0]
    own, element = emit.dims(diagonals), types.element_of(diagonals.type)
    band = _band(op, 1)
    rows, columns = _matrix_size(op, 2), _matrix_size(op, 3)
    outer = own[:-1] if band.low == band.high else own[:-2]
    if band == _Band(0, 0, band.align) and rows == columns == -1:
        rows = columns = own[-1]
    elif own[-1] < 0:
        raise Declined("the length of its diagonals is not known, and more than the main diagonal is meant")
    else:
        least = own[-1] - min(band.high, 0), own[-1] + max(band.low, 0)
        if rows == -1 and columns == -1:
            rows = columns = max(least)
        elif rows == -1:
            rows = least[0]
        elif columns == -1:
            columns = least[1]
    fill = op.operands[4] if len(op.operands) > 4 else emit.scalar(0, element)
    matrices = emit.broadcast(emit.reshape(fill, ()), (*outer, rows, columns), ())
    return _set(emit, matrices, diagonals, band)


def _taken(emit: StableHLOBuilder, value: Value, diagonal: int) -> Value:
    """Emits a diagonal of matrices: of each row the element that is on it, of rows from the first that has one."""
    dims, element = emit.dims(value), types.element_of(value.type)
    last = len(dims) - 1
    is_on = emit.compare("EQ", _distance(emit, dims), diagonal)
    body = "or" if element == types.I1 else "add"
    found = emit.reduce(body, emit.select(is_on, value, 0), (last,), 0)
    length = _length(emit, dims[-2], dims[-1], diagonal)
    start = max(-diagonal, 0)
    if start == 0 and length == dims[-2]:
        return found
    if length >= 0:
        return part(emit, found, last - 1, start, start + length)
    limit = emit.compute("add", emit.size(length), start)
    limits = emit.vector([*(emit.size(dim) for dim in dims[:-2]), limit])
    operands = (found, emit.ints([*[0] * (last - 1), start]), limits, emit.ints([1] * last))
    return emit.one("real_dynamic_slice", operands, element, (*dims[:-2], length))


def _matrix_diag_part(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    dims, element = emit.dims(value), types.element_of(value.type)
    band = _band(op, 1)
    if band.low == band.high:
        return _taken(emit, value, band.low)
    lengths = {number: _known_length(emit, dims[-2], dims[-1], number) for number in range(band.low, band.high + 1)}
    longest = max(lengths.values())
    fill = emit.reshape(op.operands[2], ()) if len(op.operands) > 2 else emit.scalar(0, element)
    parts = []
    for number in reversed(lengths):
        before = band.offset(number, lengths[number], longest)
        zeros = [0] * (len(dims) - 2)
        after = longest - lengths[number] - before
        row = padded(emit, _taken(emit, value, number), [*zeros, before], [*zeros, after], fill)
        parts.append(emit.reshape(row, (*dims[:-2], 1, longest)))
    return concatenate(emit, parts, len(dims) - 2)


def _band_part(op: Operation, emit: StableHLOBuilder) -> Value:
    value, *limits = op.operands
    distance = _distance(emit, emit.dims(value))
    for limit, below in zip(limits, (True, False), strict=True):
        known = constant_int(limit)
        if known is not None and known < 0:
            continue
        far = emit.unary("negate", distance) if below else distance
        most = known if known is not None else emit.convert(limit, types.I32)
        is_kept = emit.compare("LE", far, most)
        if isinstance(most, Value):
            is_kept = emit.binary("or", is_kept, emit.compare("LT", most, 0))
        value = emit.select(is_kept, value, 0)
    return value


def _diag(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits a tensor of twice the rank: the diagonal of a matrix whose rows and columns are several dimensions each."""
    value = op.operands[0]
    dims = emit.dims(value)
    if len(dims) != 1 and min(dims) < 0:
        raise Declined("the sizes of its operand are not known")
    size = dims[0]
    for dim in dims[1:]:
        size *= dim
    flat = emit.reshape(value, (size,))
    zeros = emit.broadcast(emit.scalar(0, types.element_of(value.type)), (size, size), ())
    return emit.reshape(_set(emit, zeros, flat, _Band(0, 0, "LEFT_LEFT")), (*dims, *dims))


def _diag_part(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    dims = emit.dims(value)[: len(emit.dims(value)) // 2]
    if len(dims) != 1 and min(dims) < 0:
        raise Declined("the sizes of its operand are not known")
    size = dims[0]
    for dim in dims[1:]:
        size *= dim
    return emit.reshape(_taken(emit, emit.reshape(value, (size, size)), 0), dims)


LOWERINGS: Mapping[str, Rewrite] = {
    "MatrixBandPart": _band_part,
    **dict.fromkeys(("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3"), _matrix_diag),
    **dict.fromkeys(("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3"), _matrix_diag_part),
    **dict.fromkeys(("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3"), _set_diag),
    "Diag": _diag,
    "DiagPart": _diag_part,
}
