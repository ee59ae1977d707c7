"""Builds the new body of a function whose own body has been erased."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class Body:
    """A function's block, to which ops are appended.

    Attributes:
        arguments: The function's arguments.
        anchor: The function's return, before which ops are inserted; they take its location.

    Args:
        anchor: The return, the only op in the block.
    """

    def __init__(self, anchor: Operation) -> None:
        block = anchor.parent
        assert block is not None
        self._builder = TFBuilder(anchor)
        self.anchor = anchor
        self.arguments: Sequence[Value] = block.args

    def tf(self, name: str, operands: Sequence[Value], *result_types: Attribute, **attributes: Any) -> Sequence[Value]:
        """Appends a `tf` op, named as TensorFlow has it; returns its results."""
        return self._builder.tf_op(name, operands, result_types, attributes).results

    def tfl(self, name: str, operands: Sequence[Value], *result_types: Attribute, **options: Any) -> Sequence[Value]:
        """Appends a builtin operator, named as the `tfl` dialect has it; returns its results.

        Raises:
            KeyError: There is no such operator, or it has no such option.
        """
        return self._builder.tfl_op(name, operands, result_types, options).results

    def custom(
        self, code: str, options: bytes, operands: Sequence[Value], result_types: Sequence[Attribute]
    ) -> Sequence[Value]:
        """Appends a custom operator; returns its results."""
        return self._builder.insert(tfl.custom(code, options, operands, result_types)).results

    def constant(self, value: np.ndarray[Any, Any]) -> Value:
        """Appends a constant."""
        return self._builder.constant(value)

    def ints(self, values: Sequence[int]) -> Value:
        """Appends a vector of `i32`: axes, a shape, a permutation."""
        return self._builder.ints(values)

    def absent(self) -> Value:
        """Appends the value that represents an absent optional operand."""
        return self._builder.insert(tfl.no_value()).results[0]

    def transposed(self, matrix: Value) -> Value:
        """Appends a transpose of a matrix."""
        return self._builder.transpose(matrix, (1, 0))

    def part(self, value: Value, begin: Sequence[int], size: Sequence[int]) -> Value:
        """Appends a slice."""
        return self._builder.slice(value, begin, size)

    def typed(self, value: Value, known: Attribute) -> Value:
        """Returns a value as one of a type that it is known to have, since all calls agree on it."""
        return value if value.type == known else self.tf("Identity", (value,), known)[0]
