"""Products of matrices, einsum, systems of linear equations, and diagonals.

Triangular systems and factors are StableHLO's own ops; other systems are solved by elimination.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.ir.constants import constant_int
from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.constraints import require_equal
from tfconvert.converter.targets.stablehlo.legalize.elementwise import conjugated
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite, ints
from tfconvert.converter.targets.stablehlo.legalize.regions import loop
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, padded, part
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.ops.matmul import einsum_labels
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.dims import MismatchError
from tfconvert.schema.dialects.stablehlo import DotAttr, EnumeratorAttr
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import ComplexType
from tfconvert.schema.ir.values import Value


def dot(
    emit: StableHLOBuilder,
    lhs: Value,
    rhs: Value,
    batch: Sequence[tuple[int, int]],
    contracted: Sequence[tuple[int, int]],
    element: Attribute | None = None,
) -> Value:
    """Inserts a product; the result has the batch dimensions, then the free ones of both operands.

    Args:
        emit: The emitter.
        lhs: The first operand.
        rhs: The second one.
        batch: Pairs of dimensions that both have.
        contracted: Pairs of dimensions that are summed over.
        element: The result's element type, the operands' by default.
    """
    left, right = emit.dims(lhs), emit.dims(rhs)
    gone = [*batch, *contracted]
    for one, other in gone:
        require_equal(emit, left[one], right[other], "the sizes that it multiplies along must be equal")
    dims = [max(left[one], right[other]) if min(left[one], right[other]) < 0 else left[one] for one, other in batch]
    dims += [dim for axis, dim in enumerate(left) if axis not in [one for one, _ in gone]]
    dims += [dim for axis, dim in enumerate(right) if axis not in [other for _, other in gone]]
    numbers = DotAttr.get(
        lhs_batching_dimensions=[one for one, _ in batch],
        rhs_batching_dimensions=[other for _, other in batch],
        lhs_contracting_dimensions=[one for one, _ in contracted],
        rhs_contracting_dimensions=[other for _, other in contracted],
    )
    kind = element or lhs.element
    return emit.one("dot_general", (lhs, rhs), {"dot_dimension_numbers": numbers}, element=kind, dims=dims)


def _mat_mul(op: Operation, emit: StableHLOBuilder) -> Value:
    lhs, rhs = op.operands
    contracted = (int(not tf.get(op, "transpose_a", False)), int(tf.get(op, "transpose_b", False)))
    return dot(emit, lhs, rhs, (), [contracted])


def _batch_mat_mul(op: Operation, emit: StableHLOBuilder) -> Value:
    lhs, rhs = op.operands[:2]
    names = ("adj_x", "adj_y")
    turned = [bool(tf.get(op, name, False)) for name in names]
    left, right = emit.dims(lhs), emit.dims(rhs)
    element = op.results[0].element
    if len(right) == 2 and len(left) > 2 and not turned[0]:
        return dot(emit, lhs, rhs, (), [(len(left) - 1, int(turned[1]))], element)
    joined = emit.join(left[:-2], right[:-2])
    lhs = emit.broadcast(lhs, (*joined, *left[-2:]))
    rhs = emit.broadcast(rhs, (*joined, *right[-2:]))
    rank = len(joined) + 2
    contracted = (rank - 2 if turned[0] else rank - 1, rank - 1 if turned[1] else rank - 2)
    return dot(emit, lhs, rhs, [(axis, axis) for axis in range(len(joined))], [contracted], element)


def _labels(op: Operation, emit: StableHLOBuilder) -> tuple[list[str], str]:
    """Returns the letters of an einsum's operands and of its result, with ellipses spelled out."""
    try:
        terms, output = einsum_labels(str(tf.get(op, "equation", "")), [len(emit.dims(value)) for value in op.operands])
    except MismatchError as error:
        raise Declined(str(error)) from None
    if len(set(output)) < len(output):
        raise Declined("a letter occurs twice in the result of its equation")
    return terms, output


