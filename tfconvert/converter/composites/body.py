"""Writing the new body of a function whose own has been erased."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.schema.dialects import tensor_data, tf, tfl, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class Body:
    """A function's block, to which ops are appended.

    Attributes:
        arguments: The function's arguments.
        anchor: The function's return, before which everything is put; what is put there comes from where it does.

    Args:
        anchor: The return, the only op in the block.
    """

    def __init__(self, anchor: Operation) -> None:
        block = anchor.parent
        assert block is not None
        self._block = block
        self.anchor = anchor
        self.arguments: Sequence[Value] = block.args

    def _add(self, op: Operation) -> Sequence[Value]:
        op.location = self.anchor.location
        self._block.insert_op_before(op, self.anchor)
        return op.results

    def tf(self, name: str, operands: Sequence[Value], *result_types: Attribute, **attributes: Any) -> Sequence[Value]:
        """Appends a `tf` op, named as TensorFlow has it; returns its results."""
        return self._add(tf.build(name, operands, result_types, attributes))

    def tfl(self, name: str, operands: Sequence[Value], *result_types: Attribute, **options: Any) -> Sequence[Value]:
        """Appends a builtin operator, named as the `tfl` dialect has it; returns its results.

        Raises:
            KeyError: There is no such operator, or it has no such option.
        """
        return self._add(tfl.build(name, operands, result_types, options))

    def custom(
        self, code: str, options: bytes, operands: Sequence[Value], result_types: Sequence[Attribute]
    ) -> Sequence[Value]:
        """Appends a custom operator; returns its results."""
        return self._add(tfl.custom(code, options, operands, result_types))

    def constant(self, value: np.ndarray[Any, Any]) -> Value:
        """Appends a constant."""
        return self._add(tf.constant(tensor_data.of_array(value)))[0]

    def ints(self, values: Sequence[int]) -> Value:
        """Appends a vector of `i32`: axes, a shape, a permutation."""
        return self.constant(np.array(values, np.int32))

    def absent(self) -> Value:
        """Appends what stands for an optional operand that is not given."""
        return self._add(tfl.no_value())[0]

    def transposed(self, matrix: Value) -> Value:
        """Appends a transpose of a matrix."""
        shape = types.shape_of(matrix.type)
        flipped = types.tensor(types.element_of(matrix.type), None if shape is None else shape[::-1])
        return self.tf("Transpose", (matrix, self.ints((1, 0))), flipped)[0]

    def part(self, value: Value, begin: Sequence[int], size: Sequence[int]) -> Value:
        """Appends a slice."""
        result = types.tensor(types.element_of(value.type), size)
        return self.tf("Slice", (value, self.ints(begin), self.ints(size)), result)[0]

    def typed(self, value: Value, known: Attribute) -> Value:
        """Returns a value as one of a type that it is known to have, since all calls say so."""
        return value if value.type == known else self.tf("Identity", (value,), known)[0]
