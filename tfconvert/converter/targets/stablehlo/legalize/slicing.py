"""Slices, with strides and masks, by begin and size, reversed and rolled; and splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.constraints import require, require_equal, require_within
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite, axes_of, axis_of, ints
from tfconvert.converter.targets.stablehlo.legalize.gathering import gather, scatter
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, part, pick
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.ops.slicing import selectors
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

Bound = Value | int


class _Entry(NamedTuple):
    """The part that a slice takes of one axis of its operand.

    Attributes:
        begin: The first index, `None` if it is as far out as the step allows.
        end: The index before which it ends, or `None`.
        step: The step, a value if it is known at run time only.
        shrinks: Whether the axis is gone afterwards.
    """

    begin: Bound | None = None
    end: Bound | None = None
    step: Bound = 1
    shrinks: bool = False

    def is_gathered(self, dim: int) -> bool:
        """Returns whether elements of an axis must be gathered: its direction is not known, or where it turns back."""
        if isinstance(self.step, Value):
            return True
        is_computed = dim < 0 or isinstance(self.begin, Value) or isinstance(self.end, Value)
        return self.step < 0 and is_computed and (self.step, self.begin, self.end) != (-1, None, None)


class _Taken(NamedTuple):
    """The part of an axis that a slice takes, counted upwards, and its size."""

    start: Bound
    limit: Bound
    step: int
    reverses: bool
    size: int


def _entries(emit: StableHLOBuilder, op: Operation, rank: int) -> tuple[list[_Entry], list[int]]:
    """Returns an entry for each axis, and the result's layout: -1 for a new axis, else the axis that it is."""
    steps = _steps(op, emit)
    found = list(selectors(lambda name: int(tf.get(op, name, 0)), len(steps), rank))
    entries = [
        _Entry()
        if each.is_whole
        else _Entry(
            _bound(emit, op.operands[1], each.position) if each.has_begin else None,
            _bound(emit, op.operands[2], each.position) if each.has_end and not each.shrinks else None,
            1 if each.shrinks else steps[each.position],
            each.shrinks,
        )
        for each in found
        if each.axis >= 0
    ]
    return entries, [each.axis for each in found if not each.shrinks]


def _steps(op: Operation, emit: StableHLOBuilder) -> Sequence[Bound]:
    """Returns the steps, numbers where they are known."""
    known = constant_ints(op.operands[3])
    if known is not None:
        return known
    (count,) = emit.dims(op.operands[3])
    if count < 0:
        raise Declined("the number of its strides is not known")
    return [pick(emit, op.operands[3], at) for at in range(count)]


def _bound(emit: StableHLOBuilder, vector: Value, at: int) -> Bound:
    elements = emit.sizes.elements(vector)
    known = None if elements is None else elements[at]
    if known is not None and known > -(1 << 63):
        return known
    return pick(emit, vector, at)


def _taken(emit: StableHLOBuilder, entry: _Entry, dim: int) -> _Taken:
    """Returns the part of an axis that an entry with a known step takes."""
    assert isinstance(entry.step, int)
    if entry.begin is None and entry.end is None and abs(entry.step) == 1:
        return _Taken(0, emit.size(dim), 1, entry.step < 0, dim)
    if dim >= 0 and not isinstance(entry.begin, Value) and not isinstance(entry.end, Value):
        if entry.shrinks:
            start = entry.begin + dim if entry.begin is not None and entry.begin < 0 else entry.begin or 0
            return _Taken(start, start + 1, 1, False, 1)
        indices = range(dim)[entry.begin : entry.end : entry.step]
        if not indices:
            return _Taken(0, 0, 1, False, 0)
        # `min` and `max` would visit each index.
        low, high = sorted((indices[0], indices[-1]))
        return _Taken(low, high + 1, abs(entry.step), entry.step < 0, len(indices))
    return _taken_at_run_time(emit, entry, dim, entry.step)


