"""Ops of StableHLO whose bodies say where elements go: scatters and sorts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tfconvert.converter.executor.stablehlo.bodies import Body
from tfconvert.converter.executor.stablehlo.elementwise import total_order
from tfconvert.converter.executor.stablehlo.properties import integer, text
from tfconvert.converter.executor.stablehlo.reducing import RegionKernel, scatter_flat
from tfconvert.converter.executor.tasks import Machine, bad
from tfconvert.ops.call import Array, Results
from tfconvert.schema.dialects.stablehlo import ScatterAttr
from tfconvert.schema.ir.operation import Operation

# Up to how many elements a sort compares each with each, where its body is not one comparison.
_MAX = 1 << 12


def _scatter(machine: Machine, op: Operation, inputs: Results) -> Results:
    """Joins updates with elements; those of a place outside are left out."""
    count = (len(inputs) - 1) // 2
    arrays, indices, updates = inputs[:count], inputs[count], inputs[count + 1 :]
    dims = op.properties["scatter_dimension_numbers"]
    assert isinstance(dims, ScatterAttr)
    places, inside = _places(op, dims, arrays[0].shape, indices, updates[0].shape)
    results = [each.reshape(-1).copy() for each in arrays]
    kept = tuple(each.reshape(-1)[inside] for each in updates)
    scatter_flat(Body(machine, op), results, places[inside], kept)
    return tuple(each.reshape(array.shape) for each, array in zip(results, arrays, strict=True))


def _places(
    op: Operation, dims: ScatterAttr, shape: Sequence[int], indices: Array, updated: Sequence[int]
) -> tuple[Array, Array]:
    """Returns the flat place of each update, and which of them are within the shape."""
    windows = dims.of("update_window_dims")
    vector = dims.dims[-1]
    assert isinstance(vector, int)
    moved = indices[..., None] if vector == indices.ndim else np.moveaxis(indices, vector, -1)
    rows = [axis for axis in range(len(updated)) if axis not in windows]
    if moved.shape[:-1] != tuple(updated[axis] for axis in rows):
        raise bad(op, f"the updates {list(updated)} don't fit the indices {list(indices.shape)}", "unequal-sizes")

    def row(array: Array) -> Array:
        wanted = [1] * len(updated)
        for axis, size in zip(rows, array.shape, strict=True):
            wanted[axis] = size
        return array.reshape(wanted)

    index: list[Array] = [np.zeros((1,) * len(updated), np.int64)] * len(shape)
    for place, axis in enumerate(dims.of("scatter_dims_to_operand_dims")):
        index[axis] = row(moved[..., place].astype(np.int64))
    for axis, place in zip(dims.of("input_batching_dims"), dims.of("scatter_indices_batching_dims"), strict=True):
        place -= vector < place
        index[axis] = np.arange(moved.shape[place]).reshape(
            [-1 if at == rows[place] else 1 for at in range(len(updated))]
        )
    gone = (*dims.of("inserted_window_dims"), *dims.of("input_batching_dims"))
    for axis, at in zip((each for each in range(len(shape)) if each not in gone), windows, strict=True):
        index[axis] = index[axis] + np.arange(updated[at]).reshape(
            [-1 if each == at else 1 for each in range(len(updated))]
        )
    flat, inside = np.zeros(updated, np.int64), np.ones(updated, np.bool_)
    for axis, at_axis in enumerate(index):
        flat = flat + at_axis * math.prod(shape[axis + 1 :])
        inside &= (at_axis >= 0) & (at_axis < shape[axis])
    return flat.reshape(-1), inside.reshape(-1)


def _sort(machine: Machine, op: Operation, inputs: Results) -> Results:
    """Sorts along a dimension; equal elements keep their order."""
    axis = integer(op, "dimension", -1) % max(1, inputs[0].ndim)
    if len({each.shape for each in inputs}) > 1:
        raise bad(op, "the operands have unequal shapes", "unequal-sizes")
    body = Body(machine, op)
    order = _known_order(body, inputs, axis)
    if order is None:
        order = _compared_order(op, body, inputs, axis)
    return tuple(np.take_along_axis(each, order, axis) for each in inputs)


def _known_order(body: Body, inputs: Results, axis: int) -> Array | None:
    """Returns the order of a body that is one comparison, `None` of another one."""
    found = body.comparison
    if found is None:
        return None
    op, operand, is_swapped = found
    direction, keys = text(op, "comparison_direction"), inputs[operand]
    if direction not in ("LT", "GT"):
        return None
    if text(op, "compare_type") == "TOTALORDER":
        keys = total_order(keys)
    if (direction == "LT") != is_swapped:
        return np.asarray(np.argsort(keys, axis, kind="stable"))
    # From the greatest on; the order of equal ones is that of the operand after both turns.
    turned = np.argsort(np.flip(keys, axis), axis, kind="stable")
    return np.asarray(np.flip(keys.shape[axis] - 1 - turned, axis))


def _compared_order(op: Operation, body: Body, inputs: Results, axis: int) -> Array:
    """Returns an order in which each element comes after those that are less, and after equal ones before it."""
    lanes = [np.moveaxis(each, axis, -1) for each in inputs]
    size = lanes[0].shape[-1]
    if size > _MAX:
        raise bad(op, f"{size} elements are too many for an order that is not one comparison", "no-reference-kernel")
    operands = [array for each in lanes for array in (each[..., :, None], each[..., None, :])]
    (less,) = body(*operands)
    earlier = np.tri(size, k=-1, dtype=np.bool_)
    before = np.swapaxes(less, -1, -2) | (earlier & ~less)
    ranks = np.sum(before & ~np.eye(size, dtype=np.bool_), -1)
    return np.moveaxis(np.argsort(ranks, -1, kind="stable"), -1, axis)


KERNELS: Mapping[str, RegionKernel] = {"stablehlo.scatter": _scatter, "stablehlo.sort": _sort}
"""Op -> kernel."""
