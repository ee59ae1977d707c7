"""Slices, stacks, reversals and rotations by operators that copy whole rows, and in the forms that accelerators take.

By default:

    fully_connected(strided_slice{shrink}(x))       ->  fully_connected(slice(x))
    strided_slice(x, ...)                           ->  reverse_v2(x, axis)          where all is reversed
    concatenation(reversed(split(x)))               ->  gather(x, places)            of blocks of some size

On a processor, since LiteRT copies the result of a strided slice element by element, unless XNNPACK takes it: then it
drops no dimension and leaves out nothing between its ends:

    strided_slice{shrink}(x, i), for all i          ->  unpack(x)
    strided_slice{shrink}(x, ...)                   ->  reshape(slice(x, ...))
    strided_slice(x, ::s) of an inner dimension     ->  reshape(slice(reshape(x)))
    strided_slice(x, ::s) of the last dimension     ->  reshape(slice(transpose(reshape(x))))
    concatenation(x[r::2, c::2] for all r, c)       ->  reshape(transpose(reshape(x))), or space_to_depth(x)
    split_v(x)                                      ->  slice(x), slice(x)
    pack(x, y){last axis}                           ->  reshape(transpose(concatenation(reshape(x), reshape(y))))
    concatenation(mean(x), mean(y), ...){last axis} ->  reshape(transpose(concatenation(mean(x), mean(y), ...)))

The rest is for accelerators. A split whose parts are joined in another order along the same axis is taken for the
identity by the GPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure, Pattern, attempt, need
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, Rewrite, of_copies, planned, worth
from tfconvert.converter.targets.litert.forms.questions import (
    MAX_RANK,
    MOVED,
    around,
    elements,
    ints_of,
    is_float,
    large,
    like,
    option,
    producer,
    ranges_of,
    shape_of,
    sized,
    static_shape,
    target_of,
)
from tfconvert.schema.dialects import quant, tfl, types
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

# Types whose slices the kernels take.
_ELEMENTS = frozenset(("f32", "i8", "ui8", "i16", "i32", "i64"))

# The number of parts up to which slices are known to be faster than a split, and the maximum.
_MAX_KNOWN_PARTS = 4
_MAX_PARTS = 16

# The maximum rank of what LiteRT's own kernels slice and transpose, where XNNPACK leaves it to them.
_MAX_SLICED = 5

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
    element = quant.storage_of(op.operands[0].element)
    need(str(element) in _ELEMENTS, "no kernel slices these elements")
    shape, ranges, dropped = sized(op.operands[0]), ranges_of(op), 0
    if op.name == "tfl.strided_slice":
        need(not option(op, "ellipsis_mask") and not option(op, "new_axis_mask"), "it adds dimensions")
        dropped = option(op, "shrink_axis_mask")
    need(all(dim >= 0 or each is None for dim, each in zip(shape, ranges, strict=True)), "it cuts an unknown size")
    need(all(each is None or each.step > 0 for each in ranges), "it reverses")
    return [
        Span(0, -1, 1, is_dropped=False)
        if each is None
        else Span(each.start, len(each), each.step if len(each) > 1 else 1, is_dropped=bool(dropped >> axis & 1))
        for axis, each in enumerate(ranges)
    ]


def _is_whole(span: Span, dim: int) -> bool:
    return span == (0, dim, 1, False)


def _without_dropping(op: Operation) -> Emit:
    spans, shape = spans_of(op), sized(op.operands[0])
    target = large(op.results[0])
    need(any(span.is_dropped for span in spans) and all(span.stride == 1 for span in spans), "it is a plain slice")
    need(len(shape) <= _MAX_SLICED, "the rank is high")

    def emit_slice(build: FormBuilder) -> Value:
        value = op.operands[0]
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
    need(op.operands[0].element != types.I64, "no kernel unpacks i64")
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


def _insert_unpack(op: Operation, parts: _Parts, rewriter: Rewriter) -> None:
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
    need(len(dims) <= _MAX_SLICED, "the rank is high")

    def emit_slice(build: FormBuilder) -> Value:
        return build.reshape(build.slice(build.reshape(op.operands[0], dims), begins, counts), target)

    return emit_slice


def _by_slices(op: Operation) -> Emit:
    x, sizes, axes = op.operands
    shape, (axis,) = large(x), ints_of(axes)
    lengths = ints_of(sizes)
    need(is_float(x) and len(lengths) <= _MAX_PARTS, "XNNPACK doesn't slice these elements, or there are many parts")
    worth(len(lengths) <= _MAX_KNOWN_PARTS, "there are many parts")
    need(min(lengths) > 0 and shape[axis] > 0, "a size is unknown")
    need(not _is_grouped(op), "its parts become groups of one convolution")

    def emit_slices(build: FormBuilder) -> list[Value]:
        parts, begins, extents = [], [0] * len(shape), list(shape)
        for length in lengths:
            extents[axis] = length
            parts.append(build.slice(x, begins, extents))
            begins[axis] += length
        return parts

    return emit_slices


def _is_grouped(op: Operation) -> bool:
    """Returns whether all parts go through convolutions that one operator joins, in order."""
    users = [use.operation for part in op.results for use in part.uses]
    if len(users) != len(op.results) or any(each.name != "tfl.conv_2d" for each in users):
        return False
    joins = {use.operation for each in users for use in each.results[0].uses}
    return any(list(each.operands) == [user.results[0] for user in users] for each in joins)


def _every_nth_of_last(op: Operation, spans: Sequence[Span]) -> Emit:
    shape, target, last = sized(op.operands[0]), sized(op.results[0]), spans[-1]
    need(
        all(_is_whole(span, dim) for span, dim in zip(spans[:-1], shape[:-1], strict=True)), "other dimensions are cut"
    )
    need(last.length == shape[-1] // last.stride, "the ends are cut, too")
    rows = -1 if -1 in target else math.prod(target)

    def emit_rows(build: FormBuilder) -> Value:
        columns = build.transpose(build.reshape(op.operands[0], (rows, last.stride)), (1, 0))
        return build.reshape(build.slice(columns, (last.begin, 0), (1, rows)), target)

    return emit_rows


def _phases(op: Operation) -> Emit:
    """Joins the four phases of an image along its channels, in the order of rows or of columns."""
    shape = large(op.results[0])
    need(len(op.operands) == 4 and len(shape) == 4, "it doesn't join four images")
    need(option(op, "axis") in (-1, 3) and option(op, "fused_activation_function") == "NONE", "it differs")
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

    def emit_phases(build: FormBuilder) -> Value:
        if by_rows:
            return build.tfl("space_to_depth", (source,), kind, {"block_size": 2})
        cut = build.reshape(source, (-1 if batch < 0 else batch * height // 2, 2, width // 2, 2, channels))
        return build.reshape(build.transpose(cut, (0, 2, 3, 1, 4)), shape)

    return emit_phases


def _interleaved(op: Operation) -> Emit:
    shape, count = large(op.results[0]), len(op.operands)
    axis = option(op, "axis")
    need(axis in (-1, len(shape) - 1) and count > 1, "it doesn't interleave")
    need(is_float(op.results[0]), "XNNPACK doesn't take these elements")
    rows = -1 if -1 in shape else math.prod(shape) // count

    def emit_columns(build: FormBuilder) -> Value:
        joined = build.concatenation([build.reshape(value, (1, rows)) for value in op.operands], 0)
        return build.reshape(build.transpose(joined, (1, 0)), shape)

    return emit_columns


# The number of channels that the GPU reverses at a time.
_LANES = 4
# The minimum number of neighbouring elements that GATHER moves as fast as slices do.
_MIN_BLOCK = 8


def _in_order(build: FormBuilder, value: Value, ranges: Sequence[range]) -> Value:
    """Inserts the slice that takes ranges with positive steps, unless they are all."""
    sizes = tuple(len(each) for each in ranges)
    starts = [each.start for each in ranges]
    if sizes == shape_of(value):
        return value
    if all(each.step == 1 or len(each) == 1 for each in ranges):
        return build.slice(value, starts, sizes)
    return build.strided(value, starts, [each[-1] + 1 for each in ranges], [each.step for each in ranges], sizes)


def _strided_slice(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A strided slice: without masks, and forwards; axes that are whole are merged if there are many."""
    value, ranges = op.operands[0], ranges_of(op)
    if not types.is_static(shape_of(value)):
        return _of_open_sizes(op, build, ranges)
    known = [each for each in ranges if each is not None]
    turned = [axis for axis, each in enumerate(known) if each.step < 0 and len(each) > 1]
    known = [each if each.step > 0 else each[::-1] for each in known]
    if len(known) > MAX_RANK or not turned:
        value, known = _merged(build, value, known)
    value = _in_order(build, value, known)
    if turned:
        value = build.reshape(value, [len(each) for each in ranges if each is not None])
        for axis in turned:
            value = build.backwards(value, axis)
    return build.reshape(value, static_shape(op.results[0]))


