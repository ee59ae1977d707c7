"""What an op is composed of, where a target has nothing of its own for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation

Formula = Callable[..., Any]
"""Takes tensors (`tfconvert.ops.formula`), and attributes as keywords with defaults; returns its results."""


class Decomposition(NamedTuple):
    """An op in terms of others.

    Attributes:
        op: The op's name in TensorFlow's registry.
        formula: Computes it.
        types: The element types of its first (or `typed`th) operand, separated by spaces: `float`, `integer`, `number`
            (both), or those of one width; empty for any.
        requires: Returns why an op can't be decomposed, `None` if it can.
        typed: The operand that `types` is about.
        example: The shapes of operands that show what the op becomes; batches of images by default.
    """

    op: str
    formula: Formula
    types: str = "float"
    requires: Callable[[Operation], str | None] | None = None
    typed: int = 0
    example: Sequence[Shape] = ()

    def takes(self, kinds: Mapping[str, str]) -> str:
        """Returns `types` with the kinds of numbers replaced by what a target has of each."""
        return " ".join(kinds.get(word, word) for word in self.types.split())
