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
from tfconvert.converter.rewrite.pattern import Pattern, need, required
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import option, shape_of, target_of
from tfconvert.schema.ir.operation import Operation

_SPLITS = ("tfl.split", "tfl.split_v")
# The index of the operand that is split.
_DATA = {"tfl.split": 1, "tfl.split_v": 0, "tfl.unpack": 0}


def _parted(op: Operation, *names: str) -> Operation:
    """Returns the op whose results are exactly the operands of another, in order."""
    source = required(op.operands[0].producer(names) if op.operands else None, "it isn't of parts of one tensor")
    need(list(op.operands) == list(source.results), "its operands aren't all the parts in their order")
    return source


def _axis(op: Operation, rank: int) -> int:
    """Returns the nonnegative axis of a split or a join."""
    known = constant_int(op.operands[0 if op.name == "tfl.split" else 2]) if op.name in _SPLITS else option(op, "axis")
    axis: int = required(known, "the axis is computed")
    need(-rank <= axis < rank, "there is no such axis")
    return axis % rank


def _joined(op: Operation) -> Emit:
    """Parts that are joined along the axis of the split."""
    source = _parted(op, *(("tfl.unpack",) if op.name == "tfl.pack" else _SPLITS))
    value = source.operands[_DATA[source.name]]
    rank = len(value.shape or ())
    is_kept = value.type == op.results[0].type and (op.name == "tfl.pack" or questions.is_plain(op))
    need(is_kept, "the type changes, or an activation follows")
    need(_axis(source, rank) == _axis(op, rank), "the axes differ")
    return lambda build: value


def _merged(op: Operation) -> Emit:
    """Unpacked parts that are concatenated along the axis that follows the removed one."""
    source, rank = _parted(op, "tfl.unpack"), len(shape_of(op.results[0]))
    need(questions.is_plain(op), "an activation follows")
    need(_axis(source, rank + 1) == _axis(op, rank), "the axes differ")
    value, target, kind = source.operands[0], target_of(op.results[0]), op.results[0].type
    return lambda build: build.tfl("reshape", (value, build.ints(target)), kind)


def _without_empty(op: Operation) -> Emit:
    """A concatenation with parts that are certainly empty."""
    axis = _axis(op, len(shape_of(op.results[0])))
    filled = [each for each in op.operands if (each.shape or ())[axis : axis + 1] != (0,)]
    need(0 < len(filled) < len(op.operands), "no part is known to be empty, or all are")
    return lambda build: build.again(op, filled)


def _all_rows(op: Operation) -> Emit:
    data, indices = (op.operands[0], op.operands[1]) if op.name == "tfl.gather_nd" else op.operands[1::-1]
    dims, rows = shape_of(data), constant_array(indices)
    is_all = rows is not None and rows.shape == (*dims[:1], 1) and rows.ravel().tolist() == [*range(rows.size)]
    need(is_all and data.type == op.results[0].type, "it isn't all rows in their order")
    need(op.name != "tfl.scatter_nd" or constant_ints(op.operands[2]) == dims, "the shape isn't that of the rows")
    return lambda build: data


def _some_rows(op: Operation) -> Emit:
    data, indices = op.operands
    rows = required(constant_array(indices), "the indices are computed")
    need(rows.ndim > 1 and rows.shape[-1] == 1, "the indices don't pick whole rows")
    numbers, kind = np.ascontiguousarray(rows[..., 0]), op.results[0].type
    return lambda build: build.tfl(
        "gather", (data, build.derived(numbers, indices)), kind, {"axis": 0, "batch_dims": 0}
    )


def _of_one(op: Operation) -> Emit:
    value, dims = op.operands[0], shape_of(op.operands[0])
    axes = required(questions.axes(op.operands[1], dims), "the axis is computed")
    need(all(dims[axis] == 1 for axis in axes) and not option(op, "exclusive"), "it isn't one number")
    need(value.type == op.results[0].type, "the type changes")
    return lambda build: value


def _from_first(op: Operation) -> Emit:
    (value, axes), rank = op.operands, len(shape_of(op.operands[0]))
    axis = required(constant_int(axes), "the axis is computed")
    need(-rank <= axis < 0, "the axis is counted from the first one")
    return lambda build: build.again(op, (value, build.derived(np.array(axis + rank, np.int32), axes)))


NEEDS = "concatenation cumsum gather_nd scatter_nd split split_v unpack"
"""The operators without any of which no pattern matches."""

PATTERNS: tuple[Pattern[Any], ...] = (
    *(
        planned(f"{name}-of-parts", name, _joined, benefit=20, producers={0: _DATA.keys()})
        for name in ("pack", "concatenation")
    ),
    planned("merged-parts", "concatenation", _merged, benefit=15, producers={0: ("tfl.unpack",)}),
    planned("empty-parts", "concatenation", _without_empty, benefit=12),
    *(planned(f"all-rows-{name}", name, _all_rows, benefit=20) for name in ("gather_nd", "scatter_nd")),
    planned("gather-rows", "gather_nd", _some_rows, benefit=5, producers={1: ("tfl.pseudo_const",)}),
    planned("cumsum-of-one", "cumsum", _of_one, benefit=20),
    # GPUs fail at axes that are counted from the last one.
    planned("cumsum-from-first", "cumsum", _from_first),
)
