"""Forms of single operators that the GPU refuses, computes incorrectly or fails at, with the rewrites for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.accelerator_probe.trial import Result, Trial, data, floats, integers
from benchmarks.kernel_probe.tensors import Tensor

X = (1, 3, 4, 6)
IMAGE = (1, 8, 8, 4)

_SLICE = {f"{name}_mask": 0 for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
_POOL = {"padding": "VALID", "stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2}
_NORMAL = {"radius": 2, "bias": 1.0, "alpha": 0.5, "beta": 0.5}


def _numbers(values: Any) -> Any:
    """Returns computed integers, which are an input."""
    return integers(values, constant=False)


def _indexing() -> Iterator[tuple[str, Trial]]:
    for name, begin, end, strides in (
        ("slice-as-reversal", (5, 0), (-7, 6), (-1, 1)),
        ("strided-slice-without-masks", (0, 5), (6, -7), (1, -2)),
        ("strided-slice-without-masks", (5, 5), (0, -7), (-2, -1)),
    ):
        bounds = [integers((0, *each, 0)) for each in (begin, end)]
        bounds[1] = integers((1, *end, 6))
        trial = Trial("STRIDED_SLICE", [data("f32", (1, 6, 6, 6)), *bounds, integers((1, *strides, 1))], options=_SLICE)
        yield name, trial
    yield "slice-by-places", Trial("SLICE", [data("f32", X), _numbers((0, 1, 2, 0)), integers((1, 2, 1, 6))])
    for axis, at in ((1, 2), (2, 5)):
        yield (
            "constant-gather-as-slices",
            Trial("GATHER", [data("f32", (2, 3, 6)), integers(at)], options=_gather(axis)),
        )
    for places in (((0, 2, 1), (7, 0, 3)), 5):
        yield "gather-by-a-vector", Trial("GATHER", [data("f32", (8, 6)), _numbers(places)], options=_gather(0))
    places = _numbers(((0, 3, 1), (2, 2, 0)))
    yield "gather-by-a-vector", Trial("GATHER", [data("f32", (2, 4, 6)), places], options=_gather(1, 1))
    yield "gather-by-a-vector", Trial("GATHER", [data("f32", (2, 3, 4, 6)), places], options=_gather(2, 1))
    for coordinates in (((0,), (7,)), ((0, 1), (2, 3)), (((2, 3, 5),),)):
        depth = np.array(coordinates).shape[-1]
        table = data("f32", (8, 6) if depth == 1 else (3, 4, 6))
        yield "gather-nd-as-gather", Trial("GATHER_ND", [table, _numbers(coordinates)])
        yield "gather-nd-as-gather", Trial("GATHER_ND", [table, integers(coordinates)])
    yield "reverse-in-rank-4", Trial("REVERSE_V2", [data("f32", X), integers((2, 3))])
    yield "reverse-in-rank-4", Trial("REVERSE_V2", [data("f32", (3, 6)), integers((1,))])
    for start in ((0, 1, 2, 0), (0, 3, 9, 0)):
        operands = [data("f32", X), data("f32", (1, 2, 2, 6)), integers(start)]
        yield "update-as-concatenation", Trial("DYNAMIC_UPDATE_SLICE", operands)


def _gather(axis: int, batch_dims: int = 0) -> Mapping[str, int]:
    return {"axis": axis, "batch_dims": batch_dims}


def _joining() -> Iterator[tuple[str, Trial]]:
    parts = [Result("i32"), Result("i32")]
    for shape in ((1, 4, 6, 8), (1, 1, 4, 6, 8)):
        operands = [integers(-1), data("i32", shape)]
        yield "split-as-slices", Trial("SPLIT", operands, parts, {"num_splits": 2})
    operands = [data("i32", (4, 8)), integers((3, 5)), integers(1)]
    yield "split_v-as-slices", Trial("SPLIT_V", operands, parts, {"num_splits": 2})
    packed: Sequence[tuple[Sequence[int], int]] = (((6,), 1), ((3, 6), 1), ((2, 3, 6), 1), ((), 0))
    for sizes, axis in packed:
        x = data("f32", sizes)
        yield "pack-of-copies", Trial("PACK", [x, x], options={"values_count": 2, "axis": axis})
    squares: Sequence[Sequence[int]] = ((1, 4, 4), (1, 2, 4, 4))
    for square in squares:
        x = data("f32", square)
        yield "product-with-a-copy", Trial("BATCH_MATMUL", [x, x], options={"adj_x": False, "adj_y": True})
    yield "concatenation-of-one", Trial("CONCATENATION", [data("f32", X)], options={"axis": 3})


def _padding() -> Iterator[tuple[str, Trial]]:
    for shape, pads in (((8,), (1, 2)), ((3, 8), (1, 0, 1, 2)), ((2, 8, 4), (0, 0, 1, 2, 0, 0))):
        yield "pad-in-rank-4", Trial("PAD", [data("f32", shape), _pads(pads)])
    yield "pad-by-axis", Trial("PAD", [data("f32", IMAGE), _pads((1, 1, 0, 1, 2, 0, 1, 0))])
    for kind in ("i32", "bool"):
        trial = Trial("PAD", [data(kind, IMAGE), _pads((0, 0, 1, 2, 2, 1, 0, 0))], [Result(kind)])
        yield "pad-as-concatenation", trial
    operands = [data("f32", IMAGE), _pads((0, 0, 1, 2, 2, 1, 0, 0)), floats(-np.inf)]
    yield "pad-with-finite-numbers", Trial("PADV2", operands)
    for mode in ("SYMMETRIC", "REFLECT"):
        trial = Trial("MIRROR_PAD", [data("f32", (4, 8)), _pads((2, 1, 1, 3))], options={"mode": mode})
        yield "mirror-as-slices", trial
    for block, pads in (((2, 2), (0, 0, 0, 0)), ((2, 4), (1, 1, 3, 1))):
        operands = [data("f32", (2, 8, 8, 4)), integers(block), _pads(pads)]
        yield "blocks-to-batch", Trial("SPACE_TO_BATCH_ND", operands)
        yield "batch-to-blocks", Trial("BATCH_TO_SPACE_ND", [data("f32", (16, 2, 3, 4)), *operands[1:]])
    for kind, batch in (("f32", 2), ("i32", 1)):
        name = "as-transpose" if kind == "i32" else "of-batch"
        for operator in ("DEPTH_TO_SPACE", "SPACE_TO_DEPTH"):
            trial = Trial(operator, [data(kind, (batch, 4, 4, 8))], [Result(kind)], {"block_size": 2})
            yield f"{operator.lower()}-{name}", trial


def _pads(numbers: Sequence[int]) -> Any:
    return integers(np.array(numbers).reshape(-1, 2))


def _ranking() -> Iterator[tuple[str, Trial]]:
    for rows in ((2, 6), (7,)):
        yield "top-k-of-whole-lanes", Trial("TOPK_V2", [data("f32", rows), integers(3)], [Result(), Result("i32")])
    extremes: Sequence[tuple[Sequence[int], int]] = (((3, 6), 1), (X, 3), (X, 1))
    for low in (-2.0, 1.0):
        for shape, axis in extremes:
            for name in ("ARG_MAX", "ARG_MIN"):
                if name == "ARG_MIN" or axis == len(shape) - 1:
                    operands = [data("f32", shape, low, low + 1), integers(axis)]
                    trial = Trial(name, operands, [Result("i32")], {"output_type": "INT32"})
                    yield f"{name.lower()}-of-the-highest", trial
    for places, axis, kind in (((0, 3, 1), 0, "f32"), (((0,), (2,)), 1, "f32"), (2, -1, "f32"), ((0, 3), -1, "i32")):
        numbers = [floats(1.0), floats(0.0)] if kind == "f32" else [integers(5), integers(-2)]
        operands = [_numbers(places), integers(4), *numbers]
        yield "one-hot-of-a-vector", Trial("ONE_HOT", operands, [Result(kind)], {"axis": axis})
    options = {"boundaries": (-0.5, 0.0, 0.25)}
    yield "bucketize-as-comparisons", Trial("BUCKETIZE", [data("f32", (2, 6))], [Result("i32")], options)


def _sums() -> Iterator[tuple[str, Trial]]:
    for kind, name in (("f32", "cumsum-in-rank-4"), ("i32", "cumsum-by-doubling")):
        for flags in range(4):
            options = {"exclusive": bool(flags & 1), "reverse": bool(flags & 2)}
            for shape, axis in ((X, 3), ((3, 6), 0), ((6,), 0), (X, 1)):
                if kind == "i32" or flags or shape != X:
                    yield name, Trial("CUMSUM", [data(kind, shape), integers(axis)], [Result(kind)], options)
    yield "cumsum-in-rank-4", Trial("CUMSUM", [data("f32", (3, 6)), integers(-1)])


def _formulas() -> Iterator[tuple[str, Trial]]:
    for shape in (X, (3, 6), (1, 2, 3, 4, 6)):
        yield "log-softmax-by-formula", Trial("LOG_SOFTMAX", [data("f32", shape)])
        yield "l2-normalization-by-formula", Trial("L2_NORMALIZATION", [data("f32", shape)])
        yield "relu-0-to-1-as-minimum", Trial("RELU_0_TO_1", [data("f32", shape)])
    yield "softmax-of-product", Trial("SOFTMAX", [data("f32", X)], options={"beta": 0.5})
    yield "softmax-of-product", Trial("SOFTMAX", [data("f32", (6,))], options={"beta": 1.0})
    options = {"padding": "SAME", "stride_w": 1, "stride_h": 1, "fused_activation_function": "RELU"}
    options |= {"dilation_w_factor": 1, "dilation_h_factor": 1}
    operands = [data("f32", IMAGE), data("f32", (5, 3, 3, 4), constant=True), data("f32", (5,))]
    yield "conv_2d-then-bias", Trial("CONV_2D", operands, options=options)
    yield from _transposed()
    yield "l2-pool-by-formula", Trial("L2_POOL_2D", [data("f32", IMAGE)], options=_POOL)
    yield "local-response-by-convolution", Trial("LOCAL_RESPONSE_NORMALIZATION", [data("f32", IMAGE)], options=_NORMAL)
    for slope in (-0.5, 1.5):
        yield "leaky-relu-by-formula", Trial("LEAKY_RELU", [data("f32", X)], options={"alpha": slope})
    yield "prelu-of-channels", Trial("PRELU", [data("f32", X), floats(0.25)])
    yield "prelu-by-formula", Trial("PRELU", [data("f32", X), data("f32", (1, 1, 6))])
    yield "pow-as-products", Trial("POW", [data("i32", X), integers(3)], [Result("i32")])
    for operands in ([data("i32", X), integers(2)], [integers(2), data("i32", (3, 6))]):
        yield "squared-difference-as-product", Trial("SQUARED_DIFFERENCE", operands, [Result("i32")])
    yield "add-n-as-sums", Trial("ADD_N", [data("f32", X) for _ in range(3)])
    for keeps in (True, False):
        trial = Trial("MEAN", [data("i32", X), integers((1, 2))], [Result("i32")], {"keep_dims": keeps})
        yield "mean-of-integers", trial
    table = data("i32", X, constant=True)
    yield "sub-exchanged", Trial("SUB", [table, data("i32", X)], [Result("i32")])
    for name in ("LESS", "GREATER_EQUAL"):
        yield f"{name.lower()}-exchanged", Trial(name, [table, data("i32", X)], [Result("bool")])


def _transposed() -> Iterator[tuple[str, Trial]]:
    for (height, width), taps, stride in (((7, 7), 3, 2), ((8, 5), 5, 2), ((4, 4), 3, 3)):
        options = {"padding": "SAME", "stride_h": stride, "stride_w": stride, "fused_activation_function": "NONE"}
        weights, bias = data("f32", (5, taps, taps, 4), constant=True), data("f32", (5,), constant=True)
        size = integers((1, height * stride, width * stride, 5))
        operands = [size, weights, data("f32", (1, height, width, 4)), bias]
        yield "transpose-conv-then-slice", Trial("TRANSPOSE_CONV", operands, options=options)


def _scattering() -> Iterator[tuple[str, Trial]]:
    for places in (((0,), (2,)), ((3,), (3,))):
        operands = [integers(places), data("f32", (2, 6)), integers((4, 6))]
        yield "scatter-as-gather", Trial("SCATTER_ND", operands)
    operands = [integers(((0, 1), (3, 5))), data("i32", (2,)), integers((4, 6))]
    yield "scatter-as-gather", Trial("SCATTER_ND", operands, [Result("i32")])
    yield "segment_sum-as-product", Trial("SEGMENT_SUM", [data("f32", (4, 6)), integers((0, 0, 1, 2))])
    yield "fill-as-tile", Trial("FILL", [integers((2, 3)), Tensor("f32", np.array(2.5, np.float32))])
    yield "diagonal-as-product", Trial("MATRIX_DIAG", [data("f32", (2, 6))])
    operands = [data("bool", (3, 8)), integers((0,))]
    yield "reverse_v2-of-booleans", Trial("REVERSE_V2", operands, [Result("bool")])


def forms() -> list[tuple[str, Trial]]:
    """Returns the names of rewrites, each with a form that it is for."""
    families = (_indexing, _joining, _padding, _ranking, _sums, _formulas, _scattering)
    return [pair for family in families for pair in family()]
