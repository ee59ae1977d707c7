"""Gathers and slices whose places are computed.

StableHLO moves a slice that would be outside to where it is inside; TensorFlow's ops don't. The clamp is left out
where the range of the indices is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from tfconvert.converter.from_stablehlo.bounds import Number, Span, spanned, whole_span
from tfconvert.converter.from_stablehlo.places import WHOLE, Places, Window, cut, settled, sliced, together, vector_of
from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.ir.constants import index_range
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import need
from tfconvert.schema.dialects import tensor_data, tf
from tfconvert.schema.dialects.dims import UNKNOWN
from tfconvert.schema.dialects.stablehlo import GatherAttr
from tfconvert.schema.ir.operation import Operation


def _dynamic_slice(raised: RaisedOp) -> EmittedTensor:
    x, *starts = raised.operands
    sizes = raised.ints("slice_sizes")
    places = [Places(raised, x, axis, sizes[axis], start) for axis, start in enumerate(starts)]
    return sliced(raised, x, places, sizes)


def _dynamic_update_slice(raised: RaisedOp) -> EmittedTensor:
    """LiteRT's op, and that of XLA, clamp by themselves."""
    x, update, *starts = raised.operands
    lengths = raised.sizes(update)
    if lengths == raised.sizes(x):
        return update
    places = [Places(raised, x, axis, lengths[axis], start) for axis, start in enumerate(starts)]
    begins: list[Number] = []
    for each in places:
        constant = each.constant
        is_known = constant is not None
        begins.append(0 if each.is_whole else int(constant) if is_known else each.index)  # type: ignore[arg-type]
    return x.op("XlaDynamicUpdateSlice", x, update, vector_of(x, begins))  # type: ignore[no-any-return]


def _gather(raised: RaisedOp) -> EmittedTensor:
    sizes = raised.ints("slice_sizes")
    return _Gather(raised, sizes, sizes).result()


def _dynamic_gather(raised: RaisedOp) -> EmittedTensor:
    x, vector = raised.operands[0], raised.operands[2]
    shape = raised.sizes(x)
    partial = vector.known.partial(vector.value) or (UNKNOWN,) * len(shape)
    sizes = [
        size if size > UNKNOWN or size == own else _element(vector, axis)
        for axis, (size, own) in enumerate(zip(partial, shape, strict=True))
    ]
    return _Gather(raised, partial, sizes).result()


def _element(vector: EmittedTensor, index: int) -> EmittedTensor:
    """Returns an element of a vector of sizes: what it is joined from, if it is."""
    owner = vector.value.owner
    if isinstance(owner, Operation) and owner.name == "tf.ConcatV2":
        parts = [EmittedTensor(vector.builder, operand, vector.known) for operand in owner.operands[:-1]]
        if all(part.shape == (1,) for part in parts):
            return parts[index].reshape(()).cast(np.int32)
    if isinstance(owner, Operation) and owner.name == "tf.Pack":
        return EmittedTensor(vector.builder, owner.operands[index], vector.known).cast(np.int32)
    found: EmittedTensor = vector.op("StridedSlice", vector, [index], [index + 1], [1], shrink_axis_mask=1)
    return found.cast(np.int32)


def components(
    raised: RaisedOp, starts: EmittedTensor, vector: int, batch: Sequence[int], count: int
) -> Sequence[EmittedTensor]:
    """Returns the indices along each axis.

    Args:
        raised: The op.
        starts: The indices.
        vector: The dimension that one index lies along.
        batch: The other dimensions.
        count: The number of axes.
    """
    if vector == len(raised.sizes(starts)):
        return [starts]
    owner = starts.value.owner
    limited = _limited_components(raised, starts, vector, batch, count) if vector == len(batch) else None
    if limited is not None:
        return limited
    if isinstance(owner, Operation) and owner.name == "tf.ConcatV2" and len(owner.operands) == count + 1:
        axis = starts.known.partial(owner.operands[-1])
        if axis is not None and axis[0] in (vector, vector - len(batch) - 1):
            return [settled(raised, raised.tensor(operand), batch) for operand in owner.operands[:-1]]
    if isinstance(owner, Operation) and owner.name == "tf.Pack" and tf.get(owner, "axis", 0) == vector:
        return [raised.tensor(operand) for operand in owner.operands]
    if count == 1:
        return [settled(raised, starts, batch)]
    constant = tensor_data.constant_of(starts.value)
    if constant is not None:
        array = np.moveaxis(tensor_data.to_array(constant), vector, 0)
        return [raised.constant(each, array.dtype) for each in array]
    return starts.op("Unpack", starts, results=count, num=count, axis=vector)  # type: ignore[no-any-return]


