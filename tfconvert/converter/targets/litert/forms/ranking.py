"""Orders of numbers: extremes, running sums, classes, and bins."""

from __future__ import annotations

import math

import numpy as np

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Rewrite
from tfconvert.converter.targets.litert.forms.questions import (
    MAX_RANK,
    array_of,
    ints_of,
    like,
    need_floats,
    option,
    static_shape,
)
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.values import Value

# The size to a multiple of which the GPU needs a row.
_LANES = 4

# The maximum length of a running sum of integers, and of a table of classes as comparisons.
_MAX_STEPS = 4096

# Integers up to this one are exact as f32.
_EXACT = 1 << 24


def _top_k(op: tfl.TFLOp, build: FormBuilder) -> list[Value]:
    """The largest numbers of rows: of rows with the lowest numbers at the end, to a multiple of four."""
    need_floats(op.operands[0])
    shape = static_shape(op.operands[0])
    missing = -shape[-1] % _LANES
    need(missing > 0, "its rows are a multiple of four already")
    value = build.border(op.operands[0], len(shape) - 1, 0, missing, -math.inf)
    return list(build.again(op, (value, *op.operands[1:])).results)


def _extreme(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """The place of an extreme: of the highest number, in rank 4 along no channels, as a 32-bit integer."""
    value = op.operands[0]
    need(value.element in (types.F32, types.I32), "its elements are quantized")
    value = value if op.op_name == "arg_max" else build.unary("neg", value)
    (axis,) = ints_of(op.operands[1])
    rank = len(static_shape(value))
    if rank > MAX_RANK or axis % rank == rank - 1:
        # Lanes that are not filled hold zeros, which are above negative numbers.
        value, axis = build.parted(value, axis), 2
    shape = list(static_shape(value))
    del shape[axis]
    found = build.tfl("arg_max", (value, build.number(axis)), types.tensor(types.I32, shape), {"output_type": "INT32"})
    found = build.reshape(found, static_shape(op.results[0]))
    return build.cast(found, op.results[0].element)


def _cumsum(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A running sum: forwards along the width in rank 4; one that excludes is shifted, one backwards reversed."""
    need_floats(op.operands[0])
    (axis,) = ints_of(op.operands[1])
    value = build.parted(op.operands[0], axis)
    size = static_shape(value)[2]
    need(size > 1 or not option(op, "exclusive"), "it sums nothing")
    if option(op, "reverse"):
        value = build.backwards(value, 2)
    options = {"exclusive": False, "reverse": False}
    value = build.tfl("cumsum", (value, build.number(2)), value.type, options)
    if option(op, "exclusive"):
        value = build.border(build.cut(value, 2, 0, size - 1), 2, 1, 0)
    if option(op, "reverse"):
        value = build.backwards(value, 2)
    return build.reshape(value, static_shape(op.results[0]))


def _cumsum_by_doubling(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A running sum of integers: sums of two parts of which one is moved, twice as far at each step."""
    need(op.operands[0].element == types.I32, "its elements are not i32")
    (axis,) = ints_of(op.operands[1])
    value, is_reverse = build.parted(op.operands[0], axis), option(op, "reverse")
    size = static_shape(value)[2]
    need(size <= _MAX_STEPS, "it is long")
    need(size > 1 or not option(op, "exclusive"), "it sums nothing")
    if option(op, "exclusive"):
        value = _shifted(build, value, 1, is_reverse=is_reverse)
    for step in (1 << exponent for exponent in range((size - 1).bit_length())):
        value = build.binary("add", value, _shifted(build, value, step, is_reverse=is_reverse))
    return build.reshape(value, static_shape(op.results[0]))


def _shifted(build: FormBuilder, value: Value, step: int, *, is_reverse: bool) -> Value:
    """Moves the third axis by some places, with zeros where nothing comes from."""
    size = static_shape(value)[2]
    kept = build.cut(value, 2, step if is_reverse else 0, size - step)
    return build.border(kept, 2, 0, step) if is_reverse else build.border(kept, 2, step, 0)


def _one_hot(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """Classes as vectors: of a vector of classes, in floats, along the last axis; then moved and converted."""
    classes, depth = op.operands[0], ints_of(op.operands[1])[0]
    element, shape = op.results[0].element, static_shape(classes)
    axis = option(op, "axis") % (len(shape) + 1)
    before, behind = math.prod(shape[:axis]), math.prod(shape[axis:])
    numbers = [float(array_of(value).astype(np.float64)) for value in op.operands[2:4]]
    need(element == types.F32 or all(abs(number) <= _EXACT for number in numbers), "its numbers are large")
    vector = build.cast(build.reshape(classes, (before * behind,)), types.I32)
    operands = (vector, build.number(depth), *(build.scalar(number, types.F32) for number in numbers))
    value = build.tfl("one_hot", operands, types.tensor(types.F32, (before * behind, depth)), {"axis": -1})
    if behind > 1 and axis < len(shape):
        value = build.transpose(build.reshape(value, (before, behind, depth)), (0, 2, 1))
    return build.cast(build.reshape(value, static_shape(op.results[0])), element)


def _one_hot_as_equal(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """Classes as vectors: comparisons with all classes."""
    classes, depth = op.operands[0], ints_of(op.operands[1])[0]
    element, shape = op.results[0].element, static_shape(classes)
    axis = option(op, "axis") % (len(shape) + 1)
    before, behind = math.prod(shape[:axis]), math.prod(shape[axis:])
    on, off = (array_of(value).item() for value in op.operands[2:4])
    need((on, off) == (1, 0) and depth <= _MAX_STEPS, "its numbers are not 0 and 1")
    rows = build.cast(build.reshape(classes, (1, before, 1, behind)), types.I32)
    known = build.constant(np.arange(depth, dtype=np.int32).reshape(1, 1, depth, 1))
    value = build.cast(build.compare("equal", rows, known), element)
    return build.reshape(value, static_shape(op.results[0]))


def _bucketize(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """Bins of numbers: how many boundaries are not above each."""
    need_floats(op.operands[0])
    shape, boundaries = static_shape(op.operands[0]), option(op, "boundaries")
    count = math.prod(shape)
    value = build.reshape(op.operands[0], (1, 1, count, 1))
    row = build.constant(np.array(boundaries, np.float32).reshape(1, 1, 1, -1))
    above = build.cast(build.compare("greater_equal", value, row), types.F32)
    total = build.tfl("sum", (above, build.ints((3,))), like(above, (1, 1, count)), {"keep_dims": False})
    return build.cast(build.reshape(total, shape), op.results[0].element)


REWRITES = (
    Rewrite("top-k-of-whole-lanes", "topk_v2", _top_k),
    *(Rewrite(f"{name}-of-the-highest", name, _extreme, 2) for name in ("arg_max", "arg_min")),
    Rewrite("cumsum-in-rank-4", "cumsum", _cumsum, 2),
    Rewrite("cumsum-by-doubling", "cumsum", _cumsum_by_doubling),
    Rewrite("one-hot-of-a-vector", "one_hot", _one_hot),
    Rewrite("one-hot-as-equal", "one_hot", _one_hot_as_equal, 0),
    Rewrite("bucketize-as-comparisons", "bucketize", _bucketize),
)
