"""Ragged tensors with one ragged dimension, represented by all their values and the start of each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.ops.call import Array, Call, Results, ints, scalar
from tfconvert.ops.declaration import Decomposition, op
from tfconvert.ops.formula import Tensor
from tfconvert.ops.segments import segment_sizes
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.ir.operation import Operation

_SPLITS = ("ROW_SPLITS",)
_ROW_NUMBERS = ("FIRST_DIM_SIZE", "VALUE_ROWIDS")


def _kinds(names: Any) -> tuple[str, ...]:
    return tuple(each.decode() if isinstance(each, bytes) else str(each) for each in names or ())


def _lengths(call: Call, splits: Array, count: int) -> Array:
    lengths = np.diff(splits)
    if not splits.size or splits[0] != 0 or splits[-1] != count or (lengths < 0).any():
        raise call.bad("the rows don't follow one another")
    return lengths


def _padded(call: Call) -> Results:
    """Stacks the rows, each padded with the default."""
    shape, values, default, *parts = call.inputs
    kinds = _kinds(call.attributes.get("row_partition_types"))
    if kinds == _SPLITS:
        lengths = _lengths(call, parts[0], len(values))
    elif kinds == _ROW_NUMBERS:
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


def _between(splits: Tensor) -> tuple[Tensor, Tensor]:
    """Returns where rows start, and how long they are, from the bounds between them."""
    starts = splits.op("StridedSlice", splits, [0], [-1], [1], begin_mask=1)
    ends = splits.op("StridedSlice", splits, [1], [0], [1], end_mask=1)
    return starts, ends - starts


def _longest(lengths: Tensor) -> Tensor:
    return lengths.reduce("Max", [0]).maximum(0)


def padded(shape: Tensor, values: Tensor, default: Tensor, *parts: Tensor) -> Tensor:
    """Picks for each place its value, or the default, which comes before all values."""
    first, *row_numbers = (part.cast(np.int32) for part in parts)
    if row_numbers:
        lengths = segment_sizes(row_numbers[0], first, np.int32)
        starts = lengths.op("Cumsum", lengths, 0, exclusive=True)
    else:
        starts, lengths = _between(first)
    width = -1 if shape.constant is None else max(shape.constant.reshape(-1)[1:2].tolist(), default=-1)
    columns = lengths.op("Range", 0, width if width >= 0 else _longest(lengths), 1)
    is_there = columns < lengths.expand_dims(1)
    places = (starts + 1).expand_dims(1) + columns
    filler = default.op("BroadcastTo", default, [1, *(values.shape or ())[1:]])
    return filler.concat([values], 0).gather(is_there.where(places, 0))  # type: ignore[no-any-return]


def _has_one_ragged_dimension(op: Operation) -> str | None:
    constant, shape = tensor_data.constant_of(op.operands[0]), op.operands[1].shape
    if _kinds(tf.get(op, "row_partition_types")) not in (_SPLITS, _ROW_NUMBERS):
        return "only tensors with one ragged dimension are padded"
    if constant is None or shape is None or not types.is_static(shape[1:]):
        return "the padded tensor's rank, or the size of its rows' elements, is not known"
    wanted = tensor_data.to_array(constant).reshape(-1).tolist()
    if wanted[:1] != [-1] or any(dim not in (-1, size) for dim, size in zip(wanted[2:], shape[1:], strict=False)):
        return "it is cut or padded along dimensions other than that of the rows' lengths"
    return None


def to_sparse(splits: Tensor, values: Tensor) -> Sequence[Tensor]:
    """Computes each value's row: how many rows have started by then."""
    splits = splits.cast(np.int32)
    started = segment_sizes(splits, values.size(0) + 1, np.int32)
    rows = started.op("Slice", started.op("Cumsum", started, 0), [0], values.sizes()) - 1
    starts, lengths = _between(splits)
    columns = values.numbers(0) - starts.gather(rows)
    indices = rows.op("Pack", rows, columns, axis=1, N=2)
    shape = rows.op("Pack", starts.size(0), _longest(lengths), N=2)
    return indices.cast(np.int64), values, shape.cast(np.int64)


def _is_flat(op: Operation) -> str | None:
    is_flat = len(op.operands) == 2 and len(op.operands[1].shape or (0, 0)) == 1
    return None if is_flat else "only tensors with one ragged dimension, the last, become sparse"


OPS = (
    op(
        "RaggedTensorToSparse",
        compute=_to_sparse,
        decompose=(Decomposition(to_sparse, "", _is_flat, example=((4,), (6,))),),
    ),
    op(
        "RaggedTensorToTensor",
        compute=_padded,
        decompose=(
            Decomposition(
                padded, "f32 i32 i64 ui8 i8 i16 i1", _has_one_ragged_dimension, typed=1, example=((), (6,), (), (4,))
            ),
        ),
    ),
)
