"""Shape functions that ops of several families share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tfconvert.ops.operands import Operands, Partials, ShapeFunction
from tfconvert.schema.dialects.dims import axis_of, broadcast, merge_all, with_rank, with_rank_at_least
from tfconvert.schema.dialects.types import Shape

Shapes = Sequence[Shape | None]


def same(operands: Operands) -> Shapes:
    """Returns the first operand's shape."""
    return (operands.shape(0),)


def same_with_rank(rank: int) -> ShapeFunction:
    """Returns the function for results that have the first operand's shape, which has a certain rank."""
    return lambda operands: (with_rank(operands.shape(0), rank),)


def same_with_rank_at_least(rank: int) -> ShapeFunction:
    """Returns the function for results that have the first operand's shape, which has a minimum rank."""
    return lambda operands: (with_rank_at_least(operands.shape(0), rank),)


def same_with_axes(operands: Operands) -> Shapes:
    """Returns the first operand's shape; the second operand holds axes."""
    shape, axes = operands.shape(0), operands.ints(1)
    if shape is not None and axes is not None:
        for axis in axes:
            axis_of(axis, len(shape))
    return (shape,)


def same_each(operands: Operands) -> Shapes:
    """Returns the operands' shapes."""
    return operands.shapes()


def all_equal(operands: Operands) -> Shapes:
    """Returns the one shape that all operands have."""
    return (merge_all(operands.shapes()),)


def broadcasting(operands: Operands) -> Shapes:
    """Returns the shape to which all operands broadcast."""
    return (reduce(broadcast, operands.shapes(1), operands.shape(0)),)


def scalars(operands: Operands) -> Shapes:
    """Returns the shapes of results that are scalars."""
    return ((),) * len(operands.op.results)


def same_elements(operands: Operands) -> Partials:
    """Returns the first operand's elements."""
    return [operands.partial(0)]
