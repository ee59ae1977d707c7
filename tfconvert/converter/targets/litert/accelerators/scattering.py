"""Elements that are put at constant places, summed where they meet, or repeated."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.accelerators.builder import (
    NOT_FUSED,
    AcceleratorBuilder,
    Rewrite,
    array_of,
    like,
    static_shape,
)
from tfconvert.converter.targets.litert.accelerators.pieces import gather, need_floats, padded, small
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.values import Value


def _scatter(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """Rows at constant places: they are chosen from the rows and one of zeros; rows that meet are summed."""
    indices, updates = op.operands[:2]
    shape = static_shape(op.results[0])
    places = array_of(indices)
    depth = places.shape[-1]
    places = places.reshape(-1, depth)
    inside = np.all((places >= 0) & (places < np.array(shape[:depth])), axis=1)
    need(bool(inside.all()), "a place is outside")
    strides = np.array([math.prod(shape[axis + 1 : depth]) for axis in range(depth)])
    rows = build.reshape(updates, (len(places), math.prod(shape[depth:])))
    return build.reshape(_summed(build, rows, places @ strides, math.prod(shape[:depth])), shape)


def _segments(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """Sums of rows by constant numbers of segments."""
    value, shape = op.operands[0], static_shape(op.results[0])
    rank = len(static_shape(op.operands[1]))
    numbers = array_of(op.operands[1]).reshape(-1)
    need(bool((numbers < shape[0]).all() and (numbers >= 0).all()), "a segment is outside")
    rows = build.reshape(value, (len(numbers), math.prod(static_shape(value)[rank:])))
    return build.reshape(_summed(build, rows, numbers, shape[0]), shape)


def _summed(build: AcceleratorBuilder, rows: Value, places: Array, count: int) -> Value:
    """Returns the sums of the rows at each place."""
    number, width = static_shape(rows)
    if len(np.unique(places)) == len(places):
        chosen = np.full(count, number, np.int32)
        chosen[places] = np.arange(number)
        return gather(build, padded(build, rows, 0, 0, 1), build.constant(chosen), 0)
    need_floats(rows)
    matrix = np.zeros((count, number), np.float32)
    matrix[places, np.arange(number)] = 1
    small(matrix)
    operands = (build.transpose(rows, (1, 0)), build.constant(matrix), build.constant(np.zeros(count, np.float32)))
    return build.transpose(build.tfl("fully_connected", operands, like(rows, (width, count)), _DENSE), (1, 0))


_DENSE = {"keep_num_dims": False, **NOT_FUSED}


def _diagonal(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A diagonal matrix: columns, multiplied by a matrix of ones and zeros."""
    need_floats(op.operands[0])
    *batch, size = static_shape(op.operands[0])
    eye = np.ascontiguousarray(np.broadcast_to(np.eye(size, dtype=np.float32), (1, math.prod(batch), size, size)))
    small(eye)
    columns = build.reshape(op.operands[0], (1, math.prod(batch), size, 1))
    return build.reshape(build.binary("mul", columns, build.constant(eye)), static_shape(op.results[0]))


def _fill(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """One number everywhere: a repetition of it."""
    shape = static_shape(op.results[0])
    ones = build.reshape(op.operands[1], (1, 1, 1, 1))
    return build.reshape(build.tile(ones, (1, 1, 1, math.prod(shape))), shape)


def _of_integers(op: tfl.TFLOp, build: AcceleratorBuilder) -> Sequence[Value]:
    """A move of booleans: of integers."""
    need(types.element_of(op.operands[0].type) == types.I1, "its elements are not booleans")
    numbers = build.to(op.operands[0], types.I32)
    kinds = [types.tensor(types.I32, static_shape(result)) for result in op.results]
    moved = build.insert(tfl.TFLOp(op.name, (numbers, *op.operands[1:]), kinds, op.properties, op.attributes))
    return [build.to(result, types.I1) for result in moved.results]


def _zeros(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """Zeros in the shape of another tensor: a constant."""
    element = types.element_of(op.results[0].type)
    return build.constant(np.zeros(static_shape(op.results[0]), types.numpy_dtype(element)), element)


def _shape(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A shape, or a rank: a constant."""
    shape = static_shape(op.operands[0])
    return build.array(np.array(shape if op.op_name == "shape" else len(shape)), op.results[0])


REWRITES = (
    Rewrite("scatter-as-gather", "scatter_nd", _scatter),
    *(Rewrite(f"{name}-as-product", name, _segments) for name in ("segment_sum", "unsorted_segment_sum")),
    Rewrite("fill-as-tile", "fill", _fill),
    Rewrite("diagonal-as-product", "matrix_diag", _diagonal),
    *(Rewrite(f"{name}-as-constant", name, _shape) for name in ("rank", "shape")),
    Rewrite("zeros-as-constant", "zeros_like", _zeros),
    *(Rewrite(f"{name}-of-booleans", name, _of_integers, 0) for name in ("reverse_v2", "strided_slice")),
)
