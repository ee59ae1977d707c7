"""Deferred expressions: values that are computed from other constants each time they are read, and never kept.

Each expression can tell any box of its value from boxes of its arguments, so that a value of any size can be written
block by block: `transpose(filter) * scale` takes, for some rows of its result, some columns of the filter and as many
elements of the scale.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from tfconvert.schema.dialects import boxes, types
from tfconvert.schema.dialects.boxes import Array, Box
from tfconvert.schema.dialects.sources import BLOCK, Source
from tfconvert.schema.ir.types import TensorType

MAX_DEPTH = 16
"""A deferred expression deeper than this is computed at once, so that reading one never recurses far."""

# An expression in which the same ones are computed more often than this, on average, is computed at once, too.
_REPEATED = 4

# Expressions of fewer others aren't looked at for that.
_FEW = 64

# How many blocks make one where each is gathered from all of its argument, which is gone through less often then.
_WIDE = 4

# Bytes of an argument that a transposition goes through before it gives them back.
_TILE = 1 << 24

# Rows that a transposition moves at once: a cache line of `f32`, so that each is read and written once.
_LANES = 16

# From this size in bytes on, a matrix is transposed faster so.
_FACE = 1 << 14


class Handle(Protocol):
    """An argument of expressions: a constant's type and source."""

    @property
    def type(self) -> TensorType:
        """The tensor type."""

    @property
    def shape(self) -> types.Shape:
        """The shape."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Numpy's dtype of the elements."""

    @property
    def source(self) -> Source:
        """Where the bytes come from."""

    def array(self) -> Array:
        """Returns the value."""

    def part(self, box: Box) -> Array:
        """Returns a box of the value."""


class Deferred(Source):
    """A value computed from other handles each time it is read; nothing is kept.

    Attributes:
        function: A key of `EXPRESSIONS`.
        arguments: The handles it is computed from.
        parameter: The function's parameter: a permutation, a shape, a dtype, ...
        shape: Shape of what the function returns; the value may have more or fewer dimensions of 1.
        depth: How deep expressions are nested.
        evaluations: How many expressions are computed to read a box of this one, as often as they occur in it.
        wide: Whether a block is gathered from all over some argument.
        itemsize: Bytes of the largest elements among those that it is computed from.
    """

    __slots__ = ("arguments", "depth", "evaluations", "function", "itemsize", "parameter", "shape", "wide")

    def __init__(self, function: str, arguments: tuple[Handle, ...], parameter: Any = None) -> None:
        self.function = function
        self.arguments = arguments
        self.parameter = parameter
        expression = EXPRESSIONS[self.function]
        inner = [argument.source for argument in self.arguments if isinstance(argument.source, Deferred)]
        self.shape: types.Shape = expression.shape(self)
        self.depth: int = 1 + max((source.depth for source in inner), default=0)
        self.evaluations: int = 1 + sum(source.evaluations for source in inner)
        self.wide: bool = expression.wide or any(source.wide for source in inner)
        sizes = (argument.dtype.itemsize for argument in self.arguments)
        self.itemsize: int = max((*sizes, *(source.itemsize for source in inner)), default=1)

    @property
    def is_costly(self) -> bool:
        """Whether it is nested deep, or the same expressions occur in it many times: both may double with each."""
        if self.depth > MAX_DEPTH or self.evaluations <= _FEW:
            return self.depth > MAX_DEPTH
        pending, seen = [self], {id(self)}
        while pending:
            for argument in pending.pop().arguments:
                source = argument.source
                if isinstance(source, Deferred) and id(source) not in seen:
                    seen.add(id(source))
                    pending.append(source)
        return self.evaluations > _REPEATED * len(seen)

    def part(self, dtype: np.dtype[Any], shape: types.Shape, box: Box) -> Array:
        compute = EXPRESSIONS[self.function].part
        with np.errstate(all="ignore"):
            if shape == self.shape:
                value = compute(self, dtype, box)
            else:
                value = boxes.reshaped(lambda own: compute(self, dtype, own), self.shape, shape, box)
            return value.astype(dtype, copy=False)

    def blocks(self, dtype: np.dtype[Any], shape: types.Shape, size: int = BLOCK) -> Iterator[Array]:
        return super().blocks(dtype, shape, self.block_size(dtype, size))

    def block_size(self, dtype: np.dtype[Any], size: int = BLOCK) -> int:
        """Returns how many bytes of the value are computed from about so many bytes of each argument."""
        return size * (_WIDE if self.wide else 1) * dtype.itemsize // max(dtype.itemsize, self.itemsize)

    def release(self) -> None:
        for argument in self.arguments:
            argument.source.release()

    def fingerprint(self) -> Hashable:
        arguments = tuple(
            (argument.type.element_type, argument.shape, argument.source.fingerprint()) for argument in self.arguments
        )
        return (self.function, arguments, self.parameter)


