"""Slices, and updates of slices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfconvert.ops.call import Array, Call, Results, ints
from tfconvert.ops.declaration import op
from tfconvert.ops.operands import Operands, Partials
from tfconvert.ops.shape_functions import Shapes, same
from tfconvert.schema.dialects.dims import UNKNOWN, MismatchError, Partial, dim_of_element, text, with_rank
from tfconvert.schema.dialects.relations.rules import at_least, is_vector
from tfconvert.schema.dialects.relations.view import View
from tfconvert.schema.dialects.types import Shape


def _slice_shape(operands: Operands) -> Shapes:
    shape, begin, size = operands.shape(0), operands.elements(1), operands.elements(2)
    known = [spec for spec in (shape, begin, size) if spec is not None]
    if not known:
        return (None,)
    rank = len(known[0])
    if any(len(spec) != rank for spec in known):
        raise MismatchError("its begin and size should have an element a dimension")
    shape = with_rank(shape, rank)
    if begin is None or size is None:
        return (tuple(map(dim_of_element, size)) if size is not None else (-1,) * rank,)
    return (tuple(map(_slice_length, shape, begin, size)),)


def _slice_length(dim: int, begin: int, size: int) -> int:
    if size == -1:
        if begin == 0:
            return dim
        if dim < 0 or begin < 0:
            return -1
        size = dim - begin
    if (size >= 0 and begin >= 0 and 0 <= dim < begin + size) or (dim >= 0 and size == dim - begin < 0):
        raise MismatchError(f"{size} elements from {begin} are more than a dimension of {dim} has")
    return dim_of_element(size)


class Entry(NamedTuple):
    """An entry of a slice.

    Attributes:
        axis: The dimension that is sliced, -1 where a new one of length 1 comes in.
        begin: The first index, `UNKNOWN` if not known; `None` for the natural end.
        end: The index to stop before, in the same way.
        stride: The step, `UNKNOWN` if not known.
        shrinks: Whether only `begin` is taken and the dimension vanishes.
    """

    axis: int
    begin: int | None = None
    end: int | None = None
    stride: int = 1
    shrinks: bool = False


def entries(operands: Operands, rank: int) -> list[Entry] | None:
    """Returns the entries of a `StridedSlice`, in the order of the dimensions.

    Args:
        operands: The op, whose operands 1 to 3 are begin, end and strides.
        rank: The rank of the sliced value.

    Returns:
        The entries, or `None` if not even their number is known.

    Raises:
        MismatchError: More dimensions are sliced than there are, or begin, end and strides are not equally long
            vectors.
    """
    shapes = operands.shapes(1, 4)
    if any(shape is not None and len(shape) != 1 for shape in shapes):
        raise MismatchError("begin, end and strides should have rank 1")
    specs = [operands.elements(index) for index in (1, 2, 3)]
    counts = {len(spec) for spec in specs if spec is not None}
    if not counts:
        return None
    if None in specs:
        # Vectors that are too long to be followed.
        counts.update(shape[0] for shape in shapes if shape is not None and shape[0] >= 0)
    if len(counts) > 1:
        raise MismatchError("begin, end and strides should be equally long")
    count = counts.pop()
    begin, end, strides = (spec if spec is not None else (UNKNOWN,) * count for spec in specs)
    return decoded(operands.integer, (begin, end, strides), rank)


class Selector(NamedTuple):
    """How the masks of a strided slice treat one dimension, before begin, end and strides are known.

    Attributes:
        axis: The dimension that is sliced, -1 where a new one of length 1 comes in.
        position: The index in begin, end and strides: that of the ellipsis, or behind the last one, where the
            dimension is whole.
        is_whole: Whether the dimension is taken as it is, without an entry in begin, end and strides.
        has_begin: Whether it begins at an index of `begin`.
        has_end: Whether it stops before an index of `end`.
        shrinks: Whether only the element at `begin` is taken and the dimension vanishes.
    """

    axis: int
    position: int
    is_whole: bool = False
    has_begin: bool = False
    has_end: bool = False
    shrinks: bool = False


def selectors(mask_of: Callable[[str], int], count: int, rank: int) -> Iterator[Selector]:
    """Yields the dimensions of a strided slice in order, with the ellipsis resolved.

    An ellipsis wins over a new axis, and a new axis over a single index, which ignores the masks of its bounds.

    Args:
        mask_of: Returns a mask by its attribute's name.
        count: The length of begin, end and strides.
        rank: The rank of the sliced value.
    """
    begin_mask, end_mask, ellipsis, new, shrink = (
        mask_of(f"{name}_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    )
    whole = rank - sum(not (ellipsis | new) >> index & 1 for index in range(count))
    axis = 0
    for index in range(count):
        if ellipsis >> index & 1:
            for _ in range(whole):
                yield Selector(axis, index, is_whole=True)
                axis += 1
            whole = 0
        elif new >> index & 1:
            yield Selector(-1, index)
        else:
            shrinks = bool(shrink >> index & 1)
            yield Selector(
                axis,
                index,
                has_begin=shrinks or not begin_mask >> index & 1,
                has_end=shrinks or not end_mask >> index & 1,
                shrinks=shrinks,
            )
            axis += 1
    for rest in range(axis, rank):
        yield Selector(rest, count + rest - axis, is_whole=True)


def decoded(mask_of: Callable[[str], int], bounds: Sequence[Sequence[int]], rank: int) -> list[Entry]:
    """Returns the entries of a strided slice of any dialect, in the order of the dimensions.

    Args:
        mask_of: Returns a mask by its attribute's name.
        bounds: Begin, end and strides, equally long.
        rank: The rank of the sliced value.

    Raises:
        MismatchError: More dimensions are sliced than there are, or there are two ellipses.
    """
    begin, end, strides = bounds
    if (mask_of("ellipsis_mask") & ((1 << len(begin)) - 1)).bit_count() > 1:
        raise MismatchError("it has more than one ellipsis")
    found = list(selectors(mask_of, len(begin), rank))
    sliced = sum(each.axis >= 0 and not each.is_whole for each in found)
    if sliced > rank:
        raise MismatchError(f"{sliced} dimensions of a value of rank {rank} can't be sliced")
    return [
        Entry(axis)
        if axis < 0 or is_whole
        else Entry(
            axis, begin[position] if has_begin else None, end[position] if has_end else None, strides[position], shrinks
        )
        for axis, position, is_whole, has_begin, has_end, shrinks in found
    ]


def length(entry: Entry, dim: int) -> int:
    """Returns how many elements of a dimension an entry takes, -1 if unknown.

    Raises:
        MismatchError: The step is 0.
    """
    begin, end, stride = entry.begin, entry.end, entry.stride
    if stride == 0:
        raise MismatchError("its strides should not be 0")
    if begin is None and end is None and stride in (1, -1):
        return dim
    if begin == 0 and stride == 1 and (end is None or (end == dim and dim < 0)):
        return dim
    if stride <= UNKNOWN or any(bound is not None and bound <= UNKNOWN for bound in (begin, end)):
        return -1
    if dim >= 0:
        return len(range(*slice(begin, end, stride).indices(dim)))
    return _length_of_unknown(begin, end, stride)


def _length_of_unknown(begin: int | None, end: int | None, stride: int) -> int:
    """A slice of a dimension that isn't known may still be known to be empty."""
    if end == 0 and stride > 0:
        return 0
    if begin is None or end is None or (begin < 0) != (end < 0):
        return -1
    return 0 if (end - begin) * stride <= 0 else -1


