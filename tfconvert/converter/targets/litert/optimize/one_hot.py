"""Simplifies casts of one-hot vectors, and rows of a table that are picked by multiplying with them.

    cast(one_hot(i, n, 1, 0))                  ->  one_hot(i, n, 1.0, 0.0)
    fully_connected(one_hot(i, n, 1, 0), w, b) ->  gather(transpose(w), i) + b

The kernels of gathers reject indices out of range, where the product is zero. So the indices must be known to be in
range: results of arg_max or arg_min, remainders, or numbers limited by constants.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_array, constant_int, constant_number
from tfconvert.converter.rewrite.pattern import Declined, Pattern, need, required
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import option, shape_of, target_of
from tfconvert.converter.targets.litert.optimize import fold_into_weights
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

# Element types that the kernel writes.
_TARGETS = ("f32", "i32", "i64", "ui8", "i8", "i1")


_SMALL_TYPES = {"i1": (0, 1), "ui8": (0, 255), "i8": (-128, 127), "ui16": (0, 65535), "i16": (-32768, 32767)}
_INT32 = (-(1 << 31), (1 << 31) - 1)
# The maximum depth of the search for the limits of numbers.
_LONGEST = 6

_Limits = tuple[float, float]
_ANY: _Limits = (-math.inf, math.inf)


def _limits(value: Value, depth: int = _LONGEST) -> _Limits:
    """Returns the minimum and maximum of a value, as far as its producers determine them."""
    small = _SMALL_TYPES.get(str(value.element), _ANY)
    array = constant_array(value)
    if array is not None:
        return (float(array.min()), float(array.max())) if array.size and array.dtype.kind in "iu" else small
    if not isinstance(value, OpResult) or not depth:
        return small
    return _limits_of(value.op, value, depth, small)


def _limits_of(op: Operation, value: Value, depth: int, small: _Limits) -> _Limits:
    if op.name in questions.MOVES:
        return _limits(op.operands[questions.MOVES[op.name]], depth - 1)
    if op.name == "tfl.cast":
        row = types.from_mlir(op.operands[0].element)
        before = _limits(op.operands[0], depth - 1) if row is not None and row.dtype.kind in "biu" else _ANY
        # A number that doesn't fit wraps around.
        return before if small == _ANY and _INT32[0] <= before[0] and before[1] <= _INT32[1] else small
    if op.name in ("tfl.arg_max", "tfl.arg_min"):
        dims = op.operands[0].shape
        axes = questions.axes(op.operands[1], dims)
        length = dims[next(iter(axes))] if dims and axes else -1
        return (0, length - 1) if length > 0 else _ANY
    if op.name == "tfl.floor_mod":
        divisor = constant_number(op.operands[1])
        return (0, divisor - 1) if divisor is not None and divisor > 0 else _ANY
    if op.name in ("tfl.maximum", "tfl.minimum"):
        choose = max if op.name == "tfl.maximum" else min
        one, other = (_limits(operand, depth - 1) for operand in op.operands)
        return choose(one[0], other[0]), choose(one[1], other[1])
    return small


def _values(one_hot: Operation) -> list[float]:
    """Returns the on and off values."""
    values = [constant_array(operand) for operand in one_hot.operands[2:4]]
    numbers = [float(value.item()) for value in values if value is not None and value.size == 1]
    need(len(numbers) == 2, "the values are computed")
    return numbers


def _of_type(op: Operation) -> Emit:
    source = required(op.operands[0].sole_producer("tfl.one_hot"), "no ones and zeros come before")
    element, values = op.results[0].element, _values(source)
    need(str(element) in _TARGETS, "the kernel doesn't write this type")
    need(all(value in (0, 1) for value in values), "other numbers than zero and one may change")

    def emit_one_hot(build: FormBuilder) -> Value:
        on, off = (build.derived(np.array(value).astype(types.numpy_dtype(element))) for value in values)
        options = {"axis": option(source, "axis")}
        return build.tfl("one_hot", (*source.operands[:2], on, off), op.results[0].type, options)

    return emit_one_hot


def _picked(op: Operation) -> Emit:
    source = required(op.operands[0].producer("tfl.one_hot"), "no ones and zeros come before")
    weights, dims = fold_into_weights.float_filter(op), fold_into_weights.filter_shape(op)
    need(_values(source) == [1, 0], "there are other numbers than ones and zeros")
    ids, shape, axis = source.operands[0], shape_of(source.operands[0]), option(source, "axis")
    if weights is None or dims is None or axis not in (-1, len(shape)) or constant_int(source.operands[1]) != dims[1]:
        raise Declined("the table isn't a constant of 32-bit floats with a row for each number")
    least, largest = _limits(ids)
    need(least >= 0 and largest < dims[1], "the indices may be out of range")
    bias = op.operands[2] if tfl.has_operand(op, 2) else None
    need(bias is not None or questions.is_plain(op), "an activation follows, and nothing is added that could apply it")
    table, kind, target = questions.transposed_constant(weights, (1, 0)), op.results[0].type, target_of(op.results[0])

    def emit_gather(build: FormBuilder) -> Value:
        rows = build.derived(table, op.operands[1])
        value = build.tfl(
            "gather", (rows, ids), types.tensor(types.F32, (*shape, dims[0])), {"axis": 0, "batch_dims": 0}
        )
        if value.shape != types.shape_of(kind):
            value = build.tfl("reshape", (value, build.ints(target)), kind)
        if bias is None:
            return value
        return build.tfl("add", (value, bias), kind, {questions.ACTIVATION: questions.activation(op)})

    return emit_gather


NEEDS = "one_hot"
"""The operators without any of which no pattern matches."""

PATTERNS: tuple[Pattern[Any], ...] = (
    planned("one-hot-of-type", "cast", _of_type, benefit=10, producers={0: ("tfl.one_hot",)}),
    planned(
        "one-hot-to-gather", "fully_connected", _picked, benefit=10, depth=_LONGEST + 1, producers={0: ("tfl.one_hot",)}
    ),
)
