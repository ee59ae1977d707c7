"""Equality of two values, for every check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tfconvert.ops.call import Array

_TOLERANCE: Mapping[str, float] = {"float16": 1e-2, "bfloat16": 5e-2, "float64": 1e-6, "complex128": 1e-6}
# Largest difference, relative to a result's largest value, that rounding explains; sums may have another order.
_TOLERANCE_OF_OTHERS = 1e-3

_TINY = float(np.finfo(np.float32).tiny)


class OutputDifference(NamedTuple):
    """How one value differs from another."""

    what: str  # A phrase that completes a sentence about the value ("differs by ..."); empty if they agree.
    absolute: float = 0.0  # The largest absolute difference; infinite for values that can't be subtracted.
    relative: float = 0.0  # The same, relative to the largest magnitude.


SAME = OutputDifference("")


def compare(was: Array, now: Array, minimum: float = _TINY) -> OutputDifference:
    """Returns how one value differs from another.

    Integers, booleans and strings have to be equal, floats within a tolerance relative to the largest of them. NaN
    equals NaN, and an infinity equals only itself.

    Args:
        was: The expected value.
        now: The other one.
        minimum: The absolute tolerance for floats.
    """
    if was.shape != now.shape:
        return _unlike(f"has shape {list(now.shape)}, not {list(was.shape)}")
    if was.dtype.kind == "O" or now.dtype.kind in "OSU":
        is_same = all(map(_is_same, was.ravel().tolist(), now.ravel().tolist()))
        return SAME if is_same else _unlike("differs from the text it was")
    if was.dtype != now.dtype:
        return _unlike(f"is of type {now.dtype.name}, not {was.dtype.name}")
    if is_equal(was, now):
        return SAME
    a, b = _wide(was), _wide(now)
    with np.errstate(invalid="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        distance = np.where(same, 0, np.abs(a - b))
    largest = float(np.max(distance))
    scale = float(np.max(np.abs(a), where=np.isfinite(a), initial=0))
    relative = largest / scale if scale else largest
    if was.dtype.kind in "iub":
        count = int(np.count_nonzero(~same))
        what = f"differs in {count} of {was.size} numbers, by up to {largest:g}"
        return OutputDifference(what, largest, relative)
    if largest <= tolerance(was.dtype) * scale or largest <= minimum:
        return OutputDifference("", largest, relative)
    return OutputDifference(f"differs by up to {largest:.3g}; the largest number is {scale:.3g}", largest, relative)


def tolerance(dtype: np.dtype[Any]) -> float:
    """Returns the largest difference, relative to the largest value, of floats that agree."""
    return _TOLERANCE.get(dtype.name, _TOLERANCE_OF_OTHERS)


def is_equal(one: Array, other: Array) -> bool:
    """Returns whether two values are the same, bit for bit."""
    return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()


def _is_same(was: object, now: object) -> bool:
    """Returns whether two elements are the same text; of handles and lists only their types can be compared."""
    return was == now if isinstance(was, bytes | str) else type(was) is type(now)


def _unlike(what: str) -> OutputDifference:
    return OutputDifference(what, np.inf, np.inf)


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
