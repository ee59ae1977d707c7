"""Splats: constants of one value and a shape of any size, which are never larger than that until they are written."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from tfconvert.schema.dialects import boxes, types
from tfconvert.schema.dialects.boxes import Array, Box
from tfconvert.schema.dialects.expressions import EXPRESSIONS, Deferred
from tfconvert.schema.dialects.sources import BufferSource, Source


class SplatSource(Source):
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
    """Returns whether all elements of an array that has some are the same memory."""
    return array.size > 0 and not any(
        stride for stride, dim in zip(array.strides, array.shape, strict=True) if dim != 1
    )


# Expressions whose elements are those of their arguments.
_MOVED = frozenset({"concat", "reshape", "reverse", "transpose"})

_ELEMENTWISE = frozenset({"add", "cast", "div", "half", "mul", "sub"})


def result(of: Deferred, dtype: np.dtype[Any]) -> SplatSource | None:
    """Returns the value that all elements of an expression have because those of its arguments do.

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
