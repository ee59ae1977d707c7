"""Running sums, products and the like: each step combines every element with the one twice as far before it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite, axis_of, ints
from tfconvert.converter.targets.stablehlo.legalize.regions import loop
from tfconvert.converter.targets.stablehlo.legalize.shaping import padded
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.attributes import DictionaryAttr, IntegerAttr, StringAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

SCAN = "tfconvert.scan"
"""The attribute that tells what a loop computes: `{axis = 1 : i64, combine = "add"}`.

Engines that have an op for it may put that in the loop's place; the scanned value is the second one that it carries.
"""


class Combination(NamedTuple):
    """The combining function of a scan.

    Attributes:
        name: Its name.
        emit: Emits the associative op on two values of one shape.
        initial: What combines to the other element.
    """

    name: str
    emit: Callable[[StableHLOBuilder, Value, Value], Value]
    initial: float


def _add(emit: StableHLOBuilder, one: Value, other: Value) -> Value:
    return emit.binary("add", one, other)


def _multiply(emit: StableHLOBuilder, one: Value, other: Value) -> Value:
    return emit.binary("multiply", one, other)


def _add_powers(emit: StableHLOBuilder, one: Value, other: Value) -> Value:
    """Emits the logarithm of a sum of exponentials; neither of them overflows."""
    # Two infinities have no distance.
    distance = emit.select(emit.compare("EQ", one, other), 0, emit.unary("abs", emit.binary("subtract", one, other)))
    rest = emit.unary("log_plus_one", emit.unary("exponential", emit.unary("negate", distance)))
    return emit.binary("add", emit.binary("maximum", one, other), rest)


ADD = Combination("add", _add, 0)
MULTIPLY = Combination("multiply", _multiply, 1)
ADD_POWERS = Combination("add_powers", _add_powers, -math.inf)


def scan(emit: StableHLOBuilder, value: Value, axis: int, combine: Combination) -> Value:
    """Emits a running combination along an axis, with each element the last of its own.

    Args:
        emit: The emitter.
        value: The value.
        axis: The axis.
        combine: How two elements are combined.
    """
    dim = emit.dims(value)[axis]
    if dim < 0:
        return _scan_open(emit, value, axis, combine)
    distance = 1
    while distance < dim:
        value = combine.emit(emit, shifted(emit, value, axis, distance, combine.initial), value)
        distance *= 2
    return value


def shifted(emit: StableHLOBuilder, value: Value, axis: int, distance: int, initial: float) -> Value:
    """Emits a shift along an axis towards its end; what falls out is lost."""
    rank = len(emit.dims(value))
    low = [distance if at == axis else 0 for at in range(rank)]
    return padded(emit, value, low, [-each for each in low], emit.scalar(initial, types.element_of(value.type)))


def _scan_open(emit: StableHLOBuilder, value: Value, axis: int, combine: Combination) -> Value:
    """Emits a loop over the distances: how many there are is known at run time only."""
    dims = emit.dims(value)
    rank, element = len(dims), types.element_of(value.type)

    def condition(inner: StableHLOBuilder, args: Sequence[Value]) -> Sequence[Value]:
        return (inner.compare("LT", args[0], inner.value(inner.size(dims[axis]))),)

    def body(inner: StableHLOBuilder, args: Sequence[Value]) -> Sequence[Value]:
        distance, found = args
        double = inner.sizes.fresh(inner.value(inner.compute("multiply", inner.size(dims[axis]), 2)))
        room = inner.broadcast(
            inner.scalar(combine.initial, element), [double if at == axis else dim for at, dim in enumerate(dims)]
        )
        zero = inner.scalar(0, types.I32)
        starts = [distance if at == axis else zero for at in range(rank)]
        moved = inner.one("dynamic_update_slice", (room, found, *starts), element, inner.dims(room))
        operands = (moved, inner.ints([0] * rank), inner.shape(dims), inner.ints([1] * rank))
        before = inner.one("real_dynamic_slice", operands, element, dims)
        return inner.binary("multiply", distance, 2), combine.emit(inner, before, found)

    found = loop(emit, (emit.scalar(1, types.I32), value), condition, body)[1]
    told = {"axis": IntegerAttr.get(axis, types.I64), "combine": StringAttr.get(combine.name)}
    found.op.attributes[SCAN] = DictionaryAttr.get(told)
    return found


def _scanning(combine: Combination) -> Rewrite:
    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        value = op.operands[0]
        dims, element = emit.dims(value), types.element_of(value.type)
        axis = axis_of(ints(op, 1, "the axis")[0], len(dims))
        turn = {"dimensions": (axis,)} if tf.get(op, "reverse", False) else None
        if turn:
            value = emit.one("reverse", (value,), element, dims, turn)
        if tf.get(op, "exclusive", False):
            value = shifted(emit, value, axis, 1, combine.initial)
        value = scan(emit, value, axis, combine)
        return emit.one("reverse", (value,), element, dims, turn) if turn else value

    return lower


SCANS: Mapping[str, Rewrite] = {
    "Cumprod": _scanning(MULTIPLY),
    "Cumsum": _scanning(ADD),
    "CumulativeLogsumexp": _scanning(ADD_POWERS),
}
