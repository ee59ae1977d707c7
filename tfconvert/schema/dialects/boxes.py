"""Boxes of tensors, a range in every dimension: splitting and shifting them, and reading them in another shape."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tfconvert.schema.dialects.types import Shape

Array = np.ndarray[Any, np.dtype[Any]]

Box = tuple[slice, ...]
"""One slice a dimension, each with a start and a stop from 0 to the dimension, and no step."""


def whole(shape: Shape) -> Box:
    """Returns the box that is everything."""
    return tuple(slice(0, dim) for dim in shape)


def extent(box: Box) -> Shape:
    return tuple(part.stop - part.start for part in box)


def view(array: Array, box: Box) -> Array:
    """Returns a box of an array, without a copy; for a scalar also an array."""
    index: tuple[Any, ...] = (*box, ...)
    result: Array = array[index]
    return result


def relative(box: Box, origin: Sequence[slice]) -> Box:
    """Returns a box relative to another one that contains it."""
    return tuple(slice(part.start - of.start, part.stop - of.start) for part, of in zip(box, origin, strict=True))


def common(first: Sequence[slice], second: Sequence[slice]) -> Box | None:
    """Returns the intersection of two boxes, `None` if it is empty."""
    box = tuple(
        slice(max(one.start, other.start), min(one.stop, other.stop)) for one, other in zip(first, second, strict=True)
    )
    return box if all(part.start < part.stop for part in box) else None


def offsets(box: Box, shape: Shape) -> tuple[int, int]:
    """Returns the range of row-major indices from the first to the last element of a box that is not empty."""
    first = last = 0
    for part, dim in zip(box, shape, strict=True):
        first = first * dim + part.start
        last = last * dim + part.stop - 1
    return first, last + 1


def split(box: Box, shape: Shape, itemsize: int, size: int) -> Iterator[Box]:
    """Yields the boxes that make up a box, in row-major order.

    Args:
        box: The box to split.
        shape: The tensor's shape.
        itemsize: Bytes of an element.
        size: Maximum bytes of the tensor from a box's first element to its last, unless one element has more.
    """
    if 0 in extent(box):
        return
    if not shape:
        yield box
        return
    inner = math.prod(shape) * itemsize
    axis = 0
    for axis, dim in enumerate(shape):  # noqa: B007
        inner //= dim
        if inner <= size:
            break
    rows = max(1, size // inner)
    for index in itertools.product(*(range(part.start, part.stop) for part in box[:axis])):
        head = tuple(slice(at, at + 1) for at in index)
        for start in range(box[axis].start, box[axis].stop, rows):
            yield (*head, slice(start, min(start + rows, box[axis].stop)), *box[axis + 1 :])


def reshaped(read: Callable[[Box], Array], source: Shape, target: Shape, box: Box) -> Array:
    """Returns a box of a tensor that can only be read in another shape.

    Dimensions are taken in groups that have as many elements in both shapes. Within each, full rows are read from the
    first required element to the last, so that a box of rows takes little more than itself.

    Args:
        read: Returns a box of the tensor in its own shape.
        source: That shape.
        target: The requested shape, with the same number of elements.
        box: The box of the tensor in that shape.
    """
    if 0 in extent(box):
        return read((slice(0, 0),) * len(source)).reshape(-1)[:0].reshape(extent(box))
    needed: list[slice] = []
    lengths: list[int] = []
    places: list[slice] = []
    covers: list[slice] = []
    for source_axes, target_axes in _groups(source, target):
        own, other = source[source_axes], target[target_axes]
        cover = _cover(other, *offsets(box[target_axes], other))
        first, last = offsets(cover, other)
        rows = _cover(own, first, last)
        start = offsets(rows, own)[0]
        needed += rows
        lengths.append(math.prod(extent(rows)))
        places.append(slice(first - start, last - start))
        covers += cover
    value = view(read(tuple(needed)).reshape(lengths), tuple(places))
    return view(value.reshape(extent(tuple(covers))), relative(box, covers))


def _groups(source: Shape, target: Shape) -> Iterator[tuple[slice, slice]]:
    """Yields the smallest groups of consecutive axes that have the same number of elements in both shapes."""
    at = [0, 0]
    while at != [len(source), len(target)]:
        begin = tuple(at)
        counts = [1, 1]
        for side, shape in enumerate((source, target)):
            if at[side] < len(shape):
                counts[side] = shape[at[side]]
                at[side] += 1
        while counts[0] != counts[1]:
            side = int(counts[1] < counts[0])
            counts[side] *= (source, target)[side][at[side]]
            at[side] += 1
        yield slice(begin[0], at[0]), slice(begin[1], at[1])


def _cover(shape: Shape, first: int, last: int) -> Box:
    """Returns the smallest box that is contiguous in row-major order and holds a range of elements."""
    inner = math.prod(shape)
    box: list[slice] = []
    for dim in shape:
        inner //= dim
        low, high = first // inner, -(-last // inner)
        box.append(slice(low, high))
        first, last = first - low * inner, last - low * inner
        if high - low > 1:
            break
    return (*box, *whole(shape[len(box) :]))
