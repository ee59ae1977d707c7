"""Slices as the plain ones that accelerators take and XNNPACK runs.

    strided_slice{shrink}(x, ...)         ->  reshape(slice(x, ...), s)     strided_slice with strides
    fully_connected(strided_slice{shrink}(x))  ->  fully_connected(slice(x))
    strided_slice(x, ...)                 ->  reverse_v2(x, axis)           where all is reversed
    concatenation(reversed(split(x)))     ->  gather(x, places)             of blocks of some size
    concatenation(reversed(split(x)))     ->  concatenation(slice(x), slice(x))

A split whose parts are joined in another order along the same axis is taken for the identity by the GPU delegate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.forms.form import (
    Emit,
    again,
    element_of,
    form,
    gathered,
    ints_of,
    joined,
    producer,
    reshaped,
    shape_of,
    static_shape,
    target_of,
    tensor_like,
)
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

_ELEMENTS = frozenset(("f32", "i8", "ui8", "i32", "i1"))
_MAX_RANK = 4
# The maximum number of parts of a split that become slices.
_MAX_PARTS = 4
# The minimum number of neighbouring elements that GATHER moves as fast as slices do.
_MIN_BLOCK = 8


def _bit(op: Operation, name: str, axis: int) -> bool:
    return bool(tfl.attribute(op, f"{name}_mask") >> axis & 1)


def _bounds(op: Operation) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    """Returns the begins, ends and strides of a slice that names each dimension."""
    rank = len(shape_of(op.operands[0]))
    begin, end, strides = (ints_of(operand) for operand in op.operands[1:4])
    need(len(begin) == len(end) == len(strides) == rank, "it doesn't name all dimensions")
    need(not tfl.attribute(op, "ellipsis_mask") and not tfl.attribute(op, "new_axis_mask"), "it adds dimensions")
    need(0 < rank <= _MAX_RANK and element_of(op.results[0]) in _ELEMENTS, "accelerators don't take such tensors")
    return begin, end, strides


def _span(op: Operation, axis: int, begin: int, end: int, stride: int) -> tuple[int, int]:
    """Returns where a slice begins along a dimension, and how many elements it takes; -1 for the rest."""
    dim = shape_of(op.operands[0])[axis]
    if _bit(op, "shrink_axis", axis):
        need(begin >= 0 or dim >= 0, "the dimension's size is unknown")
        return begin if begin >= 0 else begin + dim, 1
    is_open = _bit(op, "begin", axis), _bit(op, "end", axis)
    if dim < 0:
        need(is_open[1] and (is_open[0] or begin >= 0) and stride == 1, "the dimension's size is unknown")
        return 0 if is_open[0] else begin, -1
    taken = range(*slice(None if is_open[0] else begin, None if is_open[1] else end, stride).indices(dim))
    need(len(taken) > 0, "it takes nothing")
    return taken.start, len(taken)


def _without_shrinking(op: Operation) -> Emit:
    begin, end, strides = _bounds(op)
    result = op.results[0]
    shrunk = [axis for axis in range(len(begin)) if _bit(op, "shrink_axis", axis)]
    need(bool(shrunk), "it keeps all dimensions")
    need(len(target_of(result)) > 0, "the result is a scalar")
    value, dims = op.operands[0], iter(shape_of(result))
    spans = [_span(op, axis, *each) for axis, each in enumerate(zip(begin, end, strides, strict=True))]
    cut = tensor_like(value, [1 if axis in shrunk else next(dims) for axis in range(len(begin))])
    steps = [1 if axis in shrunk else stride for axis, stride in enumerate(strides)]

    def emit_slice(emit: LiteRTBuilder) -> Value:
        starts = emit.ints([start for start, _ in spans])
        if all(step == 1 for step in steps):
            sizes = emit.ints([size for _, size in spans])
            return reshaped(emit, emit.tfl("slice", (value, starts, sizes), cut), result)
        ends = emit.ints([spans[axis][0] + 1 if axis in shrunk else stop for axis, stop in enumerate(end)])
        begins = emit.ints([spans[axis][0] if axis in shrunk else start for axis, start in enumerate(begin)])
        masks = {f"{name}_mask": tfl.attribute(op, f"{name}_mask") for name in ("begin", "end")}
        masks = {name: mask & ~sum(1 << axis for axis in shrunk) for name, mask in masks.items()}
        options = {**masks, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
        return reshaped(emit, emit.tfl("strided_slice", (value, begins, ends, emit.ints(steps)), cut, options), result)

    return emit_slice


def _as_reversal(op: Operation) -> Emit:
    begin, end, strides = _bounds(op)
    value, shape = op.operands[0], static_shape(op.operands[0])
    need(not tfl.attribute(op, "shrink_axis_mask"), "it drops dimensions")
    need(set(strides) <= {1, -1} and -1 in strides, "nothing is reversed, or elements are left out")
    spans = [_span(op, axis, *each) for axis, each in enumerate(zip(begin, end, strides, strict=True))]
    need(tuple(size for _, size in spans) == shape, "elements are left out")
    axes = [axis for axis, stride in enumerate(strides) if stride == -1]
    need(len(axes) == 1, "several dimensions are reversed")
    if axes[0] < len(shape) - 1 or shape[-1] % 4 == 0:
        return lambda emit: emit.tfl("reverse_v2", (value, emit.ints(axes)), value.type)
    need(element_of(value) in ("f32", "i8", "i32"), "accelerators don't take such tensors")
    # The GPU reverses channels four at a time.
    places = np.arange(shape[-1], dtype=np.int32)[::-1].copy()
    return lambda emit: gathered(emit, value, places, axes[0], value.type)


def _first_of_rows(op: Operation) -> Emit:
    """Keeps the dimension that a slice drops: the product takes rows of any rank."""
    cut = producer(op.operands[0], "strided_slice")
    begin, end, strides = _bounds(cut)
    value, mask = cut.operands[0], tfl.attribute(cut, "shrink_axis_mask")
    shrunk = [axis for axis in range(len(begin)) if mask >> axis & 1]
    need(len(shrunk) == 1 and shrunk[0] < len(begin) - 1, "it drops no dimension, or several, or the last one")
    need(not tfl.attribute(op, "keep_num_dims") or len(begin) == 2, "the product has the operand's dimensions")
    spans = [_span(cut, axis, *each) for axis, each in enumerate(zip(begin, end, strides, strict=True))]
    need(all(stride == 1 for axis, stride in enumerate(strides) if axis not in shrunk), "it leaves elements out")
    dims = list(shape_of(cut.results[0]))
    kind = tensor_like(value, (*dims[: shrunk[0]], 1, *dims[shrunk[0] :]))

    def emit_product(emit: LiteRTBuilder) -> Value:
        starts, sizes = (emit.ints([span[at] for span in spans]) for at in (0, 1))
        part = emit.tfl("slice", (value, starts, sizes), kind)
        return again(emit, op, (part, *op.operands[1:]), op.results[0].type)

    return emit_product


def _reversed_channels(op: Operation) -> Emit:
    """Reverses channels as rows: the GPU reverses channels four at a time."""
    (value, axes), result = op.operands, op.results[0]
    shape = static_shape(value)
    need(ints_of(axes) in ((len(shape) - 1,), (-1,)) and shape[-1] % 4 > 0, "the GPU takes these channels")
    need(len(shape) in (2, 3, 4) and element_of(value) in _ELEMENTS, "accelerators don't take such tensors")
    rows = (shape[0], math.prod(shape[1:-1]), shape[-1], 1)

    def emit_rows(emit: LiteRTBuilder) -> Value:
        moved = emit.reshape(value, rows)
        return reshaped(emit, emit.tfl("reverse_v2", (moved, emit.ints((2,))), moved.type), result)

    return emit_rows


def _parts(op: Operation) -> tuple[tfl.TFLOp, Shape]:
    """Returns the split whose parts an op joins in another order along its axis, and their sizes."""
    owners = {id(value.owner): value.owner for value in op.operands}
    split = next(iter(owners.values()))
    if not isinstance(split, tfl.TFLOp) or split.op_name not in ("split", "split_v"):
        need(False, "its operands aren't parts")
    assert isinstance(split, tfl.TFLOp)
    places = [value.index if isinstance(value, OpResult) else -1 for value in op.operands]
    need(len(owners) == 1 and sorted(places) == list(range(len(split.results))), "its operands aren't all parts")
    need(tfl.attribute(op, "fused_activation_function") == "NONE", "an activation follows")
    need(places != sorted(places), "the parts are in their order")
    rank = len(shape_of(op.results[0]))
    (axis,) = ints_of(split.operands[0 if split.op_name == "split" else 2])
    need(axis % rank == tfl.attribute(op, "axis") % rank, "they are joined along another axis")
    sizes = tuple(static_shape(part)[axis % rank] for part in split.results)
    return split, sizes


def _rotated(op: Operation) -> Emit:
    split, sizes = _parts(op)
    value, result = split.operands[1 if split.op_name == "split" else 0], op.results[0]
    need(len(sizes) <= _MAX_PARTS, "there are many parts")
    rank = len(shape_of(result))
    axis = tfl.attribute(op, "axis") % rank

    def emit_parts(emit: LiteRTBuilder) -> Value:
        parts = []
        for part in op.operands:
            begin = sum(sizes[: part.index]) if isinstance(part, OpResult) else 0
            starts = emit.ints([begin if at == axis else 0 for at in range(rank)])
            extents = emit.ints([-1 if dim < 0 else dim for dim in shape_of(part)])
            parts.append(emit.tfl("slice", (value, starts, extents), part.type))
        return joined(emit, parts, axis, result.type)

    return emit_parts


def _by_places(op: Operation) -> Emit:
    split, sizes = _parts(op)
    value, result = split.operands[1 if split.op_name == "split" else 0], op.results[0]
    axis = tfl.attribute(op, "axis") % len(shape_of(result))
    need(math.prod(shape_of(result)[axis + 1 :]) >= _MIN_BLOCK, "the elements are moved in small blocks, or of any size")
    need(element_of(value) in ("f32", "i8", "i32") and all(part.has_one_use() for part in split.results), "it is split")
    places = np.split(np.arange(sum(sizes), dtype=np.int32), np.cumsum(sizes)[:-1])
    order = np.concatenate([places[part.index] for part in op.operands if isinstance(part, OpResult)])
    return lambda emit: gathered(emit, value, order, axis, result.type)


PATTERNS: tuple[Pattern[Any], ...] = (
    form("rows-of-slice", "fully_connected", _first_of_rows),
    form("shrink-by-reshape", "strided_slice", _without_shrinking, is_longer=True),
    form("reverse-by-stride", "strided_slice", _as_reversal),
    form("reverse-as-rows", "reverse_v2", _reversed_channels, is_longer=True),
    form("rotate-by-places", "concatenation", _by_places),
    form("rotate-by-slices", "concatenation", _rotated, benefit=2, is_longer=True),
)
