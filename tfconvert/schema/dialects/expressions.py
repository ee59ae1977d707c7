"""Deferred expressions: values that are computed from other constants each time they are read, and never stored.

Each expression can compute any box of its value from boxes of its arguments, so that a value of any size can be written
block by block: `transpose(filter) * scale` takes, for some rows of its result, some columns of the filter and as many
elements of the scale.

Splats among them are constants of one value and a shape of any size; they take no more memory than one element.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from tfconvert.schema.dialects import boxes, types
from tfconvert.schema.dialects.boxes import Array, Box
from tfconvert.schema.dialects.sources import BLOCK, BufferSource, DataSource
from tfconvert.schema.ir.types import TensorType

MAX_DEPTH = 16
"""Maximum depth of deferred expressions; deeper ones are computed at once, so that reading never recurses far."""

# Maximum average number of evaluations of an expression's parts; beyond it, the expression is computed at once.
_REPEATED = 4

# Minimum number of parts for that check.
_FEW = 64

# Factor for the block size where each block is gathered from the whole argument, to read it less often.
_WIDE = 4

# Bytes of an argument that a transposition reads before it releases them.
_TILE = 1 << 24

# Rows that a transposition moves at once: two cache lines of `f32`, so that each is read and written once.
_LANES = 32

# Minimum size in bytes from which this is faster.
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
    def source(self) -> DataSource:
        """Where the bytes come from."""

    def array(self) -> Array:
        """Returns the value."""

    def part(self, box: Box) -> Array:
        """Returns a box of the value."""


class Deferred(DataSource):
    """A value computed from other handles each time it is read; nothing is cached.

    Attributes:
        function: A key of `EXPRESSIONS`.
        arguments: The handles it is computed from.
        parameter: The function's parameter: a permutation, a shape, a dtype, ...
        shape: Shape of the function's result; the value may have more or fewer dimensions of 1.
        depth: How deep expressions are nested.
        evaluations: Number of expressions that are computed to read a box of this one, counted as often as they occur
            in it.
        wide: Whether a block is gathered from a whole argument.
        itemsize: Size of the largest elements that it is computed from.
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
        """Whether it is nested deep, or contains the same expressions many times: both may double with each level."""
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

    def pieces(
        self, dtype: np.dtype[Any], shape: types.Shape, size: int = BLOCK, box: Box | None = None
    ) -> Iterator[tuple[Box, Array]]:
        return super().pieces(dtype, shape, self.block_size(dtype, size), box)

    def block_size(self, dtype: np.dtype[Any], size: int = BLOCK) -> int:
        """Returns the number of bytes of the value that are computed from about a number of bytes of each argument."""
        return size * (_WIDE if self.wide else 1) * dtype.itemsize // max(dtype.itemsize, self.itemsize)

    def release(self) -> None:
        for argument in self.arguments:
            argument.source.release()

    def fingerprint(self) -> Hashable:
        arguments = tuple(
            (argument.type.element_type, argument.shape, argument.source.fingerprint()) for argument in self.arguments
        )
        return (self.function, arguments, self.parameter)


class TensorFunction(NamedTuple):
    """A function that expressions are made of."""

    shape: Callable[[Deferred], types.Shape]  # Returns the result's shape.
    # Returns a box of the result; the dtype is the one that the result is cast to.
    part: Callable[[Deferred, np.dtype[Any], Box], Array]
    fresh: bool = False  # Whether the result of `part` is not a view and may be overwritten.
    wide: bool = False  # Whether a box is gathered from a whole argument.


def _transposed_shape(of: Deferred) -> types.Shape:
    return tuple(of.arguments[0].shape[axis] for axis in of.parameter)


def _transpose(of: Deferred, dtype: np.dtype[Any], box: Box) -> Array:
    """Transposes in tiles, of which only one is in memory."""
    argument = of.arguments[0]
    order = [axis % len(box) for axis in of.parameter]
    result = np.empty(boxes.extent(box), argument.dtype)
    columns = tuple(box[order.index(axis)] for axis in range(len(box)))
    for tile, values in argument.source.pieces(argument.dtype, argument.shape, _TILE, columns):
        place = boxes.relative(tuple(tile[axis] for axis in order), box)
        _copy(boxes.view(result, place), values.transpose(order), order)
        del values  # before the next ones are read
    return result


def _copy(target: Array, moved: Array, order: list[int]) -> None:
    """Copies a transposed array; large matrices are copied in lanes."""
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
        if low < high or argument is of.arguments[0]:  # the first one determines the type if there are no elements
            place = slice(low - start, high - start) if low < high else slice(0, 0)
            parts.append(argument.part((*box[:axis], place, *box[axis + 1 :])))
        start = stop
    return np.concatenate(parts, axis)


def _placed_shape(of: Deferred) -> types.Shape:
    return (of.arguments[-1].shape[0], *of.arguments[0].shape[1:])


def _place(of: Deferred, dtype: np.dtype[Any], box: Box) -> Array:
    """Puts rows of all arguments but the last at the indices in the last."""
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


def _elementwise(function: np.ufunc) -> TensorFunction:
    def compute(of: Deferred, dtype: np.dtype[Any], box: Box) -> Array:
        parts = [_operand(argument, of.shape, box) for argument in of.arguments]
        own = _is_fresh(of.arguments[0].source) and parts[0].dtype == dtype and parts[0].shape == boxes.extent(box)
        return np.asarray(function(*parts, out=parts[0] if own else None))

    return TensorFunction(_broadcast_shape, compute, fresh=True)


