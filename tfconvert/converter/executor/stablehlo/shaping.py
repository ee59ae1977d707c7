"""Ops of StableHLO that create, move, repeat, slice, pad or gather elements, and those that return sizes.

Sizes and types are checked as the specification requires: a misfit is an error. Starts of `dynamic_slice`,
`dynamic_update_slice` and gathers are clamped so that the slice fits; a `real_dynamic_slice` that doesn't fit is an
error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tfconvert.converter.executor.stablehlo.properties import Kernel, dtype_of, numbers
from tfconvert.converter.executor.tasks import bad
from tfconvert.ops.call import Array, Results
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.stablehlo import GatherAttr
from tfconvert.schema.dialects.stablehlo_properties import integer, ints
from tfconvert.schema.ir.operation import Operation


def static_shape(op: Operation) -> tuple[int, ...]:
    """Returns the static shape of an op's first result.

    Raises:
        ConversionError: A size is dynamic.
    """
    shape = op.results[0].shape
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
        axes: The shape's axis for each axis of the value.

    Raises:
        ConversionError: A dimension is neither 1 nor the shape's (`unequal-sizes`).
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
                op, f"size {x.shape[axis]} must not expand, but the result has {shape[axes[axis]]}", "unequal-sizes"
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
        raise bad(op, f"the shapes {shapes} differ in other dimensions than the concatenated one", "unequal-sizes")
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


def _strided(op: Operation, x: Array, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]) -> Array:
    for start, limit, stride, size in zip(starts, limits, strides, x.shape, strict=True):
        if not 0 <= start <= limit <= size or stride < 1:
            raise bad(
                op, f"the slice from {start} to {limit} by {stride} is not within the size {size}", "outside-of-tensor"
            )
    return x[tuple(map(slice, starts, limits, strides))]


def _slice(op: Operation, inputs: Results) -> Array:
    return _strided(op, inputs[0], ints(op, "start_indices"), ints(op, "limit_indices"), ints(op, "strides"))


def _real_dynamic_slice(op: Operation, inputs: Results) -> Array:
    return _strided(op, inputs[0], *map(numbers, inputs[1:]))


def clamped(starts: Sequence[int], shape: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Returns the starts of a slice, clamped so that it is within a shape."""
    return [max(0, min(start, size - part)) for start, size, part in zip(starts, shape, sizes, strict=True)]


def _window(op: Operation, x: Array, starts: Results, sizes: Sequence[int]) -> tuple[slice, ...]:
    if any(part > size for part, size in zip(sizes, x.shape, strict=True)):
        raise bad(op, f"a slice of the shape {list(sizes)} is larger than {list(x.shape)}", "outside-of-tensor")
    begin = clamped([int(each.reshape(-1)[0]) for each in starts], x.shape, sizes)
    return tuple(slice(start, start + size) for start, size in zip(begin, sizes, strict=True))


def _dynamic_slice(op: Operation, inputs: Results) -> Array:
    return inputs[0][_window(op, inputs[0], inputs[1:], ints(op, "slice_sizes"))]


def _dynamic_update_slice(op: Operation, inputs: Results) -> Array:
    x, update, *starts = inputs
    result = x.copy()
    result[_window(op, x, tuple(starts), update.shape)] = update
    return result


