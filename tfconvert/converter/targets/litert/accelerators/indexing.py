"""Choices of elements: slices, places in tables, and parts that are replaced."""

from __future__ import annotations

import math

import numpy as np

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.accelerators.builder import (
    AcceleratorBuilder,
    array_of,
    form,
    ints_of,
    option,
    static_shape,
)
from tfconvert.converter.targets.litert.accelerators.pieces import backwards, gather, like, part
from tfconvert.converter.targets.litert.accelerators.ranks import ranges_of
from tfconvert.schema.dialects import quant, tensor_data, tfl, types
from tfconvert.schema.ir.values import Value


def _strided_slice(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A strided slice that goes backwards: one that goes forwards, then the reversal of axes."""
    value, ranges = op.operands[0], ranges_of(op)
    need(any(each.step < 0 for each in ranges), "it goes forwards")
    need(all(len(each) for each in ranges), "it is empty")
    starts = [each.start if each.step > 0 else each[-1] for each in ranges]
    steps = [abs(each.step) for each in ranges]
    sizes = [len(each) for each in ranges]
    if all(step == 1 or size == 1 for step, size in zip(steps, sizes, strict=True)):
        if tuple(sizes) != static_shape(value):
            value = build.slice(value, starts, sizes)
    else:
        ends = [start + (size - 1) * step + 1 for start, size, step in zip(starts, sizes, steps, strict=True)]
        bounds = [build.ints(each) for each in (starts, ends, steps)]
        value = build.tfl("strided_slice", (value, *bounds), like(value, sizes))
    for axis, each in enumerate(ranges):
        if each.step < 0 and len(each) > 1:
            value = backwards(build, value, axis)
    return build.reshape(value, static_shape(op.results[0]))


def _slice(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A slice that begins where an operand says: the places are chosen."""
    value, begin = op.operands[:2]
    need(not tfl.is_constant(begin), "its begin is a constant")
    begin = build.to(begin, types.I32)
    for axis, (dim, size) in enumerate(zip(static_shape(value), static_shape(op.results[0]), strict=True)):
        if size != dim:
            first = build.reshape(build.slice(begin, (axis,), (1,)), (1, 1, 1, 1))
            steps = build.constant(np.arange(size, dtype=np.int32).reshape(1, 1, 1, size))
            value = gather(build, value, build.reshape(build.binary("add", first, steps), (size,)), axis)
    return build.reshape(value, static_shape(op.results[0]))


def _gather_slice(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A choice of one constant place, or of neighbours: a slice."""
    places = ints_of(op.operands[1])
    shape, axis = static_shape(op.operands[0]), option(op, "axis") % len(static_shape(op.operands[0]))
    begin = places[0] if places else 0
    need(not option(op, "batch_dims") and places == list(range(begin, begin + len(places))), "places are apart")
    need(begin >= 0 and begin + len(places) <= shape[axis], "a place is outside")
    value = part(build, op.operands[0], axis, begin, len(places))
    return build.reshape(value, static_shape(op.results[0]))


def _gather(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A choice by places of rank 0 or of a rank above 1, or with batch dimensions: by a vector of places."""
    table, places = op.operands
    shape, rank = static_shape(table), len(static_shape(places))
    batch, axis = option(op, "batch_dims") % (rank + 1), option(op, "axis") % len(shape)
    places = _of_i32(build, places)
    rows, between = math.prod(shape[:batch]), math.prod(shape[batch:axis])
    each = math.prod(static_shape(places)[batch:])
    if rows == 1:
        flat = (*shape[:axis], shape[axis], *shape[axis + 1 :])
        chosen = gather(build, build.reshape(table, flat), build.reshape(places, (each,)), axis)
        return build.reshape(chosen, static_shape(op.results[0]))
    behind = math.prod(shape[axis + 1 :])
    whole = build.reshape(table, (rows, between, shape[axis], behind))
    whole = build.transpose(whole, (0, 2, 1, 3)) if between > 1 else whole
    whole = build.reshape(whole, (rows * shape[axis], between * behind))
    offsets = np.repeat(np.arange(rows, dtype=np.int32) * shape[axis], each)
    chosen = gather(build, whole, _moved(build, places, offsets), 0)
    chosen = build.reshape(chosen, (rows, each, between, behind))
    chosen = build.transpose(chosen, (0, 2, 1, 3)) if between > 1 else chosen
    return build.reshape(chosen, static_shape(op.results[0]))


def _of_i32(build: AcceleratorBuilder, places: Value) -> Value:
    """Returns places as 32-bit integers: constants at once."""
    constant = tensor_data.constant_of(places)
    if constant is None:
        return build.to(places, types.I32)
    return build.constant(array_of(places).astype(np.int32))


def _moved(build: AcceleratorBuilder, places: Value, offsets: tensor_data.Array) -> Value:
    """Returns places with offsets added, as a vector."""
    count = offsets.size
    if tfl.is_constant(places):
        return build.constant((array_of(places).reshape(-1) + offsets).astype(np.int32))
    row = (1, 1, 1, count)
    return build.reshape(
        build.binary("add", build.reshape(places, row), build.constant(offsets.reshape(row))), (count,)
    )


def _gather_nd(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A choice by several coordinates: by one, in a table whose first dimensions are merged."""
    table, places = op.operands
    shape, *_, depth = static_shape(table), *static_shape(places)
    count = math.prod(static_shape(places)[:-1])
    strides = np.array([math.prod(shape[axis + 1 : depth]) for axis in range(depth)], np.int32)
    merged = build.reshape(table, (math.prod(shape[:depth]), math.prod(shape[depth:])))
    if tfl.is_constant(places):
        flat = build.constant((array_of(places).reshape(count, depth) @ strides).astype(np.int32))
    else:
        flat = build.to(places, types.I32)
        if depth > 1:
            flat = build.reshape(flat, (1, 1, count, depth))
            factors = build.constant(np.ascontiguousarray(np.broadcast_to(strides, (1, 1, count, depth))))
            flat = build.binary("mul", flat, factors)
            flat = build.tfl("sum", (flat, build.ints((3,))), like(flat, (1, 1, count)), {"keep_dims": False})
        flat = build.reshape(flat, (count,))
    return build.reshape(gather(build, merged, flat, 0), static_shape(op.results[0]))


def _whole_table(op: tfl.TFLOp, build: AcceleratorBuilder, at: int) -> Value:
    """A choice from a table of 16-bit floats: the table in `f32`."""
    owner = op.operands[at].owner
    need(isinstance(owner, tfl.TFLOp) and owner.op_name == "dequantize", "the table is not dequantized")
    constant = tensor_data.constant_of(owner.operands[0])  # type: ignore[union-attr]
    need(constant is not None and types.element_of(constant.type) == types.F16, "the table is not of f16")
    assert constant is not None
    shape = static_shape(op.operands[at])
    operands = list(op.operands)
    operands[at] = build.constant(tensor_data.defer("cast", (constant,), shape, np.dtype(np.float32), types.F32))
    return build.again(op, operands).results[0]


def _scale_for_each_row(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A lookup in a table of integers with one scale: with one for each row, as the GPU reads it."""
    table = op.operands[1]
    element, constant = types.element_of(table.type), tensor_data.constant_of(table)
    need(isinstance(element, quant.UniformType) and constant is not None, "the table is no constant of integers")
    assert isinstance(element, quant.UniformType)
    assert constant is not None
    uniform, rows = element.data, static_shape(table)[0]
    need(len(uniform.scales) == 1, "it has several scales")
    points = tuple(uniform.zero_points) * rows
    kind = quant.tensor(
        uniform._replace(scales=tuple(uniform.scales) * rows, zero_points=points, axis=0), static_shape(table)
    )
    whole = build.insert(tfl.constant(constant, result_type=kind)).results[0]
    return build.again(op, (op.operands[0], whole)).results[0]


def _flat_lookup(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A lookup in a constant table of a higher rank, or in a computed one: a choice of rows."""
    places, table = op.operands
    need(types.element_of(table.type) == types.element_of(op.results[0].type), "the table is quantized")
    shape = static_shape(table)
    merged = build.reshape(table, (shape[0], math.prod(shape[1:])))
    chosen = gather(build, merged, build.reshape(places, (math.prod(static_shape(places)),)), 0)
    return build.reshape(chosen, static_shape(op.results[0]))


def _reverse(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A reversal: each axis for itself, in rank 4, where it is not the last one."""
    value = op.operands[0]
    for axis in ints_of(op.operands[1]):
        value = backwards(build, value, axis % len(static_shape(value)))
    return value


def _update(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A replaced part that begins at constants: what is around it is joined to it."""
    whole, new, start = op.operands
    shape, size = static_shape(whole), static_shape(new)
    begins = [max(min(at, dim - one), 0) for at, dim, one in zip(ints_of(start), shape, size, strict=True)]

    def joined(value: Value, axis: int) -> Value:
        if axis == len(shape):
            return new
        begin, end = begins[axis], begins[axis] + size[axis]
        middle = joined(part(build, value, axis, begin, size[axis]), axis + 1)
        before = [part(build, value, axis, 0, begin)] if begin else []
        behind = [part(build, value, axis, end, shape[axis] - end)] if end < shape[axis] else []
        return build.concatenation([*before, middle, *behind], axis)

    if size == shape:
        return build.copy(new)
    return joined(whole, 0)


PATTERNS = (
    form("strided-slice-then-reverse", "strided_slice", _strided_slice),
    form("slice-as-gather", "slice", _slice, 2),
    form("gather-as-slice", "gather", _gather_slice, 4),
    form("gather-of-floats", "gather", lambda op, build: _whole_table(op, build, 0), 3),
    form("gather-by-a-vector", "gather", _gather, 2),
    form("gather-nd-as-gather", "gather_nd", _gather_nd),
    form("lookup-of-floats", "embedding_lookup", lambda op, build: _whole_table(op, build, 1), 3),
    form("lookup-with-scales", "embedding_lookup", _scale_for_each_row, 2),
    form("lookup-as-gather", "embedding_lookup", _flat_lookup),
    form("reverse-in-rank-4", "reverse_v2", _reverse, 2),
    form("update-as-concatenation", "dynamic_update_slice", _update, 2),
)
