"""Operators that several rewrites are made of, with the types of their results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.accelerators.builder import MAX_READ, AcceleratorBuilder, option, static_shape
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.values import Value

# Fused activations, by their names in the schema, with the operators that compute them.
_ACTIVATIONS = {"RELU": "relu", "RELU6": "relu6", "RELU_N1_TO_1": "relu_n1_to_1", "TANH": "tanh"}


def like(value: Value, shape: Sequence[int]) -> Attribute:
    """Returns the type of a tensor of another shape with a value's elements."""
    return types.tensor(types.element_of(value.type), shape)


def need_floats(*values: Value) -> None:
    """Declines unless the elements of all values are `f32`."""
    need(all(types.element_of(value.type) == types.F32 for value in values), "it does not compute with f32")


def is_constant(value: Value) -> bool:
    """Returns whether a value is a constant, or what `tfl.dequantize` makes of one."""
    owner = value.owner
    if isinstance(owner, tfl.TFLOp) and owner.op_name == "dequantize":
        value = owner.operands[0]
    return tfl.is_constant(value)


def gather(build: AcceleratorBuilder, table: Value, places: Value | Sequence[int], axis: int) -> Value:
    """Inserts the choice of places along an axis."""
    vector = places if isinstance(places, Value) else build.ints(places)
    shape = static_shape(table)
    kind = like(table, (*shape[:axis], *static_shape(vector), *shape[axis + 1 :]))
    return build.tfl("gather", (table, vector), kind, {"axis": axis, "batch_dims": 0})


def backwards(build: AcceleratorBuilder, value: Value, axis: int) -> Value:
    """Inserts the reversal of an axis, in the form that the GPU computes correctly."""
    shape = static_shape(value)
    parts = (1, math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
    turned = build.tfl("reverse_v2", (build.reshape(value, parts), build.ints((2,))), like(value, parts))
    return build.reshape(turned, shape)


def reduced(build: AcceleratorBuilder, name: str, value: Value, axis: int) -> Value:
    """Inserts a reduction of one axis, which stays with the size 1."""
    shape = list(static_shape(value))
    shape[axis] = 1
    return build.tfl(name, (value, build.ints((axis % len(shape),))), like(value, shape), {"keep_dims": True})


def product(build: AcceleratorBuilder, x: Value, y: Value) -> Value:
    """Inserts the product of matrices, whose batches are alike."""
    shape = (*static_shape(x)[:-1], static_shape(y)[-1])
    options = {"adj_x": False, "adj_y": False, "asymmetric_quantize_inputs": False}
    return build.tfl("batch_matmul", (x, y), like(x, shape), options)


def matrices_turned(build: AcceleratorBuilder, value: Value) -> Value:
    """Exchanges the last two axes; those of a constant when it is read."""
    rank = len(static_shape(value))
    permutation = (*range(rank - 2), rank - 1, rank - 2)
    constant = tensor_data.constant_of(value)
    if constant is None:
        return build.transpose(value, permutation)
    shape = [static_shape(value)[axis] for axis in permutation]
    return build.constant(tensor_data.defer("transpose", (constant,), tuple(shape), permutation))


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


def activated(build: AcceleratorBuilder, op: tfl.TFLOp, value: Value) -> Value:
    """Inserts the activation that is fused into an op, if it has one."""
    name = option(op, "fused_activation_function")
    if name == "NONE":
        return value
    need(name in _ACTIVATIONS, "its activation has no operator")
    return build.unary(_ACTIVATIONS[name], value)


def sum_of(build: AcceleratorBuilder, op: tfl.TFLOp, value: Value, bias: Value) -> Value:
    """Inserts the sum of a product and a bias, with the activation of the op that had the bias."""
    fused: dict[str, Any] = {"fused_activation_function": option(op, "fused_activation_function")}
    return build.tfl("add", (value, bias), value.type, fused)


def small(values: Array) -> None:
    """Declines if a new constant is large."""
    need(values.size <= MAX_READ, "it needs a large constant")
