"""Arithmetic of dimensions, some of which are unknown.

A dimension is a plain `int`: at least 0 where known, -1 where nothing is known about it, and below `UNKNOWN` where it
is a *symbol*: an unknown dimension with an identity, so that the batch of an input is still that batch three ops
later. Elements of shape tensors (`Partial`) are numbered the same way, but there -1 is a value like any other, hence
`UNKNOWN` for elements of which nothing is known. Types in the IR never hold symbols.
"""

from __future__ import annotations

from collections.abc import Iterable

from tfconvert.schema.dialects.types import Shape, element_of, shape_of
from tfconvert.schema.ir.attribute import Attribute

Partial = tuple[int, ...]
"""Elements of an integer scalar or vector: values, symbols, or `UNKNOWN`."""

UNKNOWN = -(1 << 64)
"""An element of a shape tensor of which nothing is known; no 64-bit value, and every symbol is less."""


class MismatchError(ValueError):
    """An op's operands or attributes contradict each other; the message is the end of a sentence about the op."""


def symbol(number: int) -> int:
    """Returns the symbol with a number."""
    return UNKNOWN - 1 - number


def without_symbols(shape: Shape) -> Shape:
    """Returns a shape as types have it, -1 for every unknown dimension."""
    return tuple([dim if dim >= 0 else -1 for dim in shape])


def text(shape: Shape | None) -> str:
    """Returns a shape for people: `[1, ?, 3]`."""
    return "of unknown rank" if shape is None else "[" + ", ".join("?" if dim < 0 else str(dim) for dim in shape) + "]"


def difference(given: Shape, wanted: Shape) -> str:
    """Returns where a given shape contradicts a wanted one, for people; dimensions count from 0."""
    if len(given) != len(wanted):
        return f"{len(wanted)} dimension{'s'[: len(wanted) != 1]} needed, {len(given)} given"
    pairs = enumerate(zip(given, wanted, strict=True))
    clashes = [f"dimension {at} is {a}, not {b}" for at, (a, b) in pairs if a >= 0 and b >= 0 and a != b]
    return ", ".join(clashes)


def element_of_dim(dim: int) -> int:
    """Returns a dimension as an element of a shape tensor."""
    return UNKNOWN if dim == -1 else dim


def dim_of_element(element: int) -> int:
    """Returns an element of a shape tensor as a dimension; invalid values are unknown dimensions."""
    return element if element >= 0 or element < UNKNOWN else -1


def are_known(first: int, second: int) -> bool:
    """Returns whether two elements of shape tensors are values."""
    return first > UNKNOWN and second > UNKNOWN


def add_elements(first: int, second: int) -> int:
    """Returns the sum of two elements of shape tensors; nothing added keeps a symbol."""
    if second == 0:
        return first
    if first == 0:
        return second
    return first + second if are_known(first, second) else UNKNOWN


def multiply_elements(first: int, second: int) -> int:
    """Returns the product of two elements of shape tensors; 1 keeps a symbol, 0 wins over unknown."""
    if second == 1:
        return first
    if first == 1:
        return second
    if first == 0 or second == 0:
        return 0
    return first * second if are_known(first, second) else UNKNOWN


def merge_dim(first: int, second: int) -> int:
    """Returns what is known of a dimension that is both.

    Raises:
        MismatchError: Both are known and differ.
    """
    if second in (first, -1):
        return first
    if first == -1 or (first < 0 <= second):
        return second
    if second < 0:
        return first
    raise MismatchError(f"dimensions {first} and {second} should be equal")


def merge(first: Shape | None, second: Shape | None) -> Shape | None:
    """Returns what is known of a shape that is both.

    Raises:
        MismatchError: Ranks or known dimensions differ.
    """
    if first is None or first == second:
        return second
    if second is None:
        return first
    if len(first) != len(second):
        raise MismatchError(f"shapes {text(first)} and {text(second)} should be equal")
    return tuple([merge_dim(one, other) for one, other in zip(first, second, strict=True)])


def compatible(first: Shape | None, second: Shape | None) -> bool:
    """Returns whether a value can have both of two shapes."""
    if first is None or second is None:
        return True
    return len(first) == len(second) and all(
        one == other or min(one, other) < 0 for one, other in zip(first, second, strict=True)
    )


def compatible_types(one: Attribute, other: Attribute) -> bool:
    """Returns whether a value can have both of two tensor types."""
    return element_of(one) == element_of(other) and compatible(shape_of(one), shape_of(other))


def merge_all(shapes: Iterable[Shape | None]) -> Shape | None:
    """Returns what is known of a shape that is all of these."""
    result: Shape | None = None
    for shape in shapes:
        result = merge(result, shape)
    return result


def with_rank(shape: Shape | None, rank: int, what: str = "an operand") -> Shape:
    """Returns a shape of a certain rank, all unknown if the shape is.

    Raises:
        MismatchError: The shape has another rank.
    """
    if shape is None:
        return (-1,) * rank
    if len(shape) != rank:
        raise MismatchError(f"{what} should have rank {rank}, but has shape {text(shape)}")
    return shape


def with_rank_at_least(shape: Shape | None, rank: int, what: str = "an operand") -> Shape | None:
    """Returns the shape.

    Raises:
        MismatchError: The shape has a lower rank.
    """
    if shape is not None and len(shape) < rank:
        raise MismatchError(f"{what} should have at least rank {rank}, but has shape {text(shape)}")
    return shape