def _diagonal(emit: StableHLOBuilder, value: Value, letters: str) -> tuple[Value, str]:
    """Takes diagonals along axes of the same letter; returns the value with each letter once."""
    for axis in reversed(range(len(letters))):
        dims, before = emit.dims(value), letters.index(letters[axis])
        if before < axis:
            is_equal = emit.compare("EQ", emit.iota(dims, before, types.I32), emit.iota(dims, axis, types.I32))
            value = emit.reduce("add", emit.select(is_equal, value, 0), (axis,), 0)
            letters = letters[:axis] + letters[axis + 1 :]
    return value, letters


def _without_ones(emit: StableHLOBuilder, values: Sequence[Value], terms: list[str]) -> list[Value]:
    """Drops dimensions of size 1 that are larger in another term, from the values and from `terms`."""
    shapes = [emit.dims(value) for value in values]
    spread = {
        letter
        for term, dims in zip(terms, shapes, strict=True)
        for letter, dim in zip(term, dims, strict=True)
        if dim != 1
    }
    found = []
    for index, (value, dims) in enumerate(zip(values, shapes, strict=True)):
        term = terms[index]
        left = [axis for axis, dim in enumerate(dims) if dim != 1 or term[axis] not in spread]
        terms[index] = "".join(term[axis] for axis in left)
        found.append(emit.reshape(value, [dims[axis] for axis in left]))
    return found


def _einsum(op: Operation, emit: StableHLOBuilder) -> Value:
    spelled, output = _labels(op, emit)
    operands = _without_ones(emit, op.operands, spelled)
    terms = []
    for index, (operand, letters) in enumerate(zip(operands, spelled, strict=True)):
        value, term = _diagonal(emit, operand, letters)
        others = output + "".join(spelled[:index] + spelled[index + 1 :])
        axes = [axis for axis, letter in enumerate(term) if letter not in others]
        if axes:
            value = emit.reduce("add", value, axes, 0)
        terms.append((value, "".join(letter for letter in term if letter in others)))
    value, letters = terms[0]
    for index, other in enumerate(terms[1:], 2):
        needed = output + "".join(term for _, term in terms[index:])
        value, letters = _product(emit, (value, letters), other, needed)
    return emit.transpose(value, [letters.index(letter) for letter in output])


def _product(
    emit: StableHLOBuilder, one: tuple[Value, str], other: tuple[Value, str], needed: str
) -> tuple[Value, str]:
    """Emits a product of two terms, summed over shared letters that aren't needed; returns it with its letters."""
    (first, left), (second, right) = one, other
    both = [letter for letter in left if letter in right]
    batch = [letter for letter in both if letter in needed]
    summed = [letter for letter in both if letter not in needed]
    pairs = [[(left.index(letter), right.index(letter)) for letter in group] for group in (batch, summed)]
    value = dot(emit, first, second, pairs[0], pairs[1])
    return value, "".join([*batch, *(each for each in left + right if each not in both)])


PRODUCTS: Mapping[str, Rewrite] = {
    "BatchMatMul": _batch_mat_mul,
    "BatchMatMulV2": _batch_mat_mul,
    "BatchMatMulV3": _batch_mat_mul,
    "Einsum": _einsum,
    "MatMul": _mat_mul,
}


