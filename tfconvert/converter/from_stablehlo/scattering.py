"""Scatters: elements of a tensor are replaced by, or combined with, updates. What is outside is dropped."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tfconvert.converter.from_stablehlo.bounds import Number
from tfconvert.converter.from_stablehlo.indexing import components, is_unique, ordered, signed, unsigned
from tfconvert.converter.from_stablehlo.places import WHOLE, Places, Window, cut, extent, packed, vector_of
from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.from_stablehlo.ranges import range_of
from tfconvert.converter.ir.constants import index_range
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import Declined, need
from tfconvert.ops.complex_numbers import complex_of, parts
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.stablehlo import ScatterAttr
from tfconvert.schema.ir.operation import Operation

Combine = Callable[[EmittedTensor, EmittedTensor], EmittedTensor]

_SET = "set"

# Ops of bodies that combine an element with an update -> how.
_BINARY: Mapping[str, Combine] = {
    "add": lambda x, update: x + update,
    "and": lambda x, update: x & update,
    "maximum": lambda x, update: x.maximum(update),
    "minimum": lambda x, update: x.minimum(update),
    "multiply": lambda x, update: x * update,
    "or": lambda x, update: x | update,
    "subtract": lambda x, update: x - update,
    _SET: lambda x, update: update,
}

# Ops of bodies that compute a new element from the old one.
_UNARY: Mapping[str, Callable[[EmittedTensor], EmittedTensor]] = {
    "abs": abs,
    "ceil": lambda x: x.ceil(),
    "cosine": lambda x: x.cos(),
    "exponential": lambda x: x.exp(),
    "floor": lambda x: x.floor(),
    "log": lambda x: x.log(),
    "logistic": lambda x: x.sigmoid(),
    "negate": lambda x: -x,
    "sine": lambda x: x.sin(),
    "sqrt": lambda x: x.sqrt(),
    "tanh": lambda x: x.tanh(),
}


# Those of them that change nothing when they are applied again.
_IDEMPOTENT = ("abs", "ceil", "floor")


def _body(op: Operation) -> tuple[str, Combine]:
    """Returns the name of the one op of a scatter's body, `_SET` without any, and how it combines."""
    block = op.regions[0].block
    last = block.last_op
    assert last is not None
    x, update = block.args
    (found,) = last.operands
    if found is update:
        return _SET, _BINARY[_SET]
    if found is x:
        return "keep", lambda x, update: x
    inner = found.owner
    if isinstance(inner, Operation):
        name = inner.name.removeprefix("stablehlo.")
        operands = tuple(inner.operands)
        if name in _BINARY and (operands == (x, update) or (operands == (update, x) and name != "subtract")):
            return name, _BINARY[name]
        if name in _UNARY and operands == (x,):
            return "settle" if name in _IDEMPOTENT else "apply", lambda x, update: _UNARY[name](x)
    raise Declined("its body isn't a known one: one op on an element and its update")


def _scatter(raised: RaisedOp) -> EmittedTensor:
    need(len(raised.operands) == 3, "it scatters several tensors at once")
    name, combine = _body(raised.op)
    x, _, updates = raised.operands
    if name == "keep" or 0 in raised.sizes(updates):
        return x
    if x.dtype.kind == "b" and name not in (_SET, "and", "or"):
        name = "or" if name in ("add", "maximum") else "and"
        combine = _BINARY[name]
    return _Scatter(raised, name, combine).result()