class Expression(NamedTuple):
    """A function that expressions are made of.

    Attributes:
        shape: Returns the result's shape.
        part: Returns a box of the result; the dtype is the one that the result is cast to.
        fresh: Whether what `part` returns isn't a view of something else, and may be overwritten.
        wide: Whether a box is gathered from all over an argument.
    """

    shape: Callable[[Deferred], types.Shape]
    part: Callable[[Deferred, np.dtype[Any], Box], Array]
    fresh: bool = False
    wide: bool = False


def _transposed_shape(of: Deferred) -> types.Shape:
    return tuple(of.arguments[0].shape[axis] for axis in of.parameter)


def _transpose(of: Deferred, dtype: np.dtype[Any], box: Box) -> Array:
    """Goes through the argument in tiles, so that no more than one of them is in memory."""
    argument = of.arguments[0]
    order = [axis % len(box) for axis in of.parameter]
    result = np.empty(boxes.extent(box), argument.dtype)
    columns = tuple(box[order.index(axis)] for axis in range(len(box)))
    for tile in boxes.split(columns, argument.shape, argument.dtype.itemsize, _TILE):
        place = boxes.relative(tuple(tile[axis] for axis in order), box)
        _copy(boxes.view(result, place), argument.part(tile).transpose(order), order)
        argument.source.release()
    return result


def _copy(target: Array, moved: Array, order: list[int]) -> None:
    """Copies a transposed array; the matrices of rows in memory and rows to be go in lanes if they are large."""
    rows = order.index(len(order) - 1) if order else 0
    if not order or rows == len(order) - 1 or target.itemsize * target.shape[rows] * target.shape[-1] < _FACE:
        target[...] = moved
        return
    target, moved = (np.moveaxis(array, rows, -2) for array in (target, moved))
    for index in itertools.product(*map(range, target.shape[:-2])):
        face, matrix = target[index], moved[index]
        for lane in range(0, face.shape[1], _LANES):
            face[:, lane : lane + _LANES] = matrix[:, lane : lane + _LANES]


def _reshape(of: Deferred, dtype: np.dtype[Any], box: Box) -> Array:
    argument = of.arguments[0]
    return boxes.reshaped(argument.part, argument.shape, of.shape, box)


def _argument_shape(of: Deferred) -> types.Shape:
    return of.arguments[0].shape


def _cast(of: Deferred, dtype: np.dtype[Any], box: Box) -> Array:
    return of.arguments[0].part(box).astype(of.parameter)


def _reverse(of: Deferred, dtype: np.dtype[Any], box: Box) -> Array:
    rank = len(box)
    axes = range(rank) if of.parameter is None else np.atleast_1d(of.parameter) % max(rank, 1)
    own = list(box)
    for axis in axes:
        own[axis] = slice(of.shape[axis] - box[axis].stop, of.shape[axis] - box[axis].start)
    return np.flip(of.arguments[0].part(tuple(own)), of.parameter)


def _padded_shape(of: Deferred) -> types.Shape:
    dims = zip(of.arguments[0].shape, of.parameter, strict=True)
    return tuple(before + dim + after for dim, (before, after) in dims)


def _pad(of: Deferred, dtype: np.dtype[Any], box: Box) -> Array:
    argument = of.arguments[0]
    dims = zip(argument.shape, of.parameter, strict=True)
    inside = tuple(slice(before, before + dim) for dim, (before, _) in dims)
    result = np.zeros(boxes.extent(box), argument.dtype)
    overlap = boxes.common(box, inside)
    if overlap is not None:
        result[boxes.relative(overlap, box)] = argument.part(boxes.relative(overlap, inside))
    return result


def _joined_shape(of: Deferred) -> types.Shape:
    first = of.arguments[0].shape
    axis = of.parameter % len(first)
    return (*first[:axis], sum(argument.shape[axis] for argument in of.arguments), *first[axis + 1 :])


def _concatenate(of: Deferred, dtype: np.dtype[Any], box: Box) -> Array:
    axis = of.parameter % len(box)
    wanted = box[axis]
    parts = []
    start = 0
    for argument in of.arguments:
        stop = start + argument.shape[axis]
        low, high = max(wanted.start, start), min(wanted.stop, stop)
        if low < high or argument is of.arguments[0]:  # the first one's elements tell the type where there are none
            place = slice(low - start, high - start) if low < high else slice(0, 0)
            parts.append(argument.part((*box[:axis], place, *box[axis + 1 :])))
        start = stop
    return np.concatenate(parts, axis)


def _placed_shape(of: Deferred) -> types.Shape:
    return (of.arguments[-1].shape[0], *of.arguments[0].shape[1:])


