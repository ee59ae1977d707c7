"""Ranks: dimensions that stay together are merged, so that no more than four are left.

    reshape(transpose(reshape(x)))      ->  reshape(transpose(reshape(x)))         of rank 4, by merged dimensions
    reduce_max(pack(x, y), axis)        ->  maximum(x, y)                          reduce_min as well

By default; the rest is for accelerators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import permutations

import numpy as np

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.accelerators.builder import (
    MAX_RANK,
    MOVED,
    AcceleratorBuilder,
    Rewrite,
    around,
    ints_of,
    like,
    option,
    producer,
    shape_of,
    source_of,
    static_shape,
    target_of,
)
from tfconvert.converter.targets.litert.fitting import fit
from tfconvert.converter.targets.litert.legalize.rearrange import merged
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.values import Value


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


def _between_reshapes(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A reshape of a transpose of a reshape: the transpose in rank 4."""
    transpose = producer(op.operands[0], "transpose")
    before = producer(transpose.operands[0], "reshape")
    shape, permutation = shape_of(before.results[0]), ints_of(transpose.operands[1])
    need(len(shape) > MAX_RANK and 0 not in shape and shape.count(-1) < 2, "accelerators take it")
    sizes, order = merged(shape, [axis % len(shape) for axis in permutation])
    need(1 < len(sizes) <= MAX_RANK, "too many dimensions go apart")
    value = build.reshape(before.operands[0], sizes)
    value = build.tfl("transpose", (value, build.ints(order)), like(value, [sizes[axis] for axis in order]))
    return build.reshape(value, target_of(op.results[0]))


def _of_packed(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """An extreme of tensors that are packed for that: one of each pair."""
    pack = producer(op.operands[0], "pack")
    rank = len(shape_of(pack.results[0]))
    need([axis % rank for axis in ints_of(op.operands[1])] == [option(pack, "axis") % rank], "it reduces other axes")
    need(not option(op, "keep_dims") and len(pack.operands) > 1, "it keeps the dimension")
    value, name = pack.operands[0], "maximum" if op.op_name == "reduce_max" else "minimum"
    for other in pack.operands[1:]:
        value = build.tfl(name, (value, other), op.results[0].type)
    return value


_REDUCTIONS = ("mean", "reduce_all", "reduce_any", "reduce_max", "reduce_min", "reduce_prod", "sum")

REWRITES = (
    Rewrite("reshape-of-transpose", "reshape", _between_reshapes, 2, MOVED),
    *(Rewrite(f"{name}-of-packed", name, _of_packed, 2, (types.F32,)) for name in ("reduce_max", "reduce_min")),
    Rewrite("reshape-once", "reshape", _reshape_once),
    *(Rewrite(f"{name}-as-reshape", name, _reshaped) for name in ("expand_dims", "squeeze")),
    Rewrite("transpose-in-fewer-dimensions", "transpose", _transpose),
    *(Rewrite(f"{name}-in-fewer-dimensions", name, _by(fit.reduction)) for name in _REDUCTIONS),
    Rewrite("concatenation-in-fewer-dimensions", "concatenation", _by(fit.concatenation)),
    Rewrite("split-in-fewer-dimensions", "split", _by(fit.split)),
    *(Rewrite(f"{name}-in-fewer-dimensions", name, _by(fit.pad)) for name in ("pad", "padv2")),
    Rewrite("dense-in-fewer-dimensions", "fully_connected", _by(fit.dense)),
    Rewrite("matrices-in-fewer-dimensions", "batch_matmul", _by(fit.matrices)),
    *(Rewrite(f"{name}-of-rows", name, _softmax) for name in ("log_softmax", "softmax")),
    Rewrite("cumsum-in-fewer-dimensions", "cumsum", _along),
)