def _strided_slice_shape(operands: Operands) -> tuple[Shape | None]:
    """Returns the shape of a `StridedSlice`'s result."""
    shape = operands.shape(0)
    if shape is None:
        return (None,)
    found = entries(operands, len(shape))
    if found is None:
        return (None,)
    result: list[int] = []
    for entry in found:
        if entry.axis < 0:
            result.append(1)
        elif entry.shrinks:
            _check_index(entry, shape)
        else:
            result.append(length(entry, shape[entry.axis]))
    return (tuple(result),)


def _check_index(entry: Entry, shape: Shape) -> None:
    dim, index = shape[entry.axis], entry.begin
    if dim >= 0 and index is not None and index > UNKNOWN and not -dim <= index < dim:
        raise MismatchError(f"index {index} is out of range for dimension {entry.axis} of {text(shape)}")


def _slice_elements(operands: Operands) -> Partials:
    found, begin, size = operands.partial(0), operands.scalar(1), operands.scalar(2)
    if found is None or begin is None or size is None or begin < 0 or operands.shape(0) == ():
        return [None]
    return [found[begin:] if size == -1 else found[begin : begin + size]]


def _strided_slice_elements(operands: Operands) -> Partials:
    found, shape = operands.partial(0), operands.shape(0)
    if found is None or shape is None or len(shape) != 1:
        return [None]
    plan = entries(operands, 1)
    if plan is None or len(plan) != 1:
        return [None]
    return [_taken(found, plan[0])]


def _taken(found: Partial, entry: Entry) -> Partial | None:
    bounds = (entry.begin, entry.end, entry.stride)
    if any(bound is not None and bound <= UNKNOWN for bound in bounds):
        return None
    if entry.shrinks:
        index = entry.begin or 0
        return (found[index],) if -len(found) <= index < len(found) else None
    return found[entry.begin : entry.end : entry.stride] if entry.stride else None


