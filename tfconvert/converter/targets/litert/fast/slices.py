"""Slices, stacks and interleaved values by operators that copy whole rows.

LiteRT copies the result of a strided slice element by element, unless XNNPACK takes it: then it drops no dimension and
leaves out nothing between its ends.

    strided_slice{shrink}(x, i), for all i          ->  unpack(x)
    strided_slice{shrink}(x, ...)                   ->  reshape(slice(x, ...))
    strided_slice(x, ::s) of an inner dimension     ->  reshape(slice(reshape(x)))
    strided_slice(x, ::s) of the last dimension     ->  reshape(slice(transpose(reshape(x))))
    concatenation(x[r::2, c::2] for all r, c)       ->  reshape(transpose(reshape(x))), or space_to_depth(x)
    split_v(x)                                      ->  slice(x), slice(x)
    pack(x, y){last axis}                           ->  reshape(transpose(concatenation(reshape(x), reshape(y))))
    concatenation(mean(x), mean(y), ...){last axis} ->  reshape(transpose(concatenation(mean(x), mean(y), ...)))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from tfconvert.converter.rewrite.pattern import Failure, Pattern, attempt, need
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.accelerators.builder import ints_of, like
from tfconvert.converter.targets.litert.fast.fast_form import (
    MAX_RANK,
    Emit,
    FastBuilder,
    elements,
    fast,
    is_float,
    large,
    sized,
    worth,
)
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.converter.targets.litert.optimize import matching
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

# Types whose slices the kernels take.
_ELEMENTS = frozenset(("f32", "i8", "ui8", "i16", "i32", "i64"))

# The number of parts up to which slices are known to be faster than a split, and the maximum.
_MAX_KNOWN_PARTS = 4
_MAX_PARTS = 16

# The maximum number of values that XNNPACK concatenates.
_MAX_JOINED = 5


class Span(NamedTuple):
    """The part of a dimension that a slice takes."""

    begin: int
    length: int
    stride: int
    is_dropped: bool


def spans_of(op: Operation) -> list[Span]:
    """Returns what a slice takes of each dimension; declines one that reverses or adds dimensions."""
    shape = sized(op.operands[0])
    if op.name == "tfl.slice":
        begin, size = (ints_of(operand) for operand in op.operands[1:])
        need(len(begin) == len(size) == len(shape), "it doesn't name all dimensions")
        need(all(dim >= 0 and count >= 0 for dim, count in zip(shape, size, strict=True)), "it cuts an unknown size")
        return [Span(first, count, 1, is_dropped=False) for first, count in zip(begin, size, strict=True)]
    begin, end, strides = (ints_of(operand) for operand in op.operands[1:4])
    need(len(begin) == len(end) == len(strides) == len(shape), "it doesn't name all dimensions")
    need(not tfl.attribute(op, "ellipsis_mask") and not tfl.attribute(op, "new_axis_mask"), "it adds dimensions")
    need(str(types.element_of(op.operands[0].type)) in _ELEMENTS, "no kernel slices these elements")
    masks = {name: tfl.attribute(op, f"{name}_mask") for name in ("begin", "end", "shrink_axis")}
    spans = []
    for axis, dim in enumerate(shape):
        is_dropped = bool(masks["shrink_axis"] >> axis & 1)
        if is_dropped:
            need(dim >= 0, "it picks of an unknown size")
            index = begin[axis] + (dim if begin[axis] < 0 else 0)
            need(0 <= index < dim, "the index is outside")
            spans.append(Span(index, 1, 1, is_dropped=True))
            continue
        if dim < 0:
            need(bool(masks["begin"] & masks["end"] & 1 << axis) and strides[axis] == 1, "it cuts an unknown size")
            spans.append(Span(0, -1, 1, is_dropped=False))
            continue
        first = None if masks["begin"] >> axis & 1 else begin[axis]
        last = None if masks["end"] >> axis & 1 else end[axis]
        taken = range(*slice(first, last, strides[axis]).indices(dim))
        need(strides[axis] > 0 and len(taken) > 0, "it reverses, or takes nothing")
        spans.append(Span(taken.start, len(taken), strides[axis] if len(taken) > 1 else 1, is_dropped=False))
    return spans


def _is_whole(span: Span, dim: int) -> bool:
    return span == (0, dim, 1, False)


def _without_dropping(op: Operation) -> Emit:
    spans, shape = spans_of(op), sized(op.operands[0])
    target = large(op.results[0])
    need(any(span.is_dropped for span in spans) and all(span.stride == 1 for span in spans), "it is a plain slice")
    need(len(shape) <= MAX_RANK, "the rank is high")

    def emit_slice(emit: LiteRTBuilder) -> Value:
        build, value = FastBuilder(emit), op.operands[0]
        if elements(shape) != elements(target):
            value = build.slice(value, [span.begin for span in spans], [span.length for span in spans])
        return build.reshape(value, target)

    return emit_slice


def _dropped_axis(op: Operation, spans: Sequence[Span]) -> int:
    """Returns the only dimension that a slice drops, where it takes the others whole."""
    shape = sized(op.operands[0])
    cut = [axis for axis, span in enumerate(spans) if not _is_whole(span, shape[axis])]
    need(len(cut) == 1 and spans[cut[0]].is_dropped, "it doesn't take one index of one dimension")
    return cut[0]


class _Parts(NamedTuple):
    """All slices of a dimension: the ops of each index."""

    axis: int
    users: list[list[Operation]]


def _parts(op: Operation) -> _Parts:
    large(op.operands[0])
    axis = _dropped_axis(op, spans_of(op))
    count = sized(op.operands[0])[axis]
    users: list[list[Operation]] = [[] for _ in range(count)]
    for use in op.operands[0].uses:
        user = use.operation
        if use.index or user.name != op.name or user.parent is not op.parent:
            continue
        spans = attempt(spans_of, user)
        if not isinstance(spans, Failure) and attempt(_dropped_axis, user, spans) == axis:
            users[spans[axis].begin].append(user)
    need(count > 1 and all(users), "not all parts are used")
    need(users[0][0] is op, "another op is the first part")
    return _Parts(axis, users)


def _match_parts(op: Operation) -> _Parts | Failure:
    return attempt(_parts, op)


def _unpack(op: Operation, parts: _Parts, rewriter: Rewriter) -> None:
    source = op.operands[0]
    # The slices may be in any order, so the parts are made right after the value.
    anchor = source.op.next_op if isinstance(source, OpResult) else None
    if isinstance(source.owner, Block):
        anchor = source.owner.first_op
    kinds = [op.results[0].type] * len(parts.users)
    unpack = tfl.build("unpack", [source], kinds, {"num": len(kinds), "axis": parts.axis})
    rewriter.insert(unpack, before=anchor)
    for same, part in zip(parts.users, unpack.results, strict=True):
        for each in same:
            rewriter.replace_value(each.results[0], part)


def _every_nth(op: Operation) -> Emit:
    spans, shape = spans_of(op), sized(op.operands[0])
    target = large(op.results[0])
    strided = [axis for axis, span in enumerate(spans) if span.stride > 1]
    need(bool(strided), "it leaves out nothing between its ends")
    users = {use.operation for use in op.results[0].uses if use.operation.name == "tfl.concatenation"}
    need(all(isinstance(attempt(_phases, user), Failure) for user in users), "the phases of an image are joined")
    for axis in strided:
        need(shape[axis] % spans[axis].stride == 0, "the size isn't a multiple of the stride")
    if strided == [len(shape) - 1]:
        return _every_nth_of_last(op, spans)
    need(len(shape) - 1 not in strided, "it leaves out parts of the last dimension, and of others")
    dims: list[int] = []
    begins: list[int] = []
    counts: list[int] = []

    def add(dim: int, begin: int, count: int) -> None:
        if dims and dims[-1] == 1:  # A dimension of one joins the next.
            dims.pop(), begins.pop(), counts.pop()
        dims.append(dim)
        begins.append(begin)
        counts.append(count)

    for axis, (dim, span) in enumerate(zip(shape, spans, strict=True)):
        if span.stride == 1:
            add(dim, span.begin, span.length)
            continue
        add(dim // span.stride, span.begin // span.stride, span.length)
        rest = [(0, size) for size in shape[axis + 1 :]]
        whole = all(_is_whole(each, size) for each, (_, size) in zip(spans[axis + 1 :], rest, strict=True))
        need(not whole or -1 not in shape[axis + 1 :], "a size is unknown")
        inner = math.prod(size for _, size in rest) if whole else 1
        dims.append(span.stride * inner)
        begins.append(span.begin % span.stride * inner)
        counts.append(inner)
        if whole:
            break
    need(len(dims) <= MAX_RANK, "the rank is high")

    def emit_slice(emit: LiteRTBuilder) -> Value:
        build = FastBuilder(emit)
        return build.reshape(build.slice(build.reshape(op.operands[0], dims), begins, counts), target)

    return emit_slice


def _by_slices(op: Operation) -> Emit:
    x, sizes, axes = op.operands
    shape, (axis,) = large(x), ints_of(axes)
    lengths = ints_of(sizes)
    need(is_float(x) and len(lengths) <= _MAX_PARTS, "XNNPACK doesn't slice these elements, or there are many parts")
    worth(len(lengths) <= _MAX_KNOWN_PARTS, "there are many parts")
    need(not _feeds_groups(op), "convolutions of the parts are one in groups")
    need(min(lengths) > 0 and shape[axis] > 0, "a size is unknown")

    def emit_slices(emit: LiteRTBuilder) -> list[Value]:
        parts, begins, extents = [], [0] * len(shape), list(shape)
        for length in lengths:
            extents[axis] = length
            parts.append(FastBuilder(emit).slice(x, begins, extents))
            begins[axis] += length
        return parts

    return emit_slices


def _feeds_groups(op: Operation) -> bool:
    """Returns whether each part is of a convolution of its own, and their results are concatenated."""
    users = [use.operation for part in op.results for use in part.uses]
    joined = {use.operation for user in users for result in user.results for use in result.uses}
    return all(user.name == "tfl.conv_2d" for user in users) and [each.name for each in joined] == ["tfl.concatenation"]


def _every_nth_of_last(op: Operation, spans: Sequence[Span]) -> Emit:
    shape, target, last = sized(op.operands[0]), sized(op.results[0]), spans[-1]
    need(
        all(_is_whole(span, dim) for span, dim in zip(spans[:-1], shape[:-1], strict=True)), "other dimensions are cut"
    )
    need(last.length == shape[-1] // last.stride, "the ends are cut, too")
    rows = -1 if -1 in target else math.prod(target)

    def emit_rows(emit: LiteRTBuilder) -> Value:
        build = FastBuilder(emit)
        columns = build.transpose(build.reshape(op.operands[0], (rows, last.stride)), (1, 0))
        return build.reshape(build.slice(columns, (last.begin, 0), (1, rows)), target)

    return emit_rows


def _phases(op: Operation) -> Emit:
    """Joins the four phases of an image along its channels, in the order of rows or of columns."""
    shape = large(op.results[0])
    need(len(op.operands) == 4 and len(shape) == 4, "it doesn't join four images")
    need(
        tfl.attribute(op, "axis") in (-1, 3) and tfl.attribute(op, "fused_activation_function") == "NONE", "it differs"
    )
    slices = [value.owner for value in op.operands]
    need(all(isinstance(each, tfl.TFLOp) and each.op_name == "strided_slice" for each in slices), "they aren't slices")
    sources = {each.operands[0] for each in slices if isinstance(each, Operation)}
    need(len(sources) == 1, "they are of several images")
    (source,) = sources
    batch, height, width, channels = sized(source)
    found = []
    for each in slices:
        assert isinstance(each, Operation)
        spans = spans_of(each)
        need(_is_whole(spans[0], batch) and _is_whole(spans[3], channels), "more than the pixels is cut")
        need(not any(span.is_dropped for span in spans), "a dimension is dropped")
        need(all(span.stride == 2 and span.begin < 2 for span in spans[1:3]), "it isn't every second pixel")
        found.append((spans[1].begin, spans[2].begin))
    need(min(height, width, channels) > 0, "a size is unknown")
    need((height, width) == (2 * shape[1], 2 * shape[2]), "the image's size is odd")
    rows = list(product((0, 1), repeat=2))
    by_rows = found == rows
    need(by_rows or found == [(row, column) for column, row in rows], "the phases are in another order")
    kind = op.results[0].type

    def emit_phases(emit: LiteRTBuilder) -> Value:
        build = FastBuilder(emit)
        if by_rows:
            return emit.tfl("space_to_depth", (source,), kind, {"block_size": 2})
        cut = build.reshape(source, (-1 if batch < 0 else batch * height // 2, 2, width // 2, 2, channels))
        return build.reshape(build.transpose(cut, (0, 2, 3, 1, 4)), shape)

    return emit_phases


def _interleaved(op: Operation) -> Emit:
    shape, count = large(op.results[0]), len(op.operands)
    axis = tfl.attribute(op, "axis")
    need(axis in (-1, len(shape) - 1) and count > 1, "it doesn't interleave")
    need(is_float(op.results[0]), "XNNPACK doesn't take these elements")
    rows = -1 if -1 in shape else math.prod(shape) // count

    def emit_columns(emit: LiteRTBuilder) -> Value:
        build = FastBuilder(emit)
        joined = build.concat([build.reshape(value, (1, rows)) for value in op.operands], 0)
        return build.reshape(build.transpose(joined, (1, 0)), shape)

    return emit_columns


def _columns(op: Operation) -> Emit:
    """Joins maps that reductions have made, as those of a correlation of two images."""
    shape, count = large(op.results[0]), len(op.operands)
    need(tfl.attribute(op, "axis") in (-1, len(shape) - 1) and shape[-1] == count, "it doesn't join single channels")
    need(is_float(op.results[0]) and matching.is_plain(op) and shape[0] == 1, "it isn't of floats, or is of a batch")
    need(count > _MAX_JOINED, "XNNPACK joins them")
    reductions = [matching.sole_producer(value, _REDUCTIONS) for value in op.operands]
    found = [
        each
        for each in reductions
        if each is not None and [axis % len(shape) for axis in ints_of(each.operands[1])] == [len(shape) - 1]
    ]
    need(len(found) == count, "not all of them are made by reductions of channels")

    def emit_rows(emit: LiteRTBuilder) -> Value:
        build = FastBuilder(emit)
        rows = [
            emit.tfl(
                each.name.removeprefix("tfl."), each.operands, like(op.results[0], shape[:-1]), {"keep_dims": False}
            )
            for each in found
        ]
        joined = build.concat(rows, 0)
        return build.reshape(build.transpose(joined, (*range(1, len(shape) - 1), 0)), shape)

    return emit_rows


_REDUCTIONS = frozenset(("tfl.mean", "tfl.reduce_max", "tfl.sum"))


PATTERNS: tuple[Pattern[Any], ...] = (
    Pattern("unpack-slices", "tfl.strided_slice", _match_parts, _unpack, benefit=5),
    fast("drop-by-reshape", "strided_slice", _without_dropping),
    fast("every-nth", "strided_slice", _every_nth),
    fast("phases", "concatenation", _phases, benefit=3),
    fast("interleave", "pack", _interleaved),
    fast("join-maps", "concatenation", _columns),
    fast("split-by-slices", "split_v", _by_slices),
)
