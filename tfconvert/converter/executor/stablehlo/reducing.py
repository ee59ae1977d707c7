"""Ops of StableHLO with bodies: reductions over dimensions and windows, scatters, sorts.

A body is called with arrays; each element is one run of it. Bodies of elementwise ops compute all elements at once,
others run once for each. A body that is one common op, such as an addition, becomes numpy's own reduction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tfconvert.converter.executor.stablehlo import elementwise
from tfconvert.converter.executor.stablehlo.elementwise import total_order
from tfconvert.converter.executor.stablehlo.shaping import pad
from tfconvert.converter.executor.tasks import Machine, bad
from tfconvert.ops.call import Array, Results, wide
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.stablehlo import ScatterAttr
from tfconvert.schema.dialects.stablehlo_properties import integer, ints, pairs, text
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_UFUNCS: Mapping[str, np.ufunc] = {
    "stablehlo.add": np.add,
    "stablehlo.and": np.bitwise_and,
    "stablehlo.maximum": np.maximum,
    "stablehlo.minimum": np.minimum,
    "stablehlo.multiply": np.multiply,
    "stablehlo.or": np.bitwise_or,
    "stablehlo.xor": np.bitwise_xor,
}

_CONSTANTS = frozenset({"stablehlo.constant", "tf.Const"})


class RegionBody:
    """A region of a reduction, a scatter or a sort.

    Args:
        machine: Runs ops that are not elementwise.
        op: The op.
        region: The region's number.

    Attributes:
        ufunc: The function of numpy that equals the body, or `None`.
    """

    __slots__ = ("_block", "_machine", "_op", "is_elementwise", "ufunc")

    def __init__(self, machine: Machine, op: Operation, region: int = 0) -> None:
        self._machine, self._op = machine, op
        self._block: Block = op.regions[region].block
        ops = list(self._block.ops)[:-1]
        self.is_elementwise = all(each.name in elementwise.KERNELS or each.name in _CONSTANTS for each in ops)
        self.ufunc = self._as_ufunc(ops)

    def _as_ufunc(self, ops: Sequence[Operation]) -> np.ufunc | None:
        last = self._block.last_op
        if len(ops) != 1 or last is None or tuple(last.operands) != tuple(ops[0].results):
            return None
        same = len(self._block.args) == 2 and set(ops[0].operands) == set(self._block.args)
        return _UFUNCS.get(ops[0].name) if same else None

    @property
    def comparison(self) -> tuple[Operation, int, bool] | None:
        """The comparison that is the whole body, the operand that it compares, and whether its order is swapped."""
        ops, last = list(self._block.ops), self._block.last_op
        args: list[Value] = list(self._block.args)
        if len(ops) != 2 or ops[0].name != "stablehlo.compare" or last is None:
            return None
        if tuple(last.operands) != tuple(ops[0].results) or not set(ops[0].operands) <= set(args):
            return None
        one, other = (args.index(value) for value in ops[0].operands)
        return (ops[0], one // 2, one > other) if one // 2 == other // 2 and one != other else None

    def yielded(self) -> int | None:
        """Returns the index of the argument that the body returns unchanged, or `None`."""
        last = self._block.last_op
        args: list[Value] = list(self._block.args)
        if last is None or len(last.operands) != 1 or last.operands[0] not in args:
            return None
        return args.index(last.operands[0])

    def __call__(self, *inputs: Array) -> Results:
        """Returns the body's results for each element of arrays that broadcast to each other."""
        if len(inputs) != len(self._block.args):
            raise bad(self._op, f"the body takes {len(self._block.args)} values, not {len(inputs)}")
        if self.is_elementwise:
            found = self._run(inputs)
            shape = np.broadcast_shapes(*(each.shape for each in inputs))
            return tuple(np.broadcast_to(each, shape) for each in found)
        arrays = np.broadcast_arrays(*inputs)
        runs = [self._run(tuple(np.asarray(each[at]) for each in arrays)) for at in np.ndindex(arrays[0].shape)]
        if not runs:
            return tuple(np.zeros(arrays[0].shape, each.dtype) for each in inputs[: len(self._results())])
        return tuple(np.stack(column).reshape(arrays[0].shape) for column in zip(*runs, strict=True))

    def _results(self) -> Sequence[Value]:
        last = self._block.last_op
        return () if last is None else last.operands

    def _captured(self, value: Value) -> Array:
        """Returns the value of a constant from outside of the body."""
        owner = value.owner
        if not isinstance(owner, Operation) or owner.name not in _CONSTANTS:
            raise bad(self._op, "the body uses a value from outside", "no-reference-kernel")
        return tensor_data.to_array(owner.properties["value"])

    def _run(self, inputs: Results) -> Results:
        values: dict[Value, Array] = dict(zip(self._block.args, inputs, strict=True))
        for op in self._block.ops:
            for value in op.operands:
                if value not in values:
                    values[value] = self._captured(value)
            operands = tuple(values[value] for value in op.operands)
            if op.name == "stablehlo.return":
                return operands
            if op.name in _CONSTANTS:
                found: Results = (tensor_data.to_array(op.properties["value"]),)
            elif self.is_elementwise:
                # Not run by the machine, which would check shapes: here they include all elements.
                found = (np.asarray(elementwise.KERNELS[op.name](op, operands)),)
            else:
                found = self._machine.execute(op, operands)
            values.update(zip(op.results, found, strict=True))
        return ()


