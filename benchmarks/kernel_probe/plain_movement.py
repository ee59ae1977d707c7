"""Calls that move elements, choose some or repeat them, on numbers that are stored as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.kernel_probe.draw import ALL, NUMBERS, Draw, Family, Plan, fed, fixed
from benchmarks.kernel_probe.operators import MASKS, NO_ACTIVATION
from benchmarks.kernel_probe.tensors import Tensor

_FROM_1 = range(1, 9)
_FROM_2 = range(2, 9)


def _parameters(d: Draw) -> Sequence[Parameter]:
    """Returns the forms of parameters: constants, and inputs if rare forms are to be tried too."""
    return (fixed, fed) if d.is_thorough else (fixed,)


def _types(d: Draw) -> Sequence[str]:
    """Returns the types of parameters."""
    return ("i32", "i64") if d.is_thorough else ("i32",)


Parameter = Callable[..., Tensor]


def _reshape(d: Draw) -> Iterator[Plan]:
    size = int(np.prod(d.shape))
    for shape in ((size,), (1, *d.shape), d.shape[::-1]):
        if len(shape) <= 8:
            yield Plan([d.x(), fixed(shape)], [d.type], {"new_shape": list(shape)})
            yield Plan([d.x(), fed(shape)], [d.type])
    if d.rank and d.is_thorough:
        yield Plan([d.x((0, *d.shape[1:])), fixed((0,))], [d.type], {"new_shape": [0]})


def _squeeze(d: Draw) -> Iterator[Plan]:
    yield Plan([d.x((1, *d.shape[1:]))], [d.type], {"squeeze_dims": [0]})


def _expand(d: Draw) -> Iterator[Plan]:
    for parameter in _parameters(d):
        for axis in (0, -1):
            yield Plan([d.x(), parameter(axis)], [d.type])
    yield Plan([d.x(), fixed(0, "i64")], [d.type])


def _transpose(d: Draw) -> Iterator[Plan]:
    for order in ([*range(d.rank)][::-1], d.rng.permutation(d.rank).tolist()):
        yield Plan([d.x(), fixed(order)], [d.type])
    if d.is_thorough:
        yield Plan([d.x(), fed(order)], [d.type])
    if d.rank and d.is_thorough:
        yield Plan([d.x((0, *d.shape[1:])), fixed(order)], [d.type])


def _pads(d: Draw) -> list[list[int]]:
    return [[axis % 2, (axis + 1) % 2] for axis in range(d.rank)]


def _pad(d: Draw) -> Iterator[Plan]:
    for parameter in _parameters(d):
        yield Plan([d.x(), parameter(_pads(d))], [d.type])
    if d.is_thorough:
        yield Plan([d.x(), fixed(_pads(d), "i64")], [d.type])
        yield Plan([d.x((0, *d.shape[1:])), fixed(_pads(d))], [d.type])


def _pad_with(d: Draw) -> Iterator[Plan]:
    for parameter in _parameters(d):
        yield Plan([d.x(), parameter(_pads(d)), d.x(())], [d.type])


def _mirror(d: Draw) -> Iterator[Plan]:
    for mode in ("REFLECT", "SYMMETRIC"):
        yield Plan([d.x(), fixed(_pads(d))], [d.type], {"mode": mode})
    if d.is_thorough:
        yield Plan([d.x(), fed(_pads(d))], [d.type], {"mode": "REFLECT"})


def _slice(d: Draw) -> Iterator[Plan]:
    begin = [dim // 2 for dim in d.shape]
    for size in ([dim - at for dim, at in zip(d.shape, begin, strict=True)], [-1] * d.rank):
        for parameter in _parameters(d):
            yield Plan([d.x(), parameter(begin), parameter(size)], [d.type])
        if d.is_thorough:
            yield Plan([d.x(), fixed(begin, "i64"), fixed(size, "i64")], [d.type])
    yield Plan([d.x(), fixed(begin), fixed([0] * d.rank)], [d.type])


def _strided_slice(d: Draw) -> Iterator[Plan]:
    lows, highs, ones = [0] * d.rank, list(d.shape), [1] * d.rank
    steps = [1 + axis % 2 for axis in range(d.rank)]
    for parameter in _parameters(d):
        yield Plan([d.x(), parameter(lows), parameter(highs), parameter(steps)], [d.type], MASKS)
        shrunk = {**MASKS, "shrink_axis_mask": 1, "end_mask": 2}
        yield Plan([d.x(), parameter(lows), parameter([1, *highs[1:]]), parameter(ones)], [d.type], shrunk)
    yield Plan([d.x(), fixed(lows), fixed(lows), fixed(ones)], [d.type], MASKS)
    if d.rank < 8:
        extended = {**MASKS, "new_axis_mask": 1}
        yield Plan([d.x(), fixed([0, *lows]), fixed([0, *highs]), fixed([1, *ones])], [d.type], extended)


def _reversed_slice(d: Draw) -> Iterator[Plan]:
    masks = {**MASKS, "begin_mask": 1, "end_mask": 1}
    ones = [1] * (d.rank - 1)
    yield Plan([d.x(), fixed([0] * d.rank), fixed(d.shape), fixed([-1, *ones])], [d.type], masks)


def _split(d: Draw) -> Iterator[Plan]:
    for axis in {0, d.rank - 1}:
        shape = list(d.shape)
        shape[axis] = 4
        for parameter in _parameters(d):
            yield Plan([parameter(axis), d.x(shape)], [d.type] * 2, {"num_splits": 2})


def _split_v(d: Draw) -> Iterator[Plan]:
    for axis in {0, d.rank - 1}:
        shape = list(d.shape)
        shape[axis] = 5
        for parameter in _parameters(d):
            yield Plan([d.x(shape), parameter([2, 3]), fixed(axis)], [d.type] * 2, {"num_splits": 2})
        if d.is_thorough:
            yield Plan([d.x(shape), fixed([2, 3], "i64"), fixed(axis)], [d.type] * 2, {"num_splits": 2})


def _unpack(d: Draw) -> Iterator[Plan]:
    for axis in {0, d.rank - 1}:
        yield Plan([d.x()], [d.type] * d.shape[axis], {"num": d.shape[axis], "axis": axis})


def _pack(d: Draw) -> Iterator[Plan]:
    for axis in {0, d.rank}:
        yield Plan([d.x(), d.x()], [d.type], {"values_count": 2, "axis": axis})


def _concat(d: Draw) -> Iterator[Plan]:
    for axis in {0, d.rank - 1}:
        yield Plan([d.x(), d.x()], [d.type], {**NO_ACTIVATION, "axis": axis})
        yield Plan([d.x() for _ in range(5)], [d.type], {**NO_ACTIVATION, "axis": axis})
    yield Plan([d.x(), d.x((0, *d.shape[1:]))], [d.type], {**NO_ACTIVATION, "axis": 0})


def _gather(d: Draw) -> Iterator[Plan]:
    for axis in {0, d.rank - 1}:
        options = {"axis": axis, "batch_dims": 0}
        for short in (*_types(d), "i16"):
            yield Plan([d.x(), fed([1, 0, 1], short)], [d.type], options)
        yield Plan([d.x(), fixed([1, 0, 1])], [d.type], options)
        yield Plan([d.x(), fed(1)], [d.type], options)
    yield Plan([d.x(), fed(np.zeros(0))], [d.type], {"axis": 0, "batch_dims": 0})
    if d.rank > 1:
        yield Plan([d.x(), fed([[1], [0]])], [d.type], {"axis": 1, "batch_dims": 1})


def _gather_nd(d: Draw) -> Iterator[Plan]:
    for depth in {1, d.rank}:
        for short in (*_types(d), "i16"):
            yield Plan([d.x(), fed([[1] * depth, [0] * depth], short)], [d.type])
        yield Plan([d.x(), fixed([[1] * depth, [0] * depth])], [d.type])
    if d.is_thorough:
        yield Plan([d.x(), fed(np.zeros((2, 0)))], [d.type])
    yield Plan([d.x(), fed(np.zeros((0, 1)))], [d.type])


def _scatter_nd(d: Draw) -> Iterator[Plan]:
    shape = (4, *d.shape[1:])
    for indices in ([[1], [3]], [[1], [1]]):
        for parameter in _parameters(d):
            yield Plan([parameter(indices), d.x((2, *d.shape[1:])), parameter(shape)], [d.type])


def _tile(d: Draw) -> Iterator[Plan]:
    times = [1 + axis % 2 for axis in range(d.rank)]
    for parameter in _parameters(d):
        for short in _types(d):
            yield Plan([d.x(), parameter(times, short)], [d.type])
    yield Plan([d.x(), fixed([0, *times[1:]])], [d.type])


def _reverse(d: Draw) -> Iterator[Plan]:
    # Axes that aren't neighbours are refused, which the table's words don't tell: nothing emits them.
    for axes in ([0], [d.rank - 1], list(range(d.rank))):
        for parameter in _parameters(d):
            yield Plan([d.x(), parameter(axes)], [d.type])


def _reverse_sequence(d: Draw) -> Iterator[Plan]:
    for short in _types(d):
        yield Plan([d.x(), fed([1, 2], short)], [d.type], {"seq_dim": 1, "batch_dim": 0})


def _broadcast(d: Draw) -> Iterator[Plan]:
    narrow = [1 if axis % 2 else dim for axis, dim in enumerate(d.shape)]
    for shape in (narrow, d.shape[1:], ()):
        for parameter in _parameters(d):
            for short in _types(d):
                yield Plan([d.x(shape), parameter(d.shape, short)], [d.type])


def _fill(d: Draw) -> Iterator[Plan]:
    # Python can't set a single string.
    number = replace(d.x(()), is_constant=d.type == "string")
    for short in _types(d):
        yield Plan([fed(d.shape, short), number], [d.type])
    if d.type != "string":
        yield Plan([fixed(d.shape), number], [d.type])


def _range(d: Draw) -> Iterator[Plan]:
    yield Plan([fed(2, d.type), fed(9, d.type), fed(3, d.type)], [d.type])
    yield Plan([fed(100, d.type), fed(100, d.type), fed(1, d.type)], [d.type])


def _one_hot(index: str, d: Draw) -> Iterator[Plan]:
    ids = np.arange(int(np.prod(d.shape))).reshape(d.shape) % 5
    for axis in (0, -1):
        for parameter in _parameters(d):
            yield Plan([fed(ids, index), parameter(4), d.x(()), d.x(())], [d.type], {"axis": axis})


def _embedding(d: Draw) -> Iterator[Plan]:
    yield Plan([fed([1, 0, 1]), d.x()], [d.type])


def _update(d: Draw) -> Iterator[Plan]:
    part = tuple(max(dim - 1, 1) for dim in d.shape)
    for short in _types(d):
        yield Plan([d.x(), d.x(part), fed([1] * d.rank, short)], [d.type])


def _diagonal(d: Draw) -> Iterator[Plan]:
    yield Plan([d.x()], [d.type])


def _set_diagonal(d: Draw) -> Iterator[Plan]:
    yield Plan([d.x(), d.x((*d.shape[:-2], min(d.shape[-2:])))], [d.type])


def _to_dense(d: Draw) -> Iterator[Plan]:
    indices: Sequence[object] = [[0] * d.rank, [1] * d.rank] if d.rank > 1 else [0, 1]
    for short in _types(d):
        shape = d.shape
        yield Plan([fed(indices, short), fed(shape, short), d.x((2,)), d.x(())], [d.type])


def _blocks(name: str, d: Draw) -> Iterator[Plan]:
    spatial = d.rank - 2
    twos, zeros = [2] * spatial, [[0, 0]] * spatial
    shape = (1, *[4] * spatial, 2) if name == "SPACE_TO_BATCH_ND" else (2**spatial, *[2] * spatial, 2)
    for parameter in _parameters(d):
        yield Plan([d.x(shape), parameter(twos), parameter(zeros)], [d.type])


def _depth(name: str, d: Draw) -> Iterator[Plan]:
    yield Plan([d.x((1, 4, 4, 8))], [d.type], {"block_size": 2})


def _broadcast_args(d: Draw) -> Iterator[Plan]:
    yield Plan([fed([4, 1, 3], d.type), fed([1, 3], d.type)], [d.type])


_ANY_INDEX = ("i32", "i64", "u8", "i8", "i16")

# The operators.
FAMILIES: tuple[Family, ...] = (
    Family("RESHAPE", _reshape, ALL[:-1]),
    Family("RESHAPE", _reshape, ("string",), _FROM_1),
    Family("SQUEEZE", _squeeze, ALL, _FROM_1),
    Family("EXPAND_DIMS", _expand, ALL[:-1], range(8)),
    Family("EXPAND_DIMS", _expand, ("string",), range(1, 8)),
    Family("TRANSPOSE", _transpose, ALL),
    Family("PAD", _pad, ALL, _FROM_1),
    Family("PADV2", _pad_with, ALL, _FROM_1),
    Family("MIRROR_PAD", _mirror, ALL, _FROM_1),
    Family("SLICE", _slice, ALL, _FROM_1),
    Family("STRIDED_SLICE", _strided_slice, ALL, _FROM_1),
    Family("STRIDED_SLICE", _reversed_slice, ALL, _FROM_1),
    Family("SPLIT", _split, ALL, _FROM_1),
    Family("SPLIT_V", _split_v, ALL, _FROM_1),
    Family("UNPACK", _unpack, ALL, _FROM_1),
    Family("PACK", _pack, ALL, range(8)),
    Family("CONCATENATION", _concat, ALL, _FROM_1),
    Family("GATHER", _gather, ALL[:-1], _FROM_1),
    Family("GATHER", _gather, ("string",), (1,)),
    Family("GATHER_ND", _gather_nd, ALL, _FROM_1),
    Family("SCATTER_ND", _scatter_nd, ALL[:-1], _FROM_1),
    Family("TILE", _tile, ALL, _FROM_1),
    Family("REVERSE_V2", _reverse, ALL, _FROM_1),
    Family("REVERSE_SEQUENCE", _reverse_sequence, ALL, _FROM_2),
    Family("BROADCAST_TO", _broadcast, ALL, _FROM_1),
    Family("FILL", _fill),
    Family("RANGE", _range, NUMBERS, (0,)),
    *(Family("ONE_HOT", partial(_one_hot, index), ALL[:-1], range(5 if index == "i32" else 3)) for index in _ANY_INDEX),
    Family("EMBEDDING_LOOKUP", _embedding, ALL, _FROM_1),
    Family("DYNAMIC_UPDATE_SLICE", _update, ALL, _FROM_1),
    Family("MATRIX_DIAG", _diagonal, ALL[:-1], range(1, 8)),
    Family("MATRIX_SET_DIAG", _set_diagonal, ALL[:-1], _FROM_2),
    Family("SPARSE_TO_DENSE", _to_dense, ALL[:-1], range(1, 6)),
    *(
        Family(name, partial(_blocks, name), ALL[:-1], range(3, 7))
        for name in ("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
    ),
    *(Family(name, partial(_depth, name), ALL[:-1], (4,)) for name in ("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")),
    Family("BROADCAST_ARGS", _broadcast_args, ("i32", "i64"), (1,)),
)
