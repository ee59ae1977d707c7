"""Simplifies casts of one-hot vectors, and rows of a table that are picked by multiplying with them.

    cast(one_hot(i, n, 1, 0))                  ->  one_hot(i, n, 1.0, 0.0)
    fully_connected(one_hot(i, n, 1, 0), w, b) ->  gather(transpose(w), i) + b

The kernels of gathers reject indices out of range, where the product is zero. So the indices must be known to be in
range: results of arg_max or arg_min, remainders, or numbers limited by constants.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.ir.constants import constant_array, constant_int, constant_number
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.optimize import fold_into_weights, matching
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.dims import constant_target
from tfconvert.schema.dialects.tensor_data import Array, Constant
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
    if op.name in matching.MOVES:
        return _limits(op.operands[matching.MOVES[op.name]], depth - 1)
    if op.name == "tfl.cast":
        row = types.from_mlir(op.operands[0].element)
        before = _limits(op.operands[0], depth - 1) if row is not None and row.dtype.kind in "biu" else _ANY
        # A number that doesn't fit wraps around.
        return before if small == _ANY and _INT32[0] <= before[0] and before[1] <= _INT32[1] else small
    if op.name in ("tfl.arg_max", "tfl.arg_min"):
        dims = op.operands[0].shape
        axes = matching.axes(op.operands[1], dims)
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


def _values(one_hot: Operation) -> tuple[float, float] | None:
    """Returns the on and off values."""
    on, off = (constant_number(operand) for operand in one_hot.operands[2:4])
    if on is None or off is None:
        flags = [constant_array(operand) for operand in one_hot.operands[2:4]]
        if any(flag is None or flag.size != 1 for flag in flags):
            return None
        on, off = (float(flag.item()) for flag in flags if flag is not None)
    return on, off


def _match_cast(op: Operation) -> tuple[Operation, list[Array]] | Failure:
    source = op.operands[0].sole_producer("tfl.one_hot")
    values = None if source is None else _values(source)
    element = op.results[0].element
    if source is None or values is None or str(element) not in _TARGETS:
        return Failure("no constant ones and zeros come before, or the kernel doesn't write this type")
    if not all(value in (0, 1) for value in values):
        return Failure("other numbers than zero and one may change when they are converted")
    return source, [np.array(value).astype(types.numpy_dtype(element)) for value in values]


def _rewrite_cast(op: Operation, match: tuple[Operation, list[Array]], rewriter: Rewriter) -> None:
    source, values = match
    operands = [*source.operands[:2], *(matching.insert_constant(rewriter, value) for value in values)]
    options = {"axis": tfl.attribute(source, "axis")}
    rewriter.replace(rewriter.insert(tfl.build("one_hot", operands, [op.results[0].type], options)))


class _Picked(NamedTuple):
    """Rows that a product picks from a table.

    Attributes:
        ids: Their numbers.
        table: The table, a row for each number.
        shape: The shape of the rows that are picked.
        bias: The vector that is added to each row, if any.
    """

    ids: Value
    table: Constant
    shape: types.Shape
    bias: Value | None


def _match_product(op: Operation) -> _Picked | Failure:
    source = op.operands[0].producer("tfl.one_hot")
    weights, dims = fold_into_weights.float_filter(op), fold_into_weights.filter_shape(op)
    if source is None or weights is None or dims is None or _values(source) != (1, 0):
        return Failure("no ones and zeros come before, or the table isn't a constant of 32-bit floats")
    shape = source.operands[0].shape
    axis = tfl.attribute(source, "axis")
    if shape is None or axis not in (-1, len(shape)) or constant_int(source.operands[1]) != dims[1]:
        return Failure("the depth isn't the number of rows of the table")
    least, largest = _limits(source.operands[0])
    if least < 0 or largest >= dims[1]:
        return Failure("the indices may be out of range")
    bias = op.operands[2] if len(op.operands) > 2 and not tfl.is_absent(op.operands[2]) else None
    if bias is None and not matching.is_plain(op):
        return Failure("an activation follows, and nothing is added that could apply it")
    if constant_target(op.results[0].shape) is None:
        return Failure("more than one dimension is unknown")
    table = tensor_data.defer("transpose", (weights,), (dims[1], dims[0]), (1, 0))
    return _Picked(source.operands[0], table, (*shape, dims[0]), bias)


def _rewrite_product(op: Operation, match: _Picked, rewriter: Rewriter) -> None:
    result = op.results[0].type
    table = matching.insert_constant(rewriter, match.table, op.operands[1])
    picked = types.tensor(types.F32, match.shape)
    value = rewriter.insert(tfl.build("gather", [table, match.ids], [picked], {"axis": 0, "batch_dims": 0})).results[0]
    if match.shape != types.shape_of(result):
        target = constant_target(types.shape_of(result))
        assert target is not None, "checked by the match"
        dims = matching.insert_constant(rewriter, np.array(target, np.int32))
        value = rewriter.insert(tfl.build("reshape", [value, dims], [result])).results[0]
    if match.bias is not None:
        options = {matching.ACTIVATION: op.properties.get(matching.ACTIVATION, matching.NONE)}
        value = rewriter.insert(tfl.build("add", [value, match.bias], [result], options)).results[0]
    rewriter.replace(value)


PATTERNS: tuple[Pattern[Any], ...] = (
    Pattern("one-hot-of-type", "tfl.cast", _match_cast, _rewrite_cast, benefit=10, producers={0: ("tfl.one_hot",)}),
    Pattern(
        "one-hot-to-gather",
        "tfl.fully_connected",
        _match_product,
        _rewrite_product,
        benefit=10,
        depth=_LONGEST + 1,
        producers={0: ("tfl.one_hot",)},
    ),
)
