"""What constants hold, where they are small enough to be about shapes."""

from __future__ import annotations

import numpy as np

from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

Scalar = Value | int
"""A scalar `i32`, or a number that becomes one where it is needed."""

MAX_VALUE_BYTES = 64 * 1024
"""Shape functions look at constants up to this size: axes, paddings, shapes. Weights are never read."""

_SMALL = 1 << 16


def constant_scalar(value: Scalar) -> int | None:
    """Returns an integer that is known, or a constant of one element; `None` if it is neither."""
    if isinstance(value, int):
        return value
    array = constant_array(value)
    return int(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


def constant_array(value: Value) -> tensor_data.Array | None:
    """Returns a constant that is small enough to be about shapes, `None` otherwise."""
    constant = tensor_data.constant_of(value)
    if constant is None or (isinstance(constant, tensor_data.TensorData) and constant.nbytes > _SMALL):
        return None
    return tensor_data.to_array(constant)


def is_enumeration(indices: Value) -> bool:
    """Tells whether indices are 0, 1, 2 and so on."""
    array = constant_array(indices)
    if array is not None:
        return bool(np.array_equal(array.reshape(-1), np.arange(array.size)))
    owner = indices.owner
    if not isinstance(owner, Operation) or owner.name != "tf.Range":
        return False
    return constant_scalar(owner.operands[0]) == 0 and constant_scalar(owner.operands[2]) == 1
