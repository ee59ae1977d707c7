"""Fewer dimensions for operators that treat some dimensions alike: they join, reduce, pad or normalize along others."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tfconvert.converter.targets.litert.fitting.form import (
    ANY,
    Form,
    Groups,
    Steps,
    groups_of,
    integers,
    merged,
    result_of,
    rows,
    shape_of,
)
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation


def softmax(op: Operation) -> Form | None:
    """What is computed along the last dimension has two dimensions."""
    shape = shape_of(op)
    if not shape:
        return None
    both = merged(shape, rows(len(shape)))
    return Form((both,), (both,))


def reduction(op: Operation) -> Form | None:
    """Neighbours are one that are both reduced, or both kept."""
    shape, axes = shape_of(op), integers(op, 1)
    if shape is None or axes is None:
        return None
    reduced = {axis % len(shape) for axis in axes} if shape else set()
    groups = groups_of([ANY if dim == 1 else axis in reduced for axis, dim in enumerate(shape)])
    at = [index for index, (start, stop) in enumerate(groups) if _is_reduced(shape, start, stop, reduced)]
    small = merged(shape, groups)
    keep = bool(tfl.attribute(op, "keep_dims"))
    kept = tuple([1 if index in at else dim for index, dim in enumerate(small) if keep or index not in at])
    return Form((small, np.array(at, np.int32)), (kept,))


def reductions(op: Operation) -> Steps | None:
    """Half of the dimensions are reduced first, to 1."""
    shape, axes, result = shape_of(op), integers(op, 1), result_of(op)
    if shape is None or axes is None or result is None or len(axes) < 2:
        return None
    order = sorted({axis % len(shape) for axis in axes})
    first = order[: len(order) // 2]
    halfway = tuple([1 if axis in first else dim for axis, dim in enumerate(shape)])
    return ((np.array(first, np.int32), halfway, {"keep_dims": True}), (np.array(order, np.int32), result, {}))


def _is_reduced(shape: Shape, start: int, stop: int, reduced: set[int]) -> bool:
    """Returns whether a group is reduced: as its dimensions are, 1 aside."""
    telling = [axis for axis in range(start, stop) if shape[axis] != 1] or [start]
    return telling[0] in reduced


def _leading(is_touched: Sequence[bool]) -> Groups:
    """Returns groups of which only the first dimension is touched, or none."""
    groups: list[tuple[int, int]] = []
    for axis, touched in enumerate(is_touched):
        if groups and not touched:
            groups[-1] = (groups[-1][0], axis + 1)
        else:
            groups.append((axis, axis + 1))
    return groups


def _factor(shape: Shape, start: int, stop: int) -> int | None:
    """Returns the number of elements behind the first dimension of a group, `None` if it is unknown."""
    behind = shape[start + 1 : stop]
    return None if -1 in behind else math.prod(behind)


def pad(op: Operation) -> Form | None:
    """Dimensions that aren't padded are one with the one before them."""
    shape, result, pads = shape_of(op), result_of(op), integers(op, 1)
    if shape is None or result is None or pads is None:
        return None
    pairs = np.array(pads).reshape(-1, 2)
    groups = _leading([bool(pair.any()) for pair in pairs])
    factors = [_factor(shape, start, stop) if pairs[start].any() else 1 for start, stop in groups]
    if None in factors:
        return None
    scaled = np.array([pairs[start] * factor for (start, _), factor in zip(groups, factors, strict=True)], np.int32)
    return Form((merged(shape, groups), scaled, *[None] * (len(op.operands) - 2)), (merged(result, groups),))


def pads(op: Operation) -> Steps | None:
    """Half of the dimensions are padded first."""
    shape, result, values = shape_of(op), result_of(op), integers(op, 1)
    if shape is None or result is None or values is None:
        return None
    pairs = np.array(values, np.int32).reshape(-1, 2)
    touched = np.flatnonzero(pairs.any(axis=1))
    if len(touched) < 2:
        return None
    first, second = pairs.copy(), pairs.copy()
    first[touched[len(touched) // 2 :]] = 0
    second[touched[: len(touched) // 2]] = 0
    halfway = tuple([dim if dim < 0 else dim + int(pair.sum()) for dim, pair in zip(shape, first, strict=True)])
    return ((first, halfway, {}), (second, result, {}))


def _normalized(axis: int, rank: int) -> int:
    """Returns an axis counted from the front."""
    return axis + rank if axis < 0 else axis


def _around(rank: int, axis: int) -> Groups:
    """Returns the dimensions before an axis, the axis, and those behind it, as groups."""
    return [(0, axis), (axis, axis + 1), (axis + 1, rank)]


def concatenation(op: Operation) -> Form | None:
    """Everything before the axis is one dimension, and everything behind it."""
    result = result_of(op)
    shapes = [shape_of(op, index) for index in range(len(op.operands))]
    if result is None or any(shape is None or len(shape) != len(result) for shape in shapes):
        return None
    groups = _around(len(result), _normalized(tfl.attribute(op, "axis"), len(result)))
    operands = tuple([merged(shape, groups) for shape in shapes if shape is not None])
    return Form(operands, (merged(result, groups),), {"axis": 1})


def split(op: Operation) -> Form | None:
    """As `concatenation`; the axis is an operand."""
    shape, axes = shape_of(op, 1), integers(op, 0)
    results = [result_of(op, index) for index in range(len(op.results))]
    if shape is None or axes is None or None in results:
        return None
    groups = _around(len(shape), _normalized(axes[0], len(shape)))
    parts = [merged(result, groups) for result in results if result is not None]
    return Form((np.array(1, np.int32), merged(shape, groups)), tuple(parts))
