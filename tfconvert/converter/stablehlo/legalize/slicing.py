"""Slices: with strides and masks, by begin and size, reversed, rolled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.stablehlo.legalize.constraints import require_within
from tfconvert.converter.stablehlo.legalize.emit import DeclinedError, Emit
from tfconvert.converter.stablehlo.legalize.entry import Lowering, attribute, axes_of
from tfconvert.converter.stablehlo.legalize.shaping import pick
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

Bound = Value | int


class _Entry(NamedTuple):
    """What a slice takes of one axis of its operand.

    Attributes:
        begin: The first index, `None` if it is as far out as the step allows.
        end: The index before which it ends, `None` likewise.
        step: The step.
        shrinks: Whether the axis is gone afterwards.
    """

    begin: Bound | None = None
    end: Bound | None = None
    step: int = 1
    shrinks: bool = False


class _Taken(NamedTuple):
    """The part of an axis that a slice takes, counted upwards, and its size."""

    start: Bound
    limit: Bound
    step: int
    reverses: bool
    size: int


def _entries(op: Operation, rank: int, emit: Emit) -> tuple[list[_Entry], list[int]]:
    """Returns an entry for each axis, and the result's layout: -1 for a new axis, else the axis that it is."""
    steps = constant_ints(op.operands[3])
    if steps is None:
        raise DeclinedError("the strides must be constant")
    masks = {name: attribute(op, f"{name}_mask", 0) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}

    def has(name: str, at: int) -> bool:
        return bool(masks[name] >> at & 1)

    own = sum(not has("new_axis", at) and not has("ellipsis", at) for at in range(len(steps)))
    entries: list[_Entry] = []
    layout: list[int] = []
    for at, step in enumerate(steps):
        if has("ellipsis", at):
            for _ in range(rank - own):
                layout.append(len(entries))
                entries.append(_Entry())
        elif has("new_axis", at):
            layout.append(-1)
        else:
            begin = None if has("begin", at) else _bound(op.operands[1], at, emit)
            end = None if has("end", at) else _bound(op.operands[2], at, emit)
            shrinks = has("shrink_axis", at)
            if not shrinks:
                layout.append(len(entries))
            entries.append(_Entry(begin if begin is not None or not shrinks else 0, end, step, shrinks))
    for axis in range(len(entries), rank):
        layout.append(axis)
        entries.append(_Entry())
    return entries, layout


def _bound(vector: Value, at: int, emit: Emit) -> Bound:
    elements = emit.sizes.elements(vector)
    known = None if elements is None else elements[at]
    if known is not None and known > -(1 << 63):
        return known
    return pick(vector, at, emit)


def _taken(entry: _Entry, dim: int, emit: Emit) -> _Taken:
    """Returns the part of an axis that an entry takes."""
    if entry.begin is None and entry.end is None and abs(entry.step) == 1:
        return _Taken(0, emit.size(dim), 1, entry.step < 0, dim)
    if dim >= 0 and not isinstance(entry.begin, Value) and not isinstance(entry.end, Value):
        if entry.shrinks:
            start = entry.begin + dim if entry.begin is not None and entry.begin < 0 else entry.begin or 0
            return _Taken(start, start + 1, 1, False, 1)
        indices = range(dim)[entry.begin : entry.end : entry.step]
        if not indices:
            return _Taken(0, 0, 1, False, 0)
        low, high = min(indices), max(indices)
        return _Taken(low, high + 1, abs(entry.step), entry.step < 0, len(indices))
    if entry.step < 0:
        raise DeclinedError("it goes backwards along an axis whose size or bounds are not known")
    return _taken_at_run_time(entry, dim, emit)


def _taken_at_run_time(entry: _Entry, dim: int, emit: Emit) -> _Taken:
    size = emit.size(dim)
    if entry.shrinks:
        start = _from_start(entry.begin or 0, size, emit)
        return _Taken(start, emit.compute("add", start, 1), 1, False, 1)
    start = 0 if entry.begin is None else _clamped(entry.begin, size, emit)
    limit = size if entry.end is None else _clamped(entry.end, size, emit)
    length = emit.compute("subtract", limit, start)
    if start != 0:
        length = emit.compute("maximum", length, 0)
        limit = emit.compute("maximum", limit, start)
    length = emit.compute("divide", emit.compute("add", length, entry.step - 1), entry.step)
    if isinstance(length, int):
        return _Taken(start, limit, entry.step, False, length)
    return _Taken(start, limit, entry.step, False, emit.sizes.fresh(length))


def _from_start(index: Bound, size: Bound, emit: Emit) -> Bound:
    """Returns an index counted from the start of an axis."""
    if isinstance(index, int):
        return index if index >= 0 else emit.compute("add", size, index)
    is_negative = emit.compare("LT", index, 0)
    return emit.select(is_negative, emit.value(emit.compute("add", index, size)), index)


