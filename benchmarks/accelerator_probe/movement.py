"""Forms of operators that move data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product
from typing import Any

import numpy as np

from benchmarks.accelerator_probe.elementwise import R4, SHAPES
from benchmarks.accelerator_probe.trial import Result, Shape, Trial, data, floats, integers, pairs, result_of, weight
from benchmarks.kernel_probe.operators import MASKS, NOT_ALIGNED, OF_BOOLEANS
from benchmarks.kernel_probe.tensors import Tensor

KINDS = ("i32", "i64", "bool", "i8")
"""Types besides f32."""

IMAGE = (1, 8, 8, 4)


def _places(size: int, shape: Shape, kind: str = "i32", *, constant: bool = False) -> Tensor:
    values = np.arange(int(np.prod(shape)) or 1).reshape(shape) * 3 % size
    return integers(values, kind, constant=constant)


def _pads() -> Iterator[Trial]:
    forms: Sequence[tuple[Shape, Sequence[Sequence[int]]]] = (
        (IMAGE, [[0, 0], [1, 2], [2, 1], [0, 0]]),
        (IMAGE, [[0, 0], [0, 0], [0, 0], [1, 2]]),
        (IMAGE, [[0, 1], [0, 0], [0, 0], [0, 0]]),
        ((2, 8, 8, 4), [[0, 0], [1, 1], [1, 1], [0, 0]]),
        ((1, 8, 4), [[0, 0], [1, 2], [0, 0]]),
        ((2, 8, 4), [[0, 0], [1, 2], [0, 0]]),
        ((1, 8, 4), [[0, 0], [0, 0], [1, 2]]),
        ((2, 8, 4), [[0, 0], [0, 0], [1, 2]]),
        ((2, 8, 4), [[1, 0], [0, 0], [0, 0]]),
        ((3, 8), [[0, 0], [1, 2]]),
        ((3, 8), [[1, 0], [1, 2]]),
        ((8,), [[1, 2]]),
        ((1, 2, 4, 4, 3), [[0, 0], [0, 0], [1, 1], [1, 1], [0, 0]]),
        ((2, 8, 8, 4), [[1, 0], [0, 0], [0, 0], [0, 0]]),
    )
    for shape, pads in forms:
        yield Trial("PAD", [data("f32", shape), integers(pads)])
        for value in (0.5, -np.inf, -3.4e38):
            yield Trial("PADV2", [data("f32", shape), integers(pads), floats(value)])
        for mode in ("REFLECT", "SYMMETRIC"):
            yield Trial("MIRROR_PAD", [data("f32", shape), integers(pads)], options={"mode": mode})
        for kind in (*KINDS, "u8"):
            yield Trial("PAD", [data(kind, shape), integers(pads)], [result_of(kind)])
    for name, more in (("PAD", []), ("PADV2", [floats(0.5)])):
        wide = integers(forms[0][1], "i64")
        computed = integers(forms[0][1], constant=False)
        for pads_of in (wide, computed):
            yield Trial(name, [data("f32", IMAGE), pads_of, *more])


def _shapes() -> Iterator[Trial]:
    by_rank = {1: (24,), 2: (4, 6), 3: (2, 2, 6), 4: (1, 2, 2, 6), 5: (1, 2, 2, 2, 3), 6: (1, 1, 2, 2, 2, 3)}
    pairs: list[tuple[Shape, Shape]] = [(by_rank[a], by_rank[b]) for a, b in product(by_rank, repeat=2)]
    pairs += [
        ((1,), ()),
        ((), (1, 1)),
        ((2, 3, 4, 6), (6, 4, 6)),
        (IMAGE, (4, 16, 4)),
        ((2, 3, 8), (1, 6, 8)),
        ((2, 12, 8), (2, 3, 4, 8)),
        ((6, 8), (2, 3, 8)),
        ((2, 3, 8), (6, 8)),
        ((1, 6, 32), (1, 6, 4, 8)),
        ((4, 6, 8), (1, 4, 6, 8)),
        ((), (1,)),
        ((1, 1), ()),
    ]
    for shape, new in pairs:
        options = {"new_shape": list(new)}
        for kind in ("f32", *KINDS) if max(len(shape), len(new)) < 6 else ("f32",):
            yield Trial("RESHAPE", [data(kind, shape), integers(new)], [result_of(kind)], options)
    yield Trial("RESHAPE", [data("f32", (2, 12)), integers((1, 2, 2, 6), constant=False)])
    yield from _squeezed()
    yield from _transposed()
    yield from _repeated()
    yield Trial("SHAPE", [data("f32", R4)], [Result("i32")], {"out_type": "INT32"})
    yield Trial("RANK", [data("f32", R4)], [Result("i32")])


def _squeezed() -> Iterator[Trial]:
    for shape in ((3, 1, 6), (2, 1, 3, 6), (1, 1, 4, 6), (3, 1)):
        for kind in ("f32", "i32", "i8"):
            yield Trial("SQUEEZE", [data(kind, shape)], [result_of(kind)], {"squeeze_dims": [1]})
            less = [size for at, size in enumerate(shape) if at != 1]
            yield Trial("EXPAND_DIMS", [data(kind, less), integers(1)], [result_of(kind)])


def _transposed() -> Iterator[Trial]:
    for shape in ((3, 6), (2, 3, 6), (2, 3, 4, 6)):
        for perm in permutations(range(len(shape))):
            yield Trial("TRANSPOSE", [data("f32", shape), integers(perm)])
    for perm in ((0, 1, 2, 4, 3), (0, 1, 3, 2, 4), (0, 2, 1, 3, 4), (4, 3, 2, 1, 0)):
        yield Trial("TRANSPOSE", [data("f32", SHAPES[5]), integers(perm)])
    for perm in ((0, 1, 3, 2, 4, 5), (0, 3, 1, 4, 2, 5)):
        yield Trial("TRANSPOSE", [data("f32", SHAPES[6]), integers(perm)])
    yield Trial("TRANSPOSE", [data("f32", (6,)), integers((0,))])
    yield Trial("TRANSPOSE", [data("f32", (2, 3, 4, 6)), integers((0, 2, 1, 3), constant=False)])
    for kind, (sizes, perm) in product(KINDS, (((2, 3, 4, 6), (0, 2, 1, 3)), ((3, 6), (1, 0)), ((2, 3, 6), (0, 2, 1)))):
        yield Trial("TRANSPOSE", [data(kind, sizes), integers(perm)], [result_of(kind)])


def _repeated() -> Iterator[Trial]:
    repeats: Mapping[Shape, Sequence[Shape]] = {
        (6,): ((2,),),
        (3, 6): ((2, 1), (1, 3)),
        (2, 3, 6): ((1, 2, 1), (2, 1, 1), (1, 1, 2)),
        R4: ((1, 2, 2, 1), (1, 1, 1, 3), (2, 1, 1, 1)),
        SHAPES[5]: ((1, 1, 2, 1, 1),),
    }
    for kind, (shape, times) in product(("f32", *KINDS), pairs(repeats)):
        yield Trial("TILE", [data(kind, shape), integers(times)], [result_of(kind)])
    for times_of in (integers((1, 2, 1, 1), "i64"), integers((1, 2, 1, 1), constant=False)):
        yield Trial("TILE", [data("f32", R4), times_of])
    for shape, new in (
        ((1, 1, 1, 6), R4),
        ((1, 3, 1, 6), R4),
        ((3, 1), (3, 6)),
        ((6,), (3, 6)),
        ((1, 1, 6), (2, 3, 6)),
        ((2, 1, 3, 1, 4), (2, 5, 3, 2, 4)),
    ):
        for kind in ("f32", "i32", "i8"):
            yield Trial("BROADCAST_TO", [data(kind, shape), integers(new)], [result_of(kind)])


def _joins() -> Iterator[Trial]:
    for shape in (*[SHAPES[rank] for rank in range(1, 6)], (2, 3, 4, 6)):
        for axis in range(len(shape)):
            longer = [size + 2 * (at == axis) for at, size in enumerate(shape)]
            options = {"axis": axis, "fused_activation_function": "NONE"}
            for kind in ("f32", *KINDS):
                for held in (False, True):
                    operands = [data(kind, shape), data(kind, longer, constant=held)]
                    yield Trial("CONCATENATION", operands, [result_of(kind)], options)
    last = {"axis": 3, "fused_activation_function": "NONE"}
    for count in (1, 5, 11, 20):
        yield Trial("CONCATENATION", [data("f32", R4) for _ in range(count)], options=last)
    for count in (5, 11):
        yield Trial("CONCATENATION", [data("i8", R4) for _ in range(count)], [result_of("i8")], last)
    x = data("f32", R4)
    yield Trial("CONCATENATION", [x, x], options=last)
    yield Trial("CONCATENATION", [x, data("f32", R4)], options={**last, "axis": -1})
    yield Trial("CONCATENATION", [data("f32", (1, 1, 1, 1)), data("f32", (1, 1, 1, 1))], options={**last, "axis": 1})
    yield from _packed()


def _packed() -> Iterator[Trial]:
    for shape in ((), (6,), (3, 6), (2, 3, 6), R4):
        for axis in range(len(shape) + 1):
            for kind in ("f32", "i32", "i8"):
                pair = [data(kind, shape), data(kind, shape)]
                yield Trial("PACK", pair, [result_of(kind)], {"values_count": 2, "axis": axis})
                for twins in ([pair[0]] * 2, [*pair, pair[0]]):
                    yield Trial("PACK", twins, [result_of(kind)], {"values_count": len(twins), "axis": axis})
            pair = [data("f32", shape), data("f32", shape, constant=True)]
            for operands in (pair, [*pair, pair[1]]):
                yield Trial("PACK", operands, options={"values_count": len(operands), "axis": axis})
    yield Trial("PACK", [data("f32", (2, 3, 6))], options={"values_count": 1, "axis": 0})
    place, zero = data("i32", ()), data("i32", (), constant=True)
    for operands in ([place, zero], [place, zero, zero], [zero, place, zero], [zero, zero, place, zero]):
        yield Trial("PACK", operands, [Result("i32")], {"values_count": len(operands), "axis": 0})


def _parts() -> Iterator[Trial]:
    for shape in ((3,), (3, 6), (2, 3, 6), (2, 3, 4, 6), (1, 2, 2, 3, 4), (1, 2, 8), (1, 5, 8)):
        for axis in range(len(shape)):
            for kind in ("f32", "i32", "i8"):
                options = {"num": shape[axis], "axis": axis}
                yield Trial("UNPACK", [data(kind, shape)], [result_of(kind)] * shape[axis], options)
    for shape in ((6,), (4, 6), (2, 4, 6), (2, 4, 6, 8), (1, 2, 2, 2, 4)):
        for axis in range(len(shape)):
            for kind in ("f32", *KINDS) if shape[axis] % 2 == 0 else ():
                pair = [result_of(kind)] * 2
                yield Trial("SPLIT", [integers(axis), data(kind, shape)], pair, {"num_splits": 2})
                sizes = integers((1, shape[axis] - 1))
                yield Trial("SPLIT_V", [data(kind, shape), sizes, integers(axis)], pair, {"num_splits": 2})
    x = (1, 4, 6, 8)
    yield Trial("SPLIT", [integers(-1), data("f32", x)], [Result()] * 2, {"num_splits": 2})
    yield Trial("SPLIT", [integers(3), data("f32", x)], [Result()], {"num_splits": 1})
    yield Trial("SPLIT", [integers(1), data("f32", (2, 4, 6))], [Result()], {"num_splits": 1})
    yield Trial("SPLIT", [integers(3), data("f32", (1, 4, 6, 9))], [Result()] * 3, {"num_splits": 3})
    yield Trial("SPLIT_V", [data("f32", x), integers((3, -1)), integers(3)], [Result()] * 2, {"num_splits": 2})
    slices: Sequence[tuple[Shape, Shape, Shape]] = (
        ((6,), (1,), (3,)),
        ((3, 6), (1, 2), (2, 3)),
        ((2, 3, 6), (0, 1, 2), (2, 2, 3)),
        ((2, 3, 6), (1, 0, 0), (1, 3, 6)),
        (R4, (0, 1, 2, 1), (1, 2, 2, 5)),
        ((2, 3, 4, 6), (1, 0, 0, 0), (1, 3, 4, 6)),
        (SHAPES[5], (0, 0, 1, 0, 2), (1, 2, 2, 4, 3)),
        (R4, (0, 1, 2, 1), (1, -1, -1, -1)),
    )
    for (whole, begin, size), kind in product(slices, ("f32", *KINDS)):
        yield Trial("SLICE", [data(kind, whole), integers(begin), integers(size)], [result_of(kind)])
    for begin_of, size_of in (
        (integers((0, 1, 2, 1), "i64"), integers((1, 2, 2, 5), "i64")),
        (integers((0, 1, 1, 0), constant=False), integers((1, 2, 2, 5))),
    ):
        yield Trial("SLICE", [data("f32", R4), begin_of, size_of])
    yield from _strided()


_CUBE = (1, 6, 6, 6)


def _strided() -> Iterator[Trial]:
    forms: Sequence[tuple[Shape, Shape, Shape, Shape, Mapping[str, Any]]] = (
        ((6,), (1,), (5,), (2,), {}),
        ((3, 6), (0, 1), (3, 5), (1, 2), {}),
        ((2, 3, 6), (0, 1, 0), (2, 3, 6), (1, 1, 2), {}),
        (_CUBE, (0, 1, 0, 2), (1, 5, 6, 6), (1, 2, 3, 1), {}),
        ((2, 6, 6, 6), (1, 0, 0, 0), (2, 6, 6, 6), (1, 1, 1, 1), {}),
        (SHAPES[5], (0, 0, 1, 0, 0), SHAPES[5], (1,) * 5, {}),
        (_CUBE, (0, 1, 0, 0), (0, 0, 0, 3), (1,) * 4, {"begin_mask": 13, "end_mask": 7}),
        (_CUBE, (0,) * 4, (1, -1, -2, 6), (1,) * 4, {}),
        (_CUBE, (0, 5, 0, 0), (1, 0, 6, 6), (1, -1, 1, 1), {}),
        (_CUBE, (0, 2, 0, 0), (1, 3, 6, 6), (1,) * 4, {"shrink_axis_mask": 2}),
        ((2, 3, 6), (0, 0, 0), (2, 1, 6), (1,) * 3, {"shrink_axis_mask": 2, "begin_mask": 5, "end_mask": 5}),
        ((2, 3, 6), (0, 0, -1), (0, 0, 0), (1,) * 3, {"shrink_axis_mask": 4, "begin_mask": 3, "end_mask": 3}),
        ((3, 6), (1, 0), (2, 6), (1, 1), {"shrink_axis_mask": 1}),
        ((6, 6, 6), (0,) * 4, (0, 6, 6, 6), (1,) * 4, {"new_axis_mask": 1}),
        ((3, 6), (0,) * 3, (3, 1, 6), (1,) * 3, {"new_axis_mask": 2, "begin_mask": 5, "end_mask": 5}),
        (_CUBE, (0, 2), (0, 4), (1, 1), {"ellipsis_mask": 1}),
        (_CUBE, (0, 2), (1, 4), (1, 1), {}),
        ((2, 6, 6, 6), (0, 2, 1), (2, 4, 5), (1,) * 3, {}),
        ((6,), (1,), (2,), (1,), {"shrink_axis_mask": 1}),
        ((2, 3, 6), (0, 2, 0), (2, 0, 6), (1, -1, 1), {}),
        ((3, 6), (1,), (3,), (1,), {}),
        ((2, 3, 6), (1,), (2,), (1,), {"shrink_axis_mask": 1}),
    )
    for (shape, begin, end, strides, more), kind in product(forms, ("f32", *KINDS)):
        options = {**MASKS, **more}
        operands = [data(kind, shape), integers(begin), integers(end), integers(strides)]
        yield Trial("STRIDED_SLICE", operands, [result_of(kind)], options)


def _gathers() -> Iterator[Trial]:
    for shape in ((6,), (4, 6), (4, 4, 6), (4, 4, 5, 6), (1, 2, 4, 5, 6)):
        for axis in range(len(shape)):
            for held, kind in product((False, True), ("f32", "i32", "i8")):
                places = _places(shape[axis], (3,), constant=held)
                yield Trial("GATHER", [data(kind, shape), places], [result_of(kind)], {"axis": axis, "batch_dims": 0})
    for kind, held in product(("f32", "i32", "i8"), (False, True)):
        for indices in ((3,), (1, 3), (2, 3), ()):
            for wide in ("i32", "i64"):
                operands = [data(kind, (8, 6), constant=held), _places(8, indices, wide)]
                yield Trial("GATHER", operands, [result_of(kind)], {"axis": 0, "batch_dims": 0})
    yield Trial("GATHER", [data("f32", (2, 4, 6)), _places(4, (2, 3))], options={"axis": 1, "batch_dims": 1})
    yield Trial("GATHER", [data("f32", R4), _places(6, (3,))], options={"axis": -1, "batch_dims": 0})
    yield Trial("GATHER", [data("f32", R4), _places(6, (), constant=True)], options={"axis": 3, "batch_dims": 0})
    yield Trial("GATHER_ND", [data("f32", (2, 3, 6)), integers([[0, 1], [1, 2]])])
    yield Trial("GATHER_ND", [data("f32", (8, 6)), _places(8, (3, 1))])
    yield Trial("SCATTER_ND", [integers([[0], [2]]), data("f32", (2, 6)), integers((4, 6))])
    yield from _lookups()
    yield from _updates()


def _lookups() -> Iterator[Trial]:
    for mode, table in product(("f32", "f32<f16", "i8", "i8c", "computed"), ((8, 8), (8, 6), (8, 2, 4))):
        w, is_dequantized = weight(mode, table)
        origins = frozenset((1,)) if is_dequantized else frozenset()
        yield Trial("EMBEDDING_LOOKUP", [_places(8, (3,)), w], origins=origins)
    for shape in (
        (3,),
        (1,),
        (1, 3),
        (2, 3),
        (1, 1, 3),
        (3, 1, 1, 1),
        (1, 3, 1),
        (3, 1),
        (),
        (1, 1, 1),
        (1, 2, 3),
        (2, 3, 1),
        (2, 2, 2),
        (1, 2, 2, 1),
        (2, 1, 3),
        (1, 1, 2, 3),
        (1, 1, 1, 3),
    ):
        yield _one_hot(shape)
    for kind, dtype in (("i32", np.int32), ("bool", np.bool_)):
        yield _one_hot((3,), kind=kind, on=np.array(1, dtype))
    yield _one_hot((3,), axis=0)
    yield _one_hot((2, 3), axis=1)
    yield _one_hot((3,), wide="i64")


def _updates() -> Iterator[Trial]:
    for begin, whole, part in (
        ((0,), (6,), (2,)),
        ((3,), (6,), (2,)),
        ((0, 0), (4, 6), (1, 6)),
        ((2, 0), (4, 6), (1, 6)),
        ((0, 3), (4, 6), (4, 1)),
        ((2, 0, 0), (4, 1, 6), (1, 1, 6)),
        ((5, 0, 0), (8, 1, 32), (1, 1, 32)),
        ((0, 2, 0), (1, 4, 6), (1, 1, 6)),
        ((0, 3, 0), (2, 4, 8), (2, 1, 8)),
        ((0, 2, 0, 0), (1, 4, 5, 8), (1, 1, 5, 8)),
        ((0, 0, 3, 0), (1, 4, 5, 8), (1, 4, 1, 8)),
        ((1, 0, 0, 0), (2, 4, 5, 8), (1, 4, 5, 8)),
        ((0,) * 5, (1, 2, 4, 5, 6), (1, 1, 4, 5, 6)),
    ):
        for kind, wide, held in product(("f32", "i32"), ("i32", "i64"), (False, True)):
            operands = [data(kind, whole), data(kind, part), integers(begin, wide, constant=held)]
            yield Trial("DYNAMIC_UPDATE_SLICE", operands, [result_of(kind)])
        for of_whole, of_part in ((True, False), (False, True), (True, True)):
            operands = [data("f32", whole, constant=of_whole), data("f32", part, constant=of_part)]
            yield Trial("DYNAMIC_UPDATE_SLICE", [*operands, integers(begin, constant=False)])


def _one_hot(shape: Shape, *, axis: int = -1, wide: str = "i32", kind: str = "f32", on: Any = 1.0) -> Trial:
    values = [Tensor(kind, np.array(value), is_constant=True) for value in (on, np.zeros_like(on))]
    return Trial("ONE_HOT", [_places(4, shape, wide), integers(4), *values], [Result(kind)], {"axis": axis})


def _orders() -> Iterator[Trial]:
    for shape in (
        (8,),
        (2, 8),
        (2, 4),
        (2, 12),
        (3, 6),
        (2, 3, 8),
        (2, 3, 6),
        (1, 2, 3, 8),
        (1, 2, 3, 6),
        (1, 1000),
        SHAPES[5],
    ):
        for kind in ("f32", "i32", "i8"):
            yield Trial("TOPK_V2", [data(kind, shape), integers(3)], [result_of(kind), Result("i32")])
    yield Trial("TOPK_V2", [data("f32", (2, 8)), integers(3, constant=False)], [Result(), Result("i32")])
    yield from _along()
    yield Trial("REVERSE_V2", [data("f32", R4), integers((1, 2))])
    yield Trial("REVERSE_SEQUENCE", [data("f32", (2, 3, 6)), integers((2, 3))], options={"seq_dim": 1, "batch_dim": 0})
    yield Trial("SEGMENT_SUM", [data("f32", (4, 6)), integers((0, 0, 1, 1))])
    for name in ("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL"):
        for is_constant in (True, False):
            yield Trial(name, [integers((1, 6), constant=is_constant)])
    yield Trial("MULTINOMIAL", [data("f32", (2, 6)), integers(3)], [Result("i32")])
    yield Trial("RFFT2D", [data("f32", (1, 8, 8)), integers((8, 8))], [Result("complex64")])
    yield Trial("MATRIX_SET_DIAG", [data("f32", (3, 4)), data("f32", (3,))])
    for name in ("UNSORTED_SEGMENT_SUM", "UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_MIN", "UNSORTED_SEGMENT_PROD"):
        for shape, is_constant in product(((4, 6), (4,)), (True, False)):
            ids = integers((0, 1, 1, 0), constant=is_constant)
            yield Trial(name, [data("f32", shape), ids, integers(2)])
    yield Trial("SPARSE_TO_DENSE", [integers([[0], [2]]), integers((4,)), data("f32", (2,)), floats(0.0)])
    boxes = [data("f32", (8, 4), 0.0), data("f32", (8,), 0.0), integers(4), floats(0.5), floats(0.0)]
    yield Trial("NON_MAX_SUPPRESSION_V4", boxes, [Result("i32"), Result("i32")])
    soft = [*boxes, floats(0.5)]
    yield Trial("NON_MAX_SUPPRESSION_V5", soft, [Result("i32"), Result(), Result("i32")])
    yield Trial("WHERE", [data("bool", (3, 6))], [Result("i64")])
    yield Trial("RANGE", [floats(0.0), floats(4.0, constant=False), floats(1.0)])
    yield Trial("UNIQUE", [data("i32", (6,))], [Result("i32"), Result("i32")], {"idx_out_type": "INT32"})
    yield Trial("BROADCAST_ARGS", [integers((3, 1), constant=False), integers((1, 6))], [Result("i32")])


def _along() -> Iterator[Trial]:
    for shape in (*[SHAPES[rank] for rank in range(1, 6)], (2, 3, 4, 8), (2, 8), (1, 3, 8)):
        for axis in range(len(shape)):
            for exclusive, reverse in product((False, True), repeat=2):
                options = {"exclusive": exclusive, "reverse": reverse}
                yield Trial("CUMSUM", [data("f32", shape), integers(axis)], options=options)
            yield Trial("CUMSUM", [data("i32", shape), integers(axis)], [Result("i32")], {})
            if len(shape) > 3 or (len(shape) == 3 and axis < 2):  # Others don't always crash.
                yield Trial("CUMSUM", [data("f32", shape), integers(axis - len(shape))])
            for kind in ("f32", "i32", "i8"):
                yield Trial("REVERSE_V2", [data(kind, shape), integers((axis,))], [result_of(kind)])


def _images() -> Iterator[Trial]:
    sizes: Mapping[Shape, Sequence[Shape]] = {
        IMAGE: ((16, 16), (5, 3), (1, 1), (12, 12)),
        (1, 1, 1, 4): ((6, 6),),
        (2, 8, 8, 4): ((16, 16),),
        (1, 8, 8, 3): ((24, 24),),
    }
    for name in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
        for shape, size in pairs(sizes):
            for flags in ({}, {"half_pixel_centers": True}, {"align_corners": True}):
                options = {**NOT_ALIGNED, **flags}
                for kind in ("f32", "i8"):
                    yield Trial(name, [data(kind, shape), integers(size)], [result_of(kind)], options)
        yield Trial(name, [data("f32", IMAGE), integers((16, 16), constant=False)])
    for name, kind in product(("DEPTH_TO_SPACE", "SPACE_TO_DEPTH"), ("f32", "i8", "i32")):
        for shape, block in (((1, 8, 8, 16), 2), ((1, 8, 8, 16), 4), ((1, 8, 8, 12), 2), ((2, 8, 8, 16), 2)):
            yield Trial(name, [data(kind, shape)], [result_of(kind)], {"block_size": block})
    none = integers(np.zeros((2, 2)))
    for kind in ("f32", "i8"):
        yield Trial("SPACE_TO_BATCH_ND", [data(kind, IMAGE), integers((2, 2)), none], [result_of(kind)])
        yield Trial("BATCH_TO_SPACE_ND", [data(kind, (4, 4, 4, 4)), integers((2, 2)), none], [result_of(kind)])
    yield Trial("DILATE", [data("f32", R4), integers((1, 2, 2, 1)), floats(0.0)])


def _computed() -> Iterator[Trial]:
    """Yields operators with a shape, an axis or a size that is computed: some have results of unknown sizes then."""

    def known(values: Any) -> Tensor:
        return integers(values, constant=False)

    x, image = data("f32", (4, 6)), data("f32", IMAGE)
    none = integers(np.zeros((2, 2)))
    ends = (known((1, 0)), integers((3, 6))), (integers((1, 0)), known((3, 6))), (known((1, 0)), known((3, 6)))
    for begin, end in ends:
        yield Trial("STRIDED_SLICE", [x, begin, end, integers((1, 1))], options=MASKS)
    row = [x, known((1, 0)), known((2, 6)), integers((1, 1))]
    yield Trial("STRIDED_SLICE", row, options={**MASKS, "shrink_axis_mask": 1, "begin_mask": 2, "end_mask": 2})
    for begin, end in ((integers((1, 0)), known((2, 6))), (known((1, 0)), known((2, 6)))):
        yield Trial("SLICE", [x, begin, end])
    yield Trial("BATCH_TO_SPACE_ND", [data("f32", (4, 4, 4, 4)), known((2, 2)), none])
    yield Trial("SPACE_TO_BATCH_ND", [image, known((2, 2)), none])
    yield Trial("SPLIT", [known(1), x], [Result()] * 2, {"num_splits": 2})
    yield Trial("SPLIT_V", [x, known((2, 4)), integers(1)], [Result()] * 2, {"num_splits": 2})
    for name in ("ARG_MAX", "ARG_MIN"):
        yield Trial(name, [x, known(1)], [Result("i32")], {"output_type": "INT32"})
    for name in OF_BOOLEANS:
        yield Trial(name, [data("bool", (4, 6)), known((1,))], [Result("bool")], {"keep_dims": False})
    yield Trial("SPARSE_TO_DENSE", [integers([[0], [2]]), known((4,)), data("f32", (2,)), floats(0.0)])
    yield Trial("EXPAND_DIMS", [x, known(1)])
    yield Trial("ONE_HOT", [_places(4, (3,)), known(4), floats(1.0), floats(0.0)], options={"axis": -1})
    yield Trial("FILL", [known((4, 6)), floats(1.0)])
    for dims in (known((4, 6)), integers((4, 6))):
        yield Trial("FILL", [dims, floats(1.0, constant=False)])
    yield Trial("MIRROR_PAD", [image, known(((0, 0), (1, 1), (1, 1), (0, 0)))], options={"mode": "REFLECT"})
    yield Trial("REVERSE_V2", [x, known((0,))])
    yield Trial("SCATTER_ND", [integers([[0], [2]]), data("f32", (2, 6)), known((4, 6))])
    yield Trial("CUMSUM", [data("f32", (1, 2, 3, 4)), known(2)], options={"exclusive": False, "reverse": False})
    yield Trial("BROADCAST_TO", [data("f32", (1, 6)), known((4, 6))])


def trials() -> Iterator[Trial]:
    """Yields the forms."""
    yield from _computed()
    yield from _pads()
    yield from _shapes()
    yield from _joins()
    yield from _parts()
    yield from _gathers()
    yield from _orders()
    yield from _images()
