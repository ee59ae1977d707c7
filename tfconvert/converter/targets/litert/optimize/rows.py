"""Removes joins of split parts, and gathers and scatters of rows in order.

pack(unpack(x, axis), axis)                  ->  x
concatenation(unpack(x, axis), axis)         ->  reshape(x, s)
concatenation(split(x, axis), axis)          ->  x                  split_v as well
concatenation(x, empty, y)                   ->  concatenation(x, y)
gather_nd(x, [[0], [1], ...])                ->  x                  where these are all rows
gather_nd(x, [[2], [0], ...])                ->  gather(x, [2, 0, ...])
scatter_nd([[0], [1], ...], x, shape of x)   ->  x
cumsum(x, axis)                              ->  x                  where the axis has length 1
cumsum(x, -1)                                ->  cumsum(x, r - 1)   where r is the rank
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_array, constant_int, constant_ints
from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.optimize import matching
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.dims import constant_target
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

_PARTED = ("tfl.split", "tfl.split_v", "tfl.unpack")
# The index of the operand that is split.
_DATA = {"tfl.split": 1, "tfl.split_v": 0, "tfl.unpack": 0}


def _parts_of(op: Operation, names: frozenset[str]) -> Operation | Failure:
    """Returns the op whose results are exactly the operands of another, in order."""
    first = op.operands[0] if op.operands else None
    source = first.op if isinstance(first, OpResult) and first.op.name in names else None
    if source is None or len(op.operands) != len(source.results):
        return Failure("its operands aren't all parts of one tensor")
    same = all(one is other for one, other in zip(op.operands, source.results, strict=True))
    return source if same else Failure("its operands aren't the parts in their order")


def _axis(op: Operation, rank: int) -> int | None:
    """Returns the nonnegative axis of a split or a join."""
    if op.name in ("tfl.split", "tfl.split_v"):
        axis = constant_int(op.operands[0 if op.name == "tfl.split" else 2])
    else:
        axis = tfl.attribute(op, "axis")
    return None if axis is None or not -rank <= axis < rank else axis % rank


def _match_joined(op: Operation) -> Value | Failure:
    """Matches parts that are joined along the axis of the split."""
    kinds = frozenset({"tfl.unpack"}) if op.name == "tfl.pack" else frozenset({"tfl.split", "tfl.split_v"})
    source = _parts_of(op, kinds)
    if isinstance(source, Failure):
        return source
    value = source.operands[_DATA[source.name]]
    rank = len(value.shape or ())
    if value.type != op.results[0].type or not rank or not (op.name == "tfl.pack" or matching.is_plain(op)):
        return Failure("the type changes, or an activation follows")
    axes = _axis(source, rank), _axis(op, rank)
    return value if axes[0] is not None and axes[0] == axes[1] else Failure("the axes differ")


def _rewrite_joined(op: Operation, match: Value, rewriter: Rewriter) -> None:
    rewriter.replace(match)


def _match_merged(op: Operation) -> Value | Failure:
    """Matches unpacked parts that are concatenated along the axis that follows the removed one."""
    source = _parts_of(op, frozenset({"tfl.unpack"}))
    if isinstance(source, Failure):
        return source
    value, dims = source.operands[0], op.results[0].shape
    if not dims or not matching.is_plain(op) or constant_target(dims) is None:
        return Failure("more than one dimension is unknown, or an activation follows")
    axes = _axis(source, len(dims) + 1), _axis(op, len(dims))
    return value if axes[0] is not None and axes[0] == axes[1] else Failure("the axes differ")


def _rewrite_merged(op: Operation, match: Value, rewriter: Rewriter) -> None:
    target = constant_target(op.results[0].shape)
    assert target is not None, "checked by the match"
    dims = matching.insert_constant(rewriter, np.array(target, np.int32))
    rewriter.replace(rewriter.insert(tfl.build("reshape", [match, dims], [op.results[0].type])))


def _match_empty(op: Operation) -> list[Value] | Failure:
    """Matches a concatenation with parts that are certainly empty."""
    dims = op.results[0].shape
    axis = None if not dims else _axis(op, len(dims))
    if axis is None:
        return Failure("the rank is unknown")
    filled = [each for each in op.operands if (each.shape or ())[axis : axis + 1] != (0,)]
    return filled if 0 < len(filled) < len(op.operands) else Failure("no part is known to be empty, or all are")


def _rewrite_empty(op: Operation, match: list[Value], rewriter: Rewriter) -> None:
    rewriter.replace(rewriter.insert(rebuild(op, match)))


def _rows(indices: Value) -> Array | None:
    """Returns indices as numbers of whole rows, `None` if they are computed or address elements."""
    array = constant_array(indices)
    return array[..., 0] if array is not None and array.ndim > 1 and array.shape[-1] == 1 else None


def _counts_up(rows: Array | None, height: int) -> bool:
    return rows is not None and rows.shape == (height,) and rows.tolist() == list(range(height))


def _match_all_rows(op: Operation) -> Value | Failure:
    data, indices = (op.operands[0], op.operands[1]) if op.name == "tfl.gather_nd" else op.operands[1::-1]
    dims = data.shape
    if not dims or data.type != op.results[0].type or not _counts_up(_rows(indices), dims[0]):
        return Failure("it isn't all rows in their order")
    if op.name == "tfl.scatter_nd" and constant_ints(op.operands[2]) != dims:
        return Failure("the shape isn't that of the rows")
    return data


def _match_some_rows(op: Operation) -> Array | Failure:
    rows = _rows(op.operands[1])
    return Failure("the indices are computed, or don't pick whole rows") if rows is None else rows


def _rewrite_some_rows(op: Operation, match: Array, rewriter: Rewriter) -> None:
    indices = matching.insert_constant(rewriter, np.ascontiguousarray(match), op.operands[1])
    options = {"axis": 0, "batch_dims": 0}
    rewriter.replace(rewriter.insert(tfl.build("gather", [op.operands[0], indices], [op.results[0].type], options)))


def _match_single(op: Operation) -> Value | Failure:
    dims = op.operands[0].shape
    axes = matching.axes(op.operands[1], dims)
    if dims is None or axes is None or any(dims[axis] != 1 for axis in axes) or tfl.attribute(op, "exclusive"):
        return Failure("the axis is computed or longer than 1, or its first sum is zero")
    return op.operands[0] if op.operands[0].type == op.results[0].type else Failure("the type changes")


def _match_from_last(op: Operation) -> int | Failure:
    axis, dims = constant_int(op.operands[1]), op.operands[0].shape
    if axis is None or dims is None or not -len(dims) <= axis < 0:
        return Failure("the axis is computed, or counted from the first one")
    return axis + len(dims)


def _rewrite_from_last(op: Operation, match: int, rewriter: Rewriter) -> None:
    axis = matching.insert_constant(rewriter, np.array(match, np.int32), op.operands[1])
    rewriter.replace(rewriter.insert(rebuild(op, [op.operands[0], axis])))


PATTERNS: tuple[Pattern[Any], ...] = (
    *(
        Pattern(f"{name}-of-parts", f"tfl.{name}", _match_joined, _rewrite_joined, benefit=20, producers={0: _PARTED})
        for name in ("pack", "concatenation")
    ),
    Pattern(
        "merged-parts", "tfl.concatenation", _match_merged, _rewrite_merged, benefit=15, producers={0: ("tfl.unpack",)}
    ),
    Pattern("empty-parts", "tfl.concatenation", _match_empty, _rewrite_empty, benefit=12),
    *(
        Pattern(f"all-rows-{name}", f"tfl.{name}", _match_all_rows, _rewrite_joined, benefit=20)
        for name in ("gather_nd", "scatter_nd")
    ),
    Pattern(
        "gather-rows",
        "tfl.gather_nd",
        _match_some_rows,
        _rewrite_some_rows,
        benefit=5,
        producers={1: ("tfl.pseudo_const",)},
    ),
    Pattern("cumsum-of-one", "tfl.cumsum", _match_single, _rewrite_joined, benefit=20),
    # GPUs fail at axes that are counted from the last one.
    Pattern("cumsum-from-first", "tfl.cumsum", _match_from_last, _rewrite_from_last),
)
