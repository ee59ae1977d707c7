"""Expands an op on variables into other ops before it."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_HANDLE = "tf.VarHandleOp"


class Access(TFBuilder):
    """Inserts ops before an op on variables.

    Attributes:
        op: The op; the caller erases it.
    """

    __slots__ = ("op",)

    def __init__(self, op: Operation) -> None:
        super().__init__(op)
        self.op = op

    def held_shape(self, operand: int = 0) -> types.Shape | None:
        """Returns the shape of the variable that an operand is the handle of, as far as it is known."""
        value = self.op.operands[operand]
        handle, held = value.owner, types.held_by(value.type)
        declared = tf.get(handle, "shape") if isinstance(handle, Operation) and handle.name == _HANDLE else None
        return declared if declared is not None or held is None else types.shape_of(held)

    def held_element(self, operand: int = 0) -> Attribute | None:
        """Returns the element type of the variable that an operand is the handle of, as far as it is known."""
        value = self.op.operands[operand]
        handle, held = value.owner, types.held_by(value.type)
        declared = handle.properties.get("dtype") if isinstance(handle, Operation) and handle.name == _HANDLE else None
        return declared or (None if held is None else types.element_of(held))

    def read(self, operand: int = 0, element: Attribute | None = None) -> Value:
        """Inserts a read of a variable.

        Args:
            operand: Which of the op's operands is the handle.
            element: The element type from the op, where the handle's type doesn't have it.
        """
        element = self.held_element(operand) or element
        assert element is not None, "either the op or the handle has it"
        return self.tf("ReadVariableOp", (self.op.operands[operand],), types.tensor(element, self.held_shape(operand)))

    def assign(self, value: Value, operand: int = 0) -> None:
        """Inserts an assignment to the variable that an operand is the handle of."""
        self.tf_op("AssignVariableOp", (self.op.operands[operand], value), (), {"validate_shape": False})

    def replace_results(self, values: Sequence[Value]) -> None:
        """Replaces the op's results by values."""
        for old, new in zip(self.op.results, values, strict=True):
            old.replace_all_uses_with(new)