def _stepped(emit: StableHLOBuilder, value: Value, axis: int, entry: _Entry) -> Value:
    """Emits the elements of an axis that an entry takes, from their indices."""
    size = emit.value(emit.size(emit.dims(value)[axis]))
    step = emit.value(entry.step)
    is_back = emit.compare("LT", step, 0)
    lowest, highest = (
        emit.select(is_back, each, other)
        for each, other in ((emit.scalar(-1, types.I32), 0), (emit.binary("subtract", size, 1), size))
    )
    ends = []
    for bound, default in ((entry.begin, (highest, lowest)), (entry.end, (lowest, highest))):
        if bound is None:
            ends.append(emit.select(is_back, *default))
        else:
            at = emit.value(_from_start(emit, bound, size))
            ends.append(emit.binary("maximum", emit.binary("minimum", at, highest), lowest))
    distance = emit.binary("subtract", ends[1], ends[0])
    width = emit.unary("abs", step)
    reached = emit.binary("multiply", distance, emit.unary("sign", step))
    count = emit.binary("divide", emit.binary("subtract", emit.binary("add", reached, width), 1), width)
    length = emit.size_of(emit.binary("maximum", count, 0))
    places = emit.binary("multiply", emit.iota((length,), 0, types.I32), step)
    return gather(emit, value, emit.binary("add", places, ends[0]), axis, 0)


def _taken_at_run_time(emit: StableHLOBuilder, entry: _Entry, dim: int, step: int) -> _Taken:
    size = emit.size(dim)
    if entry.shrinks:
        start = _from_start(emit, entry.begin or 0, size)
        return _Taken(start, emit.compute("add", start, 1), 1, False, 1)
    start = 0 if entry.begin is None else _clamped(emit, entry.begin, size)
    limit = size if entry.end is None else _clamped(emit, entry.end, size)
    length = emit.compute("subtract", limit, start)
    if start != 0:
        length = emit.compute("maximum", length, 0)
        limit = emit.compute("maximum", limit, start)
    length = emit.compute("divide", emit.compute("add", length, step - 1), step)
    return _Taken(start, limit, step, False, emit.size_of(length))


def _from_start(emit: StableHLOBuilder, index: Bound, size: Bound) -> Bound:
    """Returns an index counted from the start of an axis."""
    if isinstance(index, int):
        return index if index >= 0 else emit.compute("add", size, index)
    is_negative = emit.compare("LT", index, 0)
    return emit.select(is_negative, emit.value(emit.compute("add", index, size)), index)


def _clamped(emit: StableHLOBuilder, index: Bound, size: Bound) -> Bound:
    """Returns a bound counted from the start of an axis, and within it."""
    bound = emit.compute("minimum", _from_start(emit, index, size), size)
    return bound if isinstance(index, int) and index >= 0 else emit.compute("maximum", bound, 0)


def sliced(emit: StableHLOBuilder, value: Value, parts: Sequence[_Taken]) -> Value:
    """Inserts a slice, static where every bound and every size is known."""
    dims, result = emit.dims(value), [part.size for part in parts]
    backwards = tuple(axis for axis, part in enumerate(parts) if part.reverses)
    starts, limits = [part.start for part in parts], [part.limit for part in parts]
    steps = [part.step for part in parts]
    is_whole = list(dims) == result and all(start == 0 for start in starts) and set(steps) <= {1}
    known = [each for each in (*starts, *limits) if isinstance(each, int)]
    if not is_whole and len(known) == 2 * len(parts) and min(dims, default=0) >= 0:
        properties = {
            "start_indices": tuple(known[: len(parts)]),
            "limit_indices": tuple(known[len(parts) :]),
            "strides": tuple(steps),
        }
        value = emit.one("slice", (value,), properties)
    elif not is_whole:
        operands = (value, emit.vector(starts), emit.vector(limits), emit.ints(steps))
        value = emit.one("real_dynamic_slice", operands, dims=result)
    return emit.one("reverse", (value,), {"dimensions": backwards}) if backwards else value


