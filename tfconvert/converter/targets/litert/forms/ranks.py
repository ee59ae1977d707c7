"""Ranks: dimensions that stay together are merged, so that no more than four are left.

    reshape(transpose(reshape(x)))      ->  reshape(transpose(reshape(x)))         of rank 4, by merged dimensions
    reduce_max(pack(x, y), axis)        ->  maximum(x, y)                          reduce_min as well

And in regions of a high rank between reshapes, by dimensions that all of their operators treat alike:

    reshape(x, [1, 8, 8, 4, 2])                            ->  reshape(x, [1, 64, 4, 2])
    mean(%0, [1, 2, 4]), sub(%0, %1), square(%2), ...      ->  mean(%0, [1, 3]), sub(%0, %1), square(%2), ...
    reshape(%9, [1, 8, 8, 8])                              ->  reshape(%9, [1, 8, 8, 8])

So are group and instance normalizations. No operator is added, only shapes change; the GPU takes none of a higher rank.
By default; the rest is for accelerators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import permutations
from typing import NamedTuple

import numpy as np

from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.rewrite.rewriter import is_unused
from tfconvert.converter.targets.litert.fitting import fit
from tfconvert.converter.targets.litert.fitting.fit import ANY, Groups, groups_of, merged
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.driver import Trial
from tfconvert.converter.targets.litert.forms.form import Rewrite
from tfconvert.converter.targets.litert.forms.questions import (
    MAX_RANK,
    MOVED,
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
from tfconvert.converter.targets.litert.legalize import rearrange
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.dims import constant_target
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators


def _reshape_once(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A reshape of a reshape: one reshape, or none."""
    source = source_of(op.operands[0])
    need(source is not op.operands[0], "it reshapes no reshape")
    return build.reshape(source, static_shape(op.results[0]))


def _reshaped(op: tfl.TFLOp, build: FormBuilder) -> Value:
    return build.reshape(op.operands[0], static_shape(op.results[0]))


def _transpose(op: tfl.TFLOp, build: FormBuilder) -> Value:
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


def _by(form_of: Callable[[tfl.TFLOp], fit.Form | None]) -> Callable[[tfl.TFLOp, FormBuilder], list[Value]]:
    """Returns the function that emits an op in a form with fewer dimensions."""

    def emit(op: tfl.TFLOp, build: FormBuilder) -> list[Value]:
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


