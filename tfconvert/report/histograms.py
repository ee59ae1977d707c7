"""How the values of a graph's largest constants are distributed, from bounded samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.ops.call import Array
from tfconvert.schema.dialects.tensor_data import DenseElementsAttr, TensorData, to_array
from tfconvert.schema.ir.attribute import Attribute

MAX_TENSORS = 96
"""How many tensors of a graph get a histogram: the largest ones."""

MAX_NUMBERS = 1 << 14
"""How many numbers of a tensor are looked at."""

# Tensors that would need more memory than this together are left out: some are computed when they are read.
_MAX_BYTES = 1 << 27
_MIN_NUMBERS = 16
_BINS = 24


def add_histograms(constants: Sequence[tuple[dict[str, Any], Attribute]]) -> None:
    """Adds `histogram` to the operands that are the largest constants.

    Args:
        constants: The operands of nodes that are constants, as data, with their values.
    """
    left = _MAX_BYTES
    numeric = [(operand, constant) for operand, constant in constants if _count(constant) >= _MIN_NUMBERS]
    for operand, constant in sorted(numeric, key=lambda pair: -_count(pair[1]))[:MAX_TENSORS]:
        size = operand.get("bytes", 0)
        if 0 < size <= left:
            left -= size
            found = histogram(to_array(constant))
            if found is not None:
                operand["histogram"] = found


def _count(constant: Attribute) -> int:
    if isinstance(constant, TensorData):
        return math.prod(constant.shape) if constant.dtype.kind in "fiu" else 0
    return len(constant.data) // 4 if isinstance(constant, DenseElementsAttr) else 0


def histogram(values: Array) -> dict[str, Any] | None:
    """Returns the distribution of values; `None` without values, or if they are not numbers.

    Args:
        values: The values, as they are stored. Of more than `MAX_NUMBERS`, every n-th is looked at.
    """
    if values.dtype.kind not in "fiu" or not values.size:
        return None
    step = -(-values.size // MAX_NUMBERS)
    taken = values.reshape(-1)[::step].astype(np.float64)
    finite = taken[np.isfinite(taken)]
    found: dict[str, Any] = {"numbers": values.size, "looked_at": taken.size}
    if len(finite) < taken.size:
        found["not_finite"] = taken.size - len(finite)
    if not len(finite):
        return found
    low, high = float(finite.min()), float(finite.max())
    with np.errstate(over="ignore"):
        spread = {"mean": float(finite.mean()), "deviation": float(finite.std())}
    found |= {name: _short(value) for name, value in {"low": low, "high": high, **spread}.items()}
    found["zeros"] = int(np.count_nonzero(finite == 0))
    if high > low and math.isfinite(high - low):
        found["bins"] = np.histogram(finite, _BINS, (low, high))[0].tolist()
    return found


def _short(value: float) -> float:
    return float(f"{value:.6g}")
