"""Choices of elements: places in tables, parts that are replaced, and elements that are put at constant places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.forms.builder import MAX_RUNS, FormBuilder
from tfconvert.converter.targets.litert.forms.form import Rewrite
from tfconvert.converter.targets.litert.forms.questions import (
    MAX_RANK,
    PLAIN,
    array_of,
    dequantized,
    ints_of,
    like,
    need_floats,
    option,
    shape_of,
    small,
    static_shape,
    stored_constant,
    target_of,
)
from tfconvert.schema.dialects import quant, tensor_data, tfl, types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.values import Value


def _gather_slices(max_runs: int, op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A choice of constant places that are neighbours, or are in a few runs: slices that are joined."""
    value, places = op.operands[0], ints_of(op.operands[1])
    axis = option(op, "axis") % len(shape_of(value))
    need(not option(op, "batch_dims"), "it has batch dimensions")
    is_many = max_runs == MAX_RUNS
    if is_many and len(shape_of(value)) > MAX_RANK:
        value, axis = build.parted(value, axis), 2
    return build.reshape(build.runs(value, places, axis, max_runs, may_turn=is_many), target_of(op.results[0]))


def _gather(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A choice by places of rank 0 or of a rank above 1, or with batch dimensions: by a vector of places."""
    table, places = op.operands
    shape, rank = shape_of(table), len(shape_of(places))
    batch, axis = option(op, "batch_dims") % (rank + 1), option(op, "axis") % len(shape)
    result, dims = target_of(op.results[0]), shape_of(places)
    places = build.i32(places)
    if batch == 0 or math.prod(shape[:batch]) == 1:
        count = -1 if -1 in dims else math.prod(dims)
        return build.reshape(build.gather(table, build.reshape(places, (count,)), axis), result)
    shape, each = static_shape(table), math.prod(static_shape(places)[batch:])
    rows, between = math.prod(shape[:batch]), math.prod(shape[batch:axis])
    behind = math.prod(shape[axis + 1 :])
    whole = build.reshape(table, (rows, between, shape[axis], behind))
    whole = build.transpose(whole, (0, 2, 1, 3)) if between > 1 else whole
    whole = build.reshape(whole, (rows * shape[axis], between * behind))
    offsets = np.repeat(np.arange(rows, dtype=np.int32) * shape[axis], each)
    chosen = build.gather(whole, _moved(build, places, offsets), 0)
    chosen = build.reshape(chosen, (rows, each, between, behind))
    chosen = build.transpose(chosen, (0, 2, 1, 3)) if between > 1 else chosen
    return build.reshape(chosen, result)


def _gather_in_fewer_dimensions(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A choice from a table of a high rank: merges the dimensions around the axis."""
    need(option(op, "batch_dims") == 0, "it has batch dimensions")
    table, places = op.operands
    table = build.parted(table, option(op, "axis"))
    places = build.reshape(places, (math.prod(static_shape(places)),))
    return build.reshape(build.gather(table, places, 2), static_shape(op.results[0]))


def _moved(build: FormBuilder, places: Value, offsets: tensor_data.Array) -> Value:
    """Returns places with offsets added, as a vector."""
    count = offsets.size
    if tfl.is_constant(places):
        return build.constant((array_of(places).reshape(-1) + offsets).astype(np.int32))
    row = (1, 1, 1, count)
    return build.reshape(
        build.binary("add", build.reshape(places, row), build.constant(offsets.reshape(row))), (count,)
    )


def _gather_nd(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A choice by several coordinates: by one, in a table whose first dimensions are merged."""
    table, places = op.operands
    shape, *_, depth = static_shape(table), *static_shape(places)
    count = math.prod(static_shape(places)[:-1])
    strides = np.array([math.prod(shape[axis + 1 : depth]) for axis in range(depth)], np.int32)
    merged = build.reshape(table, (math.prod(shape[:depth]), math.prod(shape[depth:])))
    if tfl.is_constant(places):
        flat = build.constant((array_of(places).reshape(count, depth) @ strides).astype(np.int32))
    else:
        flat = build.cast(places, types.I32)
        if depth > 1:
            flat = build.reshape(flat, (1, 1, count, depth))
            factors = build.constant(np.ascontiguousarray(np.broadcast_to(strides, (1, 1, count, depth))))
            flat = build.binary("mul", flat, factors)
            flat = build.tfl("sum", (flat, build.ints((3,))), like(flat, (1, 1, count)), {"keep_dims": False})
        flat = build.reshape(flat, (count,))
    return build.reshape(build.gather(merged, flat, 0), static_shape(op.results[0]))


def _whole_table(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """An op that takes rows of a table of 16-bit floats: of a table of 32-bit floats."""
    at = 0 if op.op_name == "gather" else 1
    table = op.operands[at]
    source = dequantized(table)
    stored = stored_constant(source)
    need(source is not table and source.element == types.F16, "its table is not one of 16-bit floats")
    assert stored is not None
    wide = tensor_data.defer("cast", (stored,), static_shape(table), element=types.F32)
    operands = [build.constant(wide) if value is table else value for value in op.operands]
    return build.again(op, operands).results[0]


def _scale_for_each_row(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A lookup in a table of integers with one scale: with one for each row, as the GPU reads it."""
    table = op.operands[1]
    element, stored = table.element, stored_constant(table)
    need(isinstance(element, quant.UniformType) and len(element.data.scales) == 1, "its table has no single scale")
    assert isinstance(element, quant.UniformType)
    assert stored is not None
    data, count = element.data, static_shape(table)[0]
    rows = data._replace(scales=data.scales * count, zero_points=data.zero_points * count, axis=0)
    kind = quant.tensor(rows, static_shape(table))
    whole = build.insert(tfl.constant(stored, result_type=kind)).results[0]
    return build.again(op, (op.operands[0], whole)).results[0]


def _flat_lookup(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A lookup in a constant table of a higher rank, or in a computed one: a choice of rows."""
    places, table = op.operands
    need(table.element == op.results[0].element, "the table is quantized")
    shape = static_shape(table)
    merged = build.reshape(table, (shape[0], math.prod(shape[1:])))
    chosen = build.gather(merged, build.reshape(places, (math.prod(static_shape(places)),)), 0)
    return build.reshape(chosen, static_shape(op.results[0]))


def _update(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A replaced part that begins at constants: what is around it is joined to it."""
    whole, new, start = op.operands
    shape, size = static_shape(whole), static_shape(new)
    begins = [max(min(at, dim - one), 0) for at, dim, one in zip(ints_of(start), shape, size, strict=True)]

    def joined(value: Value, axis: int) -> Value:
        if axis == len(shape):
            return new
        begin, end = begins[axis], begins[axis] + size[axis]
        middle = joined(build.cut(value, axis, begin, size[axis]), axis + 1)
        before = [build.cut(value, axis, 0, begin)] if begin else []
        behind = [build.cut(value, axis, end, shape[axis] - end)] if end < shape[axis] else []
        return build.concatenation([*before, middle, *behind], axis)

    if size == shape:
        return build.copy(new)
    return joined(whole, 0)


def _update_in_rank_4(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A replaced part: in rank 4, with dimensions of 1 in front."""
    whole, new, start = op.operands
    shape, small = static_shape(whole), static_shape(new)
    need(0 < len(shape) < MAX_RANK, "its rank is 4 or above")
    missing = MAX_RANK - len(shape)
    front = (1,) * missing
    start = build.concatenation([build.array(np.zeros(missing, np.int32), start), start], 0)
    operands = [build.reshape(whole, (*front, *shape)), build.reshape(new, (*front, *small)), start]
    return build.reshape(build.again(op, operands, [(*front, *shape)]).results[0], shape)


def _scatter(op: tfl.TFLOp, build: FormBuilder) -> Value:
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


def _segments(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """Sums of rows by constant numbers of segments."""
    value, shape = op.operands[0], static_shape(op.results[0])
    rank = len(static_shape(op.operands[1]))
    numbers = array_of(op.operands[1]).reshape(-1)
    need(bool((numbers < shape[0]).all() and (numbers >= 0).all()), "a segment is outside")
    rows = build.reshape(value, (len(numbers), math.prod(static_shape(value)[rank:])))
    return build.reshape(_summed(build, rows, numbers, shape[0]), shape)


def _summed(build: FormBuilder, rows: Value, places: Array, count: int) -> Value:
    """Returns the sums of the rows at each place."""
    number, width = static_shape(rows)
    if len(np.unique(places)) == len(places):
        chosen = np.full(count, number, np.int32)
        chosen[places] = np.arange(number)
        return build.gather(build.border(rows, 0, 0, 1), build.constant(chosen), 0)
    need_floats(rows)
    matrix = np.zeros((count, number), np.float32)
    matrix[places, np.arange(number)] = 1
    small(matrix.size)
    operands = (build.transpose(rows, (1, 0)), build.constant(matrix), build.constant(np.zeros(count, np.float32)))
    return build.transpose(build.tfl("fully_connected", operands, like(rows, (width, count)), _DENSE), (1, 0))


_DENSE = {"keep_num_dims": False, **PLAIN}


def _diagonal(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A diagonal matrix: columns, multiplied by a matrix of ones and zeros."""
    need_floats(op.operands[0])
    *batch, size = static_shape(op.operands[0])
    eye = np.ascontiguousarray(np.broadcast_to(np.eye(size, dtype=np.float32), (1, math.prod(batch), size, size)))
    small(eye.size)
    columns = build.reshape(op.operands[0], (1, math.prod(batch), size, 1))
    return build.reshape(build.binary("mul", columns, build.constant(eye)), static_shape(op.results[0]))


def _fill(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """One number everywhere: a repetition of it."""
    shape = static_shape(op.results[0])
    ones = build.reshape(op.operands[1], (1, 1, 1, 1))
    return build.reshape(build.tile(ones, (1, 1, 1, math.prod(shape))), shape)


def _of_integers(op: tfl.TFLOp, build: FormBuilder) -> Sequence[Value]:
    """A move of booleans: of integers."""
    need(op.operands[0].element == types.I1, "its elements are not booleans")
    numbers = build.cast(op.operands[0], types.I32)
    kinds = [types.tensor(types.I32, static_shape(result)) for result in op.results]
    moved = build.insert(tfl.TFLOp(op.name, (numbers, *op.operands[1:]), kinds, op.properties, op.attributes))
    return [build.cast(result, types.I1) for result in moved.results]


def _zeros(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """Zeros in the shape of another tensor: a constant."""
    return build.array(np.zeros(static_shape(op.results[0])), op.results[0])


def _shape(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A shape, or a rank: a constant."""
    shape = static_shape(op.operands[0])
    return build.array(np.array(shape if op.op_name == "shape" else len(shape)), op.results[0])


REWRITES = (
    Rewrite("gather-as-slice", "gather", partial(_gather_slices, 1), 4),
    Rewrite("gather-by-a-vector", "gather", _gather, 2),
    Rewrite("gather-in-fewer-dimensions", "gather", _gather_in_fewer_dimensions),
    Rewrite("gather-as-slices", "gather", partial(_gather_slices, 4), 0),
    Rewrite(
        "constant-gather-as-slices",
        "gather",
        partial(_gather_slices, MAX_RUNS),
        5,
        (types.F32, types.I32),
        adds=True,
        only_for="gpu",
    ),
    Rewrite("gather-nd-as-gather", "gather_nd", _gather_nd),
    *(Rewrite(f"{name}-of-whole-floats", name, _whole_table, 9) for name in ("embedding_lookup", "gather")),
    Rewrite("lookup-with-scales", "embedding_lookup", _scale_for_each_row, 2),
    Rewrite("lookup-as-gather", "embedding_lookup", _flat_lookup),
    Rewrite("update-as-concatenation", "dynamic_update_slice", _update, 2),
    Rewrite("update-in-rank-4", "dynamic_update_slice", _update_in_rank_4),
    Rewrite("scatter-as-gather", "scatter_nd", _scatter),
    *(Rewrite(f"{name}-as-product", name, _segments) for name in ("segment_sum", "unsorted_segment_sum")),
    Rewrite("fill-as-tile", "fill", _fill),
    Rewrite("diagonal-as-product", "matrix_diag", _diagonal),
    *(Rewrite(f"{name}-as-constant", name, _shape) for name in ("rank", "shape")),
    Rewrite("zeros-as-constant", "zeros_like", _zeros),
    *(Rewrite(f"{name}-of-booleans", name, _of_integers, 0) for name in ("reverse_v2", "strided_slice")),
)
