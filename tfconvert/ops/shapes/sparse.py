"""Shapes of ops on sparse tensors, and on rows that indices pick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.ops.operands import Operands, ShapeFunction
from tfconvert.schema.dialects.dims import dim_of_element, merge, with_rank, with_rank_at_least
from tfconvert.schema.dialects.types import Shape

Shapes = Sequence[Shape | None]


def _segment(operands: Operands) -> Shapes:
    shape = with_rank_at_least(operands.shape(0), 1)
    merge(with_rank(operands.shape(1), 1), with_rank(operands.shape(2), 1))
    count = operands.ints(2)
    height = count[-1] + 1 if count else -1
    return (None if shape is None else (height, *shape[1:]),)


def _counted_segment(operands: Operands) -> Shapes:
    """The same where the number of segments is an operand."""
    shape = with_rank_at_least(operands.shape(0), 1)
    merge(with_rank(operands.shape(1), 1), with_rank(operands.shape(2), 1))
    found = operands.partial(3)
    return (None if shape is None else (dim_of_element(found[0]) if found else -1, *shape[1:]),)


def _rank(operands: Operands, shape: int) -> int:
    """Returns the rank of a sparse tensor, from the operand that holds its shape."""
    return with_rank(operands.shape(shape), 1)[0]


def _fill_empty_rows(operands: Operands) -> Shapes:
    indices = with_rank(operands.shape(0), 2)
    height = operands.partial(2)
    values = with_rank(operands.shape(1), 1)
    rank = merge((_rank(operands, 2),), indices[1:])
    assert rank is not None
    rows = dim_of_element(height[0]) if height else -1
    return ((-1, *rank), (-1,), (rows,), merge(indices[:1], values))


def _reshape(operands: Operands) -> Shapes:
    indices = with_rank(operands.shape(0), 2)
    rank = _rank(operands, 2)
    return ((indices[0], rank), (rank,))


def _times_dense(operands: Operands) -> Shapes:
    size, matrix = operands.elements(2), with_rank(operands.shape(3), 2)
    height = size[operands.attribute("adjoint_a", False) is True] if size is not None and len(size) == 2 else -1
    return ((dim_of_element(height), matrix[0 if operands.attribute("adjoint_b", False) is True else 1]),)


def _same(operands: Operands) -> Shapes:
    return (operands.shape(0), operands.shape(1))


SHAPES: Mapping[str, ShapeFunction] = {
    **{f"SparseSegment{name}": _segment for name in ("Mean", "SqrtN", "Sum")},
    **{f"SparseSegment{name}WithNumSegments": _counted_segment for name in ("Mean", "SqrtN", "Sum")},
    "SparseFillEmptyRows": _fill_empty_rows,
    "SparseReorder": _same,
    "SparseReshape": _reshape,
    "SparseTensorDenseMatMul": _times_dense,
}
"""Op name -> shape function."""
