"""The lattice of the shape analysis: shape, constant, known elements of a value; `join` is the meet over callers.

A fact holds whenever a value is computed. Facts of two callers, branches or iterations are joined, which keeps what
they have in common.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tfconvert.ops.operands import Known
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.dims import UNKNOWN, MismatchError, Partial, merge
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.values import Value


class Fact(NamedTuple):
    """The known facts of a value.

    Attributes:
        shape: Its shape; -1 for a dimension that is unknown or varies, `None` for an unknown rank.
        constant: Its value if it is a constant.
        partial: Its known elements if it is an integer scalar or vector.
    """

    shape: Shape | None
    constant: Constant | None = None
    partial: Partial | None = None

    def without_elements(self) -> Fact:
        """Returns the shape alone."""
        return Fact(self.shape)

    def without_symbols(self) -> Fact:
        """Returns the fact without symbols, which are meaningful only in the function where they were found."""
        shape, partial = self.shape, self.partial
        return Fact(
            None if shape is None else tuple([dim if dim >= 0 else -1 for dim in shape]),
            self.constant,
            None if partial is None else tuple([element if element > UNKNOWN else UNKNOWN for element in partial]),
        )


def fact_of(known: Known, value: Value) -> Fact:
    return Fact(known.shapes.get(value), known.constants.get(value), known.partial(value))


def join(one: Fact, other: Fact) -> Fact:
    """Returns the facts that two values have in common; dimensions that differ are -1."""
    if one == other:
        return one
    constant = one.constant if one.constant is not None and _are_same(one.constant, other.constant) else None
    return Fact(_join_shapes(one.shape, other.shape), constant, _join_partials(one.partial, other.partial))


def _are_same(one: Constant, other: Constant | None) -> bool:
    return one is other or one == other


def _join_shapes(one: Shape | None, other: Shape | None) -> Shape | None:
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple([a if a == b else -1 for a, b in zip(one, other, strict=True)])


def _join_partials(one: Partial | None, other: Partial | None) -> Partial | None:
    if one is None or other is None or len(one) != len(other):
        return None
    joined = tuple([a if a == b else UNKNOWN for a, b in zip(one, other, strict=True)])
    return None if all(element == UNKNOWN for element in joined) else joined


def agreed(found: Shape | None, declared: Shape | None) -> Shape | None:
    """Returns a shape merged with that of a type, or the shape alone if the two contradict each other."""
    try:
        return merge(found, declared)
    except MismatchError:
        return found


def fits(size: int, dtype: np.dtype[Any]) -> bool:
    """Returns whether an integer type can represent a size; other types can represent any size."""
    return dtype.kind not in "iu" or size < 1 << (8 * dtype.itemsize - (dtype.kind == "i"))


def constant_of(fact: Fact, element: Attribute) -> Constant | None:
    """Returns a fully known value as a constant, or `None`.

    Args:
        fact: Its fact.
        element: Its element type.
    """
    if fact.constant is not None:
        return fact.constant
    shape, partial = fact.shape, fact.partial
    if partial is None or shape is None or any(item <= UNKNOWN for item in partial):
        return None
    dtype = types.numpy_dtype(element)
    if not all(fits(item, dtype) for item in partial):
        return None
    value = np.array(partial, dtype).reshape(() if shape == () else (len(partial),))
    return tensor_data.of_array(value, element)
