"""Recipes of ops that move, choose and gather elements, and of those that reduce them."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from tests.differential.random_graphs.program import Builder, Ref
from tests.differential.random_graphs.recipes import Recipe
from tests.differential.random_graphs.values import ALL, NUMBERS, draw_array

_MANY = range(1, 7)


def _axis(build: Builder, rank: int) -> int:
    return build.random.randrange(-rank, rank)


def _index(build: Builder) -> str:
    return build.random.choice(("int32", "int32", "int64"))


def _reduce(op: str, build: Builder) -> None:
    one = build.pick(["bool"] if op in ("All", "Any") else NUMBERS)
    rank = build.array(one).ndim
    axes = build.random.sample(range(rank), build.random.randint(0, rank))
    given = [axis - rank if build.random.random() < 0.3 else axis for axis in axes]
    axis = build.fixed(given[0] if len(given) == 1 and build.random.random() < 0.5 else given, _index(build))
    name = "input_tensor" if op in ("All", "Any") else "input"
    build.op(
        op, **{name if op not in ("All", "Any") else "input": one}, axis=axis, keep_dims=build.random.random() < 0.4
    )


def _arg(op: str, build: Builder) -> None:
    one = build.pick((*NUMBERS, "bool"), rank=_MANY)
    axis = build.fixed(_axis(build, build.array(one).ndim))
    build.op(op, input=one, dimension=axis, output_type=build.tf.as_dtype(_index(build)))


def _cumulate(op: str, build: Builder) -> None:
    one = build.pick(NUMBERS, rank=_MANY)
    axis = build.fixed(_axis(build, build.array(one).ndim), _index(build))
    build.op(op, x=one, axis=axis, exclusive=build.random.random() < 0.4, reverse=build.random.random() < 0.4)


def _reshape(build: Builder) -> None:
    one = build.pick()
    size = build.array(one).size
    shape: list[int] = []
    while size > 1 and build.random.random() < 0.8 and len(shape) < 5:
        factor = build.random.choice([each for each in range(1, size + 1) if size % each == 0])
        shape.append(factor)
        size //= factor
    shape.append(size)
    if build.array(one).size and build.random.random() < 0.4:
        shape[build.random.randrange(len(shape))] = -1
    build.op("Reshape", tensor=one, shape=build.fixed(shape, _index(build)))


def _transpose(build: Builder) -> None:
    one = build.pick()
    order = list(range(build.array(one).ndim))
    build.random.shuffle(order)
    build.op("Transpose", x=one, perm=build.fixed(order, _index(build)))


def _expand(build: Builder) -> None:
    one = build.pick(rank=range(6))
    build.op("ExpandDims", input=one, axis=build.fixed(_axis(build, build.array(one).ndim + 1), _index(build)))


def _squeeze(build: Builder) -> None:
    one = build.pick()
    ones = [axis for axis, size in enumerate(build.array(one).shape) if size == 1]
    build.op("Squeeze", input=one, axis=build.random.sample(ones, build.random.randint(0, len(ones))))


def _concat(build: Builder) -> None:
    one = build.pick(rank=_MANY)
    array = build.array(one)
    axis = build.random.randrange(array.ndim)
    values = [one]
    for _ in range(build.random.randint(1, 3)):
        shape = list(array.shape)
        shape[axis] = build.random.randint(0, 3)
        values.append(build.leaf(draw_array(build.random, build.type_of(one), shape)))
    build.random.shuffle(values)
    build.op("ConcatV2", values=values, axis=build.fixed(axis - build.random.choice((0, array.ndim)), _index(build)))


def _pack(build: Builder) -> None:
    one = build.pick(rank=range(6))
    values = [
        one,
        *(build.pick([build.type_of(one)], shape=build.array(one).shape) for _ in range(build.random.randint(0, 3))),
    ]
    build.op("Pack", values=values, axis=_axis(build, build.array(one).ndim + 1))


def _unpack(build: Builder) -> None:
    one = build.pick(rank=_MANY)
    axis = build.random.randrange(build.array(one).ndim)
    build.op("Unpack", value=one, num=build.array(one).shape[axis], axis=axis)


def _split(build: Builder) -> None:
    one = build.pick(rank=_MANY)
    axis = build.random.randrange(build.array(one).ndim)
    size = build.array(one).shape[axis]
    if build.random.random() < 0.5:
        count = build.random.choice([each for each in range(1, size + 1) if size % each == 0] or [1])
        build.op("Split", axis=build.fixed(axis), value=one, num_split=count)
        return
    cuts = sorted(build.random.randint(0, size) for _ in range(build.random.randint(0, 2)))
    sizes = [end - start for start, end in zip([0, *cuts], [*cuts, size], strict=True)]
    if build.random.random() < 0.3:
        sizes[build.random.randrange(len(sizes))] = -1
    build.op(
        "SplitV", value=one, size_splits=build.fixed(sizes, _index(build)), axis=build.fixed(axis), num_split=len(sizes)
    )


def _slice(build: Builder) -> None:
    one = build.pick(rank=_MANY)
    shape = build.array(one).shape
    begin = [build.random.randint(0, size) for size in shape]
    size = [
        build.random.choice((-1, build.random.randint(0, whole - start)))
        for whole, start in zip(shape, begin, strict=True)
    ]
    index = _index(build)
    build.op("Slice", input=one, begin=build.fixed(begin, index), size=build.fixed(size, index))


def _strided(build: Builder) -> None:
    one = build.pick()
    rank = build.array(one).ndim
    count = build.random.randint(0, rank + 1)
    begin, end, stride = ([build.random.randint(-4, 5) for _ in range(count)] for _ in range(3))
    stride = [each or 1 for each in stride]
    if build.random.random() < 0.6:
        stride = [1] * count
    masks = {
        name: build.random.getrandbits(count) & build.random.getrandbits(count) if count else 0
        for name in ("begin_mask", "end_mask", "shrink_axis_mask", "new_axis_mask")
    }
    if count and build.random.random() < 0.2:
        masks["ellipsis_mask"] = 1 << build.random.randrange(count)
    index = _index(build)
    operands = {
        name: build.fixed(value, index) for name, value in (("begin", begin), ("end", end), ("strides", stride))
    }
    build.op("StridedSlice", input=one, **operands, **masks)


def _tile(build: Builder) -> None:
    one = build.pick()
    counts = [build.random.choice((0, 1, 1, 2, 3)) for _ in build.array(one).shape]
    build.op("Tile", input=one, multiples=build.fixed(counts, _index(build)))


def _broadcast(build: Builder) -> None:
    one = build.pick()
    array = build.array(one)
    shape = [size if size != 1 else build.random.randint(0, 3) for size in array.shape]
    shape = [build.random.randint(1, 3) for _ in range(build.random.randint(0, max(0, 6 - array.ndim)))] + shape
    build.op("BroadcastTo", input=one, shape=build.fixed(shape, _index(build)))


def _pad(build: Builder) -> None:
    one = build.pick()
    shape = build.array(one).shape
    pads = np.array([[build.random.randint(0, 2), build.random.randint(0, 2)] for _ in shape]).reshape(-1, 2)
    kind = build.random.choice(("Pad", "PadV2", "MirrorPad"))
    operand = build.fixed(pads, _index(build))
    if kind == "Pad":
        build.op(kind, input=one, paddings=operand)
    elif kind == "PadV2":
        build.op(
            kind,
            input=one,
            paddings=operand,
            constant_values=build.leaf(draw_array(build.random, build.type_of(one), ())),
        )
    else:
        build.op(kind, input=one, paddings=operand, mode=build.random.choice(("REFLECT", "SYMMETRIC")))


def _reverse(build: Builder) -> None:
    one = build.pick()
    rank = build.array(one).ndim
    axes = build.random.sample(range(rank), build.random.randint(0, rank))
    build.op(
        "ReverseV2",
        tensor=one,
        axis=build.fixed([axis - build.random.choice((0, rank)) for axis in axes], _index(build)),
    )


def _roll(build: Builder) -> None:
    one = build.pick(rank=range(1, 5))
    index = _index(build)
    axis = build.fixed(_axis(build, build.array(one).ndim), index)
    build.op("Roll", input=one, shift=build.fixed(build.random.randint(-6, 6), index), axis=axis)


def _places(build: Builder, limit: int, shape: tuple[int, ...]) -> Ref:
    if not limit:
        shape = (0, *shape[1:])
    generator = np.random.default_rng(build.random.randrange(1 << 32))
    return build.leaf(generator.integers(0, max(limit, 1), shape).astype(_index(build)))


def _small(build: Builder) -> tuple[int, ...]:
    return tuple(
        build.random.randint(0 if build.random.random() < 0.05 else 1, 3) for _ in range(build.random.randint(0, 3))
    )


def _gather(build: Builder) -> None:
    one = build.pick(rank=_MANY)
    shape = build.array(one).shape
    batch = build.random.choice((0, 0, 0, 1)) if len(shape) > 1 else 0
    axis = build.random.randrange(batch, len(shape))
    places = _places(build, shape[axis], (*shape[:batch], *_small(build)))
    build.op("GatherV2", params=one, indices=places, axis=build.fixed(axis), batch_dims=batch)


def _gather_nd(build: Builder) -> None:
    one = build.pick(rank=_MANY)
    shape = build.array(one).shape
    depth = build.random.randint(0 if build.random.random() < 0.1 else 1, len(shape))
    if not math.prod(shape):
        return
    parts = [np.random.default_rng(build.random.randrange(1 << 32)).integers(0, size, (2, 3)) for size in shape[:depth]]
    indices = np.stack(parts, -1) if parts else np.zeros((2, 3, 0), int)
    build.op("GatherNd", params=one, indices=build.leaf(indices.astype(_index(build))))


def _scatter(op: str, build: Builder) -> None:
    one = build.pick(rank=range(1, 5))
    shape = build.array(one).shape
    depth = build.random.randint(1, len(shape))
    if not math.prod(shape):
        return
    whole = math.prod(shape[:depth])
    count = build.random.randint(0, min(whole, 4))
    flat = build.random.sample(range(whole), count)
    index = _index(build)
    indices = build.leaf(
        np.stack(np.unravel_index(flat, shape[:depth]), -1).astype(index) if count else np.zeros((0, depth), index)
    )
    updates = build.leaf(draw_array(build.random, build.type_of(one), (count, *shape[depth:])))
    if op == "ScatterNd":
        build.op(op, indices=indices, updates=updates, shape=build.fixed(shape, index))
    else:
        build.op(op, tensor=one, indices=indices, updates=updates)


def _one_hot(build: Builder) -> None:
    indices = build.pick(("int32", "int64", "uint8", "int8"), rank=range(5))
    on, off = (build.leaf(draw_array(build.random, "float32", ()), 0.9) for _ in range(2))
    if build.random.random() < 0.4:
        name = build.random.choice(ALL[:-1])
        on, off = (build.leaf(draw_array(build.random, name, ()), 0.9) for _ in range(2))
    axis = build.random.randint(-1, build.array(indices).ndim)
    build.op(
        "OneHot", indices=indices, depth=build.fixed(build.random.randint(0, 5)), on_value=on, off_value=off, axis=axis
    )


def _range(build: Builder) -> None:
    name = build.random.choice(("int32", "int64", "float32"))
    step = build.random.choice((-2, -1, 1, 2, 3))
    start, limit = (build.random.randint(-5, 5) for _ in range(2))
    start, limit = (min(start, limit), max(start, limit)) if step > 0 else (max(start, limit), min(start, limit))
    build.op("Range", start=build.fixed(start, name), limit=build.fixed(limit, name), delta=build.fixed(step, name))


def _fill(build: Builder) -> None:
    value = build.pick(rank=0)
    build.op("Fill", dims=build.fixed(_small(build), _index(build)), value=value)


def _top(build: Builder) -> None:
    one = build.pick(("float32", "int32", "int64", "int8", "uint8", "int16", "float16"), rank=range(1, 5))
    count = build.random.randint(0, build.array(one).shape[-1])
    if np.unique(build.array(one)).size == build.array(one).size:
        build.op("TopKV2", input=one, k=build.fixed(count), sorted=True)


def _where(build: Builder) -> None:
    build.op("Where", condition=build.pick(["bool", "int32", "float32"], rank=range(1, 5)))


def _segments(op: str, build: Builder) -> None:
    one = build.pick(("float32", "int32", "int64"), rank=range(1, 5))
    size = build.array(one).shape[0]
    ids = sorted(build.random.randint(0, 4) for _ in range(size))
    build.op(op, data=one, segment_ids=build.leaf(np.array(ids, _index(build)), 0.5))


def _unsorted(op: str, build: Builder) -> None:
    one = build.pick(("float32", "int32"), rank=range(1, 4))
    ids = [build.random.randint(-1, 3) for _ in range(build.array(one).shape[0])]
    build.op(op, data=one, segment_ids=build.leaf(np.array(ids, "int32"), 0.5), num_segments=build.fixed(4))


def _blocks(op: str, build: Builder) -> None:
    block = build.random.randint(2, 3)
    space = (build.random.randint(1, 2) * block, build.random.randint(1, 2) * block)
    depth = build.random.randint(1, 2)
    shape = (
        build.random.randint(1, 2),
        *(space if op == "SpaceToDepth" else (2, 1)),
        depth if op == "SpaceToDepth" else depth * block * block,
    )
    build.op(op, input=build.pick(ALL, rank=4, shape=shape), block_size=block)


def _batches(op: str, build: Builder) -> None:
    count = build.random.randint(1, 3)
    blocks = [build.random.randint(1, 2) for _ in range(count)]
    index = _index(build)
    if op == "SpaceToBatchND":
        space = [build.random.randint(1, 2) * block for block in blocks]
        pads = [[block * build.random.randint(0, 1), 0] for block in blocks]
        one = build.pick(NUMBERS, shape=[build.random.randint(1, 2), *space, *_small(build)[:1]])
        build.op(op, input=one, block_shape=build.fixed(blocks, index), paddings=build.fixed(pads, index))
        return
    crops = [[build.random.randint(0, 1), 0] for _ in blocks]
    one = build.pick(NUMBERS, shape=[math.prod(blocks) * build.random.randint(1, 2), *[2] * count, *_small(build)[:1]])
    build.op(op, input=one, block_shape=build.fixed(blocks, index), crops=build.fixed(crops, index))


def _diagonal(op: str, build: Builder) -> None:
    if op == "MatrixDiagV3":
        one = build.pick(NUMBERS, rank=range(1, 4))
        size, zero = build.array(one).shape[-1], build.leaf(draw_array(build.random, build.type_of(one), ()), 1)
        sizes = {name: build.fixed(-1) for name in ("num_rows", "num_cols")}
        build.op(op, diagonal=one, k=build.fixed(build.random.choice((0, 0, 1, -1))), padding_value=zero, **sizes)
        assert size >= 0
        return
    one = build.pick(NUMBERS, rank=range(2, 5))
    shape = build.array(one).shape
    if op == "MatrixDiagPartV3":
        zero = build.leaf(draw_array(build.random, build.type_of(one), ()), 1)
        build.op(op, input=one, k=build.fixed(build.random.choice((0, 0, 1, -1))), padding_value=zero)
    elif op == "MatrixSetDiagV3":
        diagonal = build.leaf(draw_array(build.random, build.type_of(one), (*shape[:-2], min(shape[-2:]))))
        build.op(op, input=one, diagonal=diagonal, k=build.fixed(0))
    else:
        low, high = (build.fixed(build.random.randint(-1, 2)) for _ in range(2))
        build.op("MatrixBandPart", input=one, num_lower=low, num_upper=high)


def _reverse_sequence(build: Builder) -> None:
    one = build.pick(rank=range(2, 5))
    shape = build.array(one).shape
    batch, along = build.random.sample(range(len(shape)), 2)
    lengths = [build.random.randint(0, shape[along]) for _ in range(shape[batch])]
    build.op(
        "ReverseSequence",
        input=one,
        seq_lengths=build.leaf(np.array(lengths, _index(build))),
        seq_dim=along,
        batch_dim=batch,
    )


def _unique(build: Builder) -> None:
    op = build.random.choice(("Unique", "UniqueWithCounts"))
    build.op(op, x=build.pick(("int32", "int64", "float32", "uint8"), rank=1), out_idx=build.tf.as_dtype(_index(build)))


def _linspace(build: Builder) -> None:
    start, stop = (build.fixed(build.random.uniform(-5, 5), "float32") for _ in range(2))
    build.op("LinSpace", start=start, stop=stop, num=build.fixed(build.random.randint(1, 6)))


def _permutation(build: Builder) -> None:
    order = list(range(build.random.randint(1, 5)))
    build.random.shuffle(order)
    build.op("InvertPermutation", x=build.leaf(np.array(order, _index(build))))


def _bincount(build: Builder) -> None:
    values = build.leaf(np.array([build.random.randint(0, 6) for _ in range(build.random.randint(0, 9))], "int32"))
    empty = build.leaf(np.zeros(0, "float32"), 1)
    build.op("DenseBincount", input=values, size=build.fixed(build.random.randint(1, 6)), weights=empty)


# Recipes by name.
SHAPES: dict[str, Recipe] = {
    **{op: partial(_reduce, op) for op in ("Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "EuclideanNorm")},
    **{op: partial(_arg, op) for op in ("ArgMax", "ArgMin")},
    **{op: partial(_cumulate, op) for op in ("Cumsum", "Cumprod")},
    **{
        op: partial(_scatter, op)
        for op in (
            "ScatterNd",
            "TensorScatterUpdate",
            "TensorScatterAdd",
            "TensorScatterSub",
            "TensorScatterMax",
            "TensorScatterMin",
        )
    },
    **{op: partial(_segments, op) for op in ("SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "SegmentProd")},
    **{
        op: partial(_unsorted, op)
        for op in ("UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd")
    },
    **{op: partial(_blocks, op) for op in ("SpaceToDepth", "DepthToSpace")},
    **{op: partial(_batches, op) for op in ("SpaceToBatchND", "BatchToSpaceND")},
    **{op: partial(_diagonal, op) for op in ("MatrixDiagV3", "MatrixDiagPartV3", "MatrixSetDiagV3", "MatrixBandPart")},
    "Reshape": _reshape,
    "Transpose": _transpose,
    "ExpandDims": _expand,
    "Squeeze": _squeeze,
    "ConcatV2": _concat,
    "Pack": _pack,
    "Unpack": _unpack,
    "Split": _split,
    "Slice": _slice,
    "StridedSlice": _strided,
    "Tile": _tile,
    "BroadcastTo": _broadcast,
    "Pad": _pad,
    "ReverseV2": _reverse,
    "Roll": _roll,
    "GatherV2": _gather,
    "GatherNd": _gather_nd,
    "OneHot": _one_hot,
    "Range": _range,
    "Fill": _fill,
    "TopKV2": _top,
    "Where": _where,
    "ReverseSequence": _reverse_sequence,
    "Unique": _unique,
    "LinSpace": _linspace,
    "InvertPermutation": _permutation,
    "DenseBincount": _bincount,
}
