"""Calls of operators that move elements, or choose some or sum them up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.kernel_probe.case import Case, random
from benchmarks.kernel_probe.elementwise import KINDS
from benchmarks.kernel_probe.operators import MASKS, NO_ACTIVATION, NO_OPTIONS, NOT_ALIGNED, POOL
from benchmarks.kernel_probe.tensors import (
    Array,
    Tensor,
    centred,
    like,
    plain,
    weights,
    with_offset,
    with_scales,
    within,
)

_IMAGE = (1, 4, 4, 8)
_ROWS = (4, 8)
_BORDERS = plain([[0, 0], [1, 1], [1, 1], [0, 0]])


class Move(NamedTuple):
    """An operator of one operand of real numbers."""

    name: str  # Its name.
    shape: Sequence[int]  # The operand's shape.
    results: Sequence[Sequence[int]]  # The results' shapes.
    others: Sequence[Tensor] = ()  # The operands behind it.
    options: Mapping[str, Any] = NO_OPTIONS  # The options.
    before: Sequence[Tensor] = ()  # The operands before it.
    most: float = 1  # The maximum number of a result, if the operand's is 1.


_BOTH = plain([1, 2])
_REDUCED = [(1, 8)]
_KEEP = {"keep_dims": False}

_MOVES = (
    Move("RESHAPE", _IMAGE, [(4, 32)], [plain([4, 32])], {"new_shape": [4, 32]}),
    Move("SQUEEZE", (1, *_ROWS), [_ROWS], options={"squeeze_dims": [0]}),
    Move("EXPAND_DIMS", _ROWS, [(1, *_ROWS)], [plain(0)]),
    Move("TRANSPOSE", _IMAGE, [(1, 8, 4, 4)], [plain([0, 3, 1, 2])]),
    Move("PAD", _IMAGE, [(1, 6, 6, 8)], [_BORDERS]),
    Move("MIRROR_PAD", _IMAGE, [(1, 6, 6, 8)], [_BORDERS], {"mode": "REFLECT"}),
    Move("SLICE", _IMAGE, [(1, 2, 4, 8)], [plain([0, 1, 0, 0]), plain([1, 2, 4, 8])]),
    Move("STRIDED_SLICE", _ROWS, [(2, 8)], [plain([0, 0]), plain(_ROWS), plain([2, 1])], MASKS),
    Move("SPLIT", _ROWS, [(4, 4), (4, 4)], options={"num_splits": 2}, before=[plain(1)]),
    Move("SPLIT_V", _ROWS, [(4, 3), (4, 5)], [plain([3, 5]), plain(1)], {"num_splits": 2}),
    Move("UNPACK", _ROWS, [(8,)] * 4, options={"num": 4, "axis": 0}),
    Move("GATHER", (8, 16), [(3, 16)], [plain([1, 3, 5])], {"axis": 0, "batch_dims": 0}),
    Move("GATHER_ND", (8, 16), [(2, 16)], [plain([[1], [3]])]),
    Move("TILE", (2, 8), [(4, 8)], [plain([2, 1])]),
    Move("REVERSE_V2", _ROWS, [_ROWS], [plain([1])]),
    Move("REVERSE_SEQUENCE", (2, *_ROWS), [(2, *_ROWS)], [plain([2, 3])], {"seq_dim": 1, "batch_dim": 0}),
    Move("SPACE_TO_DEPTH", _IMAGE, [(1, 2, 2, 32)], options={"block_size": 2}),
    Move("DEPTH_TO_SPACE", _IMAGE, [(1, 8, 8, 2)], options={"block_size": 2}),
    Move("SPACE_TO_BATCH_ND", _IMAGE, [(4, 2, 2, 8)], [plain([2, 2]), plain([[0, 0], [0, 0]])]),
    Move("BATCH_TO_SPACE_ND", (4, 2, 2, 8), [_IMAGE], [plain([2, 2]), plain([[0, 0], [0, 0]])]),
    Move("RESIZE_BILINEAR", _IMAGE, [(1, 8, 8, 8)], [plain([8, 8])], {**NOT_ALIGNED, "half_pixel_centers": True}),
    Move("RESIZE_NEAREST_NEIGHBOR", _IMAGE, [(1, 8, 8, 8)], [plain([8, 8])], NOT_ALIGNED),
    Move("BROADCAST_TO", (1, 8), [_ROWS], [plain(_ROWS)]),
    Move("MAX_POOL_2D", _IMAGE, [(1, 2, 2, 8)], options=POOL),
    Move("AVERAGE_POOL_2D", _IMAGE, [(1, 2, 2, 8)], options=POOL),
    Move("L2_POOL_2D", _IMAGE, [(1, 2, 2, 8)], options=POOL),
    Move("MEAN", _IMAGE, _REDUCED, [_BOTH], _KEEP),
    Move("SUM", _IMAGE, _REDUCED, [_BOTH], _KEEP, most=10),
    Move("REDUCE_MAX", _IMAGE, _REDUCED, [_BOTH], _KEEP),
    Move("REDUCE_MIN", _IMAGE, _REDUCED, [_BOTH], _KEEP),
    Move("REDUCE_PROD", _IMAGE, _REDUCED, [_BOTH], _KEEP),
    Move("CUMSUM", _ROWS, [_ROWS], [plain(0)], {"exclusive": False, "reverse": False}, most=3),
    Move("SHAPE", _ROWS, [], options={"out_type": "INT32"}),
    Move("TOPK_V2", _ROWS, [(4, 3)], [plain(3)]),
)


# The shapes of results that are not real numbers.
_INDICES: Mapping[str, Sequence[int]] = {"TOPK_V2": (4, 3), "SHAPE": (2,)}


def _spread(kind: str, value: Array, most: float = 1, *, is_constant: bool = False) -> Tensor:
    """Returns a tensor of numbers that are not the same on both sides of zero, so that 0 is not stored as 0."""
    return within(kind, value, -most, 0.75 * most, is_constant=is_constant)


def _moves() -> Iterator[Case]:
    for seed, (name, shape, shapes, others, options, before, most) in enumerate(_MOVES):
        value = random(1000 + seed).uniform(-1, 1, shape)
        indices = [Tensor("i32", np.zeros(_INDICES[name], np.int32))] if name in _INDICES else []
        for kind in KINDS:
            for own, result in ((most, most), (1, 1.5 * most)):
                operands = [*before, _spread(kind, value, own), *others]
                yield Case(name, operands, [*_results(kind, shapes, result), *indices], options)


def _results(kind: str, shapes: Sequence[Sequence[int]], most: float) -> list[Tensor]:
    return [_spread(kind, like(shape), most) for shape in shapes]


def _joins() -> Iterator[Case]:
    """Calls with several operands of real numbers."""
    x, y = random(1100).uniform(-1, 1, (2, *_ROWS))
    for kind in KINDS:
        one, result = _spread(kind, x), _spread(kind, like(_ROWS))
        for most in (1.0, 1.5):
            for other in (_spread(kind, y, most), _spread(kind, y, most, is_constant=True)):
                yield from _pairs(kind, one, other, result, most)
            part = _spread(kind, x[:2])
            yield Case("SCATTER_ND", [plain([[1], [3]]), part, plain([5, 8])], _results(kind, [(5, 8)], most))
            scattered = centred(_spread(kind, like((5, 8)), most))
            yield Case("SCATTER_ND", [plain([[1], [3]]), centred(part), plain([5, 8])], [scattered])
            for number in (_spread(kind, np.array(0.4)), _spread(kind, np.array(0.4), is_constant=True)):
                yield Case("FILL", [plain([2, 3]), number], _results(kind, [(2, 3)], most))


def _pairs(kind: str, one: Tensor, other: Tensor, result: Tensor, most: float) -> Iterator[Case]:
    wide = _spread(kind, like((4, 16)))
    yield Case("CONCATENATION", [one, other], [wide], {**NO_ACTIVATION, "axis": 1})
    # Both operands alike, but not the result: it may be rescaled to, or not.
    both = [one, _spread(kind, other.value, is_constant=other.is_constant)]
    yield Case("CONCATENATION", both, [_spread(kind, wide.value, most)], {**NO_ACTIVATION, "axis": 1})
    yield Case("PACK", [one, other], _results(kind, [(2, *_ROWS)], 1), {"values_count": 2, "axis": 0})
    yield Case("ADD_N", [one, other], [_spread(kind, result.value, 2)])
    if most == 1:
        yield Case("ADD_N", [one, other], [result])
    part = Tensor(kind, other.value[:2], other.scales, other.zero_points, is_constant=other.is_constant)
    yield Case("DYNAMIC_UPDATE_SLICE", [one, part, plain([1, 0])], [result])
    if not other.is_constant:
        yield Case("DYNAMIC_UPDATE_SLICE", [replace(one, is_constant=True), part, plain([1, 0])], [result])
    number = Tensor(kind, np.array(-0.5), other.scales, other.zero_points, is_constant=other.is_constant)
    padded = _spread(kind, like((6, 8)))
    yield Case("PADV2", [one, plain([[1, 1], [0, 0]]), number], [padded])


def _tables() -> Iterator[Case]:
    """Calls that look rows up in a constant table."""
    table = random(1200).normal(0, 1, (32, 16))
    ids, shape = plain([1, 5, 9]), (3, 16)
    for kind in ("i8", "u8", "i16", "i4", "i2"):
        whole = weights(kind, table)
        for name, options in (("EMBEDDING_LOOKUP", NO_OPTIONS), ("GATHER", {"axis": 0, "batch_dims": 0})):
            forms = [whole, weights(kind, table, 0), weights(kind, table, 1), with_offset(whole, 1)]
            forms += _blocks(kind, table)
            for form in forms:
                operands = [ids, form] if name == "EMBEDDING_LOOKUP" else [form, ids]
                yield Case(name, operands, [Tensor("f32", like(shape))], options)
            for same in (whole, with_offset(whole, 1)):
                operands = [ids, same] if name == "EMBEDDING_LOOKUP" else [same, ids]
                for factor in (1, 1.5):
                    result = with_scales(same, factor)
                    yield Case(name, operands, [replace(result, value=like(shape), is_constant=False)], options)


def _blocks(kind: str, table: Array) -> list[Tensor]:
    return [weights(kind, table, block=16)] if kind in ("i8", "i4") else []


def cases() -> Iterator[Case]:
    """Yields all calls."""
    yield from _moves()
    yield from _joins()
    yield from _tables()