def _cholesky(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits the lower factor, with zeros above the diagonal."""
    value = op.operands[0]
    dims = emit.dims(value)
    factor = emit.one("cholesky", (value,), {"lower": True})
    last = len(dims) - 1
    is_kept = emit.compare("GE", emit.iota(dims, last - 1, types.I32), emit.iota(dims, last, types.I32))
    return emit.select(is_kept, factor, 0)


def _triangular_solve(op: Operation, emit: StableHLOBuilder) -> Value:
    matrix, value = op.operands
    outer = emit.join(emit.dims(matrix)[:-2], emit.dims(value)[:-2])
    matrix = emit.broadcast(matrix, (*outer, *emit.dims(matrix)[-2:]))
    value = emit.broadcast(value, (*outer, *emit.dims(value)[-2:]))
    kind = "ADJOINT" if tf.get(op, "adjoint", False) else "NO_TRANSPOSE"
    properties: dict[str, attrs.Value] = {
        "left_side": True,
        "lower": bool(tf.get(op, "lower", True)),
        "unit_diagonal": False,
        "transpose_a": EnumeratorAttr.get("transpose", kind),
    }
    return emit.one("triangular_solve", (matrix, value), properties)


def _solved(emit: StableHLOBuilder, matrix: Value, value: Value) -> Value:
    """Emits the solution of a system: row by row, the largest element left in a column eliminates it elsewhere."""
    element = matrix.element
    if isinstance(element, ComplexType):
        raise Declined("its numbers are complex")
    size = emit.dims(matrix)[-1]
    if size < 0:
        raise Declined("the size of its matrices is not known")
    rank = len(emit.dims(matrix))
    whole = concatenate(emit, [matrix, value], rank - 1)
    dims = emit.dims(whole)

    def condition(inner: StableHLOBuilder, args: Sequence[Value]) -> Sequence[Value]:
        return (inner.compare("LT", args[0], size),)

    def body(inner: StableHLOBuilder, args: Sequence[Value]) -> Sequence[Value]:
        column, rows = args
        return inner.binary("add", column, 1), _eliminated(inner, rows, column)

    whole = loop(emit, (emit.scalar(0, types.I32), whole), condition, body)[1]
    emit.sizes.note(whole, dims)
    return part(emit, whole, rank - 1, size, size + emit.dims(value)[-1])


def _eliminated(emit: StableHLOBuilder, whole: Value, column: Value) -> Value:
    """Emits a step: the best row left is divided by its element, subtracted from all others, and put in its place."""
    dims = emit.dims(whole)
    last, (*outer, rows, _) = len(dims) - 1, dims
    flat = (*outer, rows)
    is_column = emit.compare("EQ", emit.iota(dims, last, types.I32), column)
    elements = emit.reduce("add", emit.select(is_column, whole, 0), (last,), 0)
    numbers = emit.iota(flat, last - 1, types.I32)
    left = emit.select(emit.compare("GE", numbers, column), emit.unary("abs", elements), -1)
    largest = emit.reduce("maximum", left, (last - 1,), -1)
    is_largest = emit.compare("EQ", left, emit.broadcast(largest, flat, range(last - 1)))
    pivot = emit.reduce("minimum", emit.select(is_largest, numbers, rows), (last - 1,), rows)
    is_pivot = emit.compare("EQ", numbers, emit.broadcast(pivot, flat, range(last - 1)))
    chosen = emit.reduce("add", emit.select(_along(emit, is_pivot, dims), whole, 0), (last - 1,), 0)
    divisor = emit.reduce("add", emit.select(is_pivot, elements, 0), (last - 1,), 0)
    wide = (*outer, dims[-1])
    scaled = emit.binary("divide", chosen, emit.broadcast(divisor, wide, range(last - 1)))
    is_place = emit.compare("EQ", numbers, column)
    # The row that gives way moves to where the pivot was.
    displaced = emit.reduce("add", emit.select(_along(emit, is_place, dims), whole, 0), (last - 1,), 0)
    axes = [*range(last - 1), last]
    moved = emit.select(_along(emit, is_pivot, dims), emit.broadcast(displaced, dims, axes), whole)
    factors = emit.reduce("add", emit.select(is_column, moved, 0), (last,), 0)
    row = emit.broadcast(scaled, dims, axes)
    rest = emit.binary("subtract", moved, emit.binary("multiply", _along(emit, factors, dims), row))
    return emit.select(_along(emit, is_place, dims), row, rest)


def _along(emit: StableHLOBuilder, value: Value, dims: Sequence[int]) -> Value:
    """Emits a number of each row for all elements of it."""
    return emit.broadcast(value, dims, range(len(dims) - 1))


def _turned(value: Value, op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits the adjoint if the op asks for it."""
    if not tf.get(op, "adjoint", False):
        return value
    rank = len(emit.dims(value))
    return conjugated(emit, emit.transpose(value, (*range(rank - 2), rank - 1, rank - 2)))


def _solve(op: Operation, emit: StableHLOBuilder) -> Value:
    matrix, value = op.operands
    return _solved(emit, _turned(matrix, op, emit), value)


def _inverse(op: Operation, emit: StableHLOBuilder) -> Value:
    matrix = _turned(op.operands[0], op, emit)
    dims = emit.dims(matrix)
    last = len(dims) - 1
    is_diagonal = emit.compare("EQ", emit.iota(dims, last - 1, types.I32), emit.iota(dims, last, types.I32))
    return _solved(emit, matrix, emit.convert(is_diagonal, matrix.element))


LINEAR_ALGEBRA: Mapping[str, Rewrite] = {
    "BatchCholesky": _cholesky,
    "BatchMatrixInverse": _inverse,
    "BatchMatrixSolve": _solve,
    "BatchMatrixTriangularSolve": _triangular_solve,
    "Cholesky": _cholesky,
    "MatrixInverse": _inverse,
    "MatrixSolve": _solve,
    "MatrixTriangularSolve": _triangular_solve,
}


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
    """Returns the length of a diagonal."""
    if rows == columns and diagonal == 0:
        return rows
    below = emit.compute("add", emit.size(rows), min(diagonal, 0))
    return emit.size_of(emit.compute("minimum", below, emit.compute("subtract", emit.size(columns), max(diagonal, 0))))


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
    """Emits matrices with a vector on a diagonal; other elements are unspecified."""
    own = emit.dims(row)
    last = len(dims) - 1
    # Above the main diagonal the row is the element's index, below it the column.
    axis = last - 1 if diagonal >= 0 else last
    if own[-1] != dims[axis]:
        more = emit.size_of(emit.compute("subtract", emit.size(dims[axis]), emit.size(own[-1])))
        element, wide = row.element, (*own[:-1], dims[axis])
        zeros = emit.filled(0, element, (*own[:-1], more))
        row = emit.one("concatenate", (row, zeros), {"dimension": len(own) - 1}, dims=wide)
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
    own, element = emit.dims(diagonals), diagonals.element
    band = _band(op, 1)
    rows, columns = _matrix_size(op, 2), _matrix_size(op, 3)
    outer = own[:-1] if band.low == band.high else own[:-2]
    if band == _Band(0, 0, band.align) and rows == columns == -1:
        rows = columns = own[-1]
    elif own[-1] < 0:
        raise Declined("the length of its diagonals is not known, and more than the main diagonal is meant")
    else:
        smallest = own[-1] - min(band.high, 0), own[-1] + max(band.low, 0)
        if rows == -1 and columns == -1:
            rows = columns = max(smallest)
        elif rows == -1:
            rows = smallest[0]
        elif columns == -1:
            columns = smallest[1]
    fill = op.operands[4] if len(op.operands) > 4 else emit.scalar(0, element)
    matrices = emit.broadcast(emit.reshape(fill, ()), (*outer, rows, columns), ())
    return _set(emit, matrices, diagonals, band)


def _taken(emit: StableHLOBuilder, value: Value, diagonal: int) -> Value:
    """Emits a diagonal of matrices: of each row the element that is on it, of rows from the first that has one."""
    dims, element = emit.dims(value), value.element
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
    return emit.one("real_dynamic_slice", operands, dims=(*dims[:-2], length))


def _matrix_diag_part(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    dims, element = emit.dims(value), value.element
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


DIAGONALS: Mapping[str, Rewrite] = {
    "MatrixBandPart": _band_part,
    **dict.fromkeys(("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3"), _matrix_diag),
    **dict.fromkeys(("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3"), _matrix_diag_part),
    **dict.fromkeys(("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3"), _set_diag),
}
