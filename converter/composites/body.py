"""Writing the new body of a function whose own has been erased."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from schema.dialects import tensor_data, tf, tfl, types


class Body:
    """A function's block, to which ops are appended.

    Attributes:
        arguments: The function's arguments.

    Args:
        block: The block, emptied.
        location: Where the ops come from.
    """

    def __init__(self, block: Block, location: LocationAttr) -> None:
        self._block = block
        self._location = location
        self.arguments: Sequence[SSAValue] = block.args

    def _add(self, op: Operation) -> Sequence[SSAValue]:
        op.location = self._location
        self._block.add_op(op)
        return op.results

    def tf(
        self, name: str, operands: Sequence[SSAValue], *result_types: Attribute, **attributes: Any
    ) -> Sequence[SSAValue]:
        """Appends a `tf` op, named as TensorFlow has it; returns its results."""
        return self._add(tf.build(name, operands, result_types, attributes))

    def tfl(
        self, name: str, operands: Sequence[SSAValue], *result_types: Attribute, **options: Any
    ) -> Sequence[SSAValue]:
        """Appends a builtin operator, named as the `tfl` dialect has it; returns its results.

        Raises:
            KeyError: There is no such operator, or it has no such option.
        """
        return self._add(tfl.build(name, operands, result_types, options))

    def custom(
        self, code: str, options: bytes, operands: Sequence[SSAValue], result_types: Sequence[Attribute]
    ) -> Sequence[SSAValue]:
        """Appends a custom operator; returns its results."""
        return self._add(tfl.custom(code, options, operands, result_types))

    def constant(self, value: np.ndarray[Any, Any]) -> SSAValue:
        """Appends a constant."""
        return self._add(tf.constant(tensor_data.of_array(value)))[0]

    def ints(self, values: Sequence[int]) -> SSAValue:
        """Appends a vector of `i32`: axes, a shape, a permutation."""
        return self.constant(np.array(values, np.int32))

    def absent(self) -> SSAValue:
        """Appends what stands for an optional operand that is not given."""
        return self._add(tfl.no_value())[0]

    def transposed(self, matrix: SSAValue) -> SSAValue:
        """Appends a transpose of a matrix."""
        shape = types.shape_of(matrix.type)
        flipped = types.tensor(types.element_of(matrix.type), None if shape is None else shape[::-1])
        return self.tf("Transpose", (matrix, self.ints((1, 0))), flipped)[0]

    def part(self, value: SSAValue, begin: Sequence[int], size: Sequence[int]) -> SSAValue:
        """Appends a slice."""
        result = types.tensor(types.element_of(value.type), size)
        return self.tf("Slice", (value, self.ints(begin), self.ints(size)), result)[0]

    def finish(self, results: Sequence[SSAValue], terminator: Operation) -> None:
        """Lets the function return values.

        Args:
            results: The values.
            terminator: A detached return, whose operands are replaced.
        """
        terminator.operands = tuple(results)
        self._block.add_op(terminator)