def pad(x: Array, value: Array, edges: Sequence[tuple[int, int]], interior: Sequence[int]) -> Array:
    """Returns a value with padding around it and between its elements; negative padding crops."""
    spread = [max(0, size + (size - 1) * gap) for size, gap in zip(x.shape, interior, strict=True)]
    result = np.full([size + low + high for size, (low, high) in zip(spread, edges, strict=True)], value, x.dtype)
    to, of = [], []
    for size, gap, wide, (low, _) in zip(x.shape, interior, result.shape, edges, strict=True):
        step = gap + 1
        first = max(0, -(low // step)) if low < 0 else 0
        last = min(size, (wide - 1 - low) // step + 1) if wide > 0 else 0
        last = max(last, first)
        of.append(slice(first, last))
        to.append(
            slice(low + first * step, max(low + (last - 1) * step + 1, 0) if last > first else None, step)
            if last > first
            else slice(0, 0)
        )
    result[tuple(to)] = x[tuple(of)]
    return result


def _padded(op: Operation, x: Array, value: Array, lists: Sequence[Sequence[int]]) -> Array:
    low, high, interior = lists
    spread = [
        size + max(0, size - 1) * gap + one + other
        for size, gap, one, other in zip(x.shape, interior, low, high, strict=True)
    ]
    if min((*interior, *spread), default=0) < 0:
        raise bad(op, f"the padding {list(low)}, {list(high)} gives a negative size for {list(x.shape)}")
    return pad(x, value, list(zip(low, high, strict=True)), interior)


def _pad(op: Operation, inputs: Results) -> Array:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    return _padded(op, inputs[0], inputs[1], [ints(op, name) for name in names])


def _dynamic_pad(op: Operation, inputs: Results) -> Array:
    return _padded(op, inputs[0], inputs[1], [numbers(each) for each in inputs[2:]])


def _gathered(op: Operation, x: Array, starts: Array, sizes: Sequence[int]) -> Array:
    dims = op.properties["dimension_numbers"]
    assert isinstance(dims, GatherAttr)
    if any(part > size for part, size in zip(sizes, x.shape, strict=True)):
        raise bad(op, f"a slice of the shape {list(sizes)} is larger than {list(x.shape)}", "outside-of-tensor")
    vector = dims.dims[-1]
    assert isinstance(vector, int)
    moved = starts[..., None] if vector == starts.ndim else np.moveaxis(starts, vector, -1)
    batch = moved.shape[:-1]
    index: list[Array] = [np.zeros((), np.int64)] * x.ndim
    for place, axis in enumerate(dims.of("start_index_map")):
        start = np.clip(moved[..., place].astype(np.int64), 0, x.shape[axis] - sizes[axis])
        index[axis] = start
    for axis, place in zip(dims.of("operand_batching_dims"), dims.of("start_indices_batching_dims"), strict=True):
        place -= vector < place
        index[axis] = np.arange(batch[place]).reshape([-1 if at == place else 1 for at in range(len(batch))])
    gone = (*dims.of("collapsed_slice_dims"), *dims.of("operand_batching_dims"))
    kept = [axis for axis in range(x.ndim) if axis not in gone]
    full = []
    for axis in range(x.ndim):
        start = np.broadcast_to(index[axis], batch).reshape(batch + (1,) * len(kept))
        if axis in kept:
            shape = [1] * (len(batch) + len(kept))
            shape[len(batch) + kept.index(axis)] = sizes[axis]
            start = start + np.arange(sizes[axis]).reshape(shape)
        full.append(start)
    found = np.broadcast_to(x[tuple(full)], batch + tuple(sizes[axis] for axis in kept))
    offsets = dims.of("offset_dims")
    rows, windows = iter(range(len(batch))), iter(range(len(batch), found.ndim))
    return found.transpose([next(windows) if axis in offsets else next(rows) for axis in range(found.ndim)])


def _gather(op: Operation, inputs: Results) -> Array:
    return _gathered(op, inputs[0], inputs[1], ints(op, "slice_sizes"))


def _dynamic_gather(op: Operation, inputs: Results) -> Array:
    return _gathered(op, inputs[0], inputs[1], numbers(inputs[2]))


def _top_k(op: Operation, inputs: Results) -> Results:
    (x,), count = inputs, integer(op, "k")
    if not 0 <= count <= x.shape[-1]:
        raise bad(op, f"k is {count}, but there are {x.shape[-1]} elements", "outside-of-tensor")
    # Sorted from the last to the first, so that the first of equal elements wins.
    places = np.flip(x.shape[-1] - 1 - np.argsort(np.flip(x, -1), -1, kind="stable"), -1)[..., :count]
    return np.take_along_axis(x, places, -1), places.astype(np.int32)


KERNELS: Mapping[str, Kernel] = {
    "chlo.top_k": _top_k,
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.constant": _constant,
    "stablehlo.dynamic_broadcast_in_dim": _dynamic_broadcast,
    "stablehlo.dynamic_gather": _dynamic_gather,
    "stablehlo.dynamic_iota": _dynamic_iota,
    "stablehlo.dynamic_pad": _dynamic_pad,
    "stablehlo.dynamic_reshape": _dynamic_reshape,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.gather": _gather,
    "stablehlo.get_dimension_size": _dimension_size,
    "stablehlo.iota": _static_iota,
    "stablehlo.optimization_barrier": _forward,
    "stablehlo.pad": _pad,
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.reshape": _reshape,
    "stablehlo.reverse": _reverse,
    "stablehlo.set_dimension_size": _set_dimension_size,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
}
"""Op -> kernel."""
