"""Reads properties of StableHLO ops as Python values."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.stablehlo import EnumeratorAttr
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import DenseArrayAttr, IntegerAttr, StringAttr, SymbolRefAttr, UnitAttr
from tfconvert.schema.ir.operation import Operation


def ints_of(value: Attribute | None, default: Sequence[int] = ()) -> tuple[int, ...]:
    """Returns a property that is a list of integers or booleans."""
    return tuple([int(each) for each in value.values]) if isinstance(value, DenseArrayAttr) else tuple(default)


def integer_of(value: Attribute | None, default: int = 0) -> int:
    """Returns a property that is an integer or a boolean."""
    return int(value.value) if isinstance(value, IntegerAttr) else default


def text_of(value: Attribute | None) -> str:
    """Returns a property that is a string, an enumerator or a symbol; empty if it is absent."""
    if isinstance(value, StringAttr):
        return value.data
    if isinstance(value, SymbolRefAttr):
        return value.root
    return value.value if isinstance(value, EnumeratorAttr) else ""


def pairs_of(value: Attribute | None, rank: int) -> list[tuple[int, int]]:
    """Returns a property that holds two numbers for each dimension, such as padding; zeros if it is absent."""
    if value is None:
        return [(0, 0)] * rank
    assert tensor_data.is_constant(value)
    return [(int(low), int(high)) for low, high in tensor_data.to_array(value).reshape(rank, 2)]


def ints(op: Operation, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
    """Returns an op's property, by its name, as `ints_of`; so do the others."""
    return ints_of(op.properties.get(name), default)


def integer(op: Operation, name: str, default: int = 0) -> int:
    return integer_of(op.properties.get(name), default)


def flag(op: Operation, name: str) -> bool:
    """Returns whether a property is present and true."""
    return isinstance(op.properties.get(name), UnitAttr) or bool(integer(op, name))


def text(op: Operation, name: str) -> str:
    return text_of(op.properties.get(name))


def pairs(op: Operation, name: str, rank: int) -> list[tuple[int, int]]:
    return pairs_of(op.properties.get(name), rank)