def _update_slice(call: Call) -> Results:
    """Puts one tensor into another at a place, which is moved to where it fits."""
    value, update, place = call.inputs
    if update.ndim != value.ndim or any(own > dim for own, dim in zip(update.shape, value.shape, strict=False)):
        raise call.bad(f"a tensor of shape {update.shape} doesn't fit into one of shape {value.shape}")
    starts = np.clip(ints(place), 0, np.subtract(value.shape, update.shape))
    result = value.copy()
    result[tuple(slice(start, start + size) for start, size in zip(starts, update.shape, strict=True))] = update
    return (result,)


def _slice(call: Call) -> Results:
    x, begin, size = call.inputs
    spans = []
    for dim, start, length in zip(x.shape, ints(begin), ints(size), strict=True):
        stop = dim if length == -1 else start + length
        if not 0 <= start <= stop <= dim:
            raise call.bad(f"a slice from {ints(begin)} of size {ints(size)} is not within shape {list(x.shape)}")
        spans.append(slice(start, stop))
    return (x[tuple(spans)],)


def _clamped_slice(call: Call) -> Results:
    """`XlaDynamicSlice` moves a slice that doesn't fit to where it does."""
    x, begin, size = call.inputs
    lengths = ints(size)
    if any(length > dim for dim, length in zip(x.shape, lengths, strict=True)):
        raise call.bad(f"a slice of size {lengths} is larger than shape {list(x.shape)}")
    starts = [
        min(max(start, 0), dim - length) for dim, start, length in zip(x.shape, ints(begin), lengths, strict=True)
    ]
    return (x[tuple(slice(start, start + length) for start, length in zip(starts, lengths, strict=True))],)


def _index(call: Call, rank: int, begin: Array, end: Array, strides: Array) -> tuple[Any, ...]:
    """Returns the numpy index that a strided slice with its five masks means."""
    index: list[Any] = []
    for axis, start, stop, step, shrinks in decoded(call.integer, (ints(begin), ints(end), ints(strides)), rank):
        if step == 0:
            raise call.bad("a stride is 0")
        if shrinks and step < 0:
            raise call.bad("a single index has a negative stride")
        index.append(np.newaxis if axis < 0 else start if shrinks else slice(start, stop, step))
    return tuple(index)


def _strided_slice(call: Call) -> Results:
    x, begin, end, strides = call.inputs
    return (np.asarray(x[_index(call, x.ndim, begin, end, strides)]),)


def _strided_update(call: Call) -> Results:
    x, begin, end, strides, value = call.inputs
    result = x.copy()
    result[_index(call, x.ndim, begin, end, strides)] = value
    return (result,)


def _not_more_than_there_are(view: View) -> None:
    """Refuses a slice that is larger than the dimension, wherever it begins."""
    shape, sizes = view.shape("input"), view.integers("size")
    for dim, length in zip(shape or (), sizes or (), strict=False):
        if 0 <= dim < length:
            view.fail(f"the slice must end within 'input', which has {dim} elements there, found {length}")


def check_strides(view: View) -> None:
    count = -1
    for name in ("begin", "end", "strides"):
        shape = view.known_shape(name)
        if shape is None or -1 in shape:
            continue
        if len(shape) != 1:
            view.fail(f"{name!r} must have rank 1, found {view.type(name)}")
        if count < 0 and shape[0] >= 32:
            view.fail(f"{name!r} must have less than 32 elements, found {shape[0]}")
        if count not in (-1, shape[0]):
            view.fail(f"'begin', 'end' and 'strides' must have as many elements, found {count} and {shape[0]}")
        count = shape[0]
    if 0 in (view.integers("strides") or ()):
        view.fail("'strides' must not be 0")
    if view.integer("ellipsis_mask").bit_count() > 1:
        view.fail("there may be one ellipsis, found several bits of 'ellipsis_mask'")


SLICE_RELATIONS = (is_vector("begin", "size"), at_least("begin", 0), _not_more_than_there_are)

OPS = (
    op("Slice", shape=_slice_shape, values=_slice_elements, compute=_slice, relations=SLICE_RELATIONS, verified=True),
    op(
        "StridedSlice",
        shape=_strided_slice_shape,
        values=_strided_slice_elements,
        compute=_strided_slice,
        relations=(check_strides,),
    ),
    op("TensorStridedSliceUpdate", shape=same, compute=_strided_update),
    op("XlaDynamicSlice", compute=_clamped_slice),
    op("XlaDynamicUpdateSlice", shape=same, compute=_update_slice),
)
