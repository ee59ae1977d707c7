"""Matchers for the optimizer's patterns: producers, uses, constants."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.rewrite.dsl import check
from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.rewrite.rewriter import Rewriter, fuse_origins
from tfconvert.schema.dialects import attributes, tensor_data, tfl, types
from tfconvert.schema.dialects.tensor_data import Array, Constant
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators

ACTIVATION = "fused_activation_function"
_FLOAT = struct.Struct("<f")

NONE = attributes.string("NONE")
VALID = attributes.string("VALID")
SAME = attributes.string("SAME")

PLAIN: Mapping[str, Any] = {ACTIVATION: "NONE"}
"""The options that a pattern requires of an op that applies no activation to its result."""


MOVES = {f"tfl.{name}": int(index) for name, index in operators.having("moves").items()}
"""Ops that only forward elements of an operand, which is this one."""


def is_plain(op: Operation) -> bool:
    """Returns whether an op applies no activation to its result."""
    activation = op.properties.get(ACTIVATION)
    return activation is None or (isinstance(activation, StringAttr) and activation.data == "NONE")


def activation(op: Operation) -> str:
    attribute = op.properties.get(ACTIVATION)
    return attribute.data if isinstance(attribute, StringAttr) else "NONE"


def is_float(value: Value) -> bool:
    """Returns whether a value is a tensor of 32-bit floats; arithmetic is only folded for these."""
    return value.element == types.F32


def static_shape(value: Value) -> types.Shape | None:
    dims = value.shape
    return dims if types.is_static(dims) else None


def same_shape(one: types.Shape | None, other: types.Shape | None) -> bool:
    """Returns whether two shapes with equal element counts are certainly equal: at most one dimension is unknown."""
    return one is not None and one == other and one.count(-1) <= 1


def dims_of(constant: Constant) -> types.Shape:
    return constant.shape or ()


def size_of(constant: Constant) -> int:
    """Returns the number of a constant's elements."""
    return math.prod(dims_of(constant))


def first_float(constant: Constant) -> float | None:
    """Returns the first element of a small constant of 32-bit floats, without an array; `None` for others."""
    if type(constant) is tensor_data.DenseElementsAttr and constant.type.element_type is types.F32 and constant.data:
        first: float = _FLOAT.unpack_from(constant.data)[0]
        return first
    return None


def axes(value: Value, dims: types.Shape | None) -> frozenset[int] | None:
    """Returns the axes in a constant, `None` if it is not a constant or they are out of range."""
    found = constant_ints(value)
    if found is None or dims is None or any(not -len(dims) <= axis < len(dims) for axis in found):
        return None
    return frozenset(axis % len(dims) for axis in found)


def broadcast(*shapes: types.Shape) -> types.Shape | None:
    """Returns the shape that known shapes broadcast to, `None` if they are incompatible."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def is_close(value: float | None, expected: float, relative: float = 1e-6) -> bool:
    """Returns whether two numbers are equal up to the precision of 32-bit floats."""
    return value is not None and math.isclose(value, expected, rel_tol=relative)


def has_shape_of_result(x: Value, root: Operation) -> bool:
    """Returns whether a value certainly has the shape of the root's result."""
    dims = x.shape
    return dims is not None and dims == root.results[0].shape


KEEPS_SHAPE = check("it broadcasts", has_shape_of_result)
"""The condition that a capture `x` certainly has the shape of the root's result."""

KEEPS_TYPE = check("it changes its operand's type", lambda x, root: x.type == root.results[0].type)
"""The condition that a capture `x` has the type of the root's result."""


def with_constant(op: Operation) -> tuple[Value, Constant] | None:
    """Returns the operand and the constant of a commutative op that has one of each."""
    left, right = op.operands
    constant = tensor_data.constant_of(right)
    if constant is not None:
        return None if tensor_data.constant_of(left) is not None else (left, constant)
    constant = tensor_data.constant_of(left)
    return None if constant is None else (right, constant)


def constants_of(op: Operation) -> list[Value]:
    return [operand for operand in op.operands if tensor_data.constant_of(operand) is not None]


def as_vector(constant: Constant, length: int, rank: int) -> Constant:
    """Returns a constant that only varies along the last dimension as a vector, of `length` elements or of one.

    It declines a constant that varies otherwise.

    Args:
        constant: The constant, to be broadcast against a tensor of `rank` dimensions, the last one of `length`.
        length: The number of channels.
        rank: The tensor's rank; a constant of higher rank would change the result's.
    """
    dims = dims_of(constant)
    size = math.prod(dims)
    need(len(dims) <= rank, "the constant has more dimensions than the tensor")
    need(size == 1 or (size == length and dims[-1] == length), "the constant isn't one value a channel")
    return constant if dims == (size,) else tensor_data.defer("reshape", (constant,), (size,), (size,))


def insert_constant(
    rewriter: Rewriter, value: Constant | Array, *origins: Value, before: Operation | None = None
) -> Value:
    """Inserts a constant that is computed from others and returns its value.

    Args:
        rewriter: The rewriter; it inserts before its root.
        value: The constant's value.
        origins: The constants that it was computed from, for the location.
        before: The op to insert before instead of the root.
    """
    attribute = tensor_data.of_array(value) if isinstance(value, np.ndarray) else value
    return rewriter.insert(tfl.constant(attribute, fuse_origins(origins)), before=before).results[0]


def transposed_constant(constant: Constant, permutation: Sequence[int]) -> Constant:
    dims = dims_of(constant)
    return tensor_data.defer("transpose", (constant,), tuple(dims[index] for index in permutation), permutation)
