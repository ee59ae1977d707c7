"""Reductions along axes, and permutations, that only computing tells; the number of dimensions stays known."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.entry import attribute
from tfconvert.converter.targets.stablehlo.legalize.gathering import gather_at
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, pick
from tfconvert.converter.targets.stablehlo.legalize.sorting import first
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def are_computed(op: Operation) -> bool:
    """Returns whether the axes of a reduction, its second operand, are not constant."""
    return constant_ints(op.operands[1]) is None


def _flags(emit: StableHLOBuilder, op: Operation, rank: int) -> list[Value]:
    """Returns whether each axis is among those that are reduced."""
    if not attribute(op, "keep_dims", False):
        raise Declined("the axes must be constant, unless reduced dimensions are kept")
    axes = op.operands[1]
    (count,) = emit.dims(axes) or (1,)
    axes = emit.reshape(axes, (count,))
    found = []
    for axis in range(rank):
        is_it = emit.binary("or", emit.compare("EQ", axes, axis), emit.compare("EQ", axes, axis - rank))
        found.append(emit.reduce("or", is_it, (0,), 0))
    return found


def reduced(emit: StableHLOBuilder, name: str, op: Operation, initial: float) -> Value:
    """Emits a reduction; each axis is reduced, spread again, and cut to one element if it is among those meant."""
    value = op.operands[0]
    rank = len(emit.dims(value))
    for axis, flag in enumerate(_flags(emit, op, rank)):
        dims = emit.dims(value)
        spread = emit.broadcast(
            emit.reduce(name, value, (axis,), initial), dims, [at for at in range(rank) if at != axis]
        )
        chosen = emit.select(flag, spread, value)
        size = emit.sizes.fresh(emit.select(flag, 1, emit.value(emit.size(dims[axis]))))
        value = first(emit, chosen, axis, size)
    return value


def count_reduced(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits how many elements each one of the result is made of, as `i32`."""
    dims = emit.dims(op.operands[0])
    count = emit.scalar(1, types.I32)
    for flag, dim in zip(_flags(emit, op, len(dims)), dims, strict=True):
        count = emit.binary("multiply", count, emit.select(flag, emit.value(emit.size(dim)), 1))
    return count


def permuted(emit: StableHLOBuilder, value: Value, permutation: Value) -> Value:
    """Emits each element from where its indices, permuted, say."""
    dims = emit.dims(value)
    rank = len(dims)
    axes = [pick(emit, permutation, at) for at in range(rank)]
    if not rank:
        return value
    result = []
    for axis in axes:
        size = emit.value(emit.size(dims[-1]))
        for at in reversed(range(rank - 1)):
            size = emit.select(emit.compare("EQ", axis, at), emit.value(emit.size(dims[at])), size)
        result.append(emit.sizes.fresh(size))
    return gather_at(emit, value, concatenate(emit, _coordinates(emit, axes, result), rank))


def _coordinates(emit: StableHLOBuilder, axes: Sequence[Value], dims: Sequence[int]) -> list[Value]:
    """Emits, for each element of a permutation's result, its index along each axis of the operand."""
    columns = []
    for axis in range(len(axes)):
        index = emit.iota(dims, len(axes) - 1, types.I32)
        for at, moved in enumerate(axes[:-1]):
            index = emit.select(emit.compare("EQ", moved, axis), emit.iota(dims, at, types.I32), index)
        columns.append(emit.reshape(index, (*dims, 1)))
    return columns
