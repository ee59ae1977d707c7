"""Each operator with weights as integers or 16-bit floats computes nearly what it does with floats.

The runtime doesn't check the forms of weights: some kernels compute wrong results. So every form that the rows of
`quantize/hybrid.py` allow is run, with XNNPACK and without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.converter.targets.litert.optimize.graph import Graph
from tests.converter.targets.litert.quantize.runs import Array, run_model, signal_to_noise
from tfconvert.converter.targets.litert.passes.quantize_weights import QuantizeWeights
from tfconvert.converter.targets.litert.quantize.hybrid import ROWS
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.values import Value


def _random(*shape: int, seed: int = 0) -> Array:
    """Returns numbers of different magnitudes along the first dimension."""
    random = np.random.default_rng([seed, *shape])
    scales = np.exp(random.normal(0, 0.5, (shape[0],) + (1,) * (len(shape) - 1)))
    return (0.4 * random.normal(size=shape) * scales).astype(np.float32)


def _zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


class Case(NamedTuple):
    """A graph of one operator.

    Attributes:
        operator: The operator.
        make: Adds it to a graph.
        shapes: Shapes of the inputs.
        element: Their element type.
    """

    operator: str
    make: Callable[[Graph, Value], Value]
    shapes: tuple[int, ...]
    element: Attribute = types.F32

    def graph(self) -> Graph:
        """Returns the finished graph."""
        graph = Graph(self.shapes, element=self.element)
        return graph.returns(self.make(graph, graph.inputs[0]))

    def input(self) -> Array:
        """Returns an input."""
        if self.element != types.F32:
            return (
                (np.arange(np.prod(self.shapes)) * 7 % 50).astype(types.numpy_dtype(self.element)).reshape(self.shapes)
            )
        return np.random.default_rng(3).normal(size=self.shapes).astype(np.float32)


_SAME: dict[str, Any] = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
_TWICE: dict[str, Any] = {"padding": "SAME", "stride_w": 2, "stride_h": 2}


def _lstm(graph: Graph, x: Value, peepholes: bool = False, projected: int = 0, coupled: bool = False) -> Value:
    units, features, outputs = 33, 32, projected or 33
    optional: list[Array | None] = [None] * 3
    kernels: list[Any] = [*_random(4, units, features)]
    recurrent: list[Any] = [*_random(4, units, outputs)]
    bias: list[Any] = [*_random(4, units)]
    holes: list[Any] = [*_random(3, units)] if peepholes else optional
    if coupled:
        kernels[0] = recurrent[0] = bias[0] = holes[0] = None
    projection = [_random(projected, units), _random(projected)] if projected else [None, None]
    states = [_zeros(2, outputs), _zeros(2, units)]
    return graph.op(
        "unidirectional_sequence_lstm",
        x,
        *kernels,
        *recurrent,
        *holes,
        *bias,
        *projection,
        *states,
        *[None] * 4,
        shape=(2, 5, outputs),
        fused_activation_function="TANH",
        cell_clip=0.0,
        proj_clip=0.0,
        time_major=False,
    )


def _bidirectional_lstm(graph: Graph, x: Value) -> Value:
    units, features = 33, 32
    layers: list[Any] = []
    for seed in range(2):
        kernels = [*_random(4, units, features, seed=seed), *_random(4, units, units, seed=seed)]
        layers += [*kernels, *_random(3, units, seed=seed), *_random(4, units, seed=seed), None, None]
    # Time first: LiteRT reads uninitialized memory for several backward sequences.
    return graph.op(
        "bidirectional_sequence_lstm",
        x,
        *layers,
        *[_zeros(5, units)] * 4,
        *[None] * 9,
        shape=(2, 5, 2 * units),
        fused_activation_function="TANH",
        cell_clip=0.0,
        proj_clip=0.0,
        merge_outputs=True,
        time_major=True,
    )


def _rnn(graph: Graph, x: Value) -> Value:
    return graph.op(
        "unidirectional_sequence_rnn",
        x,
        _random(33, 32),
        _random(33, 33),
        _random(33),
        _zeros(2, 33),
        shape=(2, 5, 33),
        time_major=False,
        fused_activation_function="TANH",
    )


def _bidirectional_rnn(graph: Graph, x: Value) -> Value:
    layers: list[Any] = []
    for seed in range(2):
        layers += [_random(33, 32, seed=seed), _random(33, 33, seed=seed), _random(33, seed=seed), _zeros(2, 33)]
    return graph.op(
        "bidirectional_sequence_rnn",
        x,
        *layers,
        None,
        None,
        None,
        shape=(2, 5, 66),
        time_major=False,
        fused_activation_function="TANH",
        merge_outputs=True,
    )


def _lstm_step(graph: Graph, x: Value) -> Value:
    return graph.op(
        "lstm",
        x,
        *_random(4, 33, 32),
        *_random(4, 33, 33),
        *[None] * 3,
        *_random(4, 33),
        None,
        None,
        _zeros(2, 33),
        _zeros(2, 33),
        *[None] * 4,
        shape=(2, 33),
        fused_activation_function="TANH",
        cell_clip=0.0,
        proj_clip=0.0,
        kernel_type="FULL",
    )


def _gather(graph: Graph, indices: Value, table: Array, axis: int = 0) -> Value:
    shape = list(table.shape)
    shape[axis : axis + 1] = indices.shape or ()
    return graph.op("gather", table, indices, shape=shape, element=types.F32, axis=axis)


def _tied(graph: Graph, indices: Value, width: int = 20) -> Value:
    table, shape = graph.constant(_random(60, width)), indices.shape or ()
    rows = graph.op("gather", table, indices, shape=(*shape, width), element=types.F32, axis=0)
    return graph.op("fully_connected", rows, table, None, shape=(*shape, 60), keep_num_dims=True)


def _transposed(graph: Graph, x: Value, bias: bool = True) -> Value:
    biases = [_random(12)] if bias else []
    return graph.op(
        "transpose_conv", [2, 16, 16, 12], _random(12, 3, 3, 16), x, *biases, shape=(2, 16, 16, 12), **_TWICE
    )


IMAGE, VECTORS, STEPS = (2, 8, 8, 16), (3, 64), (2, 5, 32)

CASES = {
    "convolution": Case("conv_2d", lambda g, x: g.conv(x, _random(32, 3, 3, 16)), IMAGE),
    "dilated": Case(
        "conv_2d", lambda g, x: g.conv(x, _random(32, 3, 3, 16), dilation_w_factor=2, dilation_h_factor=2), IMAGE
    ),
    "in groups": Case("conv_2d", lambda g, x: g.conv(x, _random(32, 3, 3, 4)), IMAGE),
    "in space": Case(
        "conv_3d",
        lambda g, x: g.op("conv_3d", x, _random(2, 2, 2, 16, 16), _zeros(16), stride_d=1, **_SAME),
        (1, 4, 4, 4, 16),
    ),
    "depthwise": Case(
        "depthwise_conv_2d",
        lambda g, x: g.op(
            "depthwise_conv_2d", x, np.moveaxis(_random(16, 1, 9, 9), 0, 3), _zeros(16), depth_multiplier=1, **_SAME
        ),
        IMAGE,
    ),
    "transposed": Case("transpose_conv", _transposed, IMAGE),
    "transposed without a bias": Case("transpose_conv", lambda g, x: _transposed(g, x, bias=False), IMAGE),
    "product": Case(
        "fully_connected", lambda g, x: g.op("fully_connected", x, _random(40, 64), _random(40), shape=(3, 40)), VECTORS
    ),
    "product without a bias": Case(
        "fully_connected", lambda g, x: g.op("fully_connected", x, _random(40, 64), None, shape=(3, 40)), VECTORS
    ),
    "products": Case(
        "batch_matmul", lambda g, x: g.op("batch_matmul", x, _random(2, 64, 40), shape=(2, 3, 40)), (2, 3, 64)
    ),
    "products with columns": Case(
        "batch_matmul",
        lambda g, x: g.op("batch_matmul", x, _random(2, 40, 64), shape=(2, 3, 40), adj_y=True),
        (2, 3, 64),
    ),
    "products with one matrix": Case(
        "batch_matmul", lambda g, x: g.op("batch_matmul", x, _random(1, 64, 40), shape=(2, 3, 40)), (2, 3, 64)
    ),
    "lstm": Case("unidirectional_sequence_lstm", _lstm, STEPS),
    "lstm with peepholes": Case("unidirectional_sequence_lstm", lambda g, x: _lstm(g, x, peepholes=True), STEPS),
    "lstm with a projection": Case("unidirectional_sequence_lstm", lambda g, x: _lstm(g, x, projected=32), STEPS),
    "lstm with coupled gates": Case("unidirectional_sequence_lstm", lambda g, x: _lstm(g, x, True, 0, True), STEPS),
    "lstm both ways": Case("bidirectional_sequence_lstm", _bidirectional_lstm, STEPS),
    "lstm's step": Case("lstm", _lstm_step, (2, 32)),
    "rnn": Case("unidirectional_sequence_rnn", _rnn, STEPS),
    "rnn both ways": Case("bidirectional_sequence_rnn", _bidirectional_rnn, STEPS),
    "rnn's step": Case(
        "rnn",
        lambda g, x: g.op(
            "rnn",
            x,
            _random(33, 32),
            _random(33, 33),
            _random(33),
            _zeros(2, 33),
            shape=(2, 33),
            fused_activation_function="TANH",
        ),
        (2, 32),
    ),
    "svdf": Case(
        "svdf",
        lambda g, x: g.op(
            "svdf",
            x,
            _random(110, 32),
            _random(110, 10),
            _random(55),
            _zeros(2, 1100),
            shape=(2, 55),
            rank=2,
            fused_activation_function="NONE",
        ),
        (2, 32),
    ),
    "row": Case("gather", lambda g, i: _gather(g, i, _random(60, 20)), (), types.I32),
    "rows": Case("gather", lambda g, i: _gather(g, i, _random(60, 20)), (5,), types.I32),
    "rows by i64": Case("gather", lambda g, i: _gather(g, i, _random(60, 20)), (5,), types.I64),
    "rows of rows": Case("gather", lambda g, i: _gather(g, i, _random(60, 20)), (2, 3), types.I32),
    "rows of rows by i64": Case("gather", lambda g, i: _gather(g, i, _random(60, 20)), (2, 3), types.I64),
    "columns": Case("gather", lambda g, i: _gather(g, i, _random(20, 60), 1), (5,), types.I32),
    "faces": Case("gather", lambda g, i: _gather(g, i, _random(60, 5, 4)), (5,), types.I32),
    "rows of a table that is multiplied by": Case("fully_connected", _tied, (2, 3), types.I32),
    "rows of a table that is multiplied by, by i64": Case("fully_connected", _tied, (2, 3), types.I64),
    "many rows of a table that is multiplied by": Case(
        "fully_connected", lambda g, i: _tied(g, i, 96), (4, 8), types.I32
    ),
}

NARROW = {"fully_connected", "gather"}
"""Operators with weights of 4 bits, if the tables are matrices."""

NOT_NARROW = {"columns", "faces"}


def _results(case: Case, options: QuantizeWeights) -> tuple[Array, list[Array]]:
    """Returns what an operator computes with floats, and with its weights in a form: without XNNPACK and with it."""
    graph, inputs = case.graph(), [case.input()]
    expected = run_model(graph.content, inputs, builtin=True)
    assert options.apply(graph.module).counts
    verify(graph.module)
    content = graph.content
    return expected, [run_model(content, inputs, builtin=builtin) for builtin in (True, False)]


def test_every_operator_is_tried() -> None:
    assert {case.operator for case in CASES.values()} == {*ROWS, "gather"}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "options",
    [
        QuantizeWeights(),
        QuantizeWeights(per_channel=False),
        QuantizeWeights(hybrid_only=True),
        QuantizeWeights("weights"),
        QuantizeWeights("weights", per_channel=False),
    ],
    ids=["dynamic", "one scale", "hybrid depthwise", "weights", "weights, one scale"],
)
def test_with_8_bits(name: str, options: QuantizeWeights) -> None:
    if name == "depthwise" and options.mode == "dynamic" and not options.hybrid_only:
        assert not options.apply(CASES[name].graph().module).counts
        return
    expected, results = _results(CASES[name], options)
    assert min(signal_to_noise(expected, got) for got in results) > 24


@pytest.mark.parametrize("name", CASES)
def test_with_halves(name: str) -> None:
    expected, results = _results(CASES[name], QuantizeWeights("float16"))
    assert min(signal_to_noise(expected, got) for got in results) > 60


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].operator in NARROW and name not in NOT_NARROW])
@pytest.mark.parametrize("mode", ["dynamic", "weights"])
def test_with_4_bits(name: str, mode: str) -> None:
    expected, results = _results(CASES[name], QuantizeWeights(mode, 4))
    assert 12 < min(signal_to_noise(expected, got) for got in results) < 30


BY_ROW = ["reshape", "embedding_lookup", "reshape", "fully_connected"]
SCALED = ["gather", "gather", "dequantize", "mul", "fully_connected"]


@pytest.mark.parametrize(
    ("rows", "width", "options", "names"),
    [
        ((4, 8), 96, QuantizeWeights(), SCALED),
        ((4, 8), 96, QuantizeWeights(per_channel=False), ["gather", "dequantize", "fully_connected"]),
        ((4, 8), 96, QuantizeWeights(weights=4), BY_ROW),
        ((4, 8), 56, QuantizeWeights(), BY_ROW),
        ((2, 2), 96, QuantizeWeights(), BY_ROW),
    ],
    ids=["many", "one scale", "4 bits", "narrow", "few"],
)
def test_rows_of_a_table_that_is_multiplied_by(
    rows: tuple[int, int], width: int, options: QuantizeWeights, names: list[str]
) -> None:
    graph = Case("fully_connected", lambda g, i: _tied(g, i, width), rows, types.I32).graph()
    options.apply(graph.module)
    assert [name for name in graph.names if name != "pseudo_qconst"] == names
    # The table is in the file once.
    assert len(graph.content) < 1.5 * 60 * width + 3000


@pytest.mark.parametrize("operands", [(16, 33), (39,)], ids=["projections", "second input"])
def test_what_kernels_get_wrong_stays_floats(operands: tuple[int, ...]) -> None:
    graph = CASES["lstm both ways"].graph()
    (op,) = graph.ops
    for index in operands:
        op.set_operand(index, op.operands[1] if index < 39 else graph.inputs[0])
    assert not QuantizeWeights().apply(graph.module).counts
