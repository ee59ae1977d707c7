"""Calls that sum elements up, rank or count them, on numbers that are stored as they are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.kernel_probe.draw import ALL, FLOATS, NUMBERS, Draw, Family, Plan, fed, fixed
from benchmarks.kernel_probe.operators import OF_BOOLEANS, REDUCTIONS


def _axes(rank: int) -> Iterator[list[int]]:
    yield list(range(rank))
    if rank > 1:
        yield [rank - 1]
        yield list(range(0, rank, 2))
        yield [0, -1]


def _reduction(name: str, d: Draw) -> Iterator[Plan]:
    low, high = (0.5, 1.5) if d.is_float and name == "REDUCE_PROD" else (-9, 9) if name == "MEAN" else (None, None)
    for axes in _axes(d.rank):
        for keep in (False, True):
            yield Plan([d.x(None, low, high), fixed(axes)], [d.type], {"keep_dims": keep})
        if d.is_thorough:
            yield Plan([d.x(None, low, high), fed(axes)], [d.type], {"keep_dims": False})
    if d.is_thorough and d.rank > 1 and name not in ("MEAN", "REDUCE_MAX", "REDUCE_MIN"):
        yield Plan([d.x((0, *d.shape[1:])), fixed([0])], [d.type], {"keep_dims": False})


def _index(name: str, d: Draw) -> Iterator[Plan]:
    for axis in {0, d.rank - 1, d.rank // 2}:
        for short, result in (("i32", "INT32"), ("i64", "INT64")):
            yield Plan([d.x(), fixed(axis)], [short], {"output_type": result})
        if d.is_thorough:
            yield Plan([d.x(), fed(axis)], ["i32"], {"output_type": "INT32"})


def _cumsum(d: Draw) -> Iterator[Plan]:
    for axis in {0, d.rank - 1}:
        for exclusive in (False, True):
            options = {"exclusive": exclusive, "reverse": exclusive}
            yield Plan([d.x(None, -2, 2) if d.is_float else d.x(), fixed(axis)], [d.type], options)
        if d.is_thorough:
            yield Plan([d.x(None, -2, 2), fed(axis)], [d.type], {"exclusive": False, "reverse": False})


def _top_k(d: Draw) -> Iterator[Plan]:
    # Equal numbers have an order: the first one is the greater.
    for number in (fixed(2), fed(2)):
        yield Plan([d.x(), number], [d.type, "i32"])


def _unique(d: Draw) -> Iterator[Plan]:
    for short, name in (("i32", "INT32"), ("i64", "INT64")):
        x = d.x((9,))
        x.value[4:] = x.value[:5]
        yield Plan([x], [d.type, short], {"idx_out_type": name})


def _segment_sum(d: Draw) -> Iterator[Plan]:
    # Each segment has rows: the others must be constants, which legalization sees to.
    yield Plan([d.x((4, *d.shape[1:])), fixed([0, 0, 1, 2])], [d.type])
    yield Plan([d.x((4, *d.shape[1:])), fed([0, 0, 1, 2])], [d.type])


def _unsorted(d: Draw) -> Iterator[Plan]:
    for parameter in (fixed, fed):
        ids = np.array([2, 0, 2, 1])
        yield Plan([d.x((4, *d.shape[1:])), parameter(ids), parameter(4)], [d.type])
    yield Plan([d.x((4, *d.shape[1:])), fixed([1, -1, 0, -1]), fixed(2)], [d.type])
    if d.rank > 1:
        yield Plan([d.x((2, 2, *d.shape[2:])), fixed([[1, 0], [0, 0]]), fixed(3)], [d.type])


def _bucketize(d: Draw) -> Iterator[Plan]:
    yield Plan([d.x()], ["i32"], {"boundaries": [-50.0, -1.5, 0.0, 2.0, 60.0]})


def _where(d: Draw) -> Iterator[Plan]:
    x = d.x()
    if x.value.size > 2 and d.type != "string":
        x.value.reshape(-1)[::2] = 0
    yield Plan([x], ["i64"])


def _description(result: str, d: Draw) -> Iterator[Plan]:
    options = {"out_type": "INT64" if result == "i64" else "INT32"}
    yield Plan([d.x()], [result], options)
    if d.rank and d.is_thorough:
        yield Plan([d.x((0, *d.shape[1:]))], [result], options)


def _rank(d: Draw) -> Iterator[Plan]:
    yield Plan([d.x()], ["i32"])


_FROM_1 = range(1, 9)

# The operators.
FAMILIES: tuple[Family, ...] = (
    *(Family(name, partial(_reduction, name), (*NUMBERS, "complex64", "bool")) for name in REDUCTIONS),
    *(Family(name, partial(_reduction, name), ("bool",)) for name in OF_BOOLEANS),
    *(Family(name, partial(_index, name), (*NUMBERS, "bool"), _FROM_1) for name in ("ARG_MAX", "ARG_MIN")),
    Family("CUMSUM", _cumsum, NUMBERS, _FROM_1),
    Family("TOPK_V2", _top_k, NUMBERS, _FROM_1),
    Family("UNIQUE", _unique, ALL, (1,)),
    Family("SEGMENT_SUM", _segment_sum, NUMBERS, _FROM_1),
    *(Family(f"UNSORTED_SEGMENT_{how}", _unsorted, NUMBERS, _FROM_1) for how in ("SUM", "PROD", "MAX", "MIN")),
    Family("BUCKETIZE", _bucketize, (*FLOATS, "i32", "i64")),
    Family("WHERE", _where, (*NUMBERS, "bool"), _FROM_1),
    Family("SHAPE", partial(_description, "i32")),
    Family("SHAPE", partial(_description, "i64")),
    Family("RANK", _rank),
)
