"""The context of rewrites, and their signature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tfconvert.converter.targets.iree.rewrites.linalg_builder import LinalgBuilder
from tfconvert.converter.targets.iree.rewrites.numbers import Numbers
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class Context(NamedTuple):
    """The context of a rewrite.

    Attributes:
        emit: Inserts ops before the op that is rewritten.
        numbers: The sizes that are known as numbers.
    """

    emit: LinalgBuilder
    numbers: Numbers


Rewrite = Callable[[Operation, Context], Value | Sequence[Value] | None]
"""Returns what replaces an op's results; `None` if the op may stay as it is."""


def shape_of(value: Value) -> types.Shape:
    """Returns a shape, -1 for open sizes; StableHLO has no tensors of unknown rank."""
    shape = types.shape_of(value.type)
    assert shape is not None
    return shape


def is_open(*values: Value) -> bool:
    """Returns whether one of the values has an open size."""
    return any(-1 in shape_of(value) for value in values)
