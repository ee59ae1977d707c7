"""Splits: into equal parts, into parts of sizes that are asked for, and into the slices of an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.targets.stablehlo.legalize.constraints import require, require_equal
from tfconvert.converter.targets.stablehlo.legalize.entry import Lowering, attribute, axis_of, ints
from tfconvert.converter.targets.stablehlo.legalize.shaping import part, pick
from tfconvert.converter.targets.stablehlo.legalize.slicing import from_to
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _parts(emit: StableHLOBuilder, value: Value, axis: int, sizes: Sequence[Value | int]) -> list[Value]:
    """Emits parts of sizes, one after the other; the sizes add up to that of the axis."""
    found = []
    begin: Value | int = 0
    is_known = emit.dims(value)[axis] >= 0
    for size in sizes:
        end = emit.compute("add", begin, size)
        if is_known and isinstance(begin, int) and isinstance(end, int):
            found.append(part(emit, value, axis, begin, end))
        else:
            found.append(from_to(emit, value, axis, begin, end, count=emit.size_of(size)))
        begin = end
    return found


def _split(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    value, count = op.operands[1], len(op.results)
    dims = emit.dims(value)
    axis = axis_of(ints(op, 0, "the axis")[0], len(dims))
    size = emit.compute("divide", emit.size(dims[axis]), count)
    if dims[axis] < 0 and count > 1:
        whole = emit.value(emit.compute("multiply", size, count))
        holds = emit.compare("EQ", whole, emit.value(emit.size(dims[axis])))
        require(emit, holds, f"the size that is split must be a multiple of {count}")
    return _parts(emit, value, axis, [size] * count)


def _split_by_sizes(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    value = op.operands[0]
    dims = emit.dims(value)
    axis = axis_of(ints(op, 2, "the axis")[0], len(dims))
    whole = emit.size(dims[axis])
    known = constant_ints(op.operands[1])
    if known is None:
        sizes = _computed_sizes(emit, op.operands[1], len(op.results), whole)
    elif -1 in known:
        rest = emit.compute("subtract", whole, sum(known) + 1)
        sizes = [rest if size < 0 else size for size in known]
    else:
        require_equal(emit, dims[axis], sum(known), "the sizes of the parts must add up to the size that is split")
        sizes = list(known)
    return _parts(emit, value, axis, sizes)


def _computed_sizes(emit: StableHLOBuilder, vector: Value, count: int, whole: Value | int) -> list[Value | int]:
    """Returns sizes of which any may turn out to be -1 at run time."""
    asked = [emit.convert(pick(emit, vector, at), types.I32) for at in range(count)]
    total: Value | int = 0
    for size in asked:
        total = emit.compute("add", total, size)
    rest = emit.value(emit.compute("subtract", whole, emit.compute("add", total, 1)))
    return [emit.select(emit.compare("LT", size, 0), rest, size) for size in asked]


def _unpack(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    value, count = op.operands[0], len(op.results)
    dims = emit.dims(value)
    axis = axis_of(attribute(op, "axis", 0), len(dims))
    require_equal(emit, dims[axis], count, f"what is taken apart must have {count} slices")
    left = [*dims[:axis], *dims[axis + 1 :]]
    return [emit.reshape(each, left) for each in _parts(emit, value, axis, [1] * count)]


LOWERINGS: Mapping[str, Lowering] = {"Split": _split, "SplitV": _split_by_sizes, "Unpack": _unpack}
