"""Questions about values and operators. Those that return no `None` decline, by `pattern.need`, without an answer."""

from __future__ import annotations

import math
import struct
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.rewrite.dsl import check
from tfconvert.converter.rewrite.pattern import Declined, need
from tfconvert.ops.slicing import decoded
from tfconvert.schema.dialects import attributes, tensor_data, tfl, types
from tfconvert.schema.dialects.dims import MismatchError, broadcast, can_broadcast, constant_target
from tfconvert.schema.dialects.tensor_data import Array, Constant
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import IntegerType, Signedness
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators

ACTIVATION = tfl.ACTIVATION
_FLOAT = struct.Struct("<f")

NONE = attributes.string("NONE")
VALID = attributes.string("VALID")
SAME = attributes.string("SAME")

PLAIN = tfl.NOT_FUSED
"""The options that a pattern requires of an op that applies no activation to its result."""


MOVES = {f"tfl.{name}": int(index) for name, index in operators.having("moves").items()}
"""Ops that only forward elements of an operand, which is this one."""

_DECIDING = tfl.full_names(operators.having("decides"))
_FORWARDING = tfl.full_names(operators.having("elementwise")) | MOVES.keys() | {"tfl.cast"}

# Values that are followed to find an op that decides: enough for what is rounded, and as many for each op.
_MAX_FOLLOWED = 24

MOVED = (types.F32, types.I8, IntegerType.get(8, Signedness.UNSIGNED), types.I32, types.I1)
"""The elements of which accelerators take operators that only move them."""

MAX_RANK = 4
"""The highest rank that GPUs take."""

MAX_READ = 16384
"""The maximum number of elements of a constant that a rewrite reads."""

MIN_ELEMENTS = 512
"""The size of a tensor from which a faster form is worth more operators: smaller ones take less than a microsecond."""

RESHAPES = ("expand_dims", "reshape", "squeeze")
"""Operators that only change the shape."""


def shape_of(value: Value) -> Shape:
    """Returns a value's shape, -1 where a size is unknown; declines if its rank is."""
    shape = value.shape
    need(shape is not None, "a rank is unknown")
    return shape or ()


def static_shape(value: Value) -> Shape:
    """Returns a value's shape; declines if a size is unknown."""
    shape = shape_of(value)
    need(types.is_static(shape), "a size is unknown")
    return shape


def sized(value: Value) -> Shape:
    """Returns a value's shape, in which one dimension may be unknown, as -1: usually that of the batch."""
    shape = shape_of(value)
    need(shape.count(-1) <= 1, "several sizes are unknown")
    return shape


def large(value: Value) -> Shape:
    """Returns a value's shape like `sized`; declines unless it is large enough."""
    shape = sized(value)
    need(elements(shape) >= MIN_ELEMENTS, "the tensor is small")
    return shape


def target_of(value: Value) -> Shape:
    """Returns a value's shape as that of a reshape; declines if several sizes are unknown."""
    target = constant_target(shape_of(value))
    need(target is not None, "several sizes are unknown")
    return target or ()


def elements(shape: Sequence[int]) -> int:
    """Returns the number of elements, of a batch of one where it is unknown."""
    return math.prod(abs(dim) for dim in shape)


def around(shape: Shape, axis: int) -> Shape:
    """Returns a shape as the sizes before an axis, of the axis, and after it."""
    axis %= len(shape)
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def joint(*shapes: Shape) -> Shape:
    """Returns the shape that shapes broadcast to; declines if it isn't certain."""
    result: Shape = ()
    for shape in shapes:
        need(can_broadcast(result, shape), "the shapes can't be broadcast")
        result = broadcast(result, shape) or ()
    return result


def like(value: Value, shape: Sequence[int]) -> Attribute:
    """Returns the type of a tensor of another shape with a value's elements."""
    return types.tensor(value.element, shape)


def decides_integers(value: Value) -> bool:
    """Returns whether the last bit of floats may decide an integer or a boolean, by elementwise ops or moved elements.

    Sums of many products are not exact in any case, and end the search, as does the distance: the nearest are followed.
    """
    waiting, found = deque([value]), {value}
    while waiting and len(found) <= _MAX_FOLLOWED:
        near = waiting.popleft()
        for use in near.uses:
            user = use.operation
            if user.name in _DECIDING and not (user.name == "tfl.cast" and is_float(user.results[0])):
                return True
            # The scale of whole numbers.
            if user.name == "tfl.mul" and any(operand.producer(_DECIDING) for operand in user.operands):
                return True
            if user.name in _FORWARDING:
                waiting.extend(result for result in user.results if result not in found)
                found.update(user.results)
    return False


def is_float(value: Value) -> bool:
    """Returns whether a value is a tensor of 32-bit floats, the type of XNNPACK's arithmetic."""
    return value.element == types.F32


def need_floats(*values: Value) -> None:
    """Declines unless the elements of all values are `f32`."""
    need(all(map(is_float, values)), "it isn't of 32-bit floats")


def need_element(value: Value, *elements: Attribute) -> None:
    """Declines unless the elements of a value are of one of some types."""
    need(value.element in elements, "its elements have another type")


