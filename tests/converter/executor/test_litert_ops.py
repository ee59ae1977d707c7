"""Operators that stand among TensorFlow's ops compute what LiteRT does, each alone and by any of its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests.converter.targets.litert.optimize.graph import Graph, Operand
from tests.ops.comparison import compare
from tests.support.litert import RunTFLite
from tests.support.run_text import Array, parse, run_text
from tfconvert.converter.executor.executor import Executor
from tfconvert.exporters.tflite.model import export
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import types

BATCH, TIME, FEATURES, UNITS, OUTPUTS = 2, 4, 3, 5, 2
NO_LIMITS: Mapping[str, Any] = {"cell_clip": 0.0, "proj_clip": 0.0}
LSTM, RNN = "unidirectional_sequence_lstm", "unidirectional_sequence_rnn"


def agree(run_tflite: RunTFLite, graph: Graph, *inputs: Array) -> Array:
    """Asserts that the executor and LiteRT agree on a module; returns the first result."""
    results = Executor(graph.module).run("main", inputs)
    expected = graph.run(run_tflite, inputs)
    assert len(results) == len(expected) > 0
    for got, wanted in zip(results, expected, strict=True):
        compare(got, wanted, 3e-6)
    return results[0]


class Values:
    """Makes random constants."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(5)

    def __call__(self, *shape: int) -> Array:
        """Returns an array of numbers between -1.5 and 1.5."""
        return self._random.uniform(-1.5, 1.5, shape).astype(np.float32)


def lstm(*features: str, outputs: int = UNITS) -> list[Operand]:
    """Returns the operands of an LSTM after its input; `features` are what it has or hasn't got."""
    draw = Values()
    recurrent = (UNITS,) if "diagonal" in features else (UNITS, outputs)
    gates = range(4)
    weights: list[Operand] = [draw(UNITS, FEATURES) for _ in gates]
    weights += [draw(*recurrent) for _ in gates]
    peepholes: list[Operand] = [draw(UNITS) if "peephole" in features else None for _ in range(3)]
    biases: list[Operand] = [draw(UNITS) for _ in gates]
    projection: list[Operand] = [
        draw(outputs, UNITS) if "projection" in features else None,
        draw(outputs) if "projection bias" in features else None,
    ]
    state: list[Operand] = [draw(BATCH, outputs), draw(BATCH, UNITS)]
    if "zeros" in features:
        state = [np.zeros_like(each) for each in state]
    scales: list[Operand] = [draw(UNITS) if "scales" in features else None for _ in gates]
    if "coupled" in features:
        weights[0] = weights[4] = peepholes[0] = biases[0] = scales[0] = None
    return [*weights, *peepholes, *biases, *projection, *state, *scales]


@pytest.mark.parametrize("activation", ["TANH", "RELU", "RELU6", "RELU_N1_TO_1", "NONE"])
@pytest.mark.parametrize("time_major", [False, True])
def test_rows_through_a_simple_rnn(activation: str, time_major: bool, run_tflite: RunTFLite) -> None:
    draw = Values()
    size = (TIME, BATCH) if time_major else (BATCH, TIME)
    graph = Graph((*size, FEATURES), (BATCH, UNITS))
    weights = draw(UNITS, FEATURES), draw(UNITS, UNITS), draw(UNITS)
    result = graph.op(
        RNN,
        graph.inputs[0],
        *weights,
        graph.inputs[1],
        shape=(*size, UNITS),
        time_major=time_major,
        fused_activation_function=activation,
    )
    agree(run_tflite, graph.returns(result), draw(*size, FEATURES), draw(BATCH, UNITS))