def _merged(build: FormBuilder, value: Value, ranges: Sequence[range]) -> tuple[Value, list[range]]:
    """Returns a value with each axis that is whole merged with the one before, and the ranges along the new axes."""
    sizes, cuts = [1], [range(1)]
    for dim, cut in zip(static_shape(value), ranges, strict=True):
        if cut == range(dim):
            if cuts[-1].step != 1:
                sizes.append(1)
                cuts.append(range(1))
            sizes[-1] *= dim
            cuts[-1] = range(cuts[-1].start * dim, cuts[-1].stop * dim)
        else:
            sizes.append(dim)
            cuts.append(cut)
    if len(sizes) > MAX_RANK and sizes[0] == 1:
        sizes, cuts = sizes[1:], cuts[1:]
    return build.reshape(value, sizes), cuts


def _of_open_sizes(op: tfl.TFLOp, build: FormBuilder, ranges: Sequence[range | None]) -> Value:
    value, dims = op.operands[0], shape_of(op.operands[0])
    need(all(each is None or each.step == 1 or len(each) == 1 for each in ranges), "it leaves elements out")
    starts = [0 if each is None else each.start for each in ranges]
    sizes = [-1 if each is None else len(each) for each in ranges]
    shape = tuple(dim if size < 0 else size for dim, size in zip(dims, sizes, strict=True))
    return build.reshape(build.slice(value, starts, sizes, shape), target_of(op.results[0]))