def _place(of: Deferred, dtype: np.dtype[Any], box: Box) -> Array:
    """Puts the rows of all arguments but the last where that says, one number a row."""
    *tables, numbers = of.arguments
    places = numbers.array()
    result = np.empty(boxes.extent(box), tables[0].dtype)
    start = 0
    for table in tables:
        own = places[start : start + table.shape[0]]
        start += table.shape[0]
        rows = np.flatnonzero((own >= box[0].start) & (own < box[0].stop))
        if rows.size:
            first, last = int(rows[0]), int(rows[-1]) + 1
            read = table.part((slice(first, last), *box[1:]))
            result[own[rows] - box[0].start] = read if rows.size == last - first else read[rows - first]
    return result


def _broadcast_shape(of: Deferred) -> types.Shape:
    return np.broadcast_shapes(*(argument.shape for argument in of.arguments))


def _elementwise(function: np.ufunc) -> Expression:
    def compute(of: Deferred, dtype: np.dtype[Any], box: Box) -> Array:
        parts = [_operand(argument, of.shape, box) for argument in of.arguments]
        own = _is_fresh(of.arguments[0].source) and parts[0].dtype == dtype and parts[0].shape == boxes.extent(box)
        return np.asarray(function(*parts, out=parts[0] if own else None))

    return Expression(_broadcast_shape, compute, fresh=True)


def _operand(argument: Handle, shape: types.Shape, box: Box) -> Array:
    """Returns what is needed of an argument that is broadcast to a shape."""
    added = len(box) - len(argument.shape)
    own = zip(argument.shape, shape[added:], box[added:], strict=True)
    return argument.part(tuple(part if dim == of else slice(0, 1) for dim, of, part in own))


def _quantize(of: Deferred, dtype: np.dtype[Any], box: Box) -> Array:
    """Divides by scales, of one slice of an axis each, and rounds to integers within limits."""
    values, scales, zero_points = of.arguments
    axis, low, high = of.parameter
    real = values.part(box)
    result = real if _is_fresh(values.source) and real.dtype == np.float32 else np.empty(real.shape, np.float32)
    # In row-major order, a row of the axis at a time would be slow where it is the last: numpy broadcasts instead.
    aligned = (1,) * len(box) if axis is None else tuple(-1 if at == axis else 1 for at in range(len(box)))
    own = slice(None) if axis is None else box[axis]
    factors = (np.float32(1) / scales.array()[own]).reshape(aligned)
    np.multiply(real, factors, out=result)
    np.rint(result, out=result)
    offsets = zero_points.array()[own]
    if offsets.any():
        result += offsets.reshape(aligned).astype(np.float32)
    np.clip(result, low, high, out=result)
    return result


def _fake_quant(of: Deferred, dtype: np.dtype[Any], box: Box) -> Array:
    """Rounds to multiples of scales, those that integers within limits represent, with TensorFlow's arithmetic."""
    values, scales, zero_points = of.arguments
    axis, low, high = of.parameter
    aligned = (1,) * len(box) if axis is None else tuple(-1 if at == axis else 1 for at in range(len(box)))
    own = slice(None) if axis is None else box[axis]
    steps = scales.array()[own].reshape(aligned)
    offsets = zero_points.array()[own].reshape(aligned).astype(np.float32)
    least = (np.float32(low) - offsets) * steps
    # A NaN stays one in numpy's minimum and maximum, and a scalar becomes a number, which nothing can be written to.
    result: Array = np.asarray(np.minimum(values.part(box), (np.float32(high) - offsets) * steps))
    np.maximum(result, least, out=result)
    result -= least
    result *= np.float32(1) / steps
    result += np.float32(low) - offsets + np.float32(0.5)
    np.floor(result, out=result)
    result *= steps
    return result


def _half(of: Deferred, dtype: np.dtype[Any], box: Box) -> Array:
    """Rounds to 16-bit floats; numbers beyond their range become the largest."""
    largest = np.finfo(np.float16).max
    return np.clip(of.arguments[0].part(box), -largest, largest).astype(np.float16)


def _is_fresh(source: Source) -> bool:
    """Returns whether a value was computed for its reader alone, and isn't a view of something else."""
    return isinstance(source, Deferred) and EXPRESSIONS[source.function].fresh


EXPRESSIONS: Mapping[str, Expression] = {
    "transpose": Expression(_transposed_shape, _transpose, fresh=True, wide=True),
    "reshape": Expression(lambda of: of.parameter, _reshape),
    "cast": Expression(_argument_shape, _cast),
    "reverse": Expression(_argument_shape, _reverse),
    "pad": Expression(_padded_shape, _pad),
    "concat": Expression(_joined_shape, _concatenate),
    "place": Expression(_placed_shape, _place, fresh=True, wide=True),
    "quantize": Expression(_argument_shape, _quantize, fresh=True),
    "fake_quant": Expression(_argument_shape, _fake_quant, fresh=True),
    "half": Expression(_argument_shape, _half, fresh=True),
    "mul": _elementwise(np.multiply),
    "add": _elementwise(np.add),
    "sub": _elementwise(np.subtract),
    "div": _elementwise(np.divide),
}
"""The functions that a deferred expression can compute."""
