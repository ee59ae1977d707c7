"""Replaces adjacent slices that together cover a tensor by one split, and lets slices keep dimensions of one.

strided_slice(x, 0:4), strided_slice(x, 4:8), slice(x, 8:12)  ->  split{3}(x)           where an axis has length 12
strided_slice(x, 0:2), strided_slice(x, 2:12)                 ->  split_v(x, [2, 10])
reshape(strided_slice{shrink}(x, i))                          ->  strided_slice(x, i:i+1)
slice(x, [0, 1], [-1, 4])                                     ->  slice(x, [0, 1], [8, 4])

XNNPACK doesn't run slices with a size of -1, "up to the end".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import Pattern, attempt, need, required
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import ints_of, option, ranges_of, shape_of
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

_SLICES = ("slice", "strided_slice")
_BORDERLESS = ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")

# Element types that the kernels of splits reject, unlike those of slices.
_UNSPLITTABLE = frozenset(["f16", "bf16", "f64", "i1", "ui16", "ui32", "ui64", "complex<f32>", "!tf_type.string"])


def _cut(op: Operation) -> tuple[int, int, int]:
    """Returns the only axis that a slice cuts, where it begins and where it ends; declines if it does more."""
    need(op.name == "tfl.slice" or not any(option(op, mask) for mask in _BORDERLESS), "it does more than slice")
    taken = enumerate(zip(ranges_of(op), shape_of(op.operands[0]), strict=True))
    cut = [(axis, part, dim) for axis, (part, dim) in taken if part is not None and part != range(dim)]
    need(len(cut) == 1, "it is not a part of one axis")
    axis, part, dim = cut[0]
    need(part.step == 1 and 0 <= part.start < part.stop <= dim, "it is not a known part")
    return axis, part.start, part.stop


def _split(op: Operation) -> Emit:
    need(str(op.results[0].element) not in _UNSPLITTABLE, "no kernel splits this element type")
    source, (axis, first, _) = op.operands[0], _cut(op)
    need(first == 0, "it is not the first part")
    slices: dict[tuple[int, int], list[Operation]] = {}
    for user in dict.fromkeys(use.operation for use in source.uses if use.index == 0):
        is_slice = user.name.removeprefix("tfl.") in _SLICES and user.parent is op.parent
        cut = attempt(_cut, user) if is_slice else None
        if isinstance(cut, tuple) and cut[0] == axis:
            slices.setdefault(cut[1:], []).append(user)
    parts = sorted(slices)
    borders = [0, *(end for _, end in parts)]
    covers = [begin for begin, _ in parts] == borders[:-1] and borders[-1] == shape_of(source)[axis]
    need(covers, "the slices of the tensor don't cover it, or overlap")
    sizes = [end - begin for begin, end in parts]

    def emit_split(build: FormBuilder) -> None:
        # The slices may be in any order, so the split is inserted right after the sliced value's definition.
        early = build.at(_after(source))
        kinds: list[Attribute] = [slices[part][0].results[0].type for part in parts]
        along, count = early.number(axis), {"num_splits": len(kinds)}
        if len(set(sizes)) == 1:
            split = early.tfl_op("split", (along, source), kinds, count)
        else:
            split = early.tfl_op("split_v", (source, early.ints(sizes), along), kinds, count)
        for part, result in zip(parts, split.results, strict=True):
            for each in slices[part]:
                build.rewriter.replace_value(each.results[0], result)

    return emit_split


def _after(value: Value) -> Operation | None:
    if isinstance(value, OpResult):
        return value.op.next_op
    return value.owner.first_op if isinstance(value.owner, Block) else None


def _kept(op: Operation) -> Emit:
    sliced = required(op.operands[0].sole_producer("tfl.strided_slice"), "it isn't of a slice alone")
    need(not option(sliced, "ellipsis_mask") and not option(sliced, "new_axis_mask"), "the slice adds dimensions")
    value, begins, ends, strides = sliced.operands
    begin, end, rank, left = ints_of(begins), ints_of(ends), len(shape_of(value)), shape_of(sliced.results[0])
    dropped = [axis for axis in range(rank) if option(sliced, "shrink_axis_mask") >> axis & 1]
    need(len(begin) == len(end) == rank and len(left) == rank - len(dropped), "the slice isn't known")
    rest = iter(left)
    kept = tuple([1 if axis in dropped else next(rest) for axis in range(rank)])
    is_same = bool(dropped) and questions.same_shape(kept, op.results[0].shape)
    need(is_same, "it doesn't add the dimensions that the slice drops")

    def emit_slice(build: FormBuilder) -> Operation:
        masks = {name: option(sliced, name) for name in ("begin_mask", "end_mask")}
        for axis in dropped:
            end[axis] = begin[axis] + 1
            # An end of 0 is that of the last element, counted from the end.
            masks = {name: mask & ~(1 << axis) for name, mask in masks.items()}
            masks["end_mask"] |= (end[axis] == 0) << axis
        operands = (value, begins, build.derived(np.array(end, np.int32), ends), strides)
        options = {**dict.fromkeys(_BORDERLESS, 0), **masks, "offset": option(sliced, "offset")}
        return build.again(sliced, operands, [shape_of(op.results[0])], options, sliced.location)

    return emit_slice


def _to_end(op: Operation) -> Emit:
    dims, (begin, size) = shape_of(op.operands[0]), map(ints_of, op.operands[1:])
    need(len(begin) == len(size) == len(dims), "the slice isn't known")
    known = [dim - at if count == -1 and dim >= 0 else count for at, count, dim in zip(begin, size, dims, strict=True)]
    need(known != size, "no size is that up to the end of a known one")
    return lambda build: build.again(op, (*op.operands[:2], build.derived(np.array(known, np.int32), op.operands[2])))


NEEDS = "slice strided_slice"
"""The operators without any of which no pattern matches."""

PATTERNS: tuple[Pattern[Any], ...] = (
    *(planned(f"split-{root.replace('_', '-')}s", root, _split, benefit=5) for root in _SLICES),
    planned("keep-sliced-dimensions", "reshape", _kept, producers={0: ("tfl.strided_slice",)}),
    planned("slice-to-end", "slice", _to_end),
)