class _Scatter:
    """A scatter.

    Attributes:
        raised: The op.
        name: How updates are combined.
        combine: The same, as a function.
        dims: The op's dimension numbers.
        x: What is scattered into.
        updates: The updates.
        batch: The shape of the indices, without that of one index.
        lengths: The shape of one update in terms of the dimensions of `x`.
        places: The starts by axis.
    """

    def __init__(self, raised: RaisedOp, name: str, combine: Combine) -> None:
        dims = raised.op.properties["scatter_dimension_numbers"]
        assert isinstance(dims, ScatterAttr)
        self.raised = raised
        self.name = name
        self.combine = combine
        self.dims = dims
        self.x, starts, self.updates = raised.operands
        vector = dims.dims[-1]
        assert isinstance(vector, int)
        shape = raised.sizes(starts)
        self.batch = shape[:vector] + shape[vector + 1 :]
        gone = (*dims.of("inserted_window_dims"), *dims.of("input_batching_dims"))
        sizes = raised.sizes(self.updates)
        windows = iter([sizes[axis] for axis in dims.of("update_window_dims")])
        self.lengths = [1 if axis in gone else next(windows) for axis in range(len(raised.sizes(self.x)))]
        self.batching = [
            (axis, place - (vector < place))
            for axis, place in zip(
                dims.of("input_batching_dims"), dims.of("scatter_indices_batching_dims"), strict=True
            )
        ]
        axes = dims.of("scatter_dims_to_operand_dims")
        found = components(raised, starts, vector, self.batch, len(axes))
        self.places = [
            Places(raised, self.x, axis, self.lengths[axis], index) for axis, index in zip(axes, found, strict=True)
        ]

    def result(self) -> EmittedTensor:
        """Returns the result."""
        sizes, raised = self.raised.sizes(self.x), self.raised
        begins = [0] * len(sizes)
        left: list[Places] = []
        for each in self.places:
            constant = tensor_data.constant_of(each.index.value)
            array = None if constant is None else tensor_data.to_array(constant)
            if each.is_whole and each.length != 1 and array is not None and not array.any():
                continue
            if array is None or array.min() != array.max() or each.size < 0:
                left.append(each)
                continue
            start = int(array.min())
            if not 0 <= start <= each.size - each.length:
                need(not -each.length < start < each.size, _PARTS)
                return self.x
            begins[each.axis] = start
        covered = [
            size if axis in [own for own, _ in self.batching] or axis in [each.axis for each in left] else length
            for axis, (size, length) in enumerate(zip(sizes, self.lengths, strict=True))
        ]
        if all(one == other for one, other in zip(covered, sizes, strict=True)) and not any(begins):
            return self._scattered(self.x, left)
        windows = [
            WHOLE if size == own else Window(begin, size)
            for begin, size, own in zip(begins, covered, sizes, strict=True)
        ]
        need(min((size for size, own in zip(covered, sizes, strict=True) if size != own), default=0) >= 0, "its size")
        is_one = not left and not self.batching and math.prod(self.batch) == 1
        region = self.x if self.name == _SET and is_one else cut(self.x, windows)
        moved = [Places(raised, region, each.axis, each.length, each.index) for each in left]
        found = self._scattered(region, moved)
        return _put(self.x, found, begins)

    def _scattered(self, x: EmittedTensor, places: Sequence[Places]) -> EmittedTensor:
        """Scatters where some places are computed or differ; all of `x` is covered along other axes."""
        count = math.prod(self.batch)
        if not places and not self.batching:
            if count == 1:
                return self.combine(x, self._window())
            need(self.name == "settle" or self._is_unique, "it combines several updates with the same elements")
        if count == 1 and not self.batching and count >= 0:
            return self._one(x, places)
        rows = {each.axis: self._row_of(each) for each in places}
        free = [each for each in places if rows[each.axis] is None]
        batching = dict(self.batching) | {axis: row for axis, row in rows.items() if row is not None}
        if len(free) == 1 and self._is_one_of_each(free[0], batching):
            return self._one_of_each(x, free[0], batching)
        return self._many(x, places)

    def _row_of(self, place: Places) -> int | None:
        """Returns the dimension of the batch along which an index counts all of an axis, `None` without one."""
        constant = tensor_data.constant_of(place.index.value)
        if constant is None or place.length != 1 or list(constant.shape) != list(self.batch):
            return None
        array = tensor_data.to_array(constant)
        for row, size in enumerate(self.batch):
            shape = [-1 if each == row else 1 for each in range(len(self.batch))]
            if 1 < size == place.size and (array == index_range(size).reshape(shape)).all():
                return row
        return None

    def _is_one_of_each(self, place: Places, batching: Mapping[int, int]) -> bool:
        """Returns whether one element, or row, along an axis is updated for each index of other axes."""
        rows = list(batching.values())
        lone = [size for row, size in enumerate(self.batch) if row not in rows]
        return bool(rows) and place.length == 1 and len(set(rows)) == len(rows) and set(lone) <= {1}

    def _one_of_each(self, x: EmittedTensor, place: Places, batching: Mapping[int, int]) -> EmittedTensor:
        """Scatters one update for each index of the axes of `batching`: where the number along another is the index."""
        raised, dims, sizes = self.raised, self.dims, self.raised.sizes(x)
        axes = {row: axis for axis, row in batching.items()}
        # Dimensions of the batch are named by their axes of `x`; those of size 1 come first, before the axes.
        labels = [axes.get(row, row - len(self.batch)) for row in range(len(self.batch))]
        index, _ = ordered(place.of_shape(self.batch).index, labels, sorted(labels))
        index = raised.reshaped(index, [sizes[axis] if axis in batching else 1 for axis in range(len(sizes))])
        windows, rows = dims.of("update_window_dims"), iter(labels)
        gone = (*dims.of("inserted_window_dims"), *dims.of("input_batching_dims"))
        kept = iter([axis for axis in range(len(sizes)) if axis not in gone])
        own = [next(kept) if axis in windows else next(rows) for axis in range(len(raised.sizes(self.updates)))]
        updates, _ = ordered(self.updates, own, sorted(own))
        updates = raised.reshaped(updates, [1 if axis == place.axis else size for axis, size in enumerate(sizes)])
        along = [place.size if axis == place.axis else 1 for axis in range(len(sizes))]
        mask = raised.reshaped(_numbers(place), along).equal(index)
        return mask.where(self.combine(x, updates), x)

    def _window(self) -> EmittedTensor:
        """Returns the only update, with the dimensions of `x`."""
        return self.raised.reshaped(self.updates, self.lengths)

    @property
    def _is_unique(self) -> bool:
        return bool(self.raised.integer("unique_indices"))

    def _one(self, x: EmittedTensor, places: Sequence[Places]) -> EmittedTensor:
        """Scatters one update: at a place that is known to be inside, else where the index is equal."""
        raised, update = self.raised, self._window()
        places = [each.of_shape(()) for each in places]
        if all(each.is_inside for each in places):
            begins: list[Number] = [0] * len(self.lengths)
            for each in places:
                begins[each.axis] = each.index
            if self.name != _SET:
                windows = [
                    Window(begin, -1 if length == own else length)
                    for begin, length, own in zip(begins, self.lengths, raised.sizes(x), strict=True)
                ]
                update = self.combine(cut(x, windows), update)
            return _put(x, update, vector_of(x, begins))
        need(all(each.length == 1 for each in places), _PARTS)
        mask: EmittedTensor | None = None
        for each in places:
            shape = [1] * len(self.lengths)
            shape[each.axis] = each.size
            equal = raised.reshaped(_numbers(each), shape).equal(each.index)
            mask = equal if mask is None else mask & equal
        assert mask is not None
        return mask.where(self.combine(x, update), x)

    def _many(self, x: EmittedTensor, places: Sequence[Places]) -> EmittedTensor:
        """Scatters rows: the axes that are indexed become one, whose elements are numbered."""
        raised = self.raised
        windows = [each.axis for each in places if each.length != 1]
        need(all(each.length >= 0 and each.is_inside for each in places if each.length != 1), _PARTS)
        indexed = sorted([*[axis for axis, _ in self.batching], *[each.axis for each in places]])
        rank = len(self.lengths)
        rest = [axis for axis in range(rank) if axis not in indexed]
        sizes = raised.sizes(x)
        moved, _ = ordered(x, list(range(rank)), [*indexed, *rest])
        rows_shape = [sizes[axis] for axis in indexed]
        rows = raised.reshaped(moved, [_product(rows_shape), *[sizes[axis] for axis in rest]])
        ids = self._ids(x, indexed, {each.axis: each for each in places}, windows)
        updates = self._rows_of_updates(windows, rest, sizes)
        found = self._combined(rows, ids, updates, self._count(x, indexed))
        found = raised.reshaped(found, raised.sizes(moved))
        result, _ = ordered(found, [*indexed, *rest], list(range(rank)))
        return result

    @staticmethod
    def _count(x: EmittedTensor, axes: Sequence[int]) -> Number:
        total: Number = 1
        for axis in axes:
            size = extent(x, axis)
            total = size * total if isinstance(size, EmittedTensor) else total * size
        return total

    def _rows_of_updates(self, moved: Sequence[int], rest: Sequence[int], sizes: Sequence[int]) -> EmittedTensor:
        """Returns the updates as rows, in the order of the indices; each place of a window has a row of its own."""
        windows, dims = self.dims.of("update_window_dims"), self.dims
        gone = (*dims.of("inserted_window_dims"), *dims.of("input_batching_dims"))
        kept = [axis for axis in range(len(sizes)) if axis not in gone]
        lead = [windows[kept.index(axis)] for axis in moved]
        count = len(self.raised.sizes(self.updates))
        order = [axis for axis in range(count) if axis not in windows]
        order = [*order, *lead, *[axis for axis in windows if axis not in lead]]
        updates, _ = ordered(self.updates, list(range(count)), order)
        height = _product((*self.batch, *[self.lengths[axis] for axis in moved]))
        return self.raised.reshaped(updates, [height, *[sizes[axis] for axis in rest]])

    def _ids(
        self, x: EmittedTensor, indexed: Sequence[int], places: Mapping[int, Places], windows: Sequence[int]
    ) -> EmittedTensor:
        """Returns the number of each update's row; -1 for those that are dropped."""
        raised = self.raised
        if len(indexed) > 1 and not windows and self._are_numbered_together(places, indexed):
            each_axis = [places[axis] if axis in places else self._place_of_batch(axis) for axis in indexed]
            return raised.reshaped(_numbered_together(each_axis), [_product(self.batch)])
        total: EmittedTensor | None = None
        inside: EmittedTensor | None = None
        for axis in indexed:
            size = extent(x, axis)
            if axis in places:
                each = places[axis]
                index = each.index
                if not self._stays_inside(each, len(indexed) == 1):
                    within = _within(each, is_only=len(indexed) == 1)
                    inside = within if inside is None else inside & within
            else:
                row = next(place for own, place in self.batching if own == axis)
                index = self._numbered(row)
            index = self._spread(index.cast(np.int32), axis, windows)
            total = index if total is None else total * _like(size, total) + index
        assert total is not None
        if inside is not None:
            total = inside.where(total, -1)
        shape = [*self.batch, *[self.lengths[axis] for axis in windows]]
        if min(shape, default=0) >= 0 and list(raised.sizes(total)) != shape:
            # Rows of batches alone don't have the dimensions of the indices that were equal.
            total = total.op("BroadcastTo", total, shape)
        return total if len(shape) == 1 else raised.reshaped(total, [_product(shape)])

    def _are_numbered_together(self, places: Mapping[int, Places], indexed: Sequence[int]) -> bool:
        """Returns whether indices along axes of known sizes must be checked."""
        sizes = [self.raised.sizes(self.x)[axis] for axis in indexed]
        return min((*sizes, *self.batch), default=0) >= 0 and any(_is_limited(each) for each in places.values())

    def _place_of_batch(self, axis: int) -> Places:
        """Returns the index of each update along an axis that it has in common with the indices."""
        row = next(place for own, place in self.batching if own == axis)
        shape = [size if at == row else 1 for at, size in enumerate(self.batch)]
        numbers = np.broadcast_to(np.arange(self.batch[row]).reshape(shape), self.batch)
        return Places(self.raised, self.x, axis, 1, self.raised.constant(numbers, np.int32))

    def _spread(self, index: EmittedTensor, axis: int, windows: Sequence[int]) -> EmittedTensor:
        """Returns the indices along an axis of each place of the windows, which are further dimensions."""
        if not windows:
            return index
        index = self.raised.reshaped(index, [*self.raised.sizes(index), *[1] * len(windows)])
        if axis not in windows:
            return index
        steps = [self.lengths[axis] if each == axis else 1 for each in windows]
        return index + self.raised.constant(index_range(self.lengths[axis]).reshape(steps), np.int32)

    @staticmethod
    def _stays_inside(place: Places, is_only: bool) -> bool:
        """Returns whether an index is inside, or negative where negative rows are dropped anyway."""
        if place.is_inside:
            return True
        constant = tensor_data.constant_of(place.index.value)
        found = range_of(place.index.value, place.index.known)
        return is_only and constant is None and place.size >= 0 and found.high < place.size

    def _numbered(self, row: int) -> EmittedTensor:
        """Returns the number of each index along a dimension of the batch, which is that of rows, too."""
        size = self.batch[row]
        shape = [size if axis == row else 1 for axis in range(len(self.batch))]
        if size >= 0:
            return self.raised.constant(index_range(size).reshape(shape), np.int32)
        starts = self.raised.operands[1]
        vector = self.dims.dims[-1]
        assert isinstance(vector, int)
        count = extent(starts, row + (vector <= row))
        numbers = starts.op("Range", 0, count, 1)
        return self.raised.reshaped(numbers, shape)

    def _combined(
        self, rows: EmittedTensor, ids: EmittedTensor, updates: EmittedTensor, count: Number
    ) -> EmittedTensor:
        """Combines rows with their updates."""
        if self.name == "subtract":
            updates = -updates
        if self.name in _SEGMENTS:
            return self._by_segments(rows, ids, updates, count)
        if self.name in ("apply", "settle"):
            need(
                self.name == "settle" or self._is_unique or is_unique(ids), "it may apply its body to an element again"
            )
            return _hit(rows, ids, count).where(self.combine(rows, rows), rows)
        need(self.name == _SET, "LiteRT has no such combination of several updates")
        return _replaced(rows, ids, updates, count)

    def _by_segments(
        self, rows: EmittedTensor, ids: EmittedTensor, updates: EmittedTensor, count: Number
    ) -> EmittedTensor:
        segment = _SEGMENTS[self.name]
        dtype = rows.dtype
        if dtype.kind == "b":
            hit: EmittedTensor = updates.op(f"UnsortedSegment{segment}", updates.cast(np.int32), ids, count)
            return self.combine(rows, hit > 0)
        need(dtype.kind in "fiu" and dtype.itemsize <= 4, f"LiteRT doesn't combine updates of {dtype}")
        if dtype in (np.float32, np.int32):
            return self._extended(rows, ids, updates, segment, count)
        if dtype == np.uint32:
            need(segment in ("Sum", "Prod"), "LiteRT doesn't compare ui32")
            return unsigned(self._extended(signed(rows), ids, signed(updates), segment, count))
        wide = np.float32 if dtype.kind == "f" else np.int32
        return self._extended(rows.cast(wide), ids, updates.cast(wide), segment, count).cast(dtype)

    def _extended(
        self, rows: EmittedTensor, ids: EmittedTensor, updates: EmittedTensor, segment: str, count: Number
    ) -> EmittedTensor:
        found: EmittedTensor = updates.op(f"UnsortedSegment{segment}", updates, ids, count)
        is_neutral = self.raised.only_element(rows) == _NEUTRAL[segment](rows.dtype)
        if segment in ("Sum", "Prod"):
            return found if is_neutral else rows + found if segment == "Sum" else rows * found
        extreme = found if is_neutral else found.maximum(rows) if segment == "Max" else found.minimum(rows)
        if rows.dtype.kind == "f":
            # Rows without updates are the last finite number, and an infinity is beyond that.
            limit = float(np.finfo(np.float32).max) * (-1 if segment == "Max" else 1)
            return found.equal(limit).where(rows, extreme)
        return extreme


