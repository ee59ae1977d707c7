"""Orders of numbers: extremes, running sums, classes, and bins."""

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
from tfconvert.converter.targets.litert.accelerators.pieces import backwards, like, need_floats, padded, part
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.values import Value

# The size to a multiple of which the GPU needs a row.
_LANES = 4

# The maximum length of a running sum of integers, and of a table of classes as comparisons.
_MAX_STEPS = 4096

# Integers up to this one are exact as f32.
_EXACT = 1 << 24


def _top_k(op: tfl.TFLOp, build: AcceleratorBuilder) -> list[Value]:
    """The largest numbers of rows: of rows with the lowest number at the end, to a multiple of four."""
    need_floats(op.operands[0])
    shape = static_shape(op.operands[0])
    missing = -shape[-1] % _LANES
    need(missing > 0, "its rows are a multiple of four already")
    lowest = float(np.finfo(np.float32).min)
    value = padded(build, op.operands[0], len(shape) - 1, 0, missing, lowest)
    return list(build.again(op, (value, *op.operands[1:])).results)


def _arg_min(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """The place of the lowest number: of the highest one of the negative numbers."""
    need_floats(op.operands[0])
    negative = build.unary("neg", op.operands[0])
    kind, options = op.results[0].type, {"output_type": option(op, "output_type")}
    return build.tfl("arg_max", (negative, op.operands[1]), kind, options)


def _arg_of_i32(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """The place of an extreme as a 64-bit integer, or by such an axis: as a 32-bit one, which is converted."""
    axis = (
        build.ints(ints_of(op.operands[1]))
        if static_shape(op.operands[1])
        else build.number(ints_of(op.operands[1])[0])
    )
    kind = types.tensor(types.I32, static_shape(op.results[0]))
    found = build.tfl(op.op_name, (op.operands[0], axis), kind, {"output_type": "INT32"})
    return build.to(found, types.element_of(op.results[0].type))


def _cumsum(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A running sum: forwards along the width in rank 4; one that excludes is shifted, one backwards reversed."""
    need_floats(op.operands[0])
    shape, (axis,) = static_shape(op.operands[0]), ints_of(op.operands[1])
    axis %= len(shape)
    parts = (1, math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
    value = build.reshape(op.operands[0], parts)
    if option(op, "reverse"):
        value = backwards(build, value, 2)
    options = {"exclusive": False, "reverse": False}
    value = build.tfl("cumsum", (value, build.number(2)), value.type, options)
    if option(op, "exclusive"):
        value = padded(build, part(build, value, 2, 0, parts[2] - 1), 2, 1, 0)
    if option(op, "reverse"):
        value = backwards(build, value, 2)
    return build.reshape(value, shape)


def _cumsum_by_doubling(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A running sum of integers: sums of two parts of which one is moved, twice as far at each step."""
    need(types.element_of(op.operands[0].type) == types.I32, "its elements are not i32")
    shape, (axis,) = static_shape(op.operands[0]), ints_of(op.operands[1])
    axis %= len(shape)
    parts = (1, math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
    need(1 < parts[2] <= _MAX_STEPS, "it is long")
    value, is_reverse = build.reshape(op.operands[0], parts), option(op, "reverse")
    if option(op, "exclusive"):
        value = _shifted(build, value, 1, is_reverse=is_reverse)
    for step in (1 << exponent for exponent in range((parts[2] - 1).bit_length())):
        value = build.binary("add", value, _shifted(build, value, step, is_reverse=is_reverse))
    return build.reshape(value, shape)


def _shifted(build: AcceleratorBuilder, value: Value, step: int, *, is_reverse: bool) -> Value:
    """Moves the third axis by some places, with zeros where nothing comes from."""
    size = static_shape(value)[2]
    kept = part(build, value, 2, step if is_reverse else 0, size - step)
    return padded(build, kept, 2, 0, step) if is_reverse else padded(build, kept, 2, step, 0)


def _one_hot(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """Classes as vectors: of a vector of classes, in floats, along the last axis; then moved and converted."""
    classes, depth = op.operands[0], ints_of(op.operands[1])[0]
    element, shape = types.element_of(op.results[0].type), static_shape(classes)
    axis = option(op, "axis") % (len(shape) + 1)
    before, behind = math.prod(shape[:axis]), math.prod(shape[axis:])
    numbers = [float(array_of(value).astype(np.float64)) for value in op.operands[2:4]]
    need(element == types.F32 or all(abs(number) <= _EXACT for number in numbers), "its numbers are large")
    vector = build.to(build.reshape(classes, (before * behind,)), types.I32)
    operands = (vector, build.number(depth), *(build.scalar(number, types.F32) for number in numbers))
    value = build.tfl("one_hot", operands, types.tensor(types.F32, (before * behind, depth)), {"axis": -1})
    if behind > 1 and axis < len(shape):
        value = build.transpose(build.reshape(value, (before, behind, depth)), (0, 2, 1))
    return build.to(build.reshape(value, static_shape(op.results[0])), element)


def _one_hot_as_equal(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """Classes as vectors: comparisons with all classes."""
    classes, depth = op.operands[0], ints_of(op.operands[1])[0]
    element, shape = types.element_of(op.results[0].type), static_shape(classes)
    axis = option(op, "axis") % (len(shape) + 1)
    before, behind = math.prod(shape[:axis]), math.prod(shape[axis:])
    on, off = (array_of(value).item() for value in op.operands[2:4])
    need((on, off) == (1, 0) and depth <= _MAX_STEPS, "its numbers are not 0 and 1")
    rows = build.to(build.reshape(classes, (1, before, 1, behind)), types.I32)
    known = build.constant(np.arange(depth, dtype=np.int32).reshape(1, 1, depth, 1))
    value = build.to(build.binary("equal", rows, known, types.I1), element)
    return build.reshape(value, static_shape(op.results[0]))


def _bucketize(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """Bins of numbers: how many boundaries are not above each."""
    need_floats(op.operands[0])
    shape, boundaries = static_shape(op.operands[0]), option(op, "boundaries")
    count = math.prod(shape)
    value = build.reshape(op.operands[0], (1, 1, count, 1))
    row = build.constant(np.array(boundaries, np.float32).reshape(1, 1, 1, -1))
    above = build.to(build.binary("greater_equal", value, row, types.I1), types.F32)
    total = build.tfl("sum", (above, build.ints((3,))), like(above, (1, 1, count)), {"keep_dims": False})
    return build.to(build.reshape(total, shape), types.element_of(op.results[0].type))


PATTERNS = (
    form("top-k-of-whole-lanes", "topk_v2", _top_k),
    *(form(f"{name}-of-32-bits", name, _arg_of_i32, 3) for name in ("arg_max", "arg_min")),
    form("arg-min-as-arg-max", "arg_min", _arg_min, 2),
    form("cumsum-in-rank-4", "cumsum", _cumsum, 2),
    form("cumsum-by-doubling", "cumsum", _cumsum_by_doubling),
    form("one-hot-of-a-vector", "one_hot", _one_hot),
    form("one-hot-as-equal", "one_hot", _one_hot_as_equal, 0),
    form("bucketize-as-comparisons", "bucketize", _bucketize),
)
