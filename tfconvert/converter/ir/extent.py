"""The minimum and maximum element of a constant, and its power, from one read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfconvert.schema.dialects import boxes, sources, tensor_data
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.dialects.expressions import Deferred, Handle
from tfconvert.schema.dialects.tensor_data import Constant


class Extent(NamedTuple):
    """The minimum and maximum element of a constant, and its power.

    Attributes:
        low: The minimum element of each slice, as `f32`.
        high: The greatest of each.
        power: The sum of the squares of all elements.
    """

    low: Array
    high: Array
    power: float

    @property
    def is_finite(self) -> bool:
        """Whether every element is a finite number."""
        return bool(np.isfinite(self.low).all() and np.isfinite(self.high).all())


def extent(constant: Constant, axis: int | None = None) -> Extent:
    """Reads a constant in blocks; returns the extent of each slice of an axis, or of all.

    A slice without elements has the range 0 to 0; one with a NaN has NaNs.
    """
    handle, axis = _untransposed(constant, axis)
    shape, source = handle.shape, handle.source
    size = source.block_size(handle.dtype) if isinstance(source, Deferred) else sources.BLOCK
    count = 1 if axis is None else shape[axis]
    low, high = np.full(count, np.inf, np.float32), np.full(count, -np.inf, np.float32)
    power = 0.0
    others = tuple(at for at in range(len(shape)) if at != axis)
    for box in boxes.split(boxes.whole(shape), shape, handle.dtype.itemsize, size):
        part = handle.part(box)
        own = slice(None) if axis is None else box[axis]
        np.minimum(low[own], part.min(others, initial=np.inf), out=low[own])
        np.maximum(high[own], part.max(others, initial=-np.inf), out=high[own])
        flat = part.reshape(-1)
        with np.errstate(over="ignore"):
            power += float(np.dot(flat, flat))
        del part, flat
        source.release()
    empty = low > high
    low[empty] = high[empty] = 0
    return Extent(low, high, power)


def _untransposed(constant: Constant, axis: int | None) -> tuple[Handle, int | None]:
    """Returns what a transposed constant is the transpose of, which is read faster, and what its axis is there."""
    handle: Handle = tensor_data.as_handle(constant)
    source = handle.source
    while isinstance(source, Deferred) and source.function == "transpose" and source.shape == handle.shape:
        axis = None if axis is None else source.parameter[axis] % len(handle.shape)
        (handle,) = source.arguments
        source = handle.source
    return handle, axis