def _clamped(index: Bound, size: Bound, emit: Emit) -> Bound:
    """Returns a bound counted from the start of an axis, and within it."""
    bound = emit.compute("minimum", _from_start(index, size, emit), size)
    return bound if isinstance(index, int) and index >= 0 else emit.compute("maximum", bound, 0)


def sliced(value: Value, parts: Sequence[_Taken], emit: Emit) -> Value:
    """Inserts a slice, static where every bound and every size is known."""
    dims, element = emit.dims(value), types.element_of(value.type)
    result = [part.size for part in parts]
    backwards = tuple(axis for axis, part in enumerate(parts) if part.reverses)
    starts, limits = [part.start for part in parts], [part.limit for part in parts]
    steps = [part.step for part in parts]
    is_whole = list(dims) == result and all(start == 0 for start in starts) and set(steps) <= {1}
    known = [each for each in (*starts, *limits) if isinstance(each, int)]
    if not is_whole and len(known) == 2 * len(parts) and min(dims, default=0) >= 0:
        properties = {
            "start_indices": tuple(known[: len(parts)]), "limit_indices": tuple(known[len(parts) :]),
            "strides": tuple(steps),
        }  # fmt: skip
        value = emit.one("slice", (value,), element, result, properties)
    elif not is_whole:
        operands = (value, emit.vector(starts), emit.vector(limits), emit.ints(steps))
        value = emit.one("real_dynamic_slice", operands, element, result)
    return emit.one("reverse", (value,), element, result, {"dimensions": backwards}) if backwards else value


def from_to(
    value: Value, axis: int, begin: Bound, end: Bound, emit: Emit, step: int = 1, count: int | None = None
) -> Value:
    """Inserts a slice of one axis between bounds within it, with a step; the others stay whole.

    Args:
        value: The value.
        axis: The axis.
        begin: The first index.
        end: The index before which it ends.
        emit: The emitter.
        step: The step.
        count: How many elements it takes, if that is not the difference of the bounds.
    """
    parts = [_Taken(0, emit.size(dim), 1, False, dim) for dim in emit.dims(value)]
    taken = emit.size_of(emit.compute("subtract", end, begin)) if count is None else count
    parts[axis] = _Taken(begin, end, step, False, taken)
    return sliced(value, parts, emit)


def _strided_slice(op: Operation, emit: Emit) -> Value:
    value = op.operands[0]
    dims = emit.dims(value)
    entries, layout = _entries(op, len(dims), emit)
    if len(entries) != len(dims):
        raise DeclinedError("it has more indices than its operand has dimensions")
    elements = emit.sizes.elements(op.results[0])
    if elements is not None and types.element_of(op.results[0].type) == types.I32 and len(dims) == 1:
        sizes = [each for each in elements if each >= 0 or emit.sizes.place(emit.block, each) is not None]
        if len(sizes) == len(elements):
            vector = emit.shape(sizes)
            return emit.reshape(vector, [1] * 0) if entries[0].shrinks else vector
    parts = [_taken(entry, dim, emit) for entry, dim in zip(entries, dims, strict=True)]
    result = sliced(value, parts, emit)
    return emit.reshape(result, [1 if axis < 0 else parts[axis].size for axis in layout])


def _slice(op: Operation, emit: Emit) -> Value:
    value = op.operands[0]
    parts = []
    for axis, dim in enumerate(emit.dims(value)):
        begin, size = (_bound(op.operands[index], axis, emit) for index in (1, 2))
        if begin == 0 and size in (-1, dim):
            parts.append(_Taken(0, emit.size(dim), 1, False, dim))
            continue
        if isinstance(size, int) and size >= 0:
            limit, length = emit.compute("add", begin, size), size
        else:
            limit = emit.size(dim) if size == -1 else emit.compute("add", begin, size)
            if isinstance(size, Value):
                whole = emit.compare("LT", size, 0)
                limit = emit.select(whole, emit.value(emit.size(dim)), emit.value(limit))
            rest = emit.compute("subtract", limit, begin)
            length = rest if isinstance(rest, int) else emit.sizes.fresh(rest)
        require_within(begin, limit, dim, "the slice must lie within its operand", emit)
        parts.append(_Taken(begin, limit, 1, False, length))
    return sliced(value, parts, emit)


def _reverse(op: Operation, emit: Emit) -> Value:
    value = op.operands[0]
    dims = emit.dims(value)
    properties = {"dimensions": axes_of(op, 1, len(dims))}
    return emit.one("reverse", (value,), types.element_of(value.type), dims, properties)


def _update(op: Operation, emit: Emit) -> Value:
    """Inserts an update at indices, which StableHLO clamps as this op does."""
    value, update, indices = op.operands
    dims = emit.dims(value)
    starts = [pick(indices, axis, emit) for axis in range(len(dims))]
    return emit.one("dynamic_update_slice", (value, update, *starts), types.element_of(value.type), dims)


LOWERINGS: Mapping[str, Lowering] = {
    "ReverseV2": _reverse,
    "Slice": _slice,
    "StridedSlice": _strided_slice,
    "XlaDynamicUpdateSlice": _update,
}
