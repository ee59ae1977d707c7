"""The declaration of an op: all that is known about it here, whatever it is converted to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfconvert.ops.call import Array, Kernel
from tfconvert.ops.operands import ShapeFunction, ValueFunction
from tfconvert.ops.requirements import Requirement
from tfconvert.schema.dialects.relations.rules import Rule
from tfconvert.schema.dialects.types import Shape

Formula = Callable[..., Any]
"""Takes tensors (`tfconvert.ops.formula`), and attributes as keywords with defaults; returns an op's results."""


def keywords(formula: Formula, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the attributes that a formula takes, as `attributes` all of them; TensorFlow keeps floats in 32 bits."""
    defaults = getattr(formula, "func", formula).__kwdefaults__ or {}
    given = {**attributes, "attributes": attributes}
    found = {name: given.get(name, default) for name, default in defaults.items()}
    return {name: float(np.float32(value)) if isinstance(value, float) else value for name, value in found.items()}


class Decomposition(NamedTuple):
    """An op in terms of others.

    Attributes:
        formula: Computes it.
        types: The element types of its first (or `typed`th) operand, separated by spaces: `float`, `integer`, `number`
            (both), or those of one width; empty for any.
        requires: A further requirement on the op.
        typed: The operand that `types` is about.
        example: The shapes of operands that show what the op becomes, and arrays for constants; batches of images by
            default.
    """

    formula: Formula
    types: str = "float"
    requires: Requirement | None = None
    typed: int = 0
    example: Sequence[Shape | Array] = ()

    def takes(self, kinds: Mapping[str, str]) -> str:
        """Returns `types` with the kinds of numbers replaced by what a target has of each."""
        return " ".join(kinds.get(word, word) for word in self.types.split())


class OpDeclaration(NamedTuple):
    """The declaration of an op of TensorFlow.

    Attributes:
        name: The name in TensorFlow's registry; operators of LiteRT have their dialect's prefix.
        shape: Infers the results' shapes.
        values: Infers the elements of results that are small integer vectors.
        compute: The numpy kernel; without one the op's formula is computed.
        decompose: What it is composed of, for targets that lack the op: one formula for each kind of numbers.
        relations: Checks of the verifier.
        verified: Whether the verifier refuses what `shape` contradicts. TensorFlow's verifier does so for some ops; for
            all others, an op whose operands don't fit may be in a branch that never runs.
    """

    name: str
    shape: ShapeFunction | None = None
    values: ValueFunction | None = None
    compute: Kernel | None = None
    decompose: tuple[Decomposition, ...] = ()
    relations: tuple[Rule, ...] = ()
    verified: bool = False


def op(
    name: str,
    *,
    shape: ShapeFunction | None = None,
    values: ValueFunction | None = None,
    compute: Kernel | None = None,
    decompose: Formula | tuple[Decomposition, ...] = (),
    relations: tuple[Rule, ...] = (),
    verified: bool = False,
) -> OpDeclaration:
    """Declares an op; see `OpDeclaration`. A formula alone is one for floats."""
    forms = decompose if isinstance(decompose, tuple) else (Decomposition(decompose),)
    return OpDeclaration(name, shape, values, compute, forms, relations, verified)


def ops_like(names: str, **same: Any) -> tuple[OpDeclaration, ...]:
    """Declares several ops that only differ in their names, which are separated by spaces."""
    return tuple([op(name, **same) for name in names.split()])
