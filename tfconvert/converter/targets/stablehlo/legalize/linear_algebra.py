"""Systems of linear equations: triangular ones and factors are StableHLO's own, others are solved by elimination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.targets.stablehlo.legalize.complex_numbers import conjugated
from tfconvert.converter.targets.stablehlo.legalize.emit import DeclinedError, Emit
from tfconvert.converter.targets.stablehlo.legalize.entry import Lowering, attribute
from tfconvert.converter.targets.stablehlo.legalize.regions import loop
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, part
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.stablehlo import EnumeratorAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import ComplexType
from tfconvert.schema.ir.values import Value


def _cholesky(op: Operation, emit: Emit) -> Value:
    """Emits the lower factor; what an engine leaves above the diagonal is cut off."""
    value = op.operands[0]
    dims = emit.dims(value)
    factor = emit.one("cholesky", (value,), types.element_of(value.type), dims, {"lower": True})
    last = len(dims) - 1
    is_kept = emit.compare("GE", emit.iota(dims, last - 1, types.I32), emit.iota(dims, last, types.I32))
    return emit.select(is_kept, factor, 0)


def _triangular_solve(op: Operation, emit: Emit) -> Value:
    matrix, value = op.operands
    outer = emit.join(emit.dims(matrix)[:-2], emit.dims(value)[:-2])
    matrix = emit.broadcast(matrix, (*outer, *emit.dims(matrix)[-2:]))
    value = emit.broadcast(value, (*outer, *emit.dims(value)[-2:]))
    kind = "ADJOINT" if attribute(op, "adjoint", False) else "NO_TRANSPOSE"
    properties: dict[str, attrs.Value] = {
        "left_side": True,
        "lower": bool(attribute(op, "lower", True)),
        "unit_diagonal": False,
        "transpose_a": EnumeratorAttr.get("transpose", kind),
    }
    return emit.one("triangular_solve", (matrix, value), types.element_of(value.type), emit.dims(value), properties)


def _solved(matrix: Value, value: Value, emit: Emit) -> Value:
    """Emits the solution of a system: row by row, the largest element left in a column eliminates it elsewhere."""
    element = types.element_of(matrix.type)
    if isinstance(element, ComplexType):
        raise DeclinedError("its numbers are complex")
    size = emit.dims(matrix)[-1]
    if size < 0:
        raise DeclinedError("the size of its matrices is not known")
    rank = len(emit.dims(matrix))
    whole = concatenate([matrix, value], rank - 1, emit)
    dims = emit.dims(whole)

    def condition(inner: Emit, args: Sequence[Value]) -> Sequence[Value]:
        return (inner.compare("LT", args[0], size),)

    def body(inner: Emit, args: Sequence[Value]) -> Sequence[Value]:
        column, rows = args
        return inner.binary("add", column, 1), _eliminated(rows, column, inner)

    whole = loop((emit.scalar(0, types.I32), whole), condition, body, emit)[1]
    emit.sizes.note(whole, dims)
    return part(whole, rank - 1, size, size + emit.dims(value)[-1], emit)


def _eliminated(whole: Value, column: Value, emit: Emit) -> Value:
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
    chosen = emit.reduce("add", emit.select(_along(is_pivot, dims, emit), whole, 0), (last - 1,), 0)
    divisor = emit.reduce("add", emit.select(is_pivot, elements, 0), (last - 1,), 0)
    wide = (*outer, dims[-1])
    scaled = emit.binary("divide", chosen, emit.broadcast(divisor, wide, range(last - 1)))
    is_place = emit.compare("EQ", numbers, column)
    # The row that gives way moves to where the pivot was.
    displaced = emit.reduce("add", emit.select(_along(is_place, dims, emit), whole, 0), (last - 1,), 0)
    axes = [*range(last - 1), last]
    moved = emit.select(_along(is_pivot, dims, emit), emit.broadcast(displaced, dims, axes), whole)
    factors = emit.reduce("add", emit.select(is_column, moved, 0), (last,), 0)
    row = emit.broadcast(scaled, dims, axes)
    rest = emit.binary("subtract", moved, emit.binary("multiply", _along(factors, dims, emit), row))
    return emit.select(_along(is_place, dims, emit), row, rest)


def _along(value: Value, dims: Sequence[int], emit: Emit) -> Value:
    """Emits a number of each row for all elements of it."""
    return emit.broadcast(value, dims, range(len(dims) - 1))


def _turned(value: Value, op: Operation, emit: Emit) -> Value:
    """Emits the adjoint, if that is what is meant."""
    if not attribute(op, "adjoint", False):
        return value
    rank = len(emit.dims(value))
    return conjugated(emit.transpose(value, (*range(rank - 2), rank - 1, rank - 2)), emit)


def _solve(op: Operation, emit: Emit) -> Value:
    matrix, value = op.operands
    return _solved(_turned(matrix, op, emit), value, emit)


def _inverse(op: Operation, emit: Emit) -> Value:
    matrix = _turned(op.operands[0], op, emit)
    dims = emit.dims(matrix)
    last = len(dims) - 1
    is_diagonal = emit.compare("EQ", emit.iota(dims, last - 1, types.I32), emit.iota(dims, last, types.I32))
    return _solved(matrix, emit.convert(is_diagonal, types.element_of(matrix.type)), emit)


LOWERINGS: Mapping[str, Lowering] = {
    "BatchCholesky": _cholesky,
    "BatchMatrixInverse": _inverse,
    "BatchMatrixSolve": _solve,
    "BatchMatrixTriangularSolve": _triangular_solve,
    "Cholesky": _cholesky,
    "MatrixInverse": _inverse,
    "MatrixSolve": _solve,
    "MatrixTriangularSolve": _triangular_solve,
}
