"""Fewer dimensions for products of matrices."""

from __future__ import annotations

from collections.abc import Hashable

from tfconvert.converter.targets.litert.fitting.form import ANY, Form, groups_of, merged, result_of, rows, shape_of
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation


def _key(axis: int, result: Shape, padded: list[Shape], is_alone: bool) -> Hashable:
    if result[axis] == 1:
        return ANY
    if not is_alone and (result[axis] < 0 or any(shape[axis] < 0 for shape in padded)):
        return axis  # One of them may be broadcast there or not.
    return tuple([shape[axis] == 1 for shape in padded])


def dense(op: Operation) -> Form | None:
    """`tfl.fully_connected` of rows."""
    shape, result = shape_of(op), result_of(op)
    weights = shape_of(op, 1)
    if not shape or not result or not weights or shape[-1] != weights[-1]:
        return None
    rest = [None] * (len(op.operands) - 1)
    options = {"keep_num_dims": False}
    return Form((merged(shape, rows(len(shape))), *rest), (merged(result, rows(len(result))),), options)


def matrices(op: Operation) -> Form | None:
    """`tfl.batch_matmul`: batches are merged where both operands have them, or neither."""
    shapes, result = [shape_of(op, index) for index in (0, 1)], result_of(op)
    if result is None or any(shape is None or len(shape) < 2 for shape in shapes):
        return None
    rank = len(result)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes if shape is not None]
    is_alone = padded[0][:-2] == padded[1][:-2]
    batch = groups_of([_key(axis, result, padded, is_alone) for axis in range(rank - 2)])
    groups = [*batch, (rank - 2, rank - 1), (rank - 1, rank)]
    return Form(tuple([merged(shape, groups) for shape in padded]), (merged(result, groups),))
