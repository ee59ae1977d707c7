"""Shapes of matrix products and of linear algebra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.ops.operands import Operands, ShapeFunction
from tfconvert.schema.dialects.dims import (
    MismatchError,
    broadcast,
    broadcast_dim,
    merge,
    merge_dim,
    text,
    with_rank,
    with_rank_at_least,
)
from tfconvert.schema.dialects.types import Shape

Shapes = Sequence[Shape | None]


def _product(first: Shape, second: Shape, is_first_turned: bool, is_second_turned: bool) -> Shape:
    """Returns rows and columns of a matrix product; takes the last two dimensions of each."""
    rows, inner = first[-2:] if not is_first_turned else first[-1:-3:-1]
    other, columns = second[-2:] if not is_second_turned else second[-1:-3:-1]
    if inner >= 0 and other >= 0 and inner != other:
        raise MismatchError(f"the inner dimensions of {text(first)} and {text(second)}, {inner} and {other}, differ")
    return (rows, columns)


def _matmul(operands: Operands) -> Shapes:
    first, second = with_rank(operands.shape(0), 2), with_rank(operands.shape(1), 2)
    turned = [bool(operands.attribute(name, False)) for name in ("transpose_a", "transpose_b")]
    return (_product(first, second, turned[0], turned[1]),)


def _batch_matmul(operands: Operands) -> Shapes:
    first, second = operands.shape(0), operands.shape(1)
    with_rank_at_least(first, 2)
    with_rank_at_least(second, 2)
    if first is None or second is None:
        return (None,)
    matrix = _product(first, second, operands.attribute("adj_x", False), operands.attribute("adj_y", False))
    if operands.op.name == "tf.BatchMatMul":
        batch = merge(first[:-2], second[:-2])
    else:
        batch = broadcast(first[:-2], second[:-2])
    assert batch is not None
    return ((*batch, *matrix),)


def _expand(term: str, shape: Shape | None, rank: int) -> list[str] | None:
    """Returns one name a dimension: letters, and `...k` for the k-th last dimension under the ellipsis."""
    before, dots, after = term.partition("...")
    if not dots:
        if shape is not None and rank != len(before):
            raise MismatchError(f"{term!r} doesn't fit shape {text(shape)}")
        return list(before)
    if shape is None:
        return None
    extra = rank - len(before) - len(after)
    if extra < 0:
        raise MismatchError(f"{term!r} doesn't fit shape {text(shape)}")
    return [*before, *(f"...{k}" for k in range(extra, 0, -1)), *after]


def _einsum(operands: Operands) -> Shapes:
    left, arrow, right = operands.text("equation").replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow or len(terms) != operands.count:
        raise MismatchError(f"equation {operands.text('equation')!r} doesn't fit {operands.count} operands")
    dims: dict[str, int] = {}
    for term, shape in zip(terms, operands.shapes(), strict=True):
        names = _expand(term, shape, len(shape or ()))
        if names is None:
            return (None,)
        for name, dim in zip(names, shape or (-1,) * len(names), strict=True):
            combine = broadcast_dim if name.startswith("...") else merge_dim
            dims[name] = combine(dims[name], dim) if name in dims else dim
    extra = max((int(name[3:]) for name in dims if name.startswith("...")), default=0)
    before, dots, after = right.partition("...")
    wanted = [*before, *(f"...{k}" for k in range(extra, 0, -1) if dots), *after]
    if any(name not in dims for name in wanted):
        raise MismatchError(f"equation {operands.text('equation')!r} yields what it doesn't take")
    return (tuple(dims[name] for name in wanted),)


def _determinant(operands: Operands) -> Shapes:
    shape = with_rank_at_least(operands.shape(0), 2)
    return (None if shape is None else shape[:-2],)


def _solve(operands: Operands) -> Shapes:
    matrix, right = operands.shape(0), operands.shape(1)
    with_rank_at_least(matrix, 2)
    with_rank_at_least(right, 2)
    if matrix is None or right is None:
        return (None,)
    batch = broadcast(matrix[:-2], right[:-2])
    assert batch is not None
    return ((*batch, merge_dim(matrix[-1], right[-2]), right[-1]),)


def _qr(operands: Operands) -> Shapes:
    shape = with_rank_at_least(operands.shape(0), 2)
    if shape is None:
        return (None, None)
    *batch, rows, columns = shape
    less = min(rows, columns) if rows >= 0 and columns >= 0 else -1
    if operands.attribute("full_matrices", False):
        return ((*batch, rows, rows), (*batch, rows, columns))
    return ((*batch, rows, less), (*batch, less, columns))


def _svd(operands: Operands) -> Shapes:
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


SHAPES: Mapping[str, ShapeFunction] = {
    "BatchMatMul": _batch_matmul,
    "BatchMatMulV2": _batch_matmul,
    "BatchMatMulV3": _batch_matmul,
    "Einsum": _einsum,
    "MatMul": _matmul,
    "MatrixDeterminant": _determinant,
    "MatrixSolve": _solve,
    "MatrixTriangularSolve": _solve,
    "Qr": _qr,
    "SparseMatMul": _matmul,
    "Svd": _svd,
}
"""Op name -> shape function."""
