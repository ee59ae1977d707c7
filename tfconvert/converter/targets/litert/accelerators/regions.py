"""Regions of a high rank, between reshapes: in rank 4 at most, by dimensions that all of their operators treat alike.

    reshape(x, [1, 8, 8, 4, 2])                            ->  reshape(x, [1, 64, 4, 2])
    mean(%0, [1, 2, 4]), sub(%0, %1), square(%2), ...      ->  mean(%0, [1, 3]), sub(%0, %1), square(%2), ...
    reshape(%9, [1, 8, 8, 8])                              ->  reshape(%9, [1, 8, 8, 8])

So are group and instance normalizations. No operator is added, only shapes change; the GPU takes none of a higher rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.rewrite.rewriter import is_unused
from tfconvert.converter.targets.litert.accelerators.builder import (
    MAX_RANK,
    MOVED,
    AcceleratorBuilder,
    Rewrite,
    ints_of,
    like,
    option,
    shape_of,
    target_of,
)
from tfconvert.converter.targets.litert.fitting.fit import ANY, Groups, groups_of, merged
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.dims import constant_target
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_REDUCTIONS = frozenset(("mean", "reduce_max", "reduce_min", "reduce_prod", "sum"))
_NAMES = (
    "abs add cos div elu exp gelu hard_swish leaky_relu log logistic maximum minimum mul neg pow relu relu6 rsqrt sin "
    "sqrt square squared_difference sub tanh"
)
_ELEMENTWISE = frozenset(_NAMES.split())


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


def _lowered(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """The reshape that a region begins with."""
    need(len(shape_of(op.results[0])) > MAX_RANK, "its rank is low already")
    found = _region_of(op)
    groups = _groups_of(found)
    build.rewriter.later(lambda: _lower(op, found, groups))
    value = op.operands[0]
    kind = like(value, merged(shape_of(op.results[0]), groups))
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
    is_reduction = op.op_name in _REDUCTIONS
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
        is_reduction = op.op_name in _REDUCTIONS
        shapes = [_padded(value, found.rank) for value in (*op.operands[: 1 if is_reduction else None], op.results[0])]
        axes = [axis % found.rank for axis in ints_of(op.operands[1])] if is_reduction else []
        for axis, key in enumerate(keys):
            key.append((axis in axes, *(shape[axis] == 1 for shape in shapes)))
    shapes = [shape_of(each.results[0]) for each in found.entries]
    ones = [all(shape[axis] == 1 for shape in shapes) for axis in range(found.rank)]
    alike = [
        ANY if one and not any(each[0] for each in key) else tuple(key) for one, key in zip(ones, keys, strict=True)
    ]
    # The first dimension is the batch, and dimensions of 1 stay, if they can.
    apart = [axis if key is ANY else key for axis, key in enumerate(alike)]
    for known in (["batch", *apart[1:]], ["batch", *alike[1:]], alike):
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
        if op.op_name in _REDUCTIONS:
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


REWRITES = (Rewrite("region-in-fewer-dimensions", "reshape", _lowered, 20, MOVED),)
