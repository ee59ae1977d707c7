"""Ops of StableHLO that take parts of a value, put parts into it, or put something around it.

Starts of `dynamic_slice`, `dynamic_update_slice` and gathers are clamped so that the slice fits, as the specification
has it; a `real_dynamic_slice` that doesn't fit is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tfconvert.converter.executor.stablehlo.properties import Kernel, integer, ints, numbers
from tfconvert.converter.executor.tasks import bad
from tfconvert.ops.call import Array, Results
from tfconvert.schema.dialects.stablehlo import GatherAttr
from tfconvert.schema.ir.operation import Operation


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
    """Returns the starts of a slice, moved so that it is within a shape."""
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
    """Returns a value with padding around it, or less of it where that is negative, and between its elements."""
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
        raise bad(op, f"the padding {list(low)}, {list(high)} leaves less than nothing of {list(x.shape)}")
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
        raise bad(op, f"there are no {count} of {x.shape[-1]} elements", "outside-of-tensor")
    # From the last to the first, so that of equal elements the first one wins.
    places = np.flip(x.shape[-1] - 1 - np.argsort(np.flip(x, -1), -1, kind="stable"), -1)[..., :count]
    return np.take_along_axis(x, places, -1), places.astype(np.int32)


KERNELS: Mapping[str, Kernel] = {
    "chlo.top_k": _top_k,
    "stablehlo.dynamic_gather": _dynamic_gather,
    "stablehlo.dynamic_pad": _dynamic_pad,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.gather": _gather,
    "stablehlo.pad": _pad,
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.slice": _slice,
}
"""Op -> kernel."""