RegionKernel = Callable[[Machine, Operation, Results], Results]


def _folded(body: RegionBody, arrays: Results, inits: Results, axes: Sequence[int]) -> Results:
    """Returns arrays reduced over axes, by joining neighbours until one is left."""
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
    return _folded(RegionBody(machine, op), arrays, inits, ints(op, "dimensions"))


def windows_of(x: Array, sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Array:
    """Returns the windows of an array, with the dimensions of windows before those inside of windows."""
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
    return _folded(RegionBody(machine, op), views, inits, range(rank, 2 * rank))


def _select_and_scatter(machine: Machine, op: Operation, inputs: Results) -> Results:
    """Selects an element of each window, and scatters a source to the selected positions."""
    x, source, init = inputs
    rank, select, join = x.ndim, RegionBody(machine, op), RegionBody(machine, op, 1)
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


def scatter_flat(body: RegionBody, results: Sequence[Array], places: Array, updates: Results) -> None:
    """Combines updates with elements of flat results, in order for equal positions and at once for others."""
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


# Maximum number of elements of a sort that compares all pairs, because its body is not one comparison.
_MAX = 1 << 12


def _scatter(machine: Machine, op: Operation, inputs: Results) -> Results:
    """Combines updates with elements; updates out of bounds are skipped."""
    count = (len(inputs) - 1) // 2
    arrays, indices, updates = inputs[:count], inputs[count], inputs[count + 1 :]
    dims = op.properties["scatter_dimension_numbers"]
    assert isinstance(dims, ScatterAttr)
    places, inside = _places(op, dims, arrays[0].shape, indices, updates[0].shape)
    results = [each.reshape(-1).copy() for each in arrays]
    kept = tuple(each.reshape(-1)[inside] for each in updates)
    scatter_flat(RegionBody(machine, op), results, places[inside], kept)
    return tuple(each.reshape(array.shape) for each, array in zip(results, arrays, strict=True))


def _places(
    op: Operation, dims: ScatterAttr, shape: Sequence[int], indices: Array, updated: Sequence[int]
) -> tuple[Array, Array]:
    """Returns the flat index of each update, and whether it is within the shape."""
    windows = dims.of("update_window_dims")
    vector = dims.dims[-1]
    assert isinstance(vector, int)
    moved = indices[..., None] if vector == indices.ndim else np.moveaxis(indices, vector, -1)
    rows = [axis for axis in range(len(updated)) if axis not in windows]
    if moved.shape[:-1] != tuple(updated[axis] for axis in rows):
        raise bad(op, f"the updates {list(updated)} don't fit the indices {list(indices.shape)}", "unequal-sizes")

    def row(array: Array) -> Array:
        wanted = [1] * len(updated)
        for axis, size in zip(rows, array.shape, strict=True):
            wanted[axis] = size
        return array.reshape(wanted)

    index: list[Array] = [np.zeros((1,) * len(updated), np.int64)] * len(shape)
    for place, axis in enumerate(dims.of("scatter_dims_to_operand_dims")):
        index[axis] = row(moved[..., place].astype(np.int64))
    for axis, place in zip(dims.of("input_batching_dims"), dims.of("scatter_indices_batching_dims"), strict=True):
        place -= vector < place
        index[axis] = np.arange(moved.shape[place]).reshape(
            [-1 if at == rows[place] else 1 for at in range(len(updated))]
        )
    gone = (*dims.of("inserted_window_dims"), *dims.of("input_batching_dims"))
    for axis, at in zip((each for each in range(len(shape)) if each not in gone), windows, strict=True):
        index[axis] = index[axis] + np.arange(updated[at]).reshape(
            [-1 if each == at else 1 for each in range(len(updated))]
        )
    flat, inside = np.zeros(updated, np.int64), np.ones(updated, np.bool_)
    for axis, at_axis in enumerate(index):
        flat = flat + at_axis * math.prod(shape[axis + 1 :])
        inside &= (at_axis >= 0) & (at_axis < shape[axis])
    return flat.reshape(-1), inside.reshape(-1)


def _sort(machine: Machine, op: Operation, inputs: Results) -> Results:
    """Sorts along a dimension; equal elements keep their order."""
    axis = integer(op, "dimension", -1) % max(1, inputs[0].ndim)
    if len({each.shape for each in inputs}) > 1:
        raise bad(op, "the operands have unequal shapes", "unequal-sizes")
    body = RegionBody(machine, op)
    order = _known_order(body, inputs, axis)
    if order is None:
        order = _compared_order(op, body, inputs, axis)
    return tuple(np.take_along_axis(each, order, axis) for each in inputs)


def _known_order(body: RegionBody, inputs: Results, axis: int) -> Array | None:
    """Returns the order by a body that is one comparison, or `None`."""
    found = body.comparison
    if found is None:
        return None
    op, operand, is_swapped = found
    direction, keys = text(op, "comparison_direction"), inputs[operand]
    if direction not in ("LT", "GT"):
        return None
    if text(op, "compare_type") == "TOTALORDER":
        keys = total_order(keys)
    if (direction == "LT") != is_swapped:
        return np.asarray(np.argsort(keys, axis, kind="stable"))
    # Descending: both flips together keep the order of equal elements.
    turned = np.argsort(np.flip(keys, axis), axis, kind="stable")
    return np.asarray(np.flip(keys.shape[axis] - 1 - turned, axis))


def _compared_order(op: Operation, body: RegionBody, inputs: Results, axis: int) -> Array:
    """Returns a stable order, by comparing all pairs."""
    lanes = [np.moveaxis(each, axis, -1) for each in inputs]
    size = lanes[0].shape[-1]
    if size > _MAX:
        raise bad(op, f"{size} elements are too many for an order that is not one comparison", "no-reference-kernel")
    operands = [array for each in lanes for array in (each[..., :, None], each[..., None, :])]
    (less,) = body(*operands)
    earlier = np.tri(size, k=-1, dtype=np.bool_)
    before = np.swapaxes(less, -1, -2) | (earlier & ~less)
    ranks = np.sum(before & ~np.eye(size, dtype=np.bool_), -1)
    return np.moveaxis(np.argsort(ranks, -1, kind="stable"), -1, axis)


KERNELS: Mapping[str, RegionKernel] = {
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.scatter": _scatter,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.sort": _sort,
}
"""Op -> kernel."""