LAYERS: Mapping[str, tuple[tuple[str, ...], Mapping[str, Any]]] = {
    "plain": ((), {}),
    "time major": ((), {"time_major": True}),
    "relu": ((), {"fused_activation_function": "RELU"}),
    "coupled gates": (("coupled",), {}),
    "peepholes": (("peephole",), {}),
    "coupled gates with peepholes": (("coupled", "peephole"), {}),
    "projection": (("projection",), {}),
    "projection with bias and limit": (("projection", "projection bias"), {"proj_clip": 0.4}),
    "limited state": ((), {"cell_clip": 0.3}),
    "limit of an output that is not projected": ((), {"proj_clip": 0.1}),
    "diagonal": (("diagonal",), {"diagonal_recurrent_tensors": True}),
    "normalized": (("scales",), {}),
    "all at once": (
        ("scales", "coupled", "peephole", "projection", "projection bias"),
        {"cell_clip": 0.5, "proj_clip": 0.6, "time_major": True},
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_rows_through_an_lstm(name: str, run_tflite: RunTFLite) -> None:
    features, options = LAYERS[name]
    outputs = OUTPUTS if "projection" in features else UNITS
    size = (TIME, BATCH) if options.get("time_major") else (BATCH, TIME)
    graph = Graph((*size, FEATURES))
    given = {"fused_activation_function": "TANH", **NO_LIMITS, **options}
    result = graph.op(LSTM, graph.inputs[0], *lstm(*features, outputs=outputs), shape=(*size, outputs), **given)
    agree(run_tflite, graph.returns(result), Values()(*size, FEATURES))


def step(*features: str, outputs: int = UNITS, **options: Any) -> Graph:
    graph = Graph((BATCH, FEATURES))
    given = {"fused_activation_function": "TANH", "kernel_type": "FULL", **NO_LIMITS, **options}
    result = graph.op("lstm", graph.inputs[0], *lstm(*features, outputs=outputs), shape=(BATCH, outputs), **given)
    return graph.returns(result)


@pytest.mark.parametrize("features", [("zeros",), ("coupled", "scales", "projection", "peephole")])
def test_a_step_of_an_lstm(features: tuple[str, ...], run_tflite: RunTFLite) -> None:
    outputs = OUTPUTS if "projection" in features else UNITS
    agree(run_tflite, step(*features, outputs=outputs, cell_clip=0.9), Values()(BATCH, FEATURES))


def test_a_step_goes_on_from_where_the_last_run_ended(run_tflite: RunTFLite) -> None:
    x = Values()(TIME, BATCH, FEATURES)
    executor = Executor(step("zeros").module)
    sequence = Graph(x.shape)
    whole = sequence.op(
        LSTM,
        sequence.inputs[0],
        *lstm("zeros"),
        shape=(TIME, BATCH, UNITS),
        fused_activation_function="TANH",
        time_major=True,
        **NO_LIMITS,
    )
    expected = agree(run_tflite, sequence.returns(whole), x)
    compare(np.stack([executor.run("main", [row])[0] for row in x]), expected)


def test_a_step_that_the_model_gives_a_state_begins_with_it_each_time() -> None:
    x, executor = Values()(BATCH, FEATURES), Executor(step().module)
    first, second = (executor.run("main", [x])[0] for _ in range(2))
    compare(second, first)


@pytest.mark.parametrize("approximate", [False, True])
def test_gelu(approximate: bool, run_tflite: RunTFLite) -> None:
    graph = Graph((3, 40))
    graph.returns(graph.op("gelu", graph.inputs[0], approximate=approximate))
    agree(run_tflite, graph, np.linspace(-6, 6, 120, dtype=np.float32).reshape(3, 40))


@pytest.mark.parametrize("row", [(3,), (2, 2)])
def test_embedding_lookup(row: Sequence[int], run_tflite: RunTFLite) -> None:
    graph = Graph((6,), element=types.I32)
    table = Values()(7, *row)
    graph.returns(graph.op("embedding_lookup", graph.inputs[0], table, shape=(6, *row), element=types.F32))
    agree(run_tflite, graph, np.array([6, 0, 3, 3, 1, 5], np.int32))
    for outside in (7, -1):
        with pytest.raises(ConversionError) as caught:
            Executor(graph.module).run("main", [np.array([0, outside], np.int32)])
        assert caught.value.code == "outside-of-domain"


KINDS = ("tensor<?x4xf32>", "tensor<?xf32>", "tensor<i32>", "tensor<f32>", "tensor<f32>")
SUPPRESSION = f"""
func.func @main({", ".join(f"%{at}: {kind}" for at, kind in enumerate(KINDS))}) -> (tensor<?xi32>, tensor<i32>) {{
  %5, %6 = "tfl.non_max_suppression_v4"(%0, %1, %2, %3, %4) : ({", ".join(KINDS)}) -> (tensor<?xi32>, tensor<i32>)
  func.return %5, %6 : tensor<?xi32>, tensor<i32>
}}
"""
BOXES = np.array([[0, 0, 2, 2], [0, 1, 2, 3], [0, 0, 1, 1], [5, 5, 6, 6], [-3, -3, 1, 1], [5, 5.5, 6, 6]], np.float32)
SCORES = np.array([0.9, 0.8, 0.3, 0.2, 0.7, 0.95], np.float32)


@pytest.mark.parametrize("most", [1, 6, 9])
@pytest.mark.parametrize("overlap", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("score", [-1.0, 0.3])
@pytest.mark.parametrize("boxes", [BOXES, BOXES[:, [2, 3, 0, 1]], BOXES[:, [2, 1, 0, 3]], BOXES - 7])
def test_suppression(boxes: Array, most: int, overlap: float, score: float, run_tflite: RunTFLite) -> None:
    module = parse(SUPPRESSION)
    inputs = [boxes, SCORES, np.array(most, np.int32), np.array(overlap, np.float32), np.array(score, np.float32)]
    results = Executor(module).run("main", inputs)
    for got, wanted in zip(results, run_tflite(export(module).to_bytes(), inputs), strict=True):
        compare(got, wanted)


@pytest.mark.parametrize(
    ("boxes", "scores", "overlap"),
    [
        (BOXES[:, [0, 1, 2, 1]], SCORES, 0.5),
        (np.full_like(BOXES, np.nan), SCORES, 0.5),
        (BOXES, np.round(SCORES), 0.5),
        (BOXES, SCORES, 1.5),
    ],
)
def test_suppression_of_what_tensorflow_treats_otherwise(boxes: Array, scores: Array, overlap: float) -> None:
    with pytest.raises(ConversionError) as caught:
        run_text(SUPPRESSION, [boxes, scores, np.int32(3), np.float32(overlap), np.float32(0)])
    assert caught.value.code == "outside-of-domain"


def test_operands_that_don_t_fit() -> None:
    operands = lstm()
    without_forgetting: list[Operand] = [*operands[:1], None, *operands[2:]]
    for given, options, message in (
        (without_forgetting, {}, "'forget' lacks"),
        (operands, {"diagonal_recurrent_tensors": True}, "2 dimensions, not 1"),
        (operands, {"fused_activation_function": "SIGN_BIT"}, "'SIGN_BIT' has no reference kernel"),
        ([*operands[:17], None, *operands[18:]], {}, "'input_activation_state' is absent"),
        ([np.zeros((UNITS, FEATURES + 1), np.float32), *operands[1:]], {}, "don't fit"),
    ):
        graph = Graph((BATCH, TIME, FEATURES))
        result = graph.op(LSTM, graph.inputs[0], *given, shape=(BATCH, TIME, UNITS), **NO_LIMITS, **options)
        executor = Executor(graph.returns(result).module)
        with pytest.raises(ConversionError, match=message) as caught:
            executor.run("main", [np.zeros((BATCH, TIME, FEATURES), np.float32)])
        assert caught.value.code == "bad-operand"


def test_no_steps() -> None:
    graph = Graph((BATCH, 0, FEATURES))
    graph.returns(graph.op(LSTM, graph.inputs[0], *lstm(), shape=(BATCH, 0, UNITS), **NO_LIMITS))
    (result,) = Executor(graph.module).run("main", [np.zeros((BATCH, 0, FEATURES), np.float32)])
    assert result.shape == (BATCH, 0, UNITS)