def producer(value: Value, name: str) -> tfl.TFLOp:
    """Returns the op of a name that makes a value for this use only; declines if another does."""
    owner = value.owner
    need(
        isinstance(owner, tfl.TFLOp) and owner.op_name == name and value.has_one_use(),
        f"no {name} comes before, or it has other users",
    )
    assert isinstance(owner, tfl.TFLOp)
    return owner


def source_of(value: Value) -> Value:
    """Returns the value that a value was reshaped from; the value if it was not."""
    owner = value.owner
    while isinstance(owner, tfl.TFLOp) and owner.op_name in RESHAPES:
        value = owner.operands[0]
        owner = value.owner
    return value


def dequantized(value: Value) -> Value:
    """Returns the constant that a value is dequantized from, the value if it is not."""
    owner = value.owner
    if isinstance(owner, tfl.TFLOp) and owner.op_name == "dequantize" and tfl.is_constant(owner.operands[0]):
        return owner.operands[0]
    return value


def stored_constant(value: Value) -> Constant | None:
    """Returns the stored elements of a constant, also of a quantized one; `None` of a computed value."""
    if not tfl.is_constant(value):
        return None
    assert isinstance(value.owner, Operation)
    stored = value.owner.properties.get("value")
    return stored if isinstance(stored, Constant) else None


def constant_of(value: Value) -> Constant:
    """Returns the stored elements of a constant; declines if it is computed."""
    constant = stored_constant(value)
    need(constant is not None, "it is computed")
    assert constant is not None
    return constant


def array_of(value: Value) -> Array:
    """Returns the elements of a small constant; declines if it is computed or large."""
    constant = constant_of(value)
    small(math.prod(constant.shape or ()))
    return tensor_data.to_array(constant)


def small(size: int) -> None:
    """Declines a constant of many elements, which is read or made."""
    need(size <= MAX_READ, "it needs a large constant")


def ints_of(value: Value) -> list[int]:
    """Returns the elements of a small constant of integers, such as axes or sizes; declines if it is computed."""
    return [int(each) for each in array_of(value).reshape(-1)]


def option(op: Operation, name: str) -> Any:
    """Returns an option of an op, the schema's default if it is not set."""
    return tfl.attribute(op, name)


def ranges_of(op: Operation) -> list[range | None]:
    """Returns the places that a slice, or a strided one, takes along each axis of its operand.

    `None` is all of an axis whose size is unknown; the function declines if a part of one is taken, but the first ones
    and a single one.
    """
    shape, numbers = shape_of(op.operands[0]), [ints_of(each) for each in op.operands[1:]]
    need(len(set(map(len, numbers))) == 1, "its operands have different lengths")
    found: list[range | None] = []
    if op.name == "tfl.slice":
        stated = list(zip(*numbers, strict=True))
        need(len(stated) == len(shape), "its operands have other lengths than the rank")
        for dim, (begin, size) in zip(shape, stated, strict=True):
            need(dim >= 0 or (begin, size) == (0, -1), "the dimension's size is unknown")
            found.append(range(begin, begin + size if size >= 0 else dim) if dim >= 0 else None)
        return found
    try:
        entries = decoded(partial(option, op), numbers, len(shape))
    except MismatchError as problem:
        raise Declined(str(problem)) from problem
    for axis, begin, end, stride, shrinks in entries:
        if axis < 0:
            continue
        dim = shape[axis]
        need(stride != 0, "it makes no step")
        if shrinks and begin is not None:
            need(begin >= 0 or dim >= 0, "the dimension's size is unknown")
            place = begin if begin >= 0 else begin + dim
            need(place >= 0 and (dim < 0 or place < dim), "the index is outside")
            found.append(range(place, place + 1))
        elif dim >= 0:
            found.append(range(dim)[begin:end:stride])
        else:
            need(not begin and end is None and stride == 1, "the dimension's size is unknown")
            found.append(None)
    need(all(each is None or len(each) for each in found), "it takes nothing")
    return found


def is_plain(op: Operation) -> bool:
    """Returns whether an op applies no activation to its result."""
    activation = op.properties.get(ACTIVATION)
    return activation is None or (isinstance(activation, StringAttr) and activation.data == "NONE")


def activation(op: Operation) -> str:
    attribute = op.properties.get(ACTIVATION)
    return attribute.data if isinstance(attribute, StringAttr) else "NONE"


def known_shape(value: Value) -> Shape | None:
    """Returns a value's shape, `None` if a size is unknown."""
    dims = value.shape
    return dims if types.is_static(dims) else None


def same_shape(one: Shape | None, other: Shape | None) -> bool:
    """Returns whether two shapes with equal element counts are certainly equal: at most one dimension is unknown."""
    return one is not None and one == other and one.count(-1) <= 1


def dims_of(constant: Constant) -> Shape:
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


def axes(value: Value, dims: Shape | None) -> frozenset[int] | None:
    """Returns the axes in a constant, `None` if it is not a constant or they are out of range."""
    found = constant_ints(value)
    if found is None or dims is None or any(not -len(dims) <= axis < len(dims) for axis in found):
        return None
    return frozenset(axis % len(dims) for axis in found)


def broadcast_shape(*shapes: Shape) -> Shape | None:
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


def transposed_constant(constant: Constant, permutation: Sequence[int]) -> Constant:
    dims = dims_of(constant)
    return tensor_data.defer("transpose", (constant,), tuple(dims[index] for index in permutation), permutation)
