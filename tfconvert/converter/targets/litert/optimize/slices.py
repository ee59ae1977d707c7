"""Replaces adjacent slices that together cover a tensor by one split, and lets slices keep dimensions of one.

strided_slice(x, 0:4), strided_slice(x, 4:8), slice(x, 8:12)  ->  split{3}(x)           where an axis has length 12
strided_slice(x, 0:2), strided_slice(x, 2:12)                 ->  split_v(x, [2, 10])
reshape(strided_slice{shrink}(x, i))                          ->  strided_slice(x, i:i+1)
slice(x, [0, 1], [-1, 4])                                     ->  slice(x, [0, 1], [8, 4])

XNNPACK doesn't run slices with a size of -1, "up to the end".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.optimize import matching
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

_SLICES = ("tfl.slice", "tfl.strided_slice")
_BORDERLESS = ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")

# Element types that the kernels of splits reject, unlike those of slices.
_UNSPLITTABLE = frozenset(["f16", "bf16", "f64", "i1", "ui16", "ui32", "ui64", "complex<f32>", "!tf_type.string"])

# Begin and end along each axis.
_Bounds = Sequence[tuple[int, int]]


class _Parts(NamedTuple):
    """Slices that together cover a tensor.

    Attributes:
        slices: The slices, in the order of their offsets; several may be the same part.
        sizes: The sizes of the parts.
        axis: The axis of the slices.
    """

    slices: tuple[tuple[Operation, ...], ...]
    sizes: tuple[int, ...]
    axis: int


def _bounds(op: Operation) -> _Bounds | None:
    """Returns the range of a slice, `None` if it is unknown, or if the op does more than slice."""
    dims = op.operands[0].shape
    found = [constant_ints(value) for value in op.operands[1:]]
    bounds = [each for each in found if each is not None and dims is not None and len(each) == len(dims)]
    if dims is None or len(bounds) < len(found):
        return None
    if op.name == "tfl.slice":
        begin, size = bounds
        return [
            (first, dim if count == -1 else first + count) for first, count, dim in zip(begin, size, dims, strict=True)
        ]
    begin, end, strides = bounds
    if set(strides) - {1} or any(tfl.attribute(op, mask) for mask in _BORDERLESS):
        return None
    open_begin, open_end = tfl.attribute(op, "begin_mask"), tfl.attribute(op, "end_mask")
    return [
        (0 if open_begin >> axis & 1 else begin[axis], dim if open_end >> axis & 1 else end[axis])
        for axis, dim in enumerate(dims)
    ]


def _cut_axis(op: Operation, bounds: _Bounds) -> int | None:
    """Returns the only axis that a slice restricts, or `None`."""
    dims = op.operands[0].shape or ()
    cut = [axis for axis, (bound, dim) in enumerate(zip(bounds, dims, strict=True)) if bound != (0, dim)]
    if len(cut) != 1:
        return None
    begin, end = bounds[cut[0]]
    return cut[0] if 0 <= begin < end <= dims[cut[0]] else None


def _match(op: Operation) -> _Parts | Failure:
    if str(op.results[0].element) in _UNSPLITTABLE:
        return Failure("no kernel splits this element type")
    own = _bounds(op)
    axis = None if own is None else _cut_axis(op, own)
    if own is None or axis is None or own[axis][0]:
        return Failure("it is not a known part of one axis, or not the first part")
    found: dict[tuple[int, int], list[Operation]] = {}
    users = dict.fromkeys(use.operation for use in op.operands[0].uses if use.index == 0)
    for user in users:
        bounds = _bounds(user) if user.name in _SLICES and user.parent is op.parent else None
        if bounds is not None and _cut_axis(user, bounds) == axis:
            found.setdefault(bounds[axis], []).append(user)
    parts = sorted(found)
    borders = [0, *(end for _, end in parts)]
    dims = op.operands[0].shape or ()
    if [begin for begin, _ in parts] != borders[:-1] or borders[-1] != dims[axis]:
        return Failure("the slices of the tensor don't cover it, or overlap")
    return _Parts(tuple(tuple(found[part]) for part in parts), tuple(end - begin for begin, end in parts), axis)


def _rewrite(op: Operation, match: _Parts, rewriter: Rewriter) -> None:
    source = op.operands[0]
    # The slices may be in any order, so the split is inserted right after the sliced value's definition.
    anchor = _after(source)
    axis = matching.insert_constant(rewriter, np.array(match.axis, np.int32), before=anchor)
    kinds: list[Attribute] = [same[0].results[0].type for same in match.slices]
    count = {"num_splits": len(kinds)}
    if len(set(match.sizes)) == 1:
        split = tfl.build("split", [axis, source], kinds, count)
    else:
        sizes = matching.insert_constant(rewriter, np.array(match.sizes, np.int32), before=anchor)
        split = tfl.build("split_v", [source, sizes, axis], kinds, count)
    rewriter.insert(split, before=anchor)
    for same, part in zip(match.slices, split.results, strict=True):
        for each in same:
            rewriter.replace_value(each.results[0], part)


def _after(value: Value) -> Operation | None:
    if isinstance(value, OpResult):
        return value.op.next_op
    return value.owner.first_op if isinstance(value.owner, Block) else None


class _Kept(NamedTuple):
    """A slice that drops dimensions which a reshape adds again.

    Attributes:
        op: The slice.
        dropped: The dimensions.
        begin: Its begin along each dimension.
        end: Its end along each dimension.
    """

    op: Operation
    dropped: Sequence[int]
    begin: Sequence[int]
    end: Sequence[int]


def _match_kept(op: Operation) -> _Kept | Failure:
    sliced = op.operands[0].sole_producer("tfl.strided_slice")
    if sliced is None or tfl.attribute(sliced, "ellipsis_mask") or tfl.attribute(sliced, "new_axis_mask"):
        return Failure("it isn't of a slice alone, or the slice adds dimensions")
    dims, left, target = (each.shape for each in (sliced.operands[0], sliced.results[0], op.results[0]))
    begin, end = (constant_ints(each) for each in sliced.operands[1:3])
    if dims is None or left is None or begin is None or end is None or len(begin) != len(dims):
        return Failure("the slice isn't known")
    dropped = [axis for axis in range(len(dims)) if tfl.attribute(sliced, "shrink_axis_mask") >> axis & 1]
    if len(left) != len(dims) - len(dropped):
        return Failure("the slice's result has another rank than it gives")
    rest = iter(left)
    kept = [1 if axis in dropped else next(rest) for axis in range(len(dims))]
    if not dropped or not matching.same_shape(tuple(kept), target):
        return Failure("it doesn't add the dimensions that the slice drops")
    return _Kept(sliced, dropped, begin, end)


def _keep(op: Operation, match: _Kept, rewriter: Rewriter) -> None:
    options = {name: tfl.attribute(match.op, name) for name in ("begin_mask", "end_mask", *_BORDERLESS)}
    options["shrink_axis_mask"] = 0
    end = list(match.end)
    for axis in match.dropped:
        end[axis] = match.begin[axis] + 1
        options["begin_mask"] &= ~(1 << axis)
        options["end_mask"] &= ~(1 << axis)
        if not end[axis]:  # The last element, counted from the end.
            options["end_mask"] |= 1 << axis
    ends = matching.insert_constant(rewriter, np.array(end, np.int32), match.op.operands[2])
    operands = [*match.op.operands[:2], ends, match.op.operands[3]]
    options["offset"] = tfl.attribute(match.op, "offset")
    made = rewriter.insert(tfl.build("strided_slice", operands, [op.results[0].type], options, match.op.location))
    rewriter.replace_value(op.results[0], made.results[0])


def _match_to_end(op: Operation) -> list[int] | Failure:
    begin, size = (constant_ints(operand) for operand in op.operands[1:])
    dims = op.operands[0].shape
    if begin is None or size is None or dims is None or len(begin) != len(dims):
        return Failure("the slice isn't known")
    if not any(count == -1 and dim >= 0 for count, dim in zip(size, dims, strict=True)):
        return Failure("no size is that up to the end of a known one")
    return [
        dim - first if count == -1 and dim >= 0 else count for first, count, dim in zip(begin, size, dims, strict=True)
    ]


def _rewrite_to_end(op: Operation, match: list[int], rewriter: Rewriter) -> None:
    size = matching.insert_constant(rewriter, np.array(match, np.int32), op.operands[2])
    rewriter.replace(rewriter.insert(rebuild(op, [*op.operands[:2], size])))


PATTERNS: tuple[Pattern[Any], ...] = (
    *(Pattern(f"split-{root[4:].replace('_', '-')}s", root, _match, _rewrite, benefit=5) for root in _SLICES),
    Pattern("keep-sliced-dimensions", "tfl.reshape", _match_kept, _keep, 1, 1, {0: ("tfl.strided_slice",)}),
    Pattern("slice-to-end", "tfl.slice", _match_to_end, _rewrite_to_end),
)