_JOINS = ("tf.ConcatV2", "tf.Pack")


def _limited_components(
    raised: RaisedOp, starts: EmittedTensor, vector: int, batch: Sequence[int], count: int
) -> Sequence[EmittedTensor] | None:
    """Returns the indices along each axis that were limited together, as those of slices that JAX maps over a batch."""
    limits: list[tuple[str, Sequence[int]]] = []
    owner = starts.value.owner
    while isinstance(owner, Operation) and owner.name in ("tf.Maximum", "tf.Minimum"):
        limit = raised.known(raised.tensor(owner.operands[1]))
        if limit is None or limit.size not in (1, count) or limit.ndim > 1:
            return None
        limits.insert(0, (owner.name.removeprefix("tf."), np.broadcast_to(limit.reshape(-1), count).tolist()))
        starts = raised.tensor(owner.operands[0])
        owner = starts.value.owner
    if not limits or not isinstance(owner, Operation) or owner.name not in _JOINS:
        return None
    found = [*components(raised, starts, vector, batch, count)]
    for name, numbers in limits:
        found = [_limited(raised, name, index, number) for index, number in zip(found, numbers, strict=True)]
    return found


def _limited(raised: RaisedOp, name: str, index: EmittedTensor, limit: int) -> EmittedTensor:
    """Returns indices of which none is below, or above, a limit; a constant if all are known to be one."""
    known = raised.only_element(index)
    if known is not None:
        return raised.constant(max(known, limit) if name == "Maximum" else min(known, limit), index.dtype)
    return index.op(name, index, limit)  # type: ignore[no-any-return]


T = TypeVar("T")

Label = tuple[str, int]
"""A dimension: `("x", 1)` of what is gathered from, `("batch", 0)` of the indices."""


