"""Ops of StableHLO that make, move or repeat elements, and those that tell sizes.

Sizes and types are checked as the specification has it: what doesn't fit ends in an error, never in other elements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tfconvert.converter.executor.stablehlo.properties import Kernel, dtype_of, integer, ints, numbers
from tfconvert.converter.executor.tasks import bad
from tfconvert.ops.call import Array, Results
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.ir.operation import Operation


def static_shape(op: Operation) -> tuple[int, ...]:
    """Returns the shape of an op's first result, which its type has.

    Raises:
        ConversionError: A size is open.
    """
    shape = types.shape_of(op.results[0].type)
    if shape is None or not types.is_static(shape):
        raise bad(op, "the size of the result is not known")
    return tuple(shape)


def _constant(op: Operation, inputs: Results) -> Array:
    return tensor_data.to_array(op.properties["value"])


def broadcast(op: Operation, x: Array, shape: Sequence[int], axes: Sequence[int]) -> Array:
    """Returns a value broadcast to a shape.

    Args:
        op: The op, for errors.
        x: The value.
        shape: The shape.
        axes: The dimension of the shape for each of the value's.

    Raises:
        ConversionError: A dimension is neither 1 nor that of the shape (`unequal-sizes`).
    """
    placed = [1] * len(shape)
    for size, axis in zip(x.shape, axes, strict=True):
        if size not in (1, shape[axis]):
            raise bad(op, f"size {size} can't be broadcast to {shape[axis]}", "unequal-sizes")
        placed[axis] = size
    order = sorted(range(x.ndim), key=axes.__getitem__)
    return np.broadcast_to(x.transpose(order).reshape(placed), tuple(shape))


def _broadcast_in_dim(op: Operation, inputs: Results) -> Array:
    return broadcast(op, inputs[0], static_shape(op), ints(op, "broadcast_dimensions"))


def _dynamic_broadcast(op: Operation, inputs: Results) -> Array:
    x, axes, shape = inputs[0], ints(op, "broadcast_dimensions"), _sizes(op, inputs[1])
    for axis in ints(op, "known_nonexpanding_dimensions"):
        if x.shape[axis] != shape[axes[axis]]:
            raise bad(
                op, f"size {x.shape[axis]} is said to be that of the result, {shape[axes[axis]]}", "unequal-sizes"
            )
    return broadcast(op, x, shape, axes)


def _sizes(op: Operation, operand: Array) -> list[int]:
    sizes = numbers(operand)
    if min(sizes, default=0) < 0:
        raise bad(op, f"a size is negative: {sizes}")
    return sizes


def _reshaped(op: Operation, x: Array, shape: Sequence[int]) -> Array:
    if math.prod(shape) != x.size:
        raise bad(op, f"{x.size} elements of shape {list(x.shape)} don't fit the shape {list(shape)}", "unequal-sizes")
    return x.reshape(tuple(shape))


def _reshape(op: Operation, inputs: Results) -> Array:
    return _reshaped(op, inputs[0], static_shape(op))


def _dynamic_reshape(op: Operation, inputs: Results) -> Array:
    return _reshaped(op, inputs[0], _sizes(op, inputs[1]))


def _iota(op: Operation, shape: Sequence[int]) -> Array:
    axis, placed = integer(op, "iota_dimension"), [1] * len(shape)
    placed[axis] = shape[axis]
    counted = np.arange(shape[axis]).astype(dtype_of(op)).reshape(placed)
    return np.ascontiguousarray(np.broadcast_to(counted, tuple(shape)))


def _static_iota(op: Operation, inputs: Results) -> Array:
    return _iota(op, static_shape(op))


def _dynamic_iota(op: Operation, inputs: Results) -> Array:
    return _iota(op, _sizes(op, inputs[0]))


def _transpose(op: Operation, inputs: Results) -> Array:
    return inputs[0].transpose(ints(op, "permutation"))


def _reverse(op: Operation, inputs: Results) -> Array:
    return np.flip(inputs[0], ints(op, "dimensions"))


def _concatenate(op: Operation, inputs: Results) -> Array:
    axis = integer(op, "dimension")
    if len({(*each.shape[:axis], *each.shape[axis + 1 :]) for each in inputs}) > 1:
        shapes = ", ".join(str(list(each.shape)) for each in inputs)
        raise bad(op, f"the shapes {shapes} differ beside the dimension that is joined", "unequal-sizes")
    return np.concatenate(inputs, axis)


def _dimension_size(op: Operation, inputs: Results) -> Array:
    return np.array(inputs[0].shape[integer(op, "dimension")], np.int32)


def _set_dimension_size(op: Operation, inputs: Results) -> Array:
    (x, size), axis = inputs, integer(op, "dimension")
    (wanted,) = numbers(size)
    if not 0 <= wanted <= x.shape[axis]:
        raise bad(op, f"{wanted} is not a size up to {x.shape[axis]}", "outside-of-tensor")
    return x[(slice(None),) * axis + (slice(wanted),)]


def _forward(op: Operation, inputs: Results) -> Results:
    return inputs


KERNELS: Mapping[str, Kernel] = {
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.constant": _constant,
    "stablehlo.dynamic_broadcast_in_dim": _dynamic_broadcast,
    "stablehlo.dynamic_iota": _dynamic_iota,
    "stablehlo.dynamic_reshape": _dynamic_reshape,
    "stablehlo.get_dimension_size": _dimension_size,
    "stablehlo.iota": _static_iota,
    "stablehlo.optimization_barrier": _forward,
    "stablehlo.reshape": _reshape,
    "stablehlo.reverse": _reverse,
    "stablehlo.set_dimension_size": _set_dimension_size,
    "stablehlo.transpose": _transpose,
}
"""Op -> kernel."""
