"""Slices of dimensions that only running tells, whose bounds are counted from the end: `x[-2:]`, `x[:-1]`, `x[::-1]`.

JAX computes the bounds from the size. TensorFlow's strided slice counts from the end by itself, and limits bounds to
the dimension, so one op is enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tfconvert.converter.from_stablehlo.idioms import number, operands_of
from tfconvert.converter.from_stablehlo.remembered import remembered
from tfconvert.converter.ir.tasks import Task, drive
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.schema.dialects.dims import UNKNOWN
from tfconvert.schema.ir import dim
from tfconvert.schema.ir.dim import Dim, DimCall, Symbol
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

Number = int | EmittedTensor
"""An integer, or a scalar of `i32` that is computed."""

END = None
"""The bound that is the size."""


class Span(NamedTuple):
    """A part of a dimension.

    Attributes:
        begin: The first index, counted from the end if it is negative, `None` for that of the first or last element.
        end: The index before which it ends, `None` if it is the whole rest.
        step: The step, negative for one that goes down.
    """

    begin: int | None
    end: int | None = END
    step: int = 1


def offset_of(tensor: EmittedTensor) -> tuple[int, int] | None:
    """Returns the symbol of a size and a number, where a scalar is known to be their sum."""
    return drive(_offset(tensor))


@remembered
def _offset(tensor: EmittedTensor) -> Task[tuple[int, int] | None]:
    owner = tensor.value.owner
    shape = tensor.shape
    if isinstance(owner, Operation) and owner.name in _SAME and shape is not None and math.prod(shape) == 1:
        return (yield _offset(_of(tensor, owner, 0)))
    if isinstance(owner, Operation) and owner.name in ("tf.AddV2", "tf.Sub"):
        sign = 1 if owner.name == "tf.AddV2" else -1
        for first, second in ((0, 1), (1, 0))[: 1 + (sign > 0)]:
            step = tensor.known.partial(owner.operands[second])
            if step is None or len(step) != 1 or step[0] <= UNKNOWN:
                continue
            base = yield _offset(_of(tensor, owner, first))
            if base is not None:
                return base[0], base[1] + sign * step[0]
    partial = tensor.known.partial(tensor.value)
    return (partial[0], 0) if partial is not None and len(partial) == 1 and partial[0] < UNKNOWN else None


# What keeps the one element of a tensor.
_SAME = ("tf.Cast", "tf.ExpandDims", "tf.Reshape", "tf.Squeeze")


def _of(tensor: EmittedTensor, owner: Operation, index: int) -> EmittedTensor:
    return EmittedTensor(tensor.builder, owner.operands[index], tensor.known)


def spanned(x: EmittedTensor, spans: Mapping[int, Span]) -> EmittedTensor:
    """Returns the parts of some dimensions of a tensor."""
    axes = range(len(x.shape or ()))
    of = [spans.get(axis, Span(None)) for axis in axes]
    masks = [sum(1 << axis for axis in axes if bound[axis] is None) for bound in _bounds(of)]
    begins, ends = ([0 if each is None else each for each in bound] for bound in _bounds(of))
    steps = [each.step for each in of]
    return x.op("StridedSlice", x, begins, ends, steps, begin_mask=masks[0], end_mask=masks[1])  # type: ignore[no-any-return]


def _bounds(spans: Sequence[Span]) -> tuple[list[int | None], list[int | None]]:
    return [each.begin for each in spans], [each.end for each in spans]


# The number of parts up to which a sum is written out. Bounds have one or two.
_MAX_PARTS = 16

_NAMES = {
    "AddV2": "add",
    "Sub": "subtract",
    "Mul": "multiply",
    "Minimum": "minimum",
    "Maximum": "maximum",
    "FloorMod": "floor_mod",
}


def _size(size: int) -> Dim:
    """Returns a size, or its symbol, in the algebra of sizes."""
    return size if size >= 0 else Symbol(size)


def _formula(x: Number) -> Dim:
    """Returns what a scalar is computed as."""
    return x if isinstance(x, int) else drive(_computed(x))


@remembered
def _computed(x: EmittedTensor) -> Task[Dim]:
    value = number(x)
    if value is not None:
        return int(value)
    moved, negated = operands_of(x, "Cast", "ExpandDims", "Reshape", "Squeeze"), operands_of(x, "Neg")
    if moved or negated:
        inner = yield _computed((moved or negated)[0])
        return dim.subtract(0, inner) if negated else inner
    opaque = Symbol(x.value, is_natural=False)
    for name, operation in _NAMES.items():
        operands = operands_of(x, name)
        if operands:
            one = yield _computed(operands[0])
            other = yield _computed(operands[1])
            is_product = operation == "multiply" and not isinstance(one, int) and not isinstance(other, int)
            # Written out, a product of sums is longer than both of them together.
            is_call = is_product or operation == "floor_mod"
            found = DimCall(operation, one, other) if is_call else dim.apply(operation, one, other)
            return found if isinstance(found, int) or len(found.parts) <= _MAX_PARTS else opaque
    partial = x.known.partial(x.value)
    return Symbol(partial[0]) if partial is not None and len(partial) == 1 and partial[0] < UNKNOWN else opaque


def bound_of(x: Number, size: int) -> tuple[int | None] | None:
    """Returns a bound as a span has it, in a tuple; `None` if it isn't one.

    Args:
        x: The bound, which is within the dimension.
        size: The symbol of the dimension's size.
    """
    return _bound(_formula(x), Symbol(size))


def _bound(formula: Dim, size: Symbol) -> tuple[int | None] | None:
    if isinstance(formula, int):
        return (formula,) if formula >= 0 else None
    behind = dim.subtract(formula, size)
    if isinstance(behind, int):
        return (behind or END,) if behind <= 0 else None
    if not isinstance(formula, DimCall):
        return None
    one, other = formula.arguments
    if formula.name == "floor_mod" and (one, other) == (-1, size):
        # What is divided by is at least 1.
        return (-1,)
    if formula.name == "minimum" and one is size and isinstance(other, int) and other >= 0:
        return (other,)
    last = dim.subtract(one, size) if formula.name == "maximum" and other == 0 else 0
    return (last,) if isinstance(last, int) and last < 0 else None


def counter_from_end(x: EmittedTensor, size: int) -> Value | None:
    """Returns the counter whose index from the end of a dimension a scalar is, `None` if it isn't one.

    Args:
        x: The index.
        size: The dimension's size, or its symbol.
    """
    before = dim.subtract(dim.subtract(_size(size), _formula(x)), 1)
    return before.name if isinstance(before, Symbol) and isinstance(before.name, Value) else None


def span_of(begin: Number, length: Number, size: int) -> Span | None:
    """Returns the part of a dimension that a slice is, `None` if it isn't one that is counted from the end.

    Args:
        begin: Where it begins.
        length: Its length.
        size: The symbol of the dimension's size.
    """
    start, extent, whole = _formula(begin), _formula(length), Symbol(size)
    limited = () if isinstance(length, int) else _pairs(operands_of(length, "Maximum"))
    for one, zero in limited:
        if number(zero) == 0:
            # Where the end is before the beginning, there is nothing between them.
            extent = _formula(one)
    end = dim.add(start, extent)
    first, last = _bound(start, whole), None if isinstance(end, int) else _bound(end, whole)
    return None if first is None or last is None else Span(first[0], last[0])


def _pairs(operands: Sequence[EmittedTensor]) -> Sequence[Sequence[EmittedTensor]]:
    """Returns two operands in both orders."""
    return (operands, operands[::-1]) if operands else ()


@dataclass(frozen=True, slots=True)
class _Sequence:
    """Numbers that are evenly spaced.

    Attributes:
        base: The symbol of the size that the first one is counted from, 0 for none.
        first: The first one, or what is added to that size.
        step: The step.
        count: How many there are.
        is_reversed: Whether they come in the opposite order.
    """

    base: int
    first: int
    step: int
    count: EmittedTensor
    is_reversed: bool = False


def whole_span(index: EmittedTensor, size: int) -> tuple[Span, bool] | None:
    """Returns the part of a dimension that indices select, and whether they do it in the opposite order.

    Args:
        index: The indices: evenly spaced, and as many as there are.
        size: The symbol of the dimension's size.
    """
    found = drive(_sequence(index))
    if found is None:
        return None
    skipped = found.first if found.step > 0 else -1 - found.first
    if found.base != (0 if found.step > 0 else size) or skipped < 0 or not _is_all(found, skipped, size):
        return None
    return Span((found.first if skipped else None), END, found.step), found.is_reversed


def _is_all(found: _Sequence, skipped: int, size: int) -> bool:
    """Returns whether there are as many numbers as there are between the first one and the end."""
    step = abs(found.step)
    if step == 1:
        return offset_of(found.count) == (size, -skipped)
    division = operands_of(found.count, "FloorDiv")
    return bool(division) and number(division[1]) == step and offset_of(division[0]) == (size, step - 1 - skipped)


@remembered
def _sequence(x: EmittedTensor) -> Task[_Sequence | None]:
    """Returns a vector as the sequence that it is."""
    limits, reverse = operands_of(x, "Range"), operands_of(x, "ReverseV2")
    if limits:
        is_plain = number(limits[0]) == 0 and number(limits[2]) == 1
        return _Sequence(0, 0, 1, limits[1]) if is_plain else None
    if reverse:
        found = yield _sequence(reverse[0])
        return None if found is None else replace(found, is_reversed=not found.is_reversed)
    moved = operands_of(x, "Cast", "ExpandDims", "Reshape")
    if moved:
        return (yield _sequence(moved[0]))
    for name in ("AddV2", "Mul"):
        operands = operands_of(x, name)
        for one, other in _pairs(operands):
            found = (yield _sequence(one)) if not other.rank or number(other) is not None else None
            if found is not None:
                return _added(found, other) if name == "AddV2" else _scaled(found, other)
    return None


def _added(found: _Sequence, term: EmittedTensor) -> _Sequence | None:
    value, offset = number(term), offset_of(term)
    base, more = offset if value is None and offset is not None else (0, value)
    if more is None or (base and found.base):
        return None
    return replace(found, base=found.base or base, first=found.first + int(more))


def _scaled(found: _Sequence, factor: EmittedTensor) -> _Sequence | None:
    value = number(factor)
    if not value or found.base:
        return None
    return replace(found, first=found.first * int(value), step=found.step * int(value))