def _put(x: EmittedTensor, update: EmittedTensor, begins: Any) -> EmittedTensor:
    """Returns a tensor with a part that is replaced."""
    if x.dtype.kind == "c":
        return complex_of(*(_put(one, other, begins) for one, other in zip(parts(x), parts(update), strict=True)))
    return x.op("XlaDynamicUpdateSlice", x, update, begins)  # type: ignore[no-any-return]


_PARTS = "a part of an update may be outside"

_SEGMENTS: Mapping[str, str] = {
    "add": "Sum",
    "and": "Min",
    "maximum": "Max",
    "minimum": "Min",
    "multiply": "Prod",
    "or": "Max",
    "subtract": "Sum",
}
"""How updates are combined -> the op on segments."""

_NEUTRAL: Mapping[str, Callable[[np.dtype[Any]], float]] = {
    "Max": lambda dtype: -math.inf if dtype.kind == "f" else int(np.iinfo(dtype).min),
    "Min": lambda dtype: math.inf if dtype.kind == "f" else int(np.iinfo(dtype).max),
    "Prod": lambda dtype: 1,
    "Sum": lambda dtype: 0,
}


def _like(number: Number, tensor: EmittedTensor) -> int | EmittedTensor:
    return number if isinstance(number, int) else number.cast(tensor.dtype)


