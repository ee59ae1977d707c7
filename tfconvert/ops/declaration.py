"""The declaration of an op: all that is known about it here, whatever it is converted to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tfconvert.ops.call import Kernel
from tfconvert.ops.operands import ShapeFunction, ValueFunction
from tfconvert.schema.dialects.relations.rules import Rule

Decomposition = Callable[..., Any]
"""Builds other ops of `tf` that compute the same."""


class OpDeclaration(NamedTuple):
    """What tfconvert knows about an op of TensorFlow.

    Attributes:
        name: The name in TensorFlow's registry; operators of LiteRT have their dialect's prefix.
        shape: Infers the results' shapes.
        values: Infers the elements of results that are small integer vectors.
        compute: The numpy kernel.
        decompose: Builds the same from other ops, for targets that lack the op.
        relations: Checks of the verifier.
        verified: Whether the verifier refuses what `shape` contradicts. TensorFlow's verifier does so for some ops; for
            all others, an op whose operands don't fit may be in a branch that never runs.
    """

    name: str
    shape: ShapeFunction | None = None
    values: ValueFunction | None = None
    compute: Kernel | None = None
    decompose: Decomposition | None = None
    relations: tuple[Rule, ...] = ()
    verified: bool = False


def op(
    name: str,
    *,
    shape: ShapeFunction | None = None,
    values: ValueFunction | None = None,
    compute: Kernel | None = None,
    decompose: Decomposition | None = None,
    relations: tuple[Rule, ...] = (),
    verified: bool = False,
) -> OpDeclaration:
    """Declares an op; see `OpDeclaration`."""
    return OpDeclaration(name, shape, values, compute, decompose, relations, verified)


def ops_like(names: str, **same: Any) -> tuple[OpDeclaration, ...]:
    """Declares several ops that only differ in their names, which are separated by spaces."""
    return tuple([op(name, **same) for name in names.split()])
