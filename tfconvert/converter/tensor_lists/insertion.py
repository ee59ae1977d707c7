"""Inserting ops before another, with the result types that their kind tells."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import Scalar, constant_scalar
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_NO_MASKS = {"begin_mask": 0, "ellipsis_mask": 0, "end_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}


_COMPUTED: Mapping[str, Callable[[int, int], int]] = {
    "AddV2": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Maximum": max, "Minimum": min,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Inserter:
    """Inserts `tf` ops before an op, whose location they get.

    Attributes:
        anchor: The op that they are inserted before.
    """

    anchor: Operation

    def op(
        self,
        name: str,
        operands: Sequence[Scalar],
        result_types: Sequence[Attribute],
        properties: Mapping[str, Any] | None = None,
    ) -> Operation:
        """Inserts an op; operands that are numbers become constants."""
        values = [self.value(one) for one in operands]
        made = tf.build(name, values, result_types, properties, self.anchor.location)
        block = self.anchor.parent
        assert block is not None
        block.insert_op_before(made, self.anchor)
        return made

    def tf(
        self,
        name: str,
        operands: Sequence[Scalar],
        result_type: Attribute,
        properties: Mapping[str, Any] | None = None,
    ) -> Value:
        """Inserts an op with one result and returns that."""
        return self.op(name, operands, (result_type,), properties).results[0]

    def constant(self, value: tensor_data.Array, element: Attribute | None = None) -> Value:
        """Inserts a constant."""
        return self.constant_attribute(tensor_data.of_array(value, element))

    def constant_attribute(self, value: tensor_data.Constant) -> Value:
        """Inserts a constant that there is already as an attribute."""
        made = tf.constant(value, self.anchor.location)
        block = self.anchor.parent
        assert block is not None
        block.insert_op_before(made, self.anchor)
        return made.results[0]

    def ints(self, values: Sequence[int]) -> Value:
        """Inserts a vector of `i32`."""
        return self.constant(np.array(values, np.int32))

    def number(self, value: int) -> Value:
        """Inserts a scalar `i32`."""
        return self.constant(np.array(value, np.int32))

    def i32(self, value: Value) -> Value:
        """Returns an integer as `i32`."""
        return self.cast(value, types.I32)

    def cast(self, value: Value, element: Attribute) -> Value:
        """Returns a number as another type."""
        if types.element_of(value.type) == element:
            return value
        return self.tf("Cast", (value,), types.tensor(element, types.shape_of(value.type)), {"Truncate": False})

    def binary(self, name: str, x: Scalar, y: Scalar) -> Scalar:
        """Returns what an op makes of two scalars of `i32`: a number where both are known."""
        known = constant_scalar(x), constant_scalar(y)
        if known[0] is not None and known[1] is not None:
            return _COMPUTED[name](known[0], known[1])
        return self.tf(name, (x, y), types.tensor(types.I32, ()))

    def shape(self, value: Value, rank: int | None = None) -> Value:
        """Inserts the shape of a value as `i32`.

        Args:
            value: The value.
            rank: Its rank, where its type doesn't tell it: of a list that is to become a tensor.
        """
        if rank is None:
            shape = types.shape_of(value.type)
            rank = -1 if shape is None else len(shape)
        return self.tf("Shape", (value,), types.tensor(types.I32, (rank,)))

    def part(self, vector: Value, begin: int, end: int | None) -> Value:
        """Inserts a slice of a vector; the end may be counted from the end, or be it."""
        length = (types.shape_of(vector.type) or (-1,))[0]
        size = -1 if length < 0 else len(range(length)[begin:end])
        masks = {**_NO_MASKS, "end_mask": int(end is None)}
        bounds = (self.ints([begin]), self.ints([end or 0]), self.ints([1]))
        return self.tf("StridedSlice", (vector, *bounds), types.tensor(types.element_of(vector.type), (size,)), masks)

    def pick(self, vector: Value, index: int) -> Value:
        """Inserts the choice of one element of a vector."""
        bounds = (self.ints([index]), self.ints([index + 1]), self.ints([1]))
        masks = {**_NO_MASKS, "shrink_axis_mask": 1}
        return self.tf("StridedSlice", (vector, *bounds), types.tensor(types.element_of(vector.type), ()), masks)

    def value(self, scalar: Scalar) -> Value:
        """Returns a scalar as a value."""
        return self.number(scalar) if isinstance(scalar, int) else scalar

    def size(self, value: Value, axis: int) -> Scalar:
        """Returns a dimension: a number where it is known."""
        shape = types.shape_of(value.type)
        if shape is not None and shape[axis] >= 0:
            return shape[axis]
        return self.pick(self.shape(value), axis)

    def pack(self, scalars: Sequence[Scalar]) -> Value:
        """Returns scalars as a vector: a constant where all of them are known."""
        values = [constant_scalar(one) for one in scalars]
        if all(value is not None for value in values):
            return self.constant(np.array(values, np.int32))
        return self.tf("Pack", scalars, types.tensor(types.I32, (len(scalars),)), {"axis": 0})

    def zeros(self, sizes: Sequence[Scalar], element: Attribute) -> Value:
        """Inserts a tensor of zeros (empty strings) whose dimensions are scalars."""
        dtype = types.numpy_dtype(element)
        zero = np.full((), b"", object) if dtype.kind == "O" else np.zeros((), dtype)
        shape = [value if (value := constant_scalar(size)) is not None else -1 for size in sizes]
        return self.tf("Fill", (self.pack(sizes), self.constant(zero, element)), types.tensor(element, shape))

    def concat(self, values: Sequence[Value], shape: Shape | None) -> Value:
        """Joins values along their first dimension; returns a single one as it is."""
        if len(values) == 1:
            return values[0]
        result_type = types.tensor(types.element_of(values[0].type), shape)
        return self.tf("ConcatV2", (*values, 0), result_type)
