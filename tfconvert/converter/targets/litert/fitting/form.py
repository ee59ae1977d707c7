"""The form of an operator with fewer dimensions: neighbours that it treats alike are one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.dims import product
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation

ANY = object()
"""The key of a dimension that can be one with either neighbour, since it is 1."""

Groups = Sequence[tuple[int, int]]
"""Ranges of neighbouring dimensions that become one each."""


class Form(NamedTuple):
    """How an operator looks with other shapes.

    Attributes:
        operands: For each operand another shape, another constant, or `None` if it stays.
        results: The results' shapes; afterwards they are reshaped to what they were.
        options: The options that change.
    """

    operands: tuple[Shape | Array | None, ...]
    results: tuple[Shape, ...]
    options: Mapping[str, Any] = MappingProxyType({})


Steps = Sequence[tuple[Array, Shape, Mapping[str, Any]]]
"""The second operand, the result's shape and the changed options of the operators that one is done as."""


def groups_of(keys: Sequence[Hashable]) -> Groups:
    """Returns the runs of dimensions with equal keys; those with the key `ANY` join the run before or behind them."""
    result: list[tuple[int, int]] = []
    current: Hashable = ANY
    for axis, key in enumerate(keys):
        if result and (key is ANY or current is ANY or key == current):
            result[-1] = (result[-1][0], axis + 1)
            current = current if key is ANY else key
        else:
            result.append((axis, axis + 1))
            current = key
    return result


def rows(rank: int) -> Groups:
    """Returns all dimensions but the last one, and the last one, as groups."""
    return [(0, rank - 1), (rank - 1, rank)]


def merged(shape: Sequence[int], groups: Groups) -> Shape:
    """Returns a shape with groups of dimensions as one each."""
    return tuple([product(shape[start:stop]) for start, stop in groups])


def shape_of(op: Operation, operand: int = 0) -> Shape | None:
    """Returns an operand's shape, `None` if its rank is unknown or there is no such operand."""
    return types.shape_of(op.operands[operand].type) if operand < len(op.operands) else None


def result_of(op: Operation, result: int = 0) -> Shape | None:
    """Returns a result's shape, `None` if its rank is unknown."""
    return types.shape_of(op.results[result].type)


def integers(op: Operation, operand: int) -> list[int] | None:
    """Returns the elements of a constant operand."""
    constant = tensor_data.constant_of(op.operands[operand])
    return None if constant is None else [int(each) for each in tensor_data.to_array(constant).reshape(-1)]