def _row_of_product(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A product with what a slice takes of one axis, which it drops: of the slice that keeps it."""
    cut = producer(op.operands[0], "strided_slice")
    ranges, mask, rank = ranges_of(cut), option(cut, "shrink_axis_mask"), len(shape_of(cut.operands[0]))
    need(mask in [1 << axis for axis in range(rank - 1)], "it drops no axis, or several, or the last one")
    need(not option(cut, "ellipsis_mask") and not option(cut, "new_axis_mask"), "it adds dimensions")
    need(not option(op, "keep_num_dims") or rank == 2, "the product has the operand's dimensions")
    need(all(each is None or each.step == 1 for each in ranges), "it leaves elements out")
    starts = [0 if each is None else each.start for each in ranges]
    sizes = [-1 if each is None else len(each) for each in ranges]
    value = build.slice(cut.operands[0], starts, sizes)
    return build.again(op, (value, *op.operands[1:])).results[0]


def _as_reversal(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A slice that takes all of an operand, backwards along one axis: a reversal, or a choice of channels."""
    value, shape = op.operands[0], static_shape(op.operands[0])
    need(static_shape(op.results[0]) == shape, "elements are left out")
    axes = [axis for axis, each in enumerate(ranges_of(op)) if each is not None and each.step < 0 and len(each) > 1]
    need(len(axes) == 1, "not one dimension is reversed")
    if axes[0] < len(shape) - 1 or shape[-1] % _LANES == 0:
        return build.tfl("reverse_v2", (value, build.ints(axes)), value.type)
    need_gathered(value)
    return build.gather(value, range(shape[-1] - 1, -1, -1), axes[0])


def need_gathered(value: Value) -> None:
    """Declines unless accelerators choose rows of a value by places."""
    need(value.element in (types.F32, types.I32, types.I8), "accelerators don't take such tensors")


def _reverse(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A reversal: each axis for itself, in rank 4, where it is not the last one."""
    value = op.operands[0]
    for axis in ints_of(op.operands[1]):
        value = build.backwards(value, axis % len(static_shape(value)))
    return value


def _split_of(op: tfl.TFLOp) -> tuple[Value, int, list[int]]:
    """Returns what a split takes apart, the axis, and where its parts begin and the last one ends."""
    value, at = (op.operands[1], op.operands[0]) if op.op_name == "split" else (op.operands[0], op.operands[2])
    axis = ints_of(at)[0] % len(shape_of(value))
    sizes = [shape_of(result)[axis] for result in op.results]
    need(all(size >= 0 for size in sizes), "a size is unknown")
    return value, axis, [0, *np.cumsum(sizes).tolist()]


def _split(op: tfl.TFLOp, build: FormBuilder) -> Sequence[Value]:
    """A split: a slice for each part that is used; a single part is the whole."""
    value, axis, ends = _split_of(op)
    whole = build.parted(value, axis)
    parts = []
    for result, begin, end in zip(op.results, ends[:-1], ends[1:], strict=True):
        is_used = result.first_use is not None
        parts.append(build.reshape(build.cut(whole, 2, begin, end - begin), static_shape(result)) if is_used else value)
    return parts


def _rotation_of(op: tfl.TFLOp) -> tuple[Value, int, list[range]]:
    """Returns the value that an op joins all parts of along the axis of their split, the axis, and the places."""
    split = op.operands[0].owner if op.operands else None
    need(isinstance(split, tfl.TFLOp) and split.op_name in ("split", "split_v"), "it joins no parts of a split")
    assert isinstance(split, tfl.TFLOp)
    value, axis, ends = _split_of(split)
    need(option(op, "axis") % len(shape_of(value)) == axis, "the parts are joined along another axis")
    need(option(op, "fused_activation_function") == "NONE", "an activation is fused")
    order = [each.index if isinstance(each, OpResult) and each.op is split else -1 for each in op.operands]
    need(sorted(order) == list(range(len(split.results))) != order, "they aren't all parts, in another order")
    return value, axis, [range(ends[index], ends[index + 1]) for index in order]


def _rotation_by_places(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A rotation: a choice of places."""
    value, axis, order = _rotation_of(op)
    block = shape_of(value)[axis + 1 :]
    need(types.is_static(block) and math.prod(block) >= _MIN_BLOCK, "the elements are moved in small blocks")
    need_gathered(value)
    return build.gather(value, [place for each in order for place in each], axis)


def _rotation_by_slices(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A rotation: slices that are joined."""
    value, axis, order = _rotation_of(op)
    return build.concatenation([build.cut(value, axis, each.start, len(each)) for each in order], axis)


def _single(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A join of one operand: a copy of it."""
    need(len(op.operands) == 1, "it joins several")
    need(option(op, "fused_activation_function") == "NONE", "an activation is fused")
    return build.copy(op.operands[0])


def _slice(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A slice of a high rank: a dimension that is cut takes those that follow and are not."""
    static_shape(op.operands[0])
    ranges = [each for each in ranges_of(op) if each is not None]
    return build.reshape(_in_order(build, *_merged(build, op.operands[0], ranges)), static_shape(op.results[0]))


def _slice_by_places(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A slice that begins where an operand says: the places are chosen."""
    value, begin = op.operands[:2]
    need(not tfl.is_constant(begin), "its begin is a constant")
    begin = build.cast(begin, types.I32)
    for axis, (dim, size) in enumerate(zip(static_shape(value), static_shape(op.results[0]), strict=True)):
        if size != dim:
            first = build.reshape(build.slice(begin, (axis,), (1,)), (1, 1, 1, 1))
            steps = build.constant(np.arange(size, dtype=np.int32).reshape(1, 1, 1, size))
            value = build.gather(value, build.reshape(build.binary("add", first, steps), (size,)), axis)
    return build.reshape(value, static_shape(op.results[0]))


def _unpack(op: tfl.TFLOp, build: FormBuilder) -> list[Value]:
    """Rows as tensors: a slice for each that is used."""
    value = build.parted(op.operands[0], option(op, "axis"))
    return [
        build.reshape(build.cut(value, 2, at, 1), static_shape(result)) if result.first_use is not None else value
        for at, result in enumerate(op.results)
    ]


def _pack(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """Tensors as rows: a join."""
    result = static_shape(op.results[0])
    before, _, behind = around(result, option(op, "axis"))
    parts = [build.reshape(value, (1, before, 1, behind)) for value in op.operands]
    return build.reshape(build.concatenation(parts, 2), result)


NEEDS_BY_DEFAULT = "split split_v strided_slice"
"""The operators without any of which there is nothing to rewrite by default."""

REWRITES = (
    Rewrite("product-of-a-row", "fully_connected", _row_of_product, 9, (types.F32,)),
    Rewrite("slice-as-reversal", "strided_slice", _as_reversal, 9, MOVED),
    Rewrite(
        "rotation-by-places",
        "concatenation",
        _rotation_by_places,
        2,
        (types.F32, types.I8, types.I32),
        only_for="processors",
    ),
    Rewrite("rotation-by-slices", "concatenation", _rotation_by_slices, 1, (types.F32,), adds=True),
    Rewrite("concatenation-of-one", "concatenation", _single, 3),
    Rewrite("strided-slice-without-masks", "strided_slice", _strided_slice, 2),
    Rewrite("slice-by-places", "slice", _slice_by_places, 2),
    Rewrite("slice-in-fewer-dimensions", "slice", _slice),
    Rewrite("reverse-in-rank-4", "reverse_v2", _reverse, 2),
    *(Rewrite(f"{name}-as-slices", name, _split, 0) for name in ("split", "split_v")),
    Rewrite("unpack-as-slices", "unpack", _unpack),
    Rewrite("pack-of-copies", "pack", of_copies, 2),
    Rewrite("pack-as-concatenation", "pack", _pack),
)


def _columns(op: Operation) -> Emit:
    """Joins maps that reductions have made, as those of a correlation of two images."""
    shape, count = large(op.results[0]), len(op.operands)
    need(option(op, "axis") in (-1, len(shape) - 1) and shape[-1] == count, "it doesn't join single channels")
    need(is_float(op.results[0]) and questions.is_plain(op) and shape[0] == 1, "it isn't of floats, or is of a batch")
    need(count > _MAX_JOINED, "XNNPACK joins them")
    reductions = [value.sole_producer(_REDUCTIONS) for value in op.operands]
    found = [
        each
        for each in reductions
        if each is not None and [axis % len(shape) for axis in ints_of(each.operands[1])] == [len(shape) - 1]
    ]
    need(len(found) == count, "not all of them are made by reductions of channels")

    def emit_rows(build: FormBuilder) -> Value:
        rows = [
            build.tfl(
                each.name.removeprefix("tfl."), each.operands, like(op.results[0], shape[:-1]), {"keep_dims": False}
            )
            for each in found
        ]
        joined = build.concatenation(rows, 0)
        return build.reshape(build.transpose(joined, (*range(1, len(shape) - 1), 0)), shape)

    return emit_rows


_REDUCTIONS = frozenset(("tfl.mean", "tfl.reduce_max", "tfl.sum"))


FAST: tuple[Pattern[Any], ...] = (
    Pattern("unpack-slices", "tfl.strided_slice", _match_parts, _insert_unpack, benefit=5),
    planned("drop-by-reshape", "strided_slice", _without_dropping),
    planned("every-nth", "strided_slice", _every_nth),
    planned("phases", "concatenation", _phases, benefit=3),
    planned("interleave", "pack", _interleaved),
    planned("join-maps", "concatenation", _columns),
    planned("split-by-slices", "split_v", _by_slices),
)