def axis_of(axis: int, rank: int) -> int:
    """Returns an axis counted from the front.

    Raises:
        MismatchError: There is no such axis.
    """
    if not -rank <= axis < rank:
        raise MismatchError(f"axis {axis} is out of range for rank {rank}")
    return axis + rank if axis < 0 else axis


def broadcast_dim(first: int, second: int) -> int:
    """Returns the dimension of an elementwise result.

    Raises:
        MismatchError: Two known dimensions neither are equal nor is one of them 1.
    """
    if second in (first, 1):
        return first
    if first == 1:
        return second
    if first < 0:
        return second if second > 1 or second == 0 else -1
    if second < 0:
        return first
    raise MismatchError(f"dimensions {first} and {second} can't be broadcast")


def broadcast(first: Shape | None, second: Shape | None) -> Shape | None:
    """Returns the shape of an elementwise result.

    Raises:
        MismatchError: The shapes can't be broadcast together.
    """
    if first is None or second is None:
        return None
    if first == second:
        return first
    if len(first) < len(second):
        first, second = second, first
    extra = len(first) - len(second)
    try:
        tail = [broadcast_dim(one, other) for one, other in zip(first[extra:], second, strict=True)]
    except MismatchError:
        raise MismatchError(f"shapes {text(first)} and {text(second)} can't be broadcast") from None
    return (*first[:extra], *tail)


def can_broadcast(first: Shape | None, second: Shape | None) -> bool:
    """Returns whether `broadcast` accepts two shapes."""
    try:
        broadcast(first, second)
    except MismatchError:
        return False
    return True


def add(first: int, second: int) -> int:
    """Returns the sum of two dimensions; nothing added keeps a symbol."""
    return dim_of_element(add_elements(element_of_dim(first), element_of_dim(second)))


def multiply(first: int, second: int) -> int:
    """Returns the product of two dimensions; 1 keeps a symbol, 0 wins over unknown."""
    return dim_of_element(multiply_elements(element_of_dim(first), element_of_dim(second)))


def divide(dim: int, divisor: int) -> int:
    """Returns a dimension divided without remainder; a symbol divided by 1 stays.

    Raises:
        MismatchError: There is a remainder, or the divisor is not positive.
    """
    if divisor <= 0:
        raise MismatchError(f"a dimension can't be divided by {divisor}")
    if divisor == 1:
        return dim
    if dim < 0:
        return -1
    if dim % divisor:
        raise MismatchError(f"dimension {dim} is not a multiple of {divisor}")
    return dim // divisor


def product(dims: Iterable[int]) -> int:
    """Returns the number of elements, -1 (or the one symbol that it is) if unknown."""
    result = 1
    for dim in dims:
        result = multiply(result, dim)
    return result


def window(size: int, kernel: int, stride: int, padding: str, dilation: int = 1, pads: tuple[int, int] = (0, 0)) -> int:
    """Returns how often a window fits into a dimension.

    Args:
        size: The dimension.
        kernel: The window's size, -1 if unknown.
        stride: The step.
        padding: `SAME`, `VALID` or `EXPLICIT`.
        dilation: Distance of the window's elements.
        pads: What `EXPLICIT` adds before and after.

    Raises:
        MismatchError: The window doesn't fit at all, the step or the padding is invalid.
    """
    if stride < 1 or dilation < 1:
        raise MismatchError(f"stride {stride} and dilation {dilation} should be positive")
    if padding == "SAME":
        if stride == 1:
            return size
        return -(-size // stride) if size >= 0 else -1
    if padding == "EXPLICIT":
        size = add(size, pads[0] + pads[1])
    elif padding != "VALID":
        raise MismatchError(f"there is no padding {padding!r}")
    if kernel == 1 and stride == 1:
        return size
    if size < 0 or kernel < 0:
        return -1
    extent = (kernel - 1) * dilation + 1
    if size < extent:
        raise MismatchError(f"a window of {extent} doesn't fit into a dimension of {size}")
    return (size - extent) // stride + 1


def constant_target(shape: Shape | None) -> tuple[int, ...] | None:
    """Returns the constant that may replace the computed shape operand of a reshape, `None` if no 32-bit one does.

    Before:

        %1 = "tf.Shape"(%x) : (tensor<?x7x7x160xf32>) -> tensor<4xi32>
        %2 = "tf.StridedSlice"(%1, ...) : (...) -> tensor<i32>
        %3 = "tf.Pack"(%2, %7840) : (tensor<i32>, tensor<i32>) -> tensor<2xi32>
        %4 = "tf.Reshape"(%x, %3) : (tensor<?x7x7x160xf32>, tensor<2xi32>) -> tensor<?x7840xf32>

    After:

        %1 = "tf.Const"() <{value = dense<[-1, 7840]> : tensor<2xi32>}> : () -> tensor<2xi32>
        %2 = "tf.Reshape"(%x, %1) : (tensor<?x7x7x160xf32>, tensor<2xi32>) -> tensor<?x7840xf32>

    A value's elements determine the one unknown dimension if all others are known and none is 0. That holds for an
    empty batch too, where the missing dimension comes out as 0.

    Args:
        shape: The shape of the reshape's result; unknown dimensions are negative.
    """
    if shape is None:
        return None
    unknown = sum(dim < 0 for dim in shape)
    if unknown > 1 or (unknown == 1 and 0 in shape) or max(shape, default=0) >= 1 << 31:
        return None
    return tuple([dim if dim >= 0 else -1 for dim in shape])
