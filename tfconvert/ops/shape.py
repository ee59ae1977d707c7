"""Shapes and ranks, and ops that change a shape but not the elements."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from tfconvert.ops.call import Call, Results, ints, scalar
from tfconvert.ops.declaration import Decomposition, op
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands, Partials
from tfconvert.ops.shape_functions import Shapes, same_elements, scalars
from tfconvert.schema.dialects import tf
from tfconvert.schema.dialects.dims import (
    UNKNOWN,
    MismatchError,
    Partial,
    axis_of,
    broadcast,
    broadcast_dim,
    dim_of_element,
    element_of_dim,
    merge,
    multiply_elements,
    text,
)
from tfconvert.schema.dialects.relations.rules import Rule, check_axis, elements, is_vector
from tfconvert.schema.dialects.relations.view import View
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation


def _ensured_shape(operands: Operands) -> Shapes:
    return (merge(operands.shape(0), operands.declared_shape("shape")),)


def quotient(dims: Sequence[int], divisors: Sequence[int]) -> int:
    """Returns the product of `dims` divided by that of `divisors`, -1 if unknown.

    Equal symbols cancel out; what is left has to be a number, or one symbol.

    Raises:
        MismatchError: Numbers don't divide.
    """
    left, right = Counter(dims), Counter(divisors)
    common = left & right
    left, right = left - common, right - common
    above, below = [dim for dim in left.elements() if dim < 0], [dim for dim in right.elements() if dim < 0]
    if below or len(above) > 1:
        return -1
    top, bottom = _known_product(left), _known_product(right)
    if bottom == 0:
        return -1
    if above:
        return above[0] if top == bottom else -1
    if top % bottom:
        raise MismatchError(f"{top} elements can't be divided by {bottom}")
    return top // bottom


def _known_product(dims: Counter[int]) -> int:
    result = 1
    for dim, times in dims.items():
        if dim >= 0:
            result *= dim**times
    return result


def _reshaped_elements(operands: Operands) -> Partials:
    found = operands.partial(0)
    return [_alternating(operands) if found is None else found]


def _alternating(operands: Operands) -> Partial | None:
    """Returns the elements of two vectors by turns, which the gradient of a tile packs, transposes and flattens."""
    moved = operands.producer(0)
    packed = moved.operands[0].owner if moved is not None and moved.name == "tf.Transpose" else None
    if moved is None or not isinstance(packed, Operation) or packed.name != "tf.Pack" or tf.get(packed, "axis", 0):
        return None
    parts = [operands.partial_of(part) for part in packed.operands]
    if operands.partial_of(moved.operands[1]) != (1, 0) or None in parts:
        return None
    return tuple(chain.from_iterable(zip(*(part for part in parts if part is not None), strict=True)))


def _reshape_shape(operands: Operands) -> Shapes:
    target = operands.elements(1)
    if target is None:
        return (None,)
    return (reshaped(operands.shape(0), target),)


def reshaped(shape: Shape | None, target: Partial) -> Shape:
    """Returns the shape of a reshaped value.

    Args:
        shape: The shape of the operand.
        target: The requested shape, with at most one -1 for what is left over.

    Raises:
        MismatchError: There is more than one -1, or the numbers of elements differ.
    """
    if target.count(-1) > 1:
        raise MismatchError(f"only one dimension of {list(target)} may be -1")
    if any(UNKNOWN < element < -1 for element in target):
        raise MismatchError(f"{text(target)} is not a shape")
    result = list(map(dim_of_element, target))
    missing = [index for index, dim in enumerate(result) if dim == -1]
    if shape is None:
        return tuple(result)
    if not missing:
        _check_size(shape, result)
        if sum(dim < 0 for dim in result) == 1:
            _name_symbol(shape, result)
    elif len(missing) == 1:
        rest = result[: missing[0]] + result[missing[0] + 1 :]
        if 0 not in rest:
            result[missing[0]] = quotient(shape, rest)
    return tuple(result)


def _name_symbol(shape: Shape, result: list[int]) -> None:
    """The one unknown dimension among known ones is determined by the number of elements."""
    index = next(index for index, dim in enumerate(result) if dim < 0)
    rest = result[:index] + result[index + 1 :]
    if 0 not in rest and all(dim >= 0 for dim in shape):
        result[index] = quotient(shape, rest)


def _check_size(shape: Shape, result: list[int]) -> None:
    if all(dim >= 0 for dim in shape) and all(dim >= 0 for dim in result):
        have, want = _known_product(Counter(shape)), _known_product(Counter(result))
        if have != want:
            raise MismatchError(f"shapes {text(shape)} and {text(tuple(result))} have {have} and {want} elements")


def _expand_dims_shape(operands: Operands) -> Shapes:
    shape, axis = operands.shape(0), operands.scalar(1)
    if shape is None:
        return (None,)
    if axis is None:
        return ((-1,) * (len(shape) + 1),)
    place = axis_of(axis, len(shape) + 1)
    return ((*shape[:place], 1, *shape[place:]),)


def _squeeze_shape(operands: Operands) -> Shapes:
    shape, axes = operands.shape(0), operands.integers("squeeze_dims")
    if shape is None:
        return (None,)
    if not axes:
        return (None if any(dim < 0 for dim in shape) else tuple(dim for dim in shape if dim != 1),)
    places = {axis_of(axis, len(shape)) for axis in axes}
    if any(shape[place] >= 0 and shape[place] != 1 for place in places):
        raise MismatchError(f"dimensions {sorted(places)} of {text(shape)} should be 1")
    return (tuple(dim for index, dim in enumerate(shape) if index not in places),)


def _broadcast_args_shape(operands: Operands) -> Shapes:
    first, second = operands.elements(0), operands.elements(1)
    if first is None or second is None:
        return ((-1,),)
    broadcast(tuple(map(dim_of_element, first)), tuple(map(dim_of_element, second)))
    return ((max(len(first), len(second)),),)


def _shape_shape(operands: Operands) -> Shapes:
    return [(-1 if shape is None else len(shape),) for shape in operands.shapes()]


def _shape_elements(operands: Operands) -> Partials:
    return [None if shape is None else tuple(map(element_of_dim, shape)) for shape in operands.shapes()]


def _rank_elements(operands: Operands) -> Partials:
    shape = operands.shape(0)
    return [None if shape is None else (len(shape),)]


def _size_elements(operands: Operands) -> Partials:
    shape = operands.shape(0)
    return [None if shape is None else (reduce(multiply_elements, map(element_of_dim, shape), 1),)]


def _broadcast_args_elements(operands: Operands) -> Partials:
    first, second = operands.elements(0), operands.elements(1)
    if first is None or second is None:
        return [None]
    length = max(len(first), len(second))
    first, second = ((1,) * (length - len(dims)) + dims for dims in (first, second))
    dims = [(_as_dim(one), _as_dim(other)) for one, other in zip(first, second, strict=True)]
    try:
        return [tuple(element_of_dim(broadcast_dim(one, other)) for one, other in dims)]
    except MismatchError:
        # Shapes that don't fit fail when they are computed.
        return [None]


def _as_dim(element: int) -> int:
    return -1 if element == UNKNOWN else element


def _shape(call: Call) -> Results:
    dtype = call.dtype("out_type", np.int32)
    return tuple(np.array(x.shape, dtype) for x in call.inputs)


def _size(call: Call) -> Results:
    return (np.array(call.inputs[0].size, call.dtype("out_type", np.int32)),)


def _rank(call: Call) -> Results:
    return (np.array(call.inputs[0].ndim, np.int32),)


def _ensure_shape(call: Call) -> Results:
    (x,) = call.inputs
    shape = call.attributes.get("shape")
    if shape is not None:
        dims = call.integers("shape")
        if len(dims) != x.ndim or any(dim not in (-1, size) for dim, size in zip(dims, x.shape, strict=True)):
            raise call.bad(f"a tensor of shape {list(x.shape)} is not of shape {list(dims)}")
    return call.inputs


def _reshape(call: Call) -> Results:
    x, shape = call.inputs
    target = list(ints(shape))
    if x.size == 0 and -1 in target:
        # numpy can't resolve -1 here; TensorFlow divides by the product of the dimensions that aren't 0.
        known = math.prod(dim for dim in target if dim > 0)
        kept = math.prod(dim for dim in x.shape if dim > 0)
        target[target.index(-1)] = kept // known if 0 in target else 0
    return (x.reshape(target),)


def _expand_dims(call: Call) -> Results:
    x, axis = call.inputs
    return (np.expand_dims(x, scalar(axis)),)


def _squeeze(call: Call) -> Results:
    (x,) = call.inputs
    axes = call.integers("squeeze_dims")
    return (np.squeeze(x, tuple(axes) if axes else None),)


def _broadcast_gradient_args_shape(operands: Operands) -> Shapes:
    """Two broadcast operands' gradients are summed along as many dimensions as their shapes have ones or lack."""
    first, second = operands.ints(0), operands.ints(1)
    if first is None or second is None:
        return ((-1,), (-1,))
    if first == second:
        return ((0,), (0,))
    rank = len(broadcast(first, second) or ())
    return tuple([(rank - len(shape) + shape.count(1),) for shape in (first, second)])


