"""Broadcasts of dimensions of which it is not known whether they are 1."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.targets.iree.rewrites.context import Context, shape_of
from tfconvert.converter.targets.iree.rewrites.linalg_builder import LinalgBuilder
from tfconvert.converter.targets.iree.rewrites.shapes import with_numbers
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.attributes import DenseArrayAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

UNEQUAL = "a size is neither 1 nor that which it is broadcast to"


def axes(op: Operation, name: str) -> tuple[int, ...]:
    """Returns a property of axes, none if it is absent."""
    value = op.properties.get(name)
    return tuple([int(each) for each in value.values]) if isinstance(value, DenseArrayAttr) else ()


def dynamic_broadcast_in_dim(op: Operation, context: Context) -> Value | None:
    """Returns a broadcast that reads element 0 of dimensions that turn out to be 1."""
    value, shape = op.operands
    places = axes(op, "broadcast_dimensions")
    hinted = {*axes(op, "known_expanding_dimensions"), *axes(op, "known_nonexpanding_dimensions")}
    own, result = shape_of(value), shape_of(op.results[0])
    unknown = [axis for axis, dim in enumerate(own) if dim < 0 and axis not in hinted]
    if not unknown:
        return with_numbers(op, context)
    emit, numbers = context.emit, context.numbers
    sizes = numbers.elements(shape)
    single: dict[int, Value] = {}
    for axis in unknown:
        size, wanted = numbers.size(value, axis), sizes[places[axis]]
        if size is not wanted:
            single[axis] = emit.is_("EQ", emit.index(size), emit.index(1))
            is_equal = emit.is_("EQ", emit.index(size), emit.index(wanted))
            fits = emit.one("arith.select", (single[axis], single[axis], is_equal), types.I1)
            emit.op("cf.assert", (fits,), (), {"msg": UNEQUAL})

    def body(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
        indices = []
        for axis, dim in enumerate(own):
            zero = inside.index(0)
            if dim == 1 or axis in axes(op, "known_expanding_dimensions"):
                indices.append(zero)
                continue
            index = inside.loop(places[axis])
            indices.append(inside.choose(single[axis], zero, index) if axis in single else index)
        return inside.element(value, *indices)

    everything = list(range(len(result)))
    into = emit.empty(types.element_of(value.type), sizes, result)
    return emit.loops([], (into, everything), "p" * len(result), body)
