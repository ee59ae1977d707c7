"""Reductions of StableHLO: over dimensions, over windows, and what windows select and scatter."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tfconvert.converter.executor.stablehlo.bodies import Body
from tfconvert.converter.executor.stablehlo.properties import ints, pairs
from tfconvert.converter.executor.stablehlo.slicing import pad
from tfconvert.converter.executor.tasks import Machine, bad
from tfconvert.ops.call import Array, Results, wide
from tfconvert.schema.ir.operation import Operation

RegionKernel = Callable[[Machine, Operation, Results], Results]


def _folded(body: Body, arrays: Results, inits: Results, axes: Sequence[int]) -> Results:
    """Returns arrays reduced over axes: neighbours are joined until one is left, from the initial values on."""
    if body.ufunc is not None and len(arrays) == 1:
        (x,), (init,) = arrays, inits
        return (body.ufunc(body.ufunc.reduce(wide(x), tuple(axes), dtype=wide(x).dtype), wide(init)).astype(x.dtype),)
    kept = [axis for axis in range(arrays[0].ndim) if axis not in axes]
    order = [*axes, *kept]
    shape = [arrays[0].shape[axis] for axis in kept]
    count = math.prod(arrays[0].shape[axis] for axis in axes)
    lanes = tuple(each.transpose(order).reshape([count, *shape]) for each in arrays)
    while len(lanes[0]) > 1:
        even = len(lanes[0]) // 2 * 2
        joined = body(*(each[0:even:2] for each in lanes), *(each[1:even:2] for each in lanes))
        lanes = tuple(
            np.concatenate([pair, each[even:]]) if even < len(each) else pair
            for pair, each in zip(joined, lanes, strict=True)
        )
    starts = tuple(np.broadcast_to(init, shape) for init in inits)
    return body(*starts, *(each[0] for each in lanes)) if len(lanes[0]) else starts


def _halves(op: Operation, inputs: Results) -> tuple[Results, Results]:
    count = len(inputs) // 2
    arrays, inits = inputs[:count], inputs[count:]
    if len({each.shape for each in arrays}) != 1:
        raise bad(op, "the operands have unequal shapes", "unequal-sizes")
    return arrays, inits


def _reduce(machine: Machine, op: Operation, inputs: Results) -> Results:
    arrays, inits = _halves(op, inputs)
    return _folded(Body(machine, op), arrays, inits, ints(op, "dimensions"))


def windows_of(x: Array, sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Array:
    """Returns the windows of an array: its dimensions are those of the windows, then those within them."""
    spans = [(size - 1) * gap + 1 for size, gap in zip(sizes, dilations, strict=True)]
    if any(span > size for span, size in zip(spans, x.shape, strict=True)):
        empty = [
            max(0, (size - span) // step + 1) if size >= span else 0
            for size, span, step in zip(x.shape, spans, strides, strict=True)
        ]
        return np.zeros([*empty, *sizes], x.dtype)
    view = np.lib.stride_tricks.sliding_window_view(x, spans)
    steps = [slice(None, None, step) for step in strides]
    gaps = [slice(None, None, gap) for gap in dilations]
    return view[(*steps, *gaps)]


def _reduce_window(machine: Machine, op: Operation, inputs: Results) -> Results:
    arrays, inits = _halves(op, inputs)
    rank = arrays[0].ndim
    ones = (1,) * rank
    interior = [gap - 1 for gap in ints(op, "base_dilations", ones)]
    padding = pairs(op, "padding", rank)
    shape = ints(op, "window_dimensions")
    views = tuple(
        windows_of(
            pad(each, init, padding, interior),
            shape,
            ints(op, "window_strides", ones),
            ints(op, "window_dilations", ones),
        )
        for each, init in zip(arrays, inits, strict=True)
    )
    return _folded(Body(machine, op), views, inits, range(rank, 2 * rank))


def _select_and_scatter(machine: Machine, op: Operation, inputs: Results) -> Results:
    """Selects an element of each window, and scatters a source to the places of the selected ones."""
    x, source, init = inputs
    rank, select, join = x.ndim, Body(machine, op), Body(machine, op, 1)
    ones, padding = (1,) * rank, pairs(op, "padding", rank)
    shape, strides = ints(op, "window_dimensions", ones), ints(op, "window_strides", ones)
    places = np.arange(x.size).reshape(x.shape)
    held = windows_of(pad(x, np.zeros((), x.dtype), padding, [0] * rank), shape, strides, ones)
    at = windows_of(pad(places, np.array(-1), padding, [0] * rank), shape, strides, ones)
    count = math.prod(shape)
    lanes, where = held.reshape(*held.shape[:rank], count), at.reshape(*at.shape[:rank], count)
    if source.shape != held.shape[:rank]:
        raise bad(op, f"the source has the shape {list(source.shape)}, not {list(held.shape[:rank])}", "unequal-sizes")
    best, chosen = lanes[..., 0], where[..., 0]
    for each in range(1, count):
        (keeps,) = select(best, lanes[..., each])
        moves = (where[..., each] >= 0) & (~keeps | (chosen < 0))
        best, chosen = np.where(moves, lanes[..., each], best), np.where(moves, where[..., each], chosen)
    result = np.full(x.size, init, x.dtype)
    scatter_flat(join, (result,), chosen.reshape(-1), (source.reshape(-1),))
    return (result.reshape(x.shape),)


def scatter_flat(body: Body, results: Sequence[Array], places: Array, updates: Results) -> None:
    """Joins updates with elements of flat results, those of the same place one after another; others at a time."""
    if body.yielded() is not None and len(results) == 1 and body.yielded() == 1:
        results[0][places] = updates[0]
        return
    if body.ufunc is not None and len(results) == 1:
        body.ufunc.at(results[0], places, updates[0])
        return
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.searchsorted(ordered, ordered)
    turn = np.arange(len(ordered)) - first
    for number in range(int(turn.max(initial=-1)) + 1):
        now = order[turn == number]
        joined = body(*(each[places[now]] for each in results), *(each[now] for each in updates))
        for result, value in zip(results, joined, strict=True):
            result[places[now]] = value


KERNELS: Mapping[str, RegionKernel] = {
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.select_and_scatter": _select_and_scatter,
}
"""Op -> kernel."""