def _broadcast_args(call: Call) -> Results:
    first, second = call.inputs
    return (np.array(np.broadcast_shapes(ints(first), ints(second)), first.dtype),)


def _broadcast_gradient_args(call: Call) -> Results:
    first, second = call.inputs
    if ints(first) == ints(second):
        return np.zeros(0, first.dtype), np.zeros(0, first.dtype)
    pairs = list(zip_longest(reversed(ints(first)), reversed(ints(second)), fillvalue=1))[::-1]
    return (
        np.array([i for i, (one, other) in enumerate(pairs) if one == 1], first.dtype),
        np.array([i for i, (one, other) in enumerate(pairs) if other == 1], first.dtype),
    )


def same_count(name: str) -> Rule:
    """Returns the rule that the result has as many elements as an argument, even if its shape is not constant."""

    def rule(view: View) -> None:
        have, make = elements(view.shape(name)), elements(view.shape("output"))
        if have >= 0 and make >= 0 and have != make:
            view.fail(f"'output' must have as many elements as {name!r} ({have}), found {make}")

    return rule


def _squeezed(view: View) -> None:
    shape = view.shape("input")
    for axis in view.list("squeeze_dims") if shape is not None else ():
        check_axis(view, "'squeeze_dims'", axis, len(shape or ()))


