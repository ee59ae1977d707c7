"""Counting and sorting into bins, and hashing where all hashes are one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tfconvert.ops.call import Array, Call, Kernel, Results, scalar, typed


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


def _hash(call: Call) -> Results:
    if call.integer("num_buckets") != 1:
        raise call.bad("strings are hashed in a way that only TensorFlow has")
    return (np.zeros(call.inputs[0].shape, np.int64),)


KERNELS: Mapping[str, Kernel] = {
    "Bincount": _bincount,
    "Bucketize": _bucketize,
    "DenseBincount": _bincount,
    **dict.fromkeys(("StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong"), _hash),
}
"""Op name -> kernel."""
