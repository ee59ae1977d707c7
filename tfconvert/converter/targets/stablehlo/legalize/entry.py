"""Legalization entries, and how they read an op's attributes and constant operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tfconvert.converter.ir.constants import constant_ints, constant_number
from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

Rewrite = Callable[[Operation, StableHLOBuilder], Value | Sequence[Value]]
"""Emits the replacement of an op and returns its results; raises `Declined` if it can't."""


def ints(op: Operation, index: int, what: str) -> tuple[int, ...]:
    """Returns an operand that must be a constant, of integers.

    Raises:
        Declined: It is not.
    """
    found = constant_ints(op.operands[index])
    if found is None:
        raise Declined(f"{what} must be constant")
    return found


def number(op: Operation, index: int, what: str) -> float:
    """Returns an operand that must be a constant of one number.

    Raises:
        Declined: It is not.
    """
    found = constant_number(op.operands[index])
    if found is None:
        raise Declined(f"{what} must be constant")
    return found


def axis_of(axis: int, rank: int) -> int:
    """Returns an axis counted from the first one.

    Raises:
        Declined: There is no such axis.
    """
    if not -rank <= axis < rank:
        raise Declined(f"there is no axis {axis} in a tensor of rank {rank}")
    return axis % rank


def axes_of(op: Operation, index: int, rank: int) -> tuple[int, ...]:
    """Returns the axes that a constant operand names, in order and each once."""
    return tuple(sorted({axis_of(axis, rank) for axis in ints(op, index, "the axes")}))