def _softmax(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """An op along the last dimension: merges all other dimensions, if the operand doesn't come in another shape."""
    shape = static_shape(op.operands[0])
    source = source_of(op.operands[0])
    before = static_shape(source)
    if len(before) > MAX_RANK or not before or before[-1] != shape[-1]:
        source, before = op.operands[0], (1, 1, math.prod(shape[:-1]), shape[-1])
    (value,) = build.again(op, [build.reshape(source, before)], [before]).results
    return build.reshape(value, shape)


def _along(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """An op along one axis, which is its last operand, that keeps the shape: merges the dimensions around it."""
    shape = static_shape(op.operands[0])
    axes = ints_of(op.operands[1])
    need(len(axes) == 1, "it has several axes")
    parts = around(shape, axes[0])
    new = build.again(op, [build.reshape(op.operands[0], (1, *parts)), build.axis(2, op.operands[1])], [(1, *parts)])
    return build.reshape(new.results[0], shape)


def _between_reshapes(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A reshape of a transpose of a reshape: the transpose in rank 4."""
    transpose = producer(op.operands[0], "transpose")
    before = producer(transpose.operands[0], "reshape")
    shape, permutation = shape_of(before.results[0]), ints_of(transpose.operands[1])
    need(len(shape) > MAX_RANK and 0 not in shape and shape.count(-1) < 2, "accelerators take it")
    sizes, order = rearrange.merged(shape, [axis % len(shape) for axis in permutation])
    need(1 < len(sizes) <= MAX_RANK, "too many dimensions go apart")
    value = build.reshape(before.operands[0], sizes)
    value = build.tfl("transpose", (value, build.ints(order)), like(value, [sizes[axis] for axis in order]))
    return build.reshape(value, target_of(op.results[0]))


def _of_packed(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """An extreme of tensors that are packed for that: one of each pair."""
    pack = producer(op.operands[0], "pack")
    rank = len(shape_of(pack.results[0]))
    need([axis % rank for axis in ints_of(op.operands[1])] == [option(pack, "axis") % rank], "it reduces other axes")
    need(not option(op, "keep_dims") and len(pack.operands) > 1, "it keeps the dimension")
    value, name = pack.operands[0], "maximum" if op.op_name == "reduce_max" else "minimum"
    for other in pack.operands[1:]:
        value = build.tfl(name, (value, other), op.results[0].type)
    return value


_REDUCED = frozenset(("mean", "reduce_max", "reduce_min", "reduce_prod", "sum"))
_ELEMENTWISE = operators.elementwise(1, 2) - operators.having("opposite").keys()


class _Ranked(NamedTuple):
    """A region.

    Attributes:
        entries: The reshapes that its values come from.
        ops: Its operators.
        rank: The rank of all of its values.
    """

    entries: list[tfl.TFLOp]
    ops: list[tfl.TFLOp]
    rank: int


def _lowered(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """The reshape that a region begins with."""
    need(len(shape_of(op.results[0])) > MAX_RANK, "its rank is low already")
    found = _region_of(op)
    groups = _groups_of(found)
    assert isinstance(build.rewriter, Trial)
    build.rewriter.later(lambda: _lower(op, found, groups))
    value = op.operands[0]
    kind = like(value, merged(shape_of(op.results[0]), groups))
    if kind is value.type and types.is_static(shape_of(value)):
        return value
    target = constant_target(types.shape_of(kind))
    need(target is not None, "several sizes are unknown")
    return build.tfl("reshape", (value, build.ints(target or ())), kind, {"new_shape": target})


def _region_of(op: Operation) -> _Ranked:
    """Returns the region that a reshape is an entry of; declines if other operators have a part in it."""
    rank = len(shape_of(op.results[0]))
    found = _Ranked([], [], rank)
    known: set[Operation] = set()
    pending = [op]
    while pending:
        current = pending.pop()
        if current in known:
            continue
        known.add(current)
        assert isinstance(current, tfl.TFLOp)
        is_entry = current.op_name == "reshape"
        (found.entries if is_entry else found.ops).append(current)
        if is_entry:
            need(len(shape_of(current.operands[0])) <= MAX_RANK, "it comes from a high rank")
        else:
            pending += _producers(current, rank)
        for use in current.results[0].uses:
            user = use.operation
            need(isinstance(user, tfl.TFLOp), "the function returns it")
            if user.name != "tfl.reshape":
                pending.append(user)
    return found


def _producers(op: tfl.TFLOp, rank: int) -> Iterator[Operation]:
    """Yields the producers of an operator's computed operands; declines if the operator can't be in a region."""
    is_reduction = op.op_name in _REDUCED
    need(is_reduction or op.op_name in _ELEMENTWISE, "it is of another kind")
    need(not is_reduction or bool(option(op, "keep_dims")), "it drops dimensions")
    need(len(shape_of(op.results[0])) == rank, "it has another rank")
    for value in op.operands[: 1 if is_reduction else None]:
        if tensor_data.constant_of(value) is None:
            owner = value.owner
            need(isinstance(owner, tfl.TFLOp) and len(shape_of(value)) == rank, "it comes from elsewhere")
            assert isinstance(owner, tfl.TFLOp)
            yield owner


def _padded(value: Value, rank: int) -> Shape:
    shape = shape_of(value)
    return (1,) * (rank - len(shape)) + shape


def _groups_of(found: _Ranked) -> Groups:
    """Returns the dimensions to merge; declines if more than four are left."""
    keys: list[list[tuple[bool, ...]]] = [[] for _ in range(found.rank)]
    for op in found.ops:
        is_reduction = op.op_name in _REDUCED
        shapes = [_padded(value, found.rank) for value in (*op.operands[: 1 if is_reduction else None], op.results[0])]
        axes = [axis % found.rank for axis in ints_of(op.operands[1])] if is_reduction else []
        for axis, key in enumerate(keys):
            key.append((axis in axes, *(shape[axis] == 1 for shape in shapes)))
    shapes = [shape_of(each.results[0]) for each in found.entries]
    ones = [all(shape[axis] == 1 for shape in shapes) for axis in range(found.rank)]
    alike = [
        ANY if one and not any(each[0] for each in key) else tuple(key) for one, key in zip(ones, keys, strict=True)
    ]
    # The first dimension is the batch. Without those of 1 the others may stay, as before a reshape that adds them;
    # where that isn't enough, dimensions of 1 stay, if they can.
    larger = [ANY if key is ANY else axis for axis, key in enumerate(alike)]
    apart = [axis if key is ANY else key for axis, key in enumerate(alike)]
    for known in (["batch", *larger[1:]], ["batch", *apart[1:]], ["batch", *alike[1:]], alike):
        groups = groups_of(known)
        if len(groups) <= MAX_RANK:
            parts = [shape[start:stop] for shape in shapes for start, stop in groups if stop - start > 1]
            need(not any(-1 in part for part in parts), "a size is unknown")
            return groups
    need(False, "too many dimensions differ")
    return ()


def _lower(root: tfl.TFLOp, found: _Ranked, groups: Groups) -> None:
    """Gives a region's operators, but for the entry that is replaced, their new shapes."""
    for op in found.entries:
        if op is root:
            continue
        op.results[0].type = like(op.results[0], merged(shape_of(op.results[0]), groups))
        target = target_of(op.results[0])
        _set(op, 1, TFLBuilder(op).ints(target))
        op.properties["new_shape"] = tfl.to_attribute(tfl.option_fields("reshape")["new_shape"], target)
    for op in found.ops:
        if op.op_name in _REDUCED:
            axes = [axis % found.rank for axis in ints_of(op.operands[1])]
            _set(op, 1, TFLBuilder(op).ints([at for at, each in enumerate(groups) if set(axes) & set(range(*each))]))
        else:
            for index, value in enumerate(op.operands):
                constant = tensor_data.constant_of(value)
                if constant is not None and shape_of(value):
                    shape = merged(_padded(value, found.rank), groups)
                    _set(op, index, TFLBuilder(op).constant(tensor_data.defer("reshape", (constant,), shape, shape)))
    for op in found.ops:
        op.results[0].type = like(op.results[0], merged(shape_of(op.results[0]), groups))


def _set(op: Operation, index: int, value: Value) -> None:
    """Replaces an operand, and erases the constant that it was if nothing else reads that."""
    before = op.operands[index].owner
    op.set_operand(index, value)
    if isinstance(before, Operation) and tfl.is_constant(before.results[0]) and is_unused(before):
        before.erase()


NEEDS_BY_DEFAULT = "reduce_max reduce_min rsqrt sqrt transpose"
"""The operators without any of which there is nothing to rewrite by default."""

REWRITES = (
    Rewrite("reshape-of-transpose", "reshape", _between_reshapes, 2, MOVED),
    *(Rewrite(f"{name}-of-packed", name, _of_packed, 2, (types.F32,)) for name in ("reduce_max", "reduce_min")),
    Rewrite("reshape-once", "reshape", _reshape_once),
    *(Rewrite(f"{name}-as-reshape", name, _reshaped) for name in ("expand_dims", "squeeze")),
    Rewrite("transpose-in-fewer-dimensions", "transpose", _transpose),
    *(Rewrite(f"{name}-in-fewer-dimensions", name, _by(fit.reduction)) for name in operators.having("reduction")),
    Rewrite("concatenation-in-fewer-dimensions", "concatenation", _by(fit.concatenation)),
    Rewrite("split-in-fewer-dimensions", "split", _by(fit.split)),
    *(Rewrite(f"{name}-in-fewer-dimensions", name, _by(fit.pad)) for name in ("pad", "padv2")),
    Rewrite("dense-in-fewer-dimensions", "fully_connected", _by(fit.dense)),
    Rewrite("matrices-in-fewer-dimensions", "batch_matmul", _by(fit.matrices)),
    *(Rewrite(f"{name}-of-rows", name, _softmax) for name in ("log_softmax", "softmax")),
    Rewrite("cumsum-in-fewer-dimensions", "cumsum", _along),
    Rewrite("region-in-fewer-dimensions", "reshape", _lowered, 20, MOVED),
)