def gradient_axes(one: Tensor, other: Tensor) -> Sequence[Tensor]:
    """Returns where each of two shapes has ones, counted from the longer one's front; nothing if they are equal."""
    lengths = [(each.shape or (0,))[0] for each in (one, other)]
    sides = []
    for each, length in zip((one, other), lengths, strict=True):
        before = each.of(np.ones(max(lengths) - length, each.dtype))
        sides.append(each if length == max(lengths) else before.concat([each] if length else [], 0))
    ones = [side.equal(1) for side in sides]
    if lengths[0] == lengths[1]:
        differ = sides[0].not_equal(sides[1]).reduce("Any", [0], keep_dims=True)
        ones = [each & differ for each in ones]
    return [each.op("Where", each).reshape([-1]).cast(one.dtype) for each in ones]


def _lengths_are_known(op: Operation) -> str | None:
    lengths = [(operand.shape or (-1,))[0] for operand in op.operands]
    return "the rank of an operand is not known" if min(lengths) < 0 else None


def shapes(*tensors: Tensor, out_type: Any = np.int32) -> Sequence[Tensor]:
    return [each.op("Shape", each, out_type=np.dtype(out_type)) for each in tensors]


OPS = (
    op("BroadcastArgs", shape=_broadcast_args_shape, values=_broadcast_args_elements, compute=_broadcast_args),
    op(
        "BroadcastGradientArgs",
        shape=_broadcast_gradient_args_shape,
        compute=_broadcast_gradient_args,
        decompose=(Decomposition(gradient_axes, "integer", _lengths_are_known, example=((4,), (4,))),),
        relations=(is_vector("s0", "s1"),),
        verified=True,
    ),
    op("EnsureShape", shape=_ensured_shape, values=same_elements, compute=_ensure_shape),
    op("ExpandDims", shape=_expand_dims_shape, values=same_elements, compute=_expand_dims),
    op("Rank", shape=scalars, values=_rank_elements, compute=_rank),
    op(
        "Reshape",
        shape=_reshape_shape,
        values=_reshaped_elements,
        compute=_reshape,
        relations=(is_vector("shape"), same_count("tensor")),
        verified=True,
    ),
    op("Shape", shape=_shape_shape, values=_shape_elements, compute=_shape, verified=True),
    op(
        "ShapeN",
        shape=_shape_shape,
        values=_shape_elements,
        compute=_shape,
        decompose=(Decomposition(shapes, ""),),
        verified=True,
    ),
    op("Size", shape=scalars, values=_size_elements, compute=_size, verified=True),
    op("Squeeze", shape=_squeeze_shape, values=same_elements, compute=_squeeze, relations=(_squeezed,)),
)
