"""Reductions, searches along an axis, and running sums."""

from __future__ import annotations

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Attr, BuiltinRow, Entry, Lowering, ResultType
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, types
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
    element = op.results[0].element
    return None if element in (types.I32, types.I64) else Failure("indices can be i32 or i64 only")


def _find(op: str, target: str) -> BuiltinRow:
    options = {"output_type": ResultType()}
    return BuiltinRow(op, target, "f32 i32 i8 ui8 i1", narrow=(1,), options=options, constraint=_index_constraint)


_CUMSUM_OPTIONS = {"exclusive": Attr("exclusive", False), "reverse": Attr("reverse", False)}


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
)
