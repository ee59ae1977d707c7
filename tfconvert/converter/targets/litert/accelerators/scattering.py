"""Elements that are put at constant places, summed where they meet, or repeated."""

from __future__ import annotations

import math

import numpy as np

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.accelerators.builder import (
    AcceleratorBuilder,
    array_of,
    form,
    ints_of,
    static_shape,
)
from tfconvert.converter.targets.litert.accelerators.pieces import (
    gather,
    matrices_turned,
    need_floats,
    padded,
    product,
    small,
)
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
    matrix = np.zeros((number, count), np.float32)
    matrix[np.arange(number), places] = 1
    small(matrix)
    turned = build.reshape(matrices_turned(build, rows), (1, 1, width, number))
    made = product(build, turned, build.constant(matrix.reshape(1, 1, number, count)))
    return build.reshape(matrices_turned(build, made), (count, width))


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
    ints_of(op.operands[0])
    return build.reshape(build.tile(build.reshape(op.operands[1], (1, 1, 1, 1)), (1, 1, 1, math.prod(shape))), shape)


def _tile_of_booleans(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A repetition of booleans: of numbers."""
    need(types.element_of(op.operands[0].type) == types.I1, "its elements are not booleans")
    numbers = build.to(op.operands[0], types.F32)
    kind = types.tensor(types.F32, static_shape(op.results[0]))
    return build.to(build.tfl("tile", (numbers, op.operands[1]), kind), types.I1)


PATTERNS = (
    form("scatter-as-gather", "scatter_nd", _scatter),
    *(form(f"{name}-as-product", name, _segments) for name in ("segment_sum", "unsorted_segment_sum")),
    form("diagonal-as-product", "matrix_diag", _diagonal),
    form("fill-as-tile", "fill", _fill),
    form("tile-of-booleans", "tile", _tile_of_booleans, 0),
)