def _is_limited(place: Places) -> bool:
    """Returns whether indices may be outside of a dimension of a known size."""
    return place.size >= 0 and not place.is_inside


def _numbered_together(places: Sequence[Places]) -> EmittedTensor:
    """Returns the number of the row that indices along several axes mean, -1 where one is outside."""
    raw = [each.index if each.wrapped is None else each.wrapped for each in places]
    rank, sizes = raw[0].rank, [each.size for each in places]
    index = packed(raw, rank)
    low = [0 if each.wrapped is None else -each.size for each in places]
    limited = index.op("Minimum", index, np.array(sizes, index.dtype) - 1)
    limited = limited.op("Maximum", limited, np.array(low, index.dtype))
    inside: EmittedTensor = limited.equal(index).reduce("All", [rank])
    steps = np.array([math.prod(sizes[place + 1 :]) for place in range(len(sizes))], index.dtype)
    if any(low):
        limited = limited.op("FloorMod", limited, np.array(sizes, index.dtype))
    numbers: EmittedTensor = limited.op("Mul", limited, steps).sum([rank])
    return inside.where(numbers.cast(np.int32), -1)


def _within(place: Places, *, is_only: bool) -> EmittedTensor:
    """Returns which indices are inside; negative ones count, too, if they are the only ones, for they are dropped."""
    index = place.index
    if is_only:
        return index < _like(extent(place.of, place.axis), index)
    return index.clip(0, _like(place.last, index)).equal(index)