class _Gather:
    """A gather.

    Attributes:
        raised: The op.
        x: What it gathers from.
        lengths: The shape of the slices, with symbols.
        sizes: The same, with scalars for dimensions that only running tells and aren't whole.
        batch: The shape of the indices, without that of one index.
        places: The starts of the slices by axis.
    """

    def __init__(self, raised: RaisedOp, lengths: Sequence[int], sizes: Sequence[Number]) -> None:
        dims = raised.op.properties["dimension_numbers"]
        assert isinstance(dims, GatherAttr)
        self.raised = raised
        self.x, self.starts = raised.operands[:2]
        self.sizes = sizes
        self.lengths = lengths
        self.dims = dims
        vector = dims.dims[-1]
        assert isinstance(vector, int)
        shape = raised.sizes(self.starts)
        self.vector = vector
        self.batch = shape[:vector] + shape[vector + 1 :]
        self.batching = sorted(
            zip(
                (place - (vector < place) for place in dims.of("start_indices_batching_dims")),
                dims.of("operand_batching_dims"),
                strict=True,
            )
        )
        axes = dims.of("start_index_map")
        indices = components(raised, self.starts, vector, self.batch, len(axes))
        self.places = [self._place(axis, index) for axis, index in zip(axes, indices, strict=True)]

    def _place(self, axis: int, index: EmittedTensor) -> Places:
        return Places(self.raised, self.x, axis, self.lengths[axis], index, self.sizes[axis])

    def result(self) -> EmittedTensor:
        """Returns the result."""
        if math.prod(self.batch) == 1 and not self.batching:
            found = sliced(self.raised, self.x, self.places, self.sizes)
            return self._placed(found, [("x", axis) for axis in range(len(self.sizes))])
        places = self._after_slices()
        if not places:
            return self._repeated()
        if len(places) > 1:
            return self._nd(sorted(places, key=lambda each: each.axis))
        return self._along(places[0])

    def _repeated(self) -> EmittedTensor:
        """Returns what doesn't depend on the indices, once for each of them."""
        rows = {own: row for row, own in self.batching}
        labels = [("batch", rows[axis]) if axis in rows else ("x", axis) for axis in range(len(self.sizes))]
        found, shape = self._placed(self.x, labels), self.raised.declared()
        if min(shape, default=0) >= 0:
            return self.raised.broadcast(found, self.raised.constant(shape, np.int32), shape)
        counts = [count if size == 1 else 1 for size, count in zip(self.raised.sizes(found), shape, strict=True)]
        need(min(counts) >= 0, "it repeats what doesn't depend on indices, of which only running tells the number")
        return found.op("Tile", found, np.array(counts, np.int32))  # type: ignore[no-any-return]

    def _after_slices(self) -> list[Places]:
        """Slices what is gathered from where the places are constant; returns the others."""
        windows = [
            WHOLE if size == own or axis in self.dims.of("operand_batching_dims") else Window(0, size)
            for axis, (size, own) in enumerate(zip(self.sizes, self.raised.sizes(self.x), strict=True))
        ]
        left: list[Places] = []
        for each in self.places:
            if each.is_whole:
                continue
            constant = each.constant
            if constant is not None and constant.size and constant.min() == constant.max():
                windows[each.axis] = Window(int(constant.min()), self.sizes[each.axis])
            else:
                windows[each.axis] = WHOLE
                left.append(each)
        self.x = cut(self.x, windows)
        return [self._place(each.axis, each.index) for each in left]

    def _along(self, place: Places) -> EmittedTensor:
        """Gathers along one axis."""
        labels = [("x", axis) for axis in range(len(self.sizes))]
        is_line = len(self.batch) == 1 and place.length == 1 and place.size < 0 and not self.batching
        part = whole_span(place.index, place.size) if is_line else None
        if part is not None:
            span, is_reversed = part
            if span.step == -1 and span.begin is None:
                span, is_reversed = Span(None), not is_reversed
            found = self.x if span == Span(None) else spanned(self.x, {place.axis: span})
            if is_reversed:
                found = found.op("ReverseV2", found, [place.axis])
            return self._placed(found, [("batch", 0) if axis == place.axis else ("x", axis) for _, axis in labels])
        index, rows = place.clamped(), [("batch", each) for each in range(len(self.batch))]
        if place.length != 1:
            need(place.length >= 0, "the size of a slice is not known")
            index = index.expand_dims(len(rows)) + self.raised.constant(index_range(place.length), index.dtype)
            rows = [*rows, ("x", place.axis)]
        return self._gathered(self.x, labels, index, rows, ("x", place.axis))

    def _gathered(
        self, x: EmittedTensor, labels: list[Label], index: EmittedTensor, rows: list[Label], along: Label
    ) -> EmittedTensor:
        """Returns the result of a gather along one dimension.

        Args:
            x: What is gathered from.
            labels: Its dimensions.
            index: The indices.
            rows: Their dimensions.
            along: The dimension.
        """
        lead = [("x", own) for _, own in self.batching]
        first = [("batch", row) for row, _ in self.batching]
        x, labels = ordered(x, labels, [*lead, *[each for each in labels if each not in lead]])
        index, rows = ordered(index, rows, [*first, *[each for each in rows if each not in first]])
        at = labels.index(along)
        step = None if lead else _step(index)
        if step is not None:
            found = _strided(x, at, *step)
        elif x.dtype == np.uint32:
            found = signed(x).op("GatherV2", signed(x), index, at, batch_dims=len(lead))
            found = unsigned(found)
        else:
            found = x.op("GatherV2", x, index, at, batch_dims=len(lead))
        kept = [*first, *labels[len(lead) : at], *rows[len(lead) :], *labels[at + 1 :]]
        return self._placed(found, kept)

    def _nd(self, places: Sequence[Places]) -> EmittedTensor:
        """Gathers along several axes."""
        axes = [each.axis for each in places]
        windows = [each for each in places if each.length != 1]
        is_together = axes == list(range(axes[0], axes[0] + len(axes))) and not windows
        is_constant = all(each.constant is not None for each in places)
        if is_together and min(each.size for each in places) >= 0 and (self.batching or (axes[0] and is_constant)):
            return self._flat(places)
        need(not self.batching, "it gathers slices along several axes of rows")
        labels = [("x", axis) for axis in range(len(self.sizes))]
        lead = [("x", axis) for axis in axes]
        x, labels = ordered(self.x, labels, [*lead, *[each for each in labels if each not in lead]])
        indices = together(places, len(self.batch))
        if windows:
            need(all(each.length >= 0 for each in windows), "the size of a slice is not known")
            lengths = [each.length for each in places]
            grid = np.stack(np.unravel_index(index_range(math.prod(lengths)), lengths), -1)
            grid = grid.reshape(*[each.length for each in windows], len(places))
            indices = self.raised.reshaped(indices, (*self.batch, *[1] * len(windows), len(places)))
            indices = indices + self.raised.constant(grid, indices.dtype)
        if x.dtype == np.uint32:
            found = signed(x).op("GatherNd", signed(x), indices)
            found = unsigned(found)
        else:
            found = x.op("GatherNd", x, indices)
        rows = [("batch", each) for each in range(len(self.batch))]
        return self._placed(found, [*rows, *[("x", each.axis) for each in windows], *labels[len(lead) :]])

    def _flat(self, places: Sequence[Places]) -> EmittedTensor:
        """Gathers along neighbouring axes, whose elements are numbered one after another."""
        axes, shape = [each.axis for each in places], list(self.raised.sizes(self.x))
        shape[axes[0] : axes[-1] + 1] = [math.prod(each.size for each in places)]
        labels = [("x", axis) for axis in range(len(self.sizes)) if axis not in axes[1:]]
        index = places[0].clamped()
        for each in places[1:]:
            index = index * each.size + each.clamped().cast(index.dtype)
        rows = [("batch", each) for each in range(len(self.batch))]
        return self._gathered(self.raised.reshaped(self.x, shape), labels, index, rows, ("x", axes[0]))

    def _placed(self, found: EmittedTensor, labels: Sequence[Label]) -> EmittedTensor:
        """Returns the result, whose dimensions are in the order that the op says.

        Args:
            found: What was gathered.
            labels: For each of its dimensions, whether it is one of the indices or of the tensor, and which one.
        """
        dims = self.dims
        gone = (*dims.of("collapsed_slice_dims"), *dims.of("operand_batching_dims"))
        kept = iter([axis for axis in range(len(self.sizes)) if axis not in gone])
        rows = iter(range(len(self.batch)))
        offsets = dims.of("offset_dims")
        count = len(self.batch) + len(self.sizes) - len(gone)
        order = [("x", next(kept)) if axis in offsets else ("batch", next(rows)) for axis in range(count)]
        have = [label for label in order if label in labels]
        own = self.raised.sizes(found)
        dropped = [index for index, label in enumerate(labels) if label not in order]
        if dropped:
            own = tuple([size for index, size in enumerate(own) if index not in dropped])
            found = self.raised.reshaped(found, own)
            labels = [label for label in labels if label in order]
        found = _transposed(found, [list(labels).index(label) for label in have])
        sizes = iter(self.raised.sizes(found))
        return self.raised.reshaped(found, [next(sizes) if label in have else 1 for label in order])


