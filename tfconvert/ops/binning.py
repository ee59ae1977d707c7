"""Counting, and sorting into bins."""

from __future__ import annotations

import numpy as np

from tfconvert.ops.call import Array, Call, Results, scalar, typed
from tfconvert.ops.declaration import op
from tfconvert.ops.operands import Operands
from tfconvert.ops.shape_functions import Shapes, same
from tfconvert.schema.dialects.dims import dim_of_element


def _bincount_shape(operands: Operands) -> Shapes:
    found = operands.partial(1)
    bins = dim_of_element(found[0]) if found else -1
    if operands.op.name != "tf.DenseBincount":
        return ((bins,),)
    shape = operands.shape(0)
    return (None if shape is None else (*shape[:-1], bins),)


def _histogram_shape(operands: Operands) -> Shapes:
    found = operands.partial(2)
    return ((dim_of_element(found[0]) if found else -1,),)


def _bincount(call: Call) -> Results:
    """Counts in one row; `DenseBincount` counts in each of several rows, and may report only presence."""
    x, size, weights = call.inputs
    if x.size and x.min() < 0:
        raise call.bad("a value that is counted is negative")
    bins = scalar(size)
    rows = x if call.op == "DenseBincount" and x.ndim == 2 else x.reshape(1, -1)
    weighted = weights.reshape(rows.shape) if weights.size and not call.flag("binary_output") else None
    counts = np.zeros((len(rows), bins), weights.dtype)
    for at, row in enumerate(rows):
        counts[at] = _count(row, bins, None if weighted is None else weighted[at])
    if call.flag("binary_output"):
        counts = np.minimum(counts, typed(1, counts.dtype))
    return (counts if rows is x else counts[0],)


def _count(row: Array, bins: int, weights: Array | None) -> Array:
    kept = row < bins
    return np.bincount(row[kept], None if weights is None else weights[kept], bins)


def _bucketize(call: Call) -> Results:
    (x,) = call.inputs
    boundaries = np.asarray(call.attributes.get("boundaries", ()), np.float32)
    # Integers are compared as floats, doubles as they are.
    values = x if x.dtype == np.float64 else x.astype(np.float32)
    return (np.searchsorted(boundaries, values, side="right").astype(np.int32),)


OPS = (
    op("Bincount", shape=_bincount_shape, compute=_bincount),
    op("Bucketize", shape=same, compute=_bucketize, verified=True),
    op("DenseBincount", shape=_bincount_shape, compute=_bincount),
    op("HistogramFixedWidth", shape=_histogram_shape),
)