def _product(sizes: Sequence[int]) -> int:
    """Returns the number of elements of a shape, -1 where it isn't known."""
    if len(sizes) == 1:
        return sizes[0]
    return math.prod(sizes) if min(sizes, default=0) >= 0 else -1


def _numbers(place: Places) -> EmittedTensor:
    """Returns the numbers from zero up to the size of an axis, with the type of the indices."""
    if place.size >= 0:
        return place.raised.constant(index_range(place.size), np.int32).cast(place.index.dtype)
    found: EmittedTensor = place.index.op("Range", 0, extent(place.of, place.axis), 1)
    return found.cast(place.index.dtype)


def _replaced(rows: EmittedTensor, ids: EmittedTensor, updates: EmittedTensor, count: Number) -> EmittedTensor:
    """Takes each row from the tensor or, the last one that names it winning, from the updates after it."""
    constant = tensor_data.constant_of(ids.value)
    height, number = (rows.shape or (-1,))[0], (updates.shape or (-1,))[0]
    same = _same_everywhere(updates)
    if constant is not None and height >= 0:
        writers = index_range(height).astype(np.int32)
        for row, place in enumerate(tensor_data.to_array(constant).tolist(), height):
            if 0 <= place < height:
                writers[place] = row
        if same is not None:
            mask = (writers >= height).reshape(-1, *[1] * (rows.rank - 1))
            return EmittedTensor(rows.builder, rows.builder.constant(mask), rows.known).where(same, rows)
        last: EmittedTensor | np.ndarray[Any, np.dtype[Any]] = writers
    elif same is not None:
        return _hit(rows, ids, count).where(same, rows)
    else:
        own = rows.op("Range", 0, count, 1)
        size: Number = number if number >= 0 else extent(updates, 0)
        end = size + count if isinstance(size, EmittedTensor) or not isinstance(count, EmittedTensor) else count + size
        numbered = rows.op("Range", count, end, 1)
        last = numbered.op("UnsortedSegmentMax", numbered, ids, count).maximum(own)
    if rows.dtype == np.uint32:
        rows = signed(rows)
        return unsigned(rows.op("GatherV2", rows.concat([signed(updates)], 0), last, 0))
    return rows.op("GatherV2", rows.concat([updates], 0), last, 0)  # type: ignore[no-any-return]


def _hit(rows: EmittedTensor, ids: EmittedTensor, count: Number) -> EmittedTensor:
    """Returns which rows any of the numbers names."""
    hit: EmittedTensor = ids.op("UnsortedSegmentMax", ids.op("OnesLike", ids), ids, count)
    return hit.reshape([-1, *[1] * (rows.rank - 1)]) > 0


def _same_everywhere(updates: EmittedTensor) -> EmittedTensor | None:
    """Returns the scalar that all updates are, `None` if they aren't known to be one."""
    constant = tensor_data.constant_of(updates.value)
    if constant is not None:
        array = tensor_data.to_array(constant)
        if array.size and (array == array.flat[0]).all():
            return EmittedTensor(updates.builder, updates.builder.constant(array.flat[0].reshape(())), updates.known)
        return None
    owner = updates.value.owner
    while isinstance(owner, Operation) and owner.name in ("tf.Reshape", "tf.Transpose", "tf.BroadcastTo"):
        source = EmittedTensor(updates.builder, owner.operands[0], updates.known)
        if math.prod(source.shape or ()) == 1 and source.shape is not None:
            return source if not source.shape else source.reshape(())
        owner = source.value.owner
    return None


ROWS: Rows = {"scatter": _scatter}
