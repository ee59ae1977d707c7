"""Models of one operator, with numbers that integers represent exactly: one for each row of the rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tests.converter.targets.litert.optimize.graph import Graph
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.types import I8, IntegerType
from tfconvert.schema.ir.values import Value

Array = np.ndarray[Any, np.dtype[Any]]

WEIGHT_SCALE = 2.0**-6


class Draw:
    """Random numbers, each an integer times a power of two, whose range gives just that scale.

    Args:
        storage: The type of integers that is to represent them.
    """

    def __init__(self, storage: IntegerType) -> None:
        self._random = np.random.default_rng(storage.width)
        self._is_byte = storage is I8

    def scale(self, number: int = 0) -> float:
        """Returns the scale of an input."""
        return (2.0**-5 if self._is_byte else 2.0**-13) * 2.0**number

    def values(self, shape: Sequence[int], number: int = 0, *, positive: bool = False) -> Array:
        """Returns an activation, of the scale of the input of some number."""
        low, high = (-128, 127) if self._is_byte else (-16383, 16383)
        if positive:
            low, high = 1, high - low if self._is_byte else high
        elif self._is_byte:
            zero_point = (20, -30)[number]
            low, high = low - zero_point, high - zero_point
        whole = self._random.integers(low, high, math.prod(shape), endpoint=True)
        whole[:1], whole[-1:] = low, high
        return (whole.reshape(shape) * self.scale(number)).astype(np.float32)

    def weight(self, shape: Sequence[int], axis: int) -> Array:
        """Returns a weight with its largest integer in each channel."""
        whole = np.moveaxis(self._random.integers(-127, 127, shape, endpoint=True), axis, 0)
        whole.reshape(len(whole), -1)[:, 0] = 127
        whole = np.moveaxis(whole, 0, axis)
        return (whole * WEIGHT_SCALE).astype(np.float32)

    def bias(self, count: int) -> Array:
        """Returns a bias."""
        return (self._random.integers(-2000, 2000, count) * self.scale() * WEIGHT_SCALE).astype(np.float32)


class Case(NamedTuple):
    """A model of one operator.

    Attributes:
        shapes: The shapes of its inputs.
        build: Builds it: from a graph, its inputs and the random numbers to its results.
        positive: Whether its inputs are positive.
    """

    shapes: Sequence[Sequence[int]]
    build: Callable[[Graph, Sequence[Value], Draw], Value | Sequence[Value]]
    positive: bool = False


def _plain(name: str, *, positive: bool = False, **options: Any) -> Case:
    return Case([(2, 3, 5)], lambda g, x, d: g.op(name, x[0], **options), positive)


def _pair(name: str, **options: Any) -> Case:
    return Case([(2, 3, 5), (3, 1)], lambda g, x, d: g.op(name, *x, **options))


def _same_pair(name: str) -> Case:
    return Case([(2, 3, 5), (2, 3, 5)], lambda g, x, d: g.op(name, *x))


def _compare(name: str) -> Case:
    return Case([(2, 3, 5), (2, 3, 5)], lambda g, x, d: g.op(name, *x, shape=(2, 3, 5), element=types.I1))


def _arg(name: str) -> Case:
    options: dict[str, Any] = {"output_type": "INT32"}
    return Case([(2, 7)], lambda g, x, d: g.op(name, x[0], g.constant([1]), shape=(2,), element=types.I32, **options))


def _reduce(name: str) -> Case:
    return Case([(2, 4, 3)], lambda g, x, d: g.op(name, x[0], [1], shape=(2, 3), keep_dims=False))


def _shaped(name: str, before: Sequence[int], after: Sequence[int], *operands: Any, **options: Any) -> Case:
    return Case([before], lambda g, x, d: g.op(name, x[0], *operands, shape=after, **options))


def _pool(name: str) -> Case:
    options: dict[str, Any] = {"padding": "VALID", "filter_width": 2, "filter_height": 2, "stride_w": 2, "stride_h": 2}
    return _shaped(name, (1, 4, 4, 3), (1, 2, 2, 3), **options)


def _several(name: str, operands: Sequence[Any], shapes: Sequence[Sequence[int]], **options: Any) -> Case:
    """A case whose operator has several results."""

    def build(graph: Graph, inputs: Sequence[Value], draw: Draw) -> Sequence[Value]:
        values = [inputs[0] if each is None else graph.constant(each) for each in operands]
        results = [types.tensor(types.F32, shape) for shape in shapes[1:]]
        op = tfl.build(name, values, results, options)
        graph._block.add_op(op)
        return list(op.results)

    return Case([shapes[0]], build)


def _topk(graph: Graph, inputs: Sequence[Value], draw: Draw) -> Sequence[Value]:
    results = [types.tensor(types.F32, (2, 3)), types.tensor(types.I32, (2, 3))]
    op = tfl.build("topk_v2", [inputs[0], graph.constant(np.array(3, np.int32))], results)
    graph._block.add_op(op)
    return list(op.results)


def _chosen(name: str) -> Case:
    mask = np.arange(10).reshape(2, 5) % 3 == 0
    return Case([(2, 5), (2, 5)], lambda g, x, d: g.op(name, mask, *x, shape=(2, 5), element=types.F32))


def _fill(graph: Graph, inputs: Sequence[Value], draw: Draw) -> Value:
    least = graph.op("reduce_min", inputs[0], [0], shape=(), keep_dims=False)
    return graph.op("fill", [2, 3], least, shape=(2, 3), element=types.F32)


_CONV: dict[str, Any] = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
_MASKS: dict[str, Any] = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
_HALF: dict[str, Any] = {"align_corners": False, "half_pixel_centers": True}
_PADS = np.array([[0, 0], [1, 1], [0, 2]], np.int32)
_IDS = np.array([2, 0, 1, 2], np.int32)

CASES: Mapping[str, Case] = {
    "conv_2d:relu6": Case(
        [(2, 5, 5, 3)],
        lambda g, x, d: g.conv(
            x[0], d.weight((4, 3, 3, 3), 0), d.bias(4), padding="VALID", fused_activation_function="RELU6"
        ),
    ),
    "conv_2d:groups": Case([(2, 5, 5, 4)], lambda g, x, d: g.conv(x[0], d.weight((6, 3, 3, 2), 0), d.bias(6))),
    "depthwise_conv_2d:multiplier": Case(
        [(2, 5, 5, 3)],
        lambda g, x, d: g.op(
            "depthwise_conv_2d",
            x[0],
            d.weight((1, 3, 3, 6), 3),
            d.bias(6),
            shape=(2, 5, 5, 6),
            depth_multiplier=2,
            **_CONV,
        ),
    ),
    "fully_connected:no bias": Case(
        [(4, 6)], lambda g, x, d: g.op("fully_connected", x[0], d.weight((5, 6), 0), None, shape=(4, 5))
    ),
    "fully_connected:rank 3": Case(
        [(4, 2, 6)],
        lambda g, x, d: g.op("fully_connected", x[0], d.weight((5, 6), 0), shape=(4, 2, 5), keep_num_dims=True),
    ),
    "transpose_conv:no bias": Case(
        [(1, 3, 3, 2)],
        lambda g, x, d: g.op(
            "transpose_conv",
            [1, 6, 6, 4],
            d.weight((4, 3, 3, 2), 0),
            x[0],
            shape=(1, 6, 6, 4),
            padding="SAME",
            stride_h=2,
            stride_w=2,
        ),
    ),
    "batch_matmul:constant": Case(
        [(2, 3, 4)],
        lambda g, x, d: g.op("batch_matmul", x[0], d.values((2, 4, 5), 1), shape=(2, 3, 5), adj_x=False, adj_y=False),
    ),
    "batch_matmul:adjoint": Case(
        [(2, 3, 4), (2, 5, 4)], lambda g, x, d: g.op("batch_matmul", *x, shape=(2, 3, 5), adj_x=False, adj_y=True)
    ),
    "add:constant": Case([(2, 3)], lambda g, x, d: g.op("add", x[0], d.values((2, 3), 1))),
    "sub:constant": Case([(2, 3)], lambda g, x, d: g.op("sub", d.values((2, 3), 1), x[0])),
    "mul:one number": Case([(2, 3)], lambda g, x, d: g.op("mul", x[0], -1.0)),
    "maximum:constant": Case([(2, 3)], lambda g, x, d: g.op("maximum", x[0], 0.5)),
    "concatenation:constant": Case(
        [(2, 3)], lambda g, x, d: g.op("concatenation", x[0], d.values((2, 3), 1), shape=(2, 6), axis=1)
    ),
    "conv_2d": Case([(2, 5, 5, 3)], lambda g, x, d: g.conv(x[0], d.weight((4, 3, 3, 3), 0), d.bias(4))),
    "depthwise_conv_2d": Case(
        [(2, 5, 5, 3)],
        lambda g, x, d: g.op(
            "depthwise_conv_2d", x[0], d.weight((1, 3, 3, 3), 3), d.bias(3), depth_multiplier=1, **_CONV
        ),
    ),
    "fully_connected": Case(
        [(4, 6)], lambda g, x, d: g.op("fully_connected", x[0], d.weight((5, 6), 0), d.bias(5), shape=(4, 5))
    ),
    "transpose_conv": Case(
        [(1, 3, 3, 2)],
        lambda g, x, d: g.op(
            "transpose_conv",
            [1, 6, 6, 4],
            d.weight((4, 3, 3, 2), 0),
            x[0],
            d.bias(4),
            shape=(1, 6, 6, 4),
            padding="SAME",
            stride_h=2,
            stride_w=2,
        ),
    ),
    "add": _pair("add"),
    "sub": _pair("sub"),
    "mul": _pair("mul"),
    "squared_difference": _pair("squared_difference"),
    **{
        name: _plain(name)
        for name in (
            "abs",
            "relu",
            "relu6",
            "relu_n1_to_1",
            "relu_0_to_1",
            "elu",
            "exp",
            "hard_swish",
            "logistic",
            "tanh",
            "log_softmax",
            "l2_normalization",
        )
    },
    **{name: _plain(name, positive=True) for name in ("sqrt", "log", "rsqrt")},
    "leaky_relu": _plain("leaky_relu", alpha=0.25),
    "gelu": _plain("gelu", approximate=False),
    "softmax": _plain("softmax", beta=1.0),
    "prelu": Case([(2, 3, 5)], lambda g, x, d: g.op("prelu", x[0], d.weight((1, 1, 5), 2))),
    **{name: _reduce(name) for name in ("mean", "sum", "reduce_max", "reduce_min")},
    "reduce_prod": Case([(2, 2, 3)], lambda g, x, d: g.op("reduce_prod", x[0], [1], shape=(2, 3), keep_dims=False)),
    "batch_matmul": Case(
        [(2, 3, 4), (2, 4, 5)], lambda g, x, d: g.op("batch_matmul", *x, shape=(2, 3, 5), adj_x=False, adj_y=False)
    ),
    **{name: _compare(name) for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")},
    "arg_max": _arg("arg_max"),
    "arg_min": _arg("arg_min"),
    "maximum": _same_pair("maximum"),
    "minimum": _same_pair("minimum"),
    "reshape": _shaped("reshape", (2, 6), (3, 4), [3, 4], new_shape=[3, 4]),
    "squeeze": _shaped("squeeze", (2, 1, 6), (2, 6), squeeze_dims=[1]),
    "expand_dims": _shaped("expand_dims", (2, 6), (2, 1, 6), [1]),
    "transpose": _shaped("transpose", (2, 3, 5), (5, 2, 3), [2, 0, 1]),
    "pad": _shaped("pad", (2, 3, 5), (2, 5, 7), _PADS),
    "padv2": _shaped("padv2", (2, 3, 5), (2, 5, 7), _PADS, np.array(1.5, np.float32)),
    "mirror_pad": _shaped("mirror_pad", (2, 3, 5), (2, 5, 7), _PADS, mode="REFLECT"),
    "slice": _shaped("slice", (2, 3, 5), (1, 2, 5), [1, 1, 0], [1, 2, 5]),
    "strided_slice": _shaped("strided_slice", (2, 6), (2, 2), [0, 1], [2, 5], [1, 2], **_MASKS),
    "split": _several("split", [np.array(1, np.int32), None], [(2, 6), (2, 3), (2, 3)], num_splits=2),
    "split_v": _several("split_v", [None, [2, 4], np.array(1, np.int32)], [(2, 6), (2, 2), (2, 4)], num_splits=2),
    "unpack": _several("unpack", [None], [(2, 6), (6,), (6,)], num=2, axis=0),
    "pack": Case([(2, 3), (2, 3)], lambda g, x, d: g.op("pack", *x, shape=(2, 2, 3), values_count=2, axis=0)),
    "concatenation": Case([(2, 3), (2, 4)], lambda g, x, d: g.op("concatenation", *x, shape=(2, 7), axis=1)),
    "gather": _shaped("gather", (3, 4), (4, 4), _IDS, axis=0, batch_dims=0),
    "gather_nd": _shaped("gather_nd", (3, 4), (2, 4), np.array([[2], [0]], np.int32)),
    "embedding_lookup": Case(
        [(3, 4)], lambda g, x, d: g.op("embedding_lookup", _IDS, x[0], shape=(4, 4), element=types.F32)
    ),
    "tile": _shaped("tile", (2, 3), (4, 3), [2, 1]),
    "reverse_v2": _shaped("reverse_v2", (2, 6), (2, 6), [1]),
    "reverse_sequence": _shaped(
        "reverse_sequence", (2, 4, 3), (2, 4, 3), np.array([2, 4], np.int32), seq_dim=1, batch_dim=0
    ),
    "broadcast_to": _shaped("broadcast_to", (1, 6), (3, 6), [3, 6]),
    "select": _chosen("select"),
    "select_v2": _chosen("select_v2"),
    "fill": Case([(6,)], _fill),
    "dynamic_update_slice": Case([(2, 5), (1, 2)], lambda g, x, d: g.op("dynamic_update_slice", *x, [1, 2])),
    "topk_v2": Case([(2, 6)], _topk),
    "max_pool_2d": _pool("max_pool_2d"),
    "average_pool_2d": _pool("average_pool_2d"),
    "resize_bilinear": _shaped("resize_bilinear", (1, 4, 4, 3), (1, 8, 8, 3), [8, 8], **_HALF),
    "resize_nearest_neighbor": _shaped("resize_nearest_neighbor", (1, 4, 4, 3), (1, 8, 8, 3), [8, 8], **_HALF),
    "space_to_batch_nd": _shaped("space_to_batch_nd", (1, 4, 4, 3), (4, 2, 2, 3), [2, 2], np.zeros((2, 2), np.int32)),
    "batch_to_space_nd": _shaped("batch_to_space_nd", (4, 2, 2, 3), (1, 4, 4, 3), [2, 2], np.zeros((2, 2), np.int32)),
    "space_to_depth": _shaped("space_to_depth", (1, 4, 4, 3), (1, 2, 2, 12), block_size=2),
    "depth_to_space": _shaped("depth_to_space", (1, 2, 2, 12), (1, 4, 4, 3), block_size=2),
}


def build(case: Case, storage: IntegerType) -> tuple[Graph, list[Array]]:
    """Returns a case's model, and numbers to run it on."""
    draw = Draw(storage)
    graph = Graph(*case.shapes)
    results = case.build(graph, graph.inputs, draw)
    graph.returns(*([results] if isinstance(results, Value) else results))
    return graph, [draw.values(shape, number, positive=case.positive) for number, shape in enumerate(case.shapes)]