def _transposed(x: EmittedTensor, order: Sequence[int]) -> EmittedTensor:
    if list(order) == list(range(len(order))):
        return x
    return x.op("Transpose", x, list(order))  # type: ignore[no-any-return]


def ordered(x: EmittedTensor, labels: list[T], order: list[T]) -> tuple[EmittedTensor, list[T]]:
    """Returns a tensor with its dimensions, which have labels, in another order; and that order."""
    return _transposed(x, [labels.index(label) for label in order]), order


def signed(x: EmittedTensor) -> EmittedTensor:
    """Returns words of `ui32` as those of `i32`."""
    return x.op("Bitcast", x, type=np.dtype(np.int32))  # type: ignore[no-any-return]


def unsigned(x: EmittedTensor) -> EmittedTensor:
    """Returns words of `i32` as those of `ui32`."""
    return x.op("Bitcast", x, type=np.dtype(np.uint32))  # type: ignore[no-any-return]


def is_unique(index: EmittedTensor) -> bool:
    """Returns whether indices are known to be different."""
    constant = tensor_data.constant_of(index.value)
    if constant is None:
        return False
    array = tensor_data.to_array(constant)
    return np.unique(array).size == array.size


def _step(index: EmittedTensor) -> tuple[int, int, int] | None:
    """Returns the first index, the step and the number of constant indices that are evenly spaced upwards."""
    constant = tensor_data.constant_of(index.value)
    if constant is None or len(index.shape or ()) != 1:
        return None
    array = tensor_data.to_array(constant)
    if array.size < 2:
        return None
    step = int(array[1] - array[0])
    return (int(array[0]), step, array.size) if step > 0 and np.all(np.diff(array) == step) else None


def _strided(x: EmittedTensor, axis: int, first: int, step: int, count: int) -> EmittedTensor:
    rank = len(x.shape or ())
    begins, ends, steps = [0] * rank, [0] * rank, [1] * rank
    begins[axis], ends[axis], steps[axis] = first, first + (count - 1) * step + 1, step
    mask = ((1 << rank) - 1) & ~(1 << axis)
    return x.op("StridedSlice", x, begins, ends, steps, begin_mask=mask, end_mask=mask)  # type: ignore[no-any-return]


ROWS: Rows = {
    "dynamic_gather": _dynamic_gather,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
}
