"""Tensors that are joined of their own rows: `jnp.pad` repeats or mirrors those at the edges.

One gather of rows is what LiteRT computes fastest, several times faster than slices and `MIRROR_PAD`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.from_stablehlo.places import is_gathered
from tfconvert.converter.from_stablehlo.raised_op import RaisedOp
from tfconvert.converter.ir.constants import index_range
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.schema.dialects import tf
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# Dimensions that are longer are joined of slices, whose constants are shorter.
_MAX_ROWS = 4096

# Tensors that are joined of more rows are not looked into.
_MAX_JOINED = 1 << 16


def gathered(raised: RaisedOp, parts: Sequence[EmittedTensor], axis: int) -> EmittedTensor | None:
    """Returns parts of one tensor that are joined as one gather of its rows, unless they are slices that don't overlap.

    Args:
        raised: The op.
        parts: What is joined.
        axis: The dimension along which it is joined.
    """
    sizes = raised.sizes(parts[0])
    # Gathers copy single rows.
    inner = prod(sizes[axis + 1 :])
    if inner <= 1 and min(sizes[axis + 1 :], default=0) >= 0:
        return None
    made: _Found = {}
    found = [_rows(raised, part, axis, made) for part in parts]
    source = found[0].source
    rows = np.concatenate([each.rows for each in found])
    if any(each.source.value is not source.value for each in found) or not 0 < rows.size <= _MAX_ROWS:
        return None
    is_slices = np.unique(rows).size == rows.size and not any(each.is_turned for each in found)
    if is_slices or source.dtype.kind == "c" or not is_gathered(source):
        return None
    return source.op("GatherV2", source, rows.astype(np.int32), axis)  # type: ignore[no-any-return]


class _Rows(NamedTuple):
    """A tensor as rows of another.

    Attributes:
        source: The other one.
        rows: The numbers of the rows.
        is_turned: Whether they are not just a slice.
    """

    source: EmittedTensor
    rows: np.ndarray[Any, np.dtype[np.int64]]
    is_turned: bool = False


# How many ops are looked through.
_DEPTH = 8

_Found = dict[tuple[Value, int], _Rows]
"""Tensors with the number of ops that are looked through -> their rows."""


def _rows(raised: RaisedOp, part: EmittedTensor, axis: int, made: _Found, depth: int = _DEPTH) -> _Rows:
    key = part.value, depth
    if key not in made:
        owner = part.value.owner
        found = _from_inside(raised, owner, axis, made, depth) if isinstance(owner, Operation) and depth else None
        made[key] = found or _Rows(part, index_range(max(raised.sizes(part)[axis], 0)))
    return made[key]


def _from_inside(raised: RaisedOp, owner: Operation, axis: int, made: _Found, depth: int) -> _Rows | None:
    """Returns the result of an op as rows of what it takes them from, `None` if it does more than that."""
    if owner.name in _MOVING:
        inner = _rows(raised, raised.tensor(owner.operands[0]), axis, made, depth - 1)
        chosen = _chosen(raised, owner, inner.rows, axis)
        if chosen is not None:
            is_slice = owner.name in ("tf.Slice", "tf.StridedSlice")
            return _Rows(inner.source, chosen, inner.is_turned or not is_slice)
    if owner.name == "tf.ConcatV2" and 0 <= raised.sizes(raised.tensor(owner.results[0]))[axis] <= _MAX_JOINED:
        *parts, along = map(raised.tensor, owner.operands)
        found = [_rows(raised, each, axis, made, depth // 2) for each in parts]
        if raised.elements(along) == (axis,) and len({each.source.value for each in found}) == 1:
            rows = np.concatenate([each.rows for each in found])
            return _Rows(found[0].source, rows, any(each.is_turned for each in found))
    return None


_MOVING = frozenset({"tf.GatherV2", "tf.ReverseV2", "tf.Slice", "tf.StridedSlice"})


def _chosen(
    raised: RaisedOp, op: Operation, rows: np.ndarray[Any, np.dtype[np.int64]], axis: int
) -> np.ndarray[Any, np.dtype[np.int64]] | None:
    """Returns which rows an op leaves, `None` if it does more than that, or along another dimension."""
    x, result = raised.tensor(op.operands[0]), raised.tensor(op.results[0])
    arguments = [raised.known(raised.tensor(operand)) for operand in op.operands[1:]]
    if any(each is None for each in arguments) or not rows.size:
        return None
    known = [np.asarray(each).reshape(-1).tolist() for each in arguments]
    if op.name == "tf.ReverseV2":
        return rows[::-1] if known[0] == [axis] else None
    if op.name == "tf.GatherV2":
        is_plain = known[1] == [axis] and not tf.get(op, "batch_dims", 0)
        return rows[known[0]] if is_plain and result.rank == x.rank else None
    own, left = raised.sizes(x), raised.sizes(result)
    if any(one != other and at != axis for at, (one, other) in enumerate(zip(own, left, strict=True))):
        return None
    first = known[0][axis]
    if op.name == "tf.Slice":
        return rows[first : first + left[axis]]
    begins, ends = (tf.get(op, name, 0) >> axis & 1 for name in ("begin_mask", "end_mask"))
    others = ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    if any(tf.get(op, name, 0) for name in others) or set(known[2]) != {1}:
        return None
    return rows[None if begins else first : None if ends else known[1][axis]]
