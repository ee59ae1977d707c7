"""Creates `tf` and `tfl` ops at an insertion point; result types are worked out where an op's kind determines them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import Scalar, constant_int, integers
from tfconvert.schema.dialects import tensor_data, tf, tfl, types
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.dim import simplified
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_NO_MASKS = {"begin_mask": 0, "ellipsis_mask": 0, "end_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}

# Operations of the algebra of sizes -> their ops.
_OPS: Mapping[str, str] = {
    "add": "AddV2",
    "maximum": "Maximum",
    "minimum": "Minimum",
    "multiply": "Mul",
    "subtract": "Sub",
}


class TFBuilder(OpBuilder):
    """Creates ops of both dialects."""

    __slots__ = ()

    def tf_op(
        self,
        name: str,
        operands: Sequence[Scalar],
        result_types: Sequence[Attribute],
        properties: Mapping[str, Any] | None = None,
    ) -> Operation:
        """Inserts a `tf` op; operands that are numbers become constants."""
        values = [self.value(operand) for operand in operands]
        return self.insert(tf.build(name, values, result_types, properties))

    def tf(
        self, name: str, operands: Sequence[Scalar], result_type: Attribute, properties: Mapping[str, Any] | None = None
    ) -> Value:
        """Inserts a `tf` op with one result and returns that."""
        return self.tf_op(name, operands, (result_type,), properties).results[0]

    def tfl_op(
        self,
        name: str,
        operands: Sequence[Value],
        result_types: Sequence[Attribute],
        options: Mapping[str, Any] | None = None,
    ) -> Operation:
        return self.insert(tfl.build(name, operands, result_types, options))

    def tfl(
        self, name: str, operands: Sequence[Value], result_type: Attribute, options: Mapping[str, Any] | None = None
    ) -> Value:
        """Inserts a `tfl` op with one result and returns that."""
        return self.tfl_op(name, operands, (result_type,), options).results[0]

    def constant_op(self, value: tensor_data.Constant) -> Operation:
        """Returns a detached constant op, of the `tf` dialect by default."""
        return tf.constant(value)

    def constant(self, value: tensor_data.Constant | tensor_data.Array, element: Attribute | None = None) -> Value:
        """Inserts a constant.

        Args:
            value: The value.
            element: The element type of an array, if the array's dtype doesn't determine it.
        """
        attribute = tensor_data.of_array(value, element) if isinstance(value, np.ndarray) else value
        return self.insert(self.constant_op(attribute)).results[0]

    def ints(self, values: Sequence[int], element: Attribute = types.I32) -> Value:
        """Inserts a vector of integers, `i32` by default: axes, a shape, a permutation."""
        return self.constant(integers(values, types.numpy_dtype(element)))

    def number(self, value: int) -> Value:
        """Inserts a scalar `i32`."""
        return self.constant(integers(value, np.dtype(np.int32)))

    def scalar(self, value: float, element: Attribute) -> Value:
        """Inserts a scalar of an element type."""
        return self.constant(np.array(value).astype(types.numpy_dtype(element)), element)

    def value(self, scalar: Scalar) -> Value:
        return self.number(scalar) if isinstance(scalar, int) else scalar

    def cast(self, value: Value, element: Attribute) -> Value:
        """Converts to another element type."""
        if value.element == element:
            return value
        return self.tf("Cast", (value,), types.tensor(element, value.shape), {"Truncate": False})

    def to_bool(self, value: Value) -> Value:
        """Inserts whether a value is true, as conditions of control flow are: not empty, or not zero."""
        return self.tf("ToBool", (value,), types.tensor(types.I1, ()))

    def i32(self, value: Value) -> Value:
        """Returns an integer as `i32`."""
        return self.cast(value, types.I32)

    def shape(self, value: Value, rank: int | None = None) -> Value:
        """Inserts the shape of a value as `i32`.

        Args:
            value: The value.
            rank: Its rank, where its type doesn't have it: of a list that is to become a tensor.
        """
        return self.tf("Shape", (value,), types.tensor(types.I32, (_rank(value, rank),)))

    def transpose(self, value: Value, permutation: Sequence[int]) -> Value:
        """Inserts a transpose."""
        shape = value.shape
        permuted = None if shape is None else tuple([shape[axis] for axis in permutation])
        result_type = types.tensor(value.element, permuted)
        return self.tf("Transpose", (value, self.ints(permutation)), result_type)

    def slice(self, value: Value, begin: Sequence[int], size: Sequence[int], shape: Shape | None = None) -> Value:
        """Inserts a slice.

        Args:
            value: The value.
            begin: Where it begins.
            size: How long it is; -1 for all the rest.
            shape: The result's shape, if it isn't `size`.
        """
        result_type = types.tensor(value.element, size if shape is None else shape)
        return self.tf("Slice", (value, self.ints(begin), self.ints(size)), result_type)

    def part(self, vector: Value, begin: int, end: int | None) -> Value:
        """Inserts a slice of a vector; the end may be counted from the end, or be it."""
        length = (vector.shape or (-1,))[0]
        size = -1 if length < 0 else len(range(length)[begin:end])
        masks = {**_NO_MASKS, "end_mask": int(end is None)}
        bounds = (self.ints([begin]), self.ints([end or 0]), self.ints([1]))
        return self.tf("StridedSlice", (vector, *bounds), types.tensor(vector.element, (size,)), masks)

    def pick(self, vector: Value, index: int) -> Value:
        """Inserts the choice of one element of a vector."""
        bounds = (self.ints([index]), self.ints([index + 1]), self.ints([1]))
        masks = {**_NO_MASKS, "shrink_axis_mask": 1}
        return self.tf("StridedSlice", (vector, *bounds), types.tensor(vector.element, ()), masks)

    def compute(self, name: str, x: Scalar, y: Scalar) -> Scalar:
        """Returns the result of an operation of the algebra of sizes on two scalars of `i32`."""
        one, other = (each if (known := constant_int(each)) is None else known for each in (x, y))
        found = simplified(name, one, other)
        return self.tf(_OPS[name], (x, y), types.tensor(types.I32, ())) if found is None else found

    def size(self, value: Value, axis: int) -> Scalar:
        """Returns a dimension: a number where it is known."""
        shape = value.shape
        if shape is not None and shape[axis] >= 0:
            return shape[axis]
        return self.pick(self.shape(value), axis)

    def pack(self, scalars: Sequence[Scalar]) -> Value:
        """Returns scalars as a vector: a constant where all of them are known."""
        values = [constant_int(one) for one in scalars]
        if all(value is not None for value in values):
            return self.constant(integers(values, np.dtype(np.int32)))
        return self.tf("Pack", scalars, types.tensor(types.I32, (len(scalars),)), {"axis": 0})

    def zeros(self, sizes: Sequence[Scalar], element: Attribute) -> Value:
        """Inserts a tensor of zeros (empty strings) whose dimensions are scalars."""
        dtype = types.numpy_dtype(element)
        zero = np.full((), b"", object) if dtype.kind == "O" else np.zeros((), dtype)
        shape = [value if (value := constant_int(size)) is not None else -1 for size in sizes]
        return self.tf("Fill", (self.pack(sizes), self.constant(zero, element)), types.tensor(element, shape))

    def concat(self, values: Sequence[Value], shape: Shape | None) -> Value:
        """Joins values along their first dimension; returns a single one as it is."""
        if len(values) == 1:
            return values[0]
        result_type = types.tensor(values[0].element, shape)
        return self.tf("ConcatV2", (*values, 0), result_type)


class TFLBuilder(TFBuilder):
    """Creates `tfl` ops where an op of either dialect would do."""

    __slots__ = ()

    def constant_op(self, value: tensor_data.Constant) -> Operation:
        return tfl.constant(value)

    def shape(self, value: Value, rank: int | None = None) -> Value:
        return self.tfl("shape", (value,), types.tensor(types.I32, (_rank(value, rank),)), {"out_type": "INT32"})

    def copy(self, value: Value) -> Value:
        """Inserts a copy of a value of any type and shape: a reshape to the same shape."""
        shape = value.shape
        if shape is None or (-1 in shape and (shape.count(-1) > 1 or 0 in shape)):
            return self.tfl("reshape", (value, self.shape(value)), value.type)
        return self.tfl("reshape", (value, self.ints(shape)), value.type, {"new_shape": shape})


def _rank(value: Value, rank: int | None) -> int:
    """Returns an explicit rank, else the value's, -1 if that is unknown."""
    shape = value.shape
    return rank if rank is not None else -1 if shape is None else len(shape)
