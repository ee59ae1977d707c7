"""Ranks: dimensions that stay together are merged, so that no more than four are left."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import permutations

import numpy as np

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.accelerators.builder import (
    AcceleratorBuilder,
    form,
    ints_of,
    option,
    source_of,
    static_shape,
)
from tfconvert.converter.targets.litert.fitting import fit
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.values import Value

MAX_RANK = 4


def _reshape_once(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A reshape of a reshape: one reshape, or none."""
    source = source_of(op.operands[0])
    need(source is not op.operands[0], "it reshapes no reshape")
    return build.reshape(source, static_shape(op.results[0]))


def _reshaped(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    return build.reshape(op.operands[0], static_shape(op.results[0]))


def _transpose(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A transpose: drops dimensions of 1, merges those that stay neighbours, and goes in several steps if need be."""
    shape, result = static_shape(op.operands[0]), static_shape(op.results[0])
    order = [axis for axis in ints_of(op.operands[1]) if shape[axis] != 1]
    kept = sorted(order)
    sizes = [shape[axis] for axis in kept]
    steps = _steps(tuple(kept.index(axis) for axis in order))
    need(steps is not None, "too many dimensions go apart")
    value = op.operands[0]
    for step in steps or ():
        groups = _runs(step)
        places = sorted(range(len(groups)), key=lambda at, groups=groups: groups[at][0])  # type: ignore[misc]
        value = build.reshape(value, [math.prod(sizes[axis] for axis in groups[at]) for at in places])
        value = build.transpose(value, [places.index(at) for at in range(len(groups))])
        sizes = [sizes[axis] for axis in step]
    return build.reshape(value, result)


def _runs(permutation: Sequence[int]) -> list[list[int]]:
    """Returns the runs of axes that a permutation keeps next to each other."""
    runs: list[list[int]] = []
    for axis in permutation:
        if runs and axis == runs[-1][-1] + 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    return runs


@cache
def _steps(permutation: tuple[int, ...]) -> Sequence[tuple[int, ...]] | None:
    """Returns permutations of at most four runs that make a permutation one after the other, `None` if two don't."""
    if len(_runs(permutation)) <= MAX_RANK:
        return (permutation,)
    if len(permutation) > _MAX_AXES:
        return None
    for first in permutations(range(len(permutation))):
        if 1 < len(_runs(first)) <= MAX_RANK:
            second = tuple(first.index(axis) for axis in permutation)
            if len(_runs(second)) <= MAX_RANK:
                return first, second
    return None


# The maximum number of axes for which pairs of permutations are tried.
_MAX_AXES = 7


def _by(form_of: Callable[[tfl.TFLOp], fit.Form | None]) -> Callable[[tfl.TFLOp, AcceleratorBuilder], list[Value]]:
    """Returns the function that emits an op in a form with fewer dimensions."""

    def emit(op: tfl.TFLOp, build: AcceleratorBuilder) -> list[Value]:
        for value in (*op.operands, *op.results):
            if not tfl.is_absent(value):
                static_shape(value)
        need(all(result.first_use is not None for result in op.results), "a result is not used")
        found = form_of(op)
        need(found is not None, "it has no form with fewer dimensions")
        assert found is not None
        operands = [
            build.constant(other)
            if isinstance(other, np.ndarray)
            else value
            if other is None
            else build.reshape(value, other)
            for value, other in zip(op.operands, found.operands, strict=True)
        ]
        new = build.again(op, operands, found.results, found.options)
        return [build.reshape(one, static_shape(old)) for one, old in zip(new.results, op.results, strict=True)]

    return emit


def around(shape: Shape, axis: int) -> Shape:
    """Returns a shape as the sizes before an axis, of the axis, and after it."""
    axis %= len(shape)
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _softmax(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """An op along the last dimension: merges all other dimensions, if the operand doesn't come in another shape."""
    shape = static_shape(op.operands[0])
    source = source_of(op.operands[0])
    before = static_shape(source)
    if len(before) > MAX_RANK or not before or before[-1] != shape[-1]:
        source, before = op.operands[0], (1, 1, math.prod(shape[:-1]), shape[-1])
    (value,) = build.again(op, [build.reshape(source, before)], [before]).results
    return build.reshape(value, shape)


def _along(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """An op along one axis, which is its last operand, that keeps the shape: merges the dimensions around it."""
    shape = static_shape(op.operands[0])
    axes = ints_of(op.operands[1])
    need(len(axes) == 1, "it has several axes")
    parts = around(shape, axes[0])
    new = build.again(op, [build.reshape(op.operands[0], (1, *parts)), build.axis(2, op.operands[1])], [(1, *parts)])
    return build.reshape(new.results[0], shape)


def _unpack(op: tfl.TFLOp, build: AcceleratorBuilder) -> list[Value]:
    """`tfl.unpack`: a slice for each result that is used."""
    before, size, behind = around(static_shape(op.operands[0]), option(op, "axis"))
    value = build.reshape(op.operands[0], (1, before, size, behind))
    return [
        build.reshape(build.slice(value, (0, 0, at, 0), (1, before, 1, behind)), static_shape(result))
        if result.first_use is not None
        else op.operands[0]
        for at, result in enumerate(op.results)
    ]


def _split(op: tfl.TFLOp, build: AcceleratorBuilder) -> list[Value]:
    """`tfl.split` and `tfl.split_v`: a slice for each result that is used."""
    value, (axis,) = op.operands[0], ints_of(op.operands[2 if op.op_name == "split_v" else 0])
    if op.op_name == "split":
        value = op.operands[1]
    before, size, behind = around(static_shape(value), axis)
    value = build.reshape(value, (1, before, size, behind))
    parts, start = [], 0
    for result in op.results:
        part = (1, before, static_shape(result)[axis], behind)
        is_used = result.first_use is not None
        cut = build.slice(value, (0, 0, start, 0), part) if is_used else value
        parts.append(build.reshape(cut, static_shape(result)) if is_used else value)
        start += part[2]
    return parts


def _pack(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """`tfl.pack`: a concatenation."""
    result = static_shape(op.results[0])
    before, _, behind = around(result, option(op, "axis"))
    parts = [build.reshape(value, (1, before, 1, behind)) for value in op.operands]
    return build.reshape(build.concatenation(parts, 2), result)


def _tile(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """`tfl.tile`: a dimension that is repeated takes those that follow and are not along."""
    shape, multiples = static_shape(op.operands[0]), ints_of(op.operands[1])
    return _repeated(build, op.operands[0], shape, multiples, static_shape(op.results[0]))


def _repeated(build: AcceleratorBuilder, value: Value, shape: Shape, multiples: Sequence[int], result: Shape) -> Value:
    sizes: list[int] = []
    counts: list[int] = []
    for size, count in zip(shape, multiples, strict=True):
        if sizes and count == 1:
            sizes[-1] *= size
        elif sizes and sizes[-1] == 1:
            sizes[-1], counts[-1] = size, counts[-1] * count
        else:
            sizes.append(size)
            counts.append(count)
    missing = MAX_RANK - len(sizes)
    tiled = build.tile(build.reshape(value, (*[1] * missing, *sizes)), (*[1] * missing, *counts))
    return build.reshape(tiled, result)


def _broadcast(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """`tfl.broadcast_to`: a repetition."""
    result = static_shape(op.results[0])
    shape = static_shape(op.operands[0])
    shape = (*[1] * (len(result) - len(shape)), *shape)
    multiples = [after // before for before, after in zip(shape, result, strict=True)]
    return _repeated(build, op.operands[0], shape, multiples, result)


def _slice(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """`tfl.slice`: a dimension that is cut takes those that follow and are not along."""
    shape, result = static_shape(op.operands[0]), static_shape(op.results[0])
    begin = ints_of(op.operands[1])
    whole, starts, sizes = [1], [0], [1]
    for dim, start, size in zip(shape, begin, result, strict=True):
        if size == dim:
            whole[-1], starts[-1], sizes[-1] = whole[-1] * dim, starts[-1] * dim, sizes[-1] * dim
        else:
            whole.append(dim)
            starts.append(start)
            sizes.append(size)
    value = build.reshape(op.operands[0], whole)
    return build.reshape(build.slice(value, starts, sizes), result)


def _strided_slice(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """`tfl.strided_slice` with strides that are not negative: without masks; dimensions that are whole are merged."""
    value = op.operands[0]
    shape, result = static_shape(value), static_shape(op.results[0])
    ranges = ranges_of(op)
    need(all(each.step > 0 for each in ranges), "it goes backwards")
    sizes, cuts = [1], [range(1)]
    for dim, cut in zip(shape, ranges, strict=True):
        if cut == range(dim):
            if cuts[-1].step != 1:
                sizes.append(1)
                cuts.append(range(1))
            sizes[-1] *= dim
            cuts[-1] = range(cuts[-1].start * dim, cuts[-1].stop * dim)
        else:
            sizes.append(dim)
            cuts.append(cut)
    sizes, cuts = (sizes[1:], cuts[1:]) if len(sizes) > MAX_RANK and sizes[0] == 1 else (sizes, cuts)
    value = build.reshape(value, sizes)
    after = [len(cut) for cut in cuts]
    starts = [cut.start for cut in cuts]
    if all(cut.step == 1 for cut in cuts):
        part = build.slice(value, starts, after) if after != sizes else value
    else:
        part = build.strided(value, starts, [cut.stop for cut in cuts], [cut.step for cut in cuts], after)
    return build.reshape(part, result)


def ranges_of(op: tfl.TFLOp) -> list[range]:
    """Returns the places that a strided slice takes along each axis of its operand."""
    shape = static_shape(op.operands[0])
    stated = list(zip(*map(ints_of, op.operands[1:4]), strict=True))
    masks = {name: option(op, f"{name}_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    found: list[range] = []
    for at, (begin, end, stride) in enumerate(stated):
        if masks["ellipsis"] >> at & 1:
            later = sum(1 for each in range(at + 1, len(stated)) if not masks["new_axis"] >> each & 1)
            found += [range(dim) for dim in shape[len(found) : len(shape) - later]]
        elif not masks["new_axis"] >> at & 1:
            dim = shape[len(found)]
            if masks["shrink_axis"] >> at & 1:
                found.append(range(begin % dim, begin % dim + 1))
            else:
                start = None if masks["begin"] >> at & 1 else begin
                stop = None if masks["end"] >> at & 1 else end
                found.append(range(dim)[start:stop:stride])
    return [*found, *(range(dim) for dim in shape[len(found) :])]


def _gather(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """`tfl.gather`: merges the dimensions around the axis."""
    need(option(op, "batch_dims") == 0, "it has batch dimensions")
    table, places = op.operands
    parts = around(static_shape(table), option(op, "axis"))
    count = math.prod(static_shape(places))
    operands = [build.reshape(table, (1, *parts)), build.reshape(places, (count,))]
    new = build.again(op, operands, [(1, parts[0], count, parts[2])], {"axis": 2})
    return build.reshape(new.results[0], static_shape(op.results[0]))


def _extreme(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """`tfl.arg_max` and `tfl.arg_min`: merge the dimensions around the axis."""
    (axis,) = ints_of(op.operands[1])
    parts = around(static_shape(op.operands[0]), axis)
    value = build.reshape(op.operands[0], (1, *parts))
    new = build.again(op, [value, build.axis(2, op.operands[1])], [(1, parts[0], parts[2])])
    return build.reshape(new.results[0], static_shape(op.results[0]))


_REDUCTIONS = ("mean", "reduce_all", "reduce_any", "reduce_max", "reduce_min", "reduce_prod", "sum")

PATTERNS = (
    form("reshape-once", "reshape", _reshape_once),
    form("squeeze-as-reshape", "squeeze", _reshaped),
    form("expand-dims-as-reshape", "expand_dims", _reshaped),
    form("transpose-in-fewer-dimensions", "transpose", _transpose),
    *(form(f"{name}-in-fewer-dimensions", name, _by(fit.reduction)) for name in _REDUCTIONS),
    form("concatenation-in-fewer-dimensions", "concatenation", _by(fit.concatenation)),
    form("split-in-fewer-dimensions", "split", _by(fit.split)),
    *(form(f"{name}-by-slices-in-use", name, _split, 0) for name in ("split", "split_v")),
    form("pad-in-fewer-dimensions", "pad", _by(fit.pad)),
    form("padv2-in-fewer-dimensions", "padv2", _by(fit.pad)),
    form("dense-in-fewer-dimensions", "fully_connected", _by(fit.dense)),
    form("matrices-in-fewer-dimensions", "batch_matmul", _by(fit.matrices)),
    *(form(f"{name}-of-rows", name, _softmax) for name in ("log_softmax", "softmax")),
    *(form(f"{name}-in-fewer-dimensions", name, _along) for name in ("cumsum", "reverse_v2")),
    form("unpack-as-slices", "unpack", _unpack),
    form("pack-as-concatenation", "pack", _pack),
    form("tile-in-fewer-dimensions", "tile", _tile),
    form("broadcast-as-tile", "broadcast_to", _broadcast),
    form("slice-in-fewer-dimensions", "slice", _slice),
    form("strided-slice-without-masks", "strided_slice", _strided_slice),
    form("gather-in-fewer-dimensions", "gather", _gather),
    *(form(f"{name}-in-fewer-dimensions", name, _extreme) for name in ("arg_max", "arg_min")),
)