def from_to(
    emit: StableHLOBuilder, value: Value, axis: int, begin: Bound, end: Bound, step: int = 1, count: int | None = None
) -> Value:
    """Inserts a slice of one axis between bounds within it, with a step; the others stay whole.

    Args:
        emit: The emitter.
        value: The value.
        axis: The axis.
        begin: The first index.
        end: The index before which it ends.
        step: The step.
        count: The number of elements, the difference of the bounds by default.
    """
    parts = [_Taken(0, emit.size(dim), 1, False, dim) for dim in emit.dims(value)]
    taken = emit.size_of(emit.compute("subtract", end, begin)) if count is None else count
    parts[axis] = _Taken(begin, end, step, False, taken)
    return sliced(emit, value, parts)


def _strided_slice(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    dims = emit.dims(value)
    entries, layout = _entries(emit, op, len(dims))
    if len(entries) != len(dims):
        raise Declined("it has more indices than its operand has dimensions")
    elements = emit.sizes.elements(op.results[0])
    if elements is not None and op.results[0].element == types.I32 and len(dims) == 1:
        sizes = [each for each in elements if each >= 0 or emit.sizes.place(emit.block, each) is not None]
        if len(sizes) == len(elements):
            vector = emit.shape(sizes)
            return emit.reshape(vector, [1] * 0) if entries[0].shrinks else vector
    parts = []
    for axis, entry in enumerate(entries):
        if entry.is_gathered(dims[axis]):
            value, entry = _stepped(emit, value, axis, entry), _Entry()
        parts.append(_taken(emit, entry, emit.dims(value)[axis]))
    result = sliced(emit, value, parts)
    return emit.reshape(result, [1 if axis < 0 else parts[axis].size for axis in layout])


def _slice(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    parts = []
    for axis, dim in enumerate(emit.dims(value)):
        begin, size = (_bound(emit, op.operands[index], axis) for index in (1, 2))
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
            length = emit.size_of(emit.compute("subtract", limit, begin))
        require_within(emit, begin, limit, dim, "the slice must lie within its operand")
        parts.append(_Taken(begin, limit, 1, False, length))
    return sliced(emit, value, parts)


def _reverse(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    dims = emit.dims(value)
    properties = {"dimensions": axes_of(op, 1, len(dims))}
    return emit.one("reverse", (value,), properties)


def _cut(op: Operation, emit: StableHLOBuilder) -> Value:
    """Inserts a slice of constant sizes at indices, which StableHLO clamps as this op does."""
    value = op.operands[0]
    sizes = ints(op, 2, "the sizes")
    starts = [pick(emit, op.operands[1], axis) for axis in range(len(sizes))]
    return emit.one("dynamic_slice", (value, *starts), {"slice_sizes": sizes})


def _strided_update(op: Operation, emit: StableHLOBuilder) -> Value:
    """Writes a tensor over the elements that a slice takes."""
    value, update = op.operands[0], op.operands[-1]
    dims = emit.dims(value)
    entries, _ = _entries(emit, op, len(dims))
    if any(entry.is_gathered(dim) for entry, dim in zip(entries, dims, strict=True)):
        raise Declined("it goes backwards, or in strides that are not constant")
    parts = [_taken(emit, entry, dim) for entry, dim in zip(entries, dims, strict=True)]
    sizes = [each.size for each in parts]
    columns = []
    for axis, each in enumerate(parts):
        start, step = each.start, each.step
        if each.reverses:
            start = emit.compute(
                "add", start, emit.compute("multiply", emit.compute("add", emit.size(each.size), -1), step)
            )
            step = -step
        places = emit.binary("multiply", emit.iota(sizes, axis, types.I32), step)
        columns.append(emit.reshape(emit.binary("add", places, emit.value(start)), (*sizes, 1)))
    indices = concatenate(emit, columns, len(sizes))
    wide = emit.broadcast(update, _shrunk(entries, sizes))
    return scatter(emit, "", indices, emit.reshape(wide, sizes), value)


def _shrunk(entries: Sequence[_Entry], sizes: Sequence[int]) -> list[int]:
    """Returns the sizes of a slice without those of axes that are gone."""
    return [size for entry, size in zip(entries, sizes, strict=True) if not entry.shrinks]


def _update(op: Operation, emit: StableHLOBuilder) -> Value:
    """Inserts an update at indices, which StableHLO clamps as this op does."""
    value, update, indices = op.operands
    dims = emit.dims(value)
    starts = [pick(emit, indices, axis) for axis in range(len(dims))]
    return emit.one("dynamic_update_slice", (value, update, *starts))


SLICES: Mapping[str, Rewrite] = {
    "ReverseV2": _reverse,
    "Slice": _slice,
    "StridedSlice": _strided_slice,
    "TensorStridedSliceUpdate": _strided_update,
    "XlaDynamicSlice": _cut,
    "XlaDynamicUpdateSlice": _update,
}


def _parts(emit: StableHLOBuilder, value: Value, axis: int, sizes: Sequence[Value | int]) -> list[Value]:
    """Emits parts of sizes, one after the other; the sizes add up to that of the axis."""
    found = []
    begin: Value | int = 0
    is_known = emit.dims(value)[axis] >= 0
    for size in sizes:
        end = emit.compute("add", begin, size)
        if is_known and isinstance(begin, int) and isinstance(end, int):
            found.append(part(emit, value, axis, begin, end))
        else:
            found.append(from_to(emit, value, axis, begin, end, count=emit.size_of(size)))
        begin = end
    return found


def _split(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    value, count = op.operands[1], len(op.results)
    dims = emit.dims(value)
    axis = axis_of(ints(op, 0, "the axis")[0], len(dims))
    size = emit.compute("divide", emit.size(dims[axis]), count)
    if dims[axis] < 0 and count > 1:
        whole = emit.value(emit.compute("multiply", size, count))
        holds = emit.compare("EQ", whole, emit.value(emit.size(dims[axis])))
        require(emit, holds, f"the size that is split must be a multiple of {count}")
    return _parts(emit, value, axis, [size] * count)


def _split_by_sizes(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    value = op.operands[0]
    dims = emit.dims(value)
    axis = axis_of(ints(op, 2, "the axis")[0], len(dims))
    whole = emit.size(dims[axis])
    known = constant_ints(op.operands[1])
    if known is None:
        sizes = _computed_sizes(emit, op.operands[1], len(op.results), whole)
    elif -1 in known:
        rest = emit.compute("subtract", whole, sum(known) + 1)
        sizes = [rest if size < 0 else size for size in known]
    else:
        require_equal(emit, dims[axis], sum(known), "the sizes of the parts must add up to the size that is split")
        sizes = list(known)
    return _parts(emit, value, axis, sizes)


def _computed_sizes(emit: StableHLOBuilder, vector: Value, count: int, whole: Value | int) -> list[Value | int]:
    """Returns sizes, any of which may be -1 at run time."""
    asked = [emit.convert(pick(emit, vector, at), types.I32) for at in range(count)]
    total: Value | int = 0
    for size in asked:
        total = emit.compute("add", total, size)
    rest = emit.value(emit.compute("subtract", whole, emit.compute("add", total, 1)))
    return [emit.select(emit.compare("LT", size, 0), rest, size) for size in asked]


def _unpack(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    value, count = op.operands[0], len(op.results)
    dims = emit.dims(value)
    axis = axis_of(tf.get(op, "axis", 0), len(dims))
    require_equal(emit, dims[axis], count, f"what is taken apart must have {count} slices")
    left = [*dims[:axis], *dims[axis + 1 :]]
    return [emit.reshape(each, left) for each in _parts(emit, value, axis, [1] * count)]


SPLITS: Mapping[str, Rewrite] = {"Split": _split, "SplitV": _split_by_sizes, "Unpack": _unpack}
