"""Operators that several rewrites are made of, with the types of their results."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.accelerators.builder import (
    MAX_RANK,
    MAX_READ,
    AcceleratorBuilder,
    around,
    like,
    option,
    shape_of,
    static_shape,
)
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.values import Value


def need_floats(*values: Value) -> None:
    """Declines unless the elements of all values are `f32`."""
    need(all(types.element_of(value.type) == types.F32 for value in values), "it does not compute with f32")


def gather(build: AcceleratorBuilder, table: Value, places: Value | Sequence[int], axis: int) -> Value:
    """Inserts the choice of places along an axis."""
    vector = places if isinstance(places, Value) else build.ints(places)
    shape = shape_of(table)
    kind = like(table, (*shape[:axis], *shape_of(vector), *shape[axis + 1 :]))
    return build.tfl("gather", (table, vector), kind, {"axis": axis, "batch_dims": 0})


def backwards(build: AcceleratorBuilder, value: Value, axis: int) -> Value:
    """Inserts the reversal of an axis, in the form that the GPU computes correctly."""
    parts = parted(build, value, axis)
    turned = build.tfl("reverse_v2", (parts, build.ints((2,))), parts.type)
    return build.reshape(turned, static_shape(value))


def reduced(build: AcceleratorBuilder, name: str, value: Value, axis: int) -> Value:
    """Inserts a reduction of one axis, which stays with the size 1."""
    shape = list(static_shape(value))
    shape[axis] = 1
    return build.tfl(name, (value, build.ints((axis % len(shape),))), like(value, shape), {"keep_dims": True})


def padded(build: AcceleratorBuilder, value: Value, axis: int, before: int, after: int, fill: float = 0) -> Value:
    """Joins constants to both ends of an axis."""
    shape = list(static_shape(value))
    need(math.prod(shape) // max(shape[axis], 1) * (before + after) <= MAX_READ, "what it adds is large")

    def border(size: int) -> list[Value]:
        shape[axis] = size
        return [build.array(np.full(shape, fill), value)] if size else []

    return build.concatenation([*border(before), value, *border(after)], axis)


def part(build: AcceleratorBuilder, value: Value, axis: int, begin: int, size: int) -> Value:
    """Inserts a part of an axis, or nothing if it is whole."""
    shape = static_shape(value)
    if size == shape[axis]:
        return value
    begins = [begin if at == axis else 0 for at in range(len(shape))]
    return build.slice(value, begins, [size if at == axis else dim for at, dim in enumerate(shape)])


def in_full(build: AcceleratorBuilder, value: Value, shape: Shape, limit: int = MAX_READ) -> Value:
    """Inserts a constant, broadcast to a shape; declines if that has more elements than a limit."""
    need(types.is_static(shape) and math.prod(shape) <= limit, "it is large")
    return build.mapped(value, lambda array: np.ascontiguousarray(np.broadcast_to(array, shape)))


def activated(build: AcceleratorBuilder, op: tfl.TFLOp, value: Value) -> Value:
    """Inserts the activation that is fused into an op, if it has one."""
    name = option(op, "fused_activation_function")
    if name == "NONE":
        return value
    need(name in tfl.ACTIVATIONS, "its activation has no operator")
    return build.unary(tfl.ACTIVATIONS[name], value)


def low(build: AcceleratorBuilder, value: Value) -> Value:
    """Merges all dimensions but the last, if there are more than four."""
    shape = static_shape(value)
    return value if len(shape) <= MAX_RANK else build.reshape(value, (1, 1, math.prod(shape[:-1]), shape[-1]))


def lifted(build: AcceleratorBuilder, value: Value) -> Value:
    """Adds dimensions of 1 before a value, up to rank 4; numbers stay."""
    shape = static_shape(value)
    need(len(shape) <= MAX_RANK, "its rank is above 4")
    is_number = tfl.is_constant(value) and not shape
    return value if is_number else build.reshape(value, (*[1] * (MAX_RANK - len(shape)), *shape))


def parted(build: AcceleratorBuilder, value: Value, axis: int) -> Value:
    """Merges the dimensions before and behind an axis, which becomes the third of four."""
    return build.reshape(value, (1, *around(static_shape(value), axis)))


def small(values: Array) -> None:
    """Declines if a new constant is large."""
    need(values.size <= MAX_READ, "it needs a large constant")


def of_copies(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """Emits an op that reads an operand several times: with copies of it."""
    operands = [build.copy(value) if value in op.operands[:at] else value for at, value in enumerate(op.operands)]
    need(operands != list(op.operands), "its operands differ")
    return build.again(op, operands).results[0]
