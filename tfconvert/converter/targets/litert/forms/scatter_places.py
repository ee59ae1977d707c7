"""The places of a scatter's updates: indices along dimensions, behind the numbers of rows that they were made into."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.ir.constants import constant_array, constant_ints, constant_number
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.questions import ints_of, is_plain, shape_of
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.values import Value

Insert = Callable[[FormBuilder], Value]


class Filled(NamedTuple):
    """A tensor of one number.

    Attributes:
        number: The number, a constant.
        type: The tensor's type.
    """

    number: float
    type: Attribute


class Indices(NamedTuple):
    """The places of updates.

    Attributes:
        x: The tensor that is indexed.
        axes: The dimensions that they index.
        insert: Inserts them, as a matrix of one row for each update.
        inside: The same, but moved to where they are inside, `None` if they aren't computed.
        check: Whether each was inside before, `None` if all were.
    """

    x: Value | Filled
    axes: Sequence[int]
    insert: Insert
    inside: Value | None = None
    check: Value | None = None


def places_of(rows: Value, ids: Value, points: Value | Filled | None = None) -> Indices:
    """Returns indices for the numbers of rows, where those that are negative or too large are skipped.

    Args:
        rows: The rows.
        ids: The numbers.
        points: A tensor in whose order the rows are; by default, the one that they were reshaped from.
    """
    points = points or source_of(rows, "tfl.reshape")
    constant = tensor_data.constant_of(ids)
    if constant is not None:
        return known_places(rows, points, tensor_data.to_array(constant))
    together = numbered_together(rows, points, ids)
    if together is not None:
        return together
    guarded = _unguarded(rows, ids)
    is_first = (types.shape_of(points.type) or (None,))[0] == shape_of(rows)[0] >= 0
    x = points if is_first else rows
    return Indices(x, (0,), lambda build: build.reshape(guarded, (shape_of(ids)[0], 1)))


def _unguarded(rows: Value, ids: Value) -> Value:
    """Returns the numbers that were checked to be below the number of rows, with -1 for the others."""
    choice = ids.producer("tfl.select_v2")
    if choice is None or constant_number(choice.operands[2]) != -1:
        return ids
    check, number, _ = choice.operands
    less = check.producer("tfl.less")
    is_checked = less is not None and less.operands[0] is number and is_height(less.operands[1], rows)
    return number if is_checked and shape_of(number) == shape_of(ids) else ids


def numbered_together(rows: Value, x: Value | Filled, ids: Value) -> Indices | None:
    """Returns indices along several dimensions, of which the numbers of rows were made.

    The numbers are sums of products of the indices with the steps of the dimensions; with a check whether each index is
    inside, and with a remainder if negative ones count from the end.
    """
    total = source_of(ids, "tfl.reshape")
    choice = total.producer("tfl.select_v2")
    if choice is not None:
        if constant_number(choice.operands[2]) != -1:
            return None
        total = choice.operands[1]
    total = source_of(total, "tfl.cast")
    summed = total.producer("tfl.sum")
    product = None if summed is None else summed.operands[0].producer("tfl.mul")
    if product is None or summed is None or not is_plain(product):
        return None
    places, steps = product.operands[0], constant_array(product.operands[1])
    shape, own = types.shape_of(x.type) or (), shape_of(places)
    depth = own[-1]
    if not 0 < depth <= len(shape) or steps is None or not types.is_static(shape + own):
        return None
    sizes = np.array(shape[:depth])
    wanted = [math.prod(shape[at + 1 : depth]) for at in range(depth)]
    is_along = ints_of(summed.operands[1]) in ([len(own) - 1], [-1]) and shape_of(total) == own[:-1]
    if not is_along or np.broadcast_to(steps, depth).tolist() != wanted or math.prod(sizes) != shape_of(rows)[0]:
        return None
    if choice is None:
        return Indices(x, range(depth), lambda build: build.reshape(places, (math.prod(own[:-1]), depth)), places)
    return _checked(x, choice.operands[0], places, sizes)


def _checked(x: Value | Filled, check: Value, places: Value, sizes: Array) -> Indices | None:
    """Returns indices that were limited, and replaced by -1 where this changed one."""
    depth, remainder = len(sizes), places.producer("tfl.floor_mod")
    limited = places if remainder is None else remainder.operands[0]
    every = check.producer("tfl.reduce_all")
    equal = None if every is None else every.operands[0].producer("tfl.equal")
    high = limited.producer("tfl.maximum")
    low = None if high is None else high.operands[0].producer("tfl.minimum")
    if every is None or equal is None or high is None or low is None:
        return None
    index, first, last = low.operands[0], constant_array(high.operands[1]), constant_array(low.operands[1])
    if set(equal.operands) != {index, limited} or ints_of(every.operands[1]) not in ([len(shape_of(index)) - 1], [-1]):
        return None
    if first is None or last is None or (np.broadcast_to(last, depth) != sizes - 1).any():
        return None
    first = np.broadcast_to(first, depth)
    wraps = np.where(first == 0, 0, sizes)
    if (first != -wraps).any() or wraps.any() != (remainder is not None):
        return None
    if remainder is not None:
        divisor = constant_array(remainder.operands[1])
        if divisor is None or (np.broadcast_to(divisor, depth) != sizes).any():
            return None

    def insert(build: FormBuilder) -> Value:
        return build.reshape(wrapped(build) if wraps.any() else index, (math.prod(shape_of(index)[:-1]), depth))

    def wrapped(build: FormBuilder) -> Value:
        zero = build.scalar(0, index.element)
        from_end = build.tfl("add", (index, build.constant(wraps.astype(dtype_of(index)))), index.type)
        is_negative = build.tfl("less", (index, zero), types.tensor(types.I1, shape_of(index)))
        return build.tfl("select_v2", (is_negative, from_end, index), index.type)

    return Indices(x, range(depth), insert, places, check)


def known_places(rows: Value, x: Value | Filled, ids: Array) -> Indices:
    """Returns constant indices: those of a tensor, if the rows are its points."""
    shape, height = types.shape_of(x.type) or (), shape_of(rows)[0]
    depths = [depth for depth in range(1, len(shape) + 1) if math.prod(shape[:depth]) == height]
    if not types.is_static(shape) or not depths or shape[depths[0] :] != shape_of(rows)[1:]:
        return Indices(rows, (0,), lambda build: build.constant(ids.reshape(-1, 1)))
    places = np.stack(np.unravel_index(ids.clip(0, height - 1), shape[: depths[0]]), -1)
    places[(ids < 0) | (ids >= height)] = -1
    return Indices(x, range(depths[0]), lambda build: build.constant(places.astype(np.int32)))


def source_of(value: Value, name: str) -> Value:
    """Returns the operand of the op of a name that computes a value, or the value."""
    owner = value.producer(name)
    return value if owner is None else owner.operands[0]


def is_height(value: Value, rows: Value) -> bool:
    """Returns whether a number is the number of rows."""
    height = shape_of(rows)[0]
    if height >= 0:
        return constant_number(value) == height
    part = value.producer("tfl.strided_slice")
    shape = None if part is None else part.operands[0].producer("tfl.shape")
    if part is None or shape is None or shape.operands[0] is not rows:
        return False
    return [constant_ints(each) for each in part.operands[1:]] == [(0,), (1,), (1,)]


def dtype_of(value: Value) -> Any:
    return types.numpy_dtype(value.element)


def counts(numbers: Value) -> bool:
    """Returns whether a value has the numbers from 0."""
    constant, counted = tensor_data.constant_of(numbers), numbers.producer("tfl.range")
    if constant is not None:
        array = tensor_data.to_array(constant)
        return array.dtype.kind in "iu" and np.array_equal(array.reshape(-1), np.arange(array.size))
    return counted is not None and [constant_number(counted.operands[at]) for at in (0, 2)] == [0, 1]