def _operand(argument: Handle, shape: types.Shape, box: Box) -> Array:
    """Returns the part of an argument that a box of its broadcast needs."""
    added = len(box) - len(argument.shape)
    own = zip(argument.shape, shape[added:], box[added:], strict=True)
    return argument.part(tuple(part if dim == of else slice(0, 1) for dim, of, part in own))


def _quantize(of: Deferred, dtype: np.dtype[Any], box: Box) -> Array:
    """Divides by scales, one for each slice of an axis, and rounds to integers within limits."""
    values, scales, zero_points = of.arguments
    axis, low, high = of.parameter
    real = values.part(box)
    result = real if _is_fresh(values.source) and real.dtype == np.float32 else np.empty(real.shape, np.float32)
    # One slice at a time would be slow for the last axis: numpy broadcasts instead.
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
    """Rounds to the numbers that integers within limits represent, with TensorFlow's arithmetic."""
    values, scales, zero_points = of.arguments
    axis, low, high = of.parameter
    aligned = (1,) * len(box) if axis is None else tuple(-1 if at == axis else 1 for at in range(len(box)))
    own = slice(None) if axis is None else box[axis]
    steps = scales.array()[own].reshape(aligned)
    offsets = zero_points.array()[own].reshape(aligned).astype(np.float32)
    minimum = (np.float32(low) - offsets) * steps
    # NaN stays NaN in numpy's minimum and maximum; a scalar becomes a number, which can't be written to.
    result: Array = np.asarray(np.minimum(values.part(box), (np.float32(high) - offsets) * steps))
    np.maximum(result, minimum, out=result)
    result -= minimum
    result *= np.float32(1) / steps
    result += np.float32(low) - offsets + np.float32(0.5)
    np.floor(result, out=result)
    result *= steps
    return result


def _half(of: Deferred, dtype: np.dtype[Any], box: Box) -> Array:
    """Rounds to 16-bit floats; numbers beyond their range are clamped."""
    largest = np.finfo(np.float16).max
    return np.clip(of.arguments[0].part(box), -largest, largest).astype(np.float16)


def _is_fresh(source: DataSource) -> bool:
    """Returns whether a value was computed for its reader alone and is not a view."""
    return isinstance(source, Deferred) and EXPRESSIONS[source.function].fresh


EXPRESSIONS: Mapping[str, TensorFunction] = {
    "transpose": TensorFunction(_transposed_shape, _transpose, fresh=True, wide=True),
    "reshape": TensorFunction(lambda of: of.parameter, _reshape),
    "cast": TensorFunction(_argument_shape, _cast),
    "reverse": TensorFunction(_argument_shape, _reverse),
    "pad": TensorFunction(_padded_shape, _pad),
    "concat": TensorFunction(_joined_shape, _concatenate),
    "place": TensorFunction(_placed_shape, _place, fresh=True, wide=True),
    "quantize": TensorFunction(_argument_shape, _quantize, fresh=True),
    "fake_quant": TensorFunction(_argument_shape, _fake_quant, fresh=True),
    "half": TensorFunction(_argument_shape, _half, fresh=True),
    "mul": _elementwise(np.multiply),
    "add": _elementwise(np.add),
    "sub": _elementwise(np.subtract),
    "div": _elementwise(np.divide),
}
"""The functions that a deferred expression can compute."""


class SplatSource(DataSource):
    """One value, for all elements.

    Attributes:
        value: The value, a scalar.
    """

    __slots__ = ("value",)

    def __init__(self, value: Array) -> None:
        self.value = value.copy()

    def array(self, dtype: np.dtype[Any], shape: types.Shape) -> Array:
        return np.broadcast_to(self._of(dtype), shape)

    def part(self, dtype: np.dtype[Any], shape: types.Shape, box: Box) -> Array:
        return np.broadcast_to(self._of(dtype), boxes.extent(box))

    def _of(self, dtype: np.dtype[Any]) -> Array:
        return self.value if self.value.dtype == dtype else self.value.view(dtype)

    def release(self) -> None:
        """Does nothing: there is one value only."""

    def fingerprint(self) -> Hashable:
        return ("splat", self.value.item() if self.value.dtype == object else self.value.tobytes())


def is_splat(array: Array) -> bool:
    """Returns whether all elements of an array that is not empty share memory."""
    return array.size > 0 and not any(
        stride for stride, dim in zip(array.strides, array.shape, strict=True) if dim != 1
    )


# Expressions whose elements are those of their arguments.
_MOVED = frozenset({"concat", "reshape", "reverse", "transpose"})

_ELEMENTWISE = frozenset({"add", "cast", "div", "half", "mul", "sub"})


def result(of: Deferred, dtype: np.dtype[Any]) -> SplatSource | None:
    """Returns the value of all elements of an expression whose arguments are splats.

    Args:
        of: The expression.
        dtype: The type of its elements.
    """
    first = of.arguments[0].source
    if of.function in _MOVED:
        same = isinstance(first, SplatSource) and all(argument.source is first for argument in of.arguments)
        return first if same and isinstance(first, SplatSource) and first.value.dtype == dtype else None
    if of.function not in _ELEMENTWISE:
        return None
    one = tuple(slice(0, 1) for _ in of.shape)
    for argument in of.arguments:
        is_one = isinstance(argument.source, BufferSource) and all(dim == 1 for dim in argument.shape)
        if not is_one and not isinstance(argument.source, SplatSource):
            return None
    with np.errstate(all="ignore"):
        value = EXPRESSIONS[of.function].part(of, dtype, one).astype(dtype, copy=False)
    return SplatSource(value.reshape(()))
