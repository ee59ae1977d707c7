"""Ragged tensors with one ragged dimension, represented by all their values and the start of each row."""

from __future__ import annotations

import numpy as np

from tfconvert.ops.call import Array, Call, Results, ints, scalar
from tfconvert.ops.declaration import op


def _lengths(call: Call, splits: Array, count: int) -> Array:
    lengths = np.diff(splits)
    if not splits.size or splits[0] != 0 or splits[-1] != count or (lengths < 0).any():
        raise call.bad("the rows don't follow one another")
    return lengths


def _padded(call: Call) -> Results:
    """Stacks the rows, each padded with the default."""
    shape, values, default, *parts = call.inputs
    kinds = call.attributes.get("row_partition_types")
    names = [each.decode() if isinstance(each, bytes) else each for each in kinds] if isinstance(kinds, tuple) else []
    if names == ["ROW_SPLITS"]:
        lengths = _lengths(call, parts[0], len(values))
    elif names == ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]:
        lengths = np.bincount(parts[1].astype(np.int64), minlength=scalar(parts[0]))
    else:
        raise call.bad("it doesn't have exactly one ragged dimension")
    known = (len(lengths), int(lengths.max(initial=0)), *values.shape[1:])
    wanted = (*ints(shape.reshape(-1)), *[-1] * len(known))[: len(known)] if shape.ndim else (-1,) * len(known)
    height, width, *rest = (own if each < 0 else each for each, own in zip(wanted, known, strict=True))
    if tuple(rest) != values.shape[1:]:
        raise call.bad("it is cut or padded along other dimensions than the first two")
    result = np.empty((height, width, *rest), values.dtype)
    result[...] = default
    start = 0
    for row, length in zip(result, lengths.tolist(), strict=False):
        kept = min(length, width)
        row[:kept] = values[start : start + kept]
        start += length
    return (result,)


def _to_sparse(call: Call) -> Results:
    """Numbers the values by their rows and their places in them."""
    if len(call.inputs) != 2 or call.inputs[1].ndim != 1:
        raise call.bad("it doesn't have exactly one ragged dimension, the last")
    splits, values = call.inputs
    lengths = _lengths(call, splits, len(values))
    rows = np.repeat(np.arange(len(lengths)), lengths)
    columns = np.arange(len(values)) - splits[:-1][rows]
    shape = np.array([len(lengths), lengths.max(initial=0)], np.int64)
    return np.stack([rows, columns], 1).astype(np.int64), values, shape


OPS = (op("RaggedTensorToSparse", compute=_to_sparse), op("RaggedTensorToTensor", compute=_padded))
