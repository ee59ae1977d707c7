"""Reductions, searches along an axis, and running sums."""

from __future__ import annotations

import math

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import (
    Attr,
    BuiltinRow,
    Entry,
    Lowering,
    ResultType,
    constant_operand,
)
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_KEEP = {"keep_dims": Attr("keep_dims", False)}
_SUMS = "f32 i32 i64"
_EXTREMES = "f32 i32 i64 ui8 i8 i16"


def _axes(op: Operation) -> tensor_data.Array | None:
    constant = tensor_data.constant_of(op.operands[1])
    return None if constant is None else tensor_data.to_array(constant)


def _no_axes(op: Operation) -> Failure | None:
    axes = _axes(op)
    return None if axes is not None and axes.size == 0 else Failure("it reduces something", is_special=True)


def _some_axes(op: Operation) -> Failure | None:
    axes = _axes(op)
    return Failure("it reduces nothing", is_special=True) if axes is not None and axes.size == 0 else None


def _forward(op: Operation, emit: LiteRTBuilder) -> Value:
    return op.operands[0]


def _reduce(op: str, target: str, element_types: str) -> tuple[Entry, ...]:
    return (
        BuiltinRow(op, target, element_types, narrow=(1,), options=_KEEP, constraint=_some_axes),
        Lowering(op, "nothing", _forward, constraint=_no_axes),
    )


def _index_constraint(op: Operation) -> Failure | None:
    element = types.element_of(op.results[0].type)
    return None if element in (types.I32, types.I64) else Failure("indices can be i32 or i64 only")


def _find(op: str, target: str) -> BuiltinRow:
    options = {"output_type": ResultType()}
    return BuiltinRow(op, target, "f32 i32 i8 ui8 i1", narrow=(1,), options=options, constraint=_index_constraint)


_CUMSUM_OPTIONS = {"exclusive": Attr("exclusive", False), "reverse": Attr("reverse", False)}


def _cumprod_constraint(op: Operation) -> Failure | None:
    return constant_operand(1, "the axis")(op) or (
        Failure("the size of the axis is not known") if _steps(op) is None else None
    )


def _steps(op: Operation) -> tuple[int, int] | None:
    """Returns the axis and its size if it is known and not so large that the graph would explode."""
    shape, axes = types.shape_of(op.operands[0].type), _axes(op)
    if shape is None or axes is None:
        return None
    axis = int(axes.reshape(-1)[0]) % len(shape)
    return (axis, shape[axis]) if shape[axis] >= 0 else None


def _cumprod(op: Operation, emit: LiteRTBuilder) -> Value:
    """Doubling: after step k, every element is the product of up to 2^k elements before it."""
    steps = _steps(op)
    assert steps is not None
    axis, size = steps
    reverse, exclusive = tf.get(op, "reverse", False), tf.get(op, "exclusive", False)
    value: Value = op.operands[0]
    if exclusive:
        value = _shifted(emit, value, axis, size, 1, reverse)
    for exponent in range(math.ceil(math.log2(size)) if size > 1 else 0):
        value = emit.binary("Mul", value, _shifted(emit, value, axis, size, 1 << exponent, reverse))
    return value


def _shifted(emit: LiteRTBuilder, value: Value, axis: int, size: int, by: int, reverse: bool) -> Value:
    """Returns the value moved along an axis, ones moving in."""
    shape = types.shape_of(value.type)
    assert shape is not None
    element = types.element_of(value.type)
    begin = [by if reverse and i == axis else 0 for i in range(len(shape))]
    kept = [max(size - by, 0) if i == axis else -1 for i in range(len(shape))]
    kept_shape = [kept[axis] if i == axis else dim for i, dim in enumerate(shape)]
    rest = emit.tf("Slice", (value, emit.ints(begin), emit.ints(kept)), types.tensor(element, kept_shape))
    pads = [((0, by) if reverse else (by, 0)) if i == axis else (0, 0) for i in range(len(shape))]
    return emit.pad(rest, pads, 1)


ENTRIES: tuple[Entry, ...] = (
    *_reduce("Mean", "mean", _SUMS),
    *_reduce("Sum", "sum", _SUMS),
    *_reduce("Prod", "reduce_prod", _SUMS),
    *_reduce("Max", "reduce_max", _EXTREMES),
    *_reduce("Min", "reduce_min", _EXTREMES),
    *_reduce("All", "reduce_all", "i1"),
    *_reduce("Any", "reduce_any", "i1"),
    _find("ArgMax", "arg_max"),
    _find("ArgMin", "arg_min"),
    BuiltinRow("Cumsum", "cumsum", _SUMS, narrow=(1,), options=_CUMSUM_OPTIONS),
    Lowering("Cumprod", "Slice PadV2 Mul", _cumprod, _SUMS, _cumprod_constraint),
)
