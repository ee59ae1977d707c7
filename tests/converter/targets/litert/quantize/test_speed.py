"""Operators stay float in the mode `int8` where LiteRT is faster so."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfconvert
from benchmarks.integer_speed import CASES
from tests.converter.targets.litert.optimize.graph import Graph, random
from tests.converter.targets.litert.quantize.runs import run_model, signal_to_noise
from tfconvert.converter.targets.litert.quantize import speed
from tfconvert.converter.targets.litert.quantize.cut import SINK, SOURCE, Cut
from tfconvert.converter.targets.litert.quantize.rules import RULES
from tfconvert.schema.diagnostics import size_text
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.values import Value

ROWS = 64
FEATURES = 64


def _dense(graph: Graph, value: Value, seed: int, features: int = FEATURES) -> Value:
    weights = random(features, FEATURES, seed=10 + seed, scale=FEATURES**-0.5)
    return graph.op("fully_connected", value, weights, random(features, seed=seed, scale=0.1), shape=(ROWS, features))


def _model(*operators: tuple[str, dict[str, Any]]) -> Graph:
    """Returns a model of operators between two dense layers."""
    graph = Graph((ROWS, FEATURES))
    value = _dense(graph, graph.inputs[0], 1)
    for name, options in operators:
        value = graph.op(name, value, **options)
    return graph.returns(_dense(graph, value, 2))


def _converted(graph: Graph, folder: Path, target: tfconvert.LiteRT | None = None, **settings: Any) -> tfconvert.Model:
    path = folder / "source.tflite"
    path.write_bytes(graph.content)
    samples = [[random(*graph.inputs[0].shape or (), seed=seed)] for seed in range(3)]
    quantize = tfconvert.Quantize("int8", samples=samples, **settings)
    return tfconvert.convert(path, quantize=quantize, target=target or tfconvert.LiteRT())


def _floats(model: tfconvert.Model) -> dict[str, str]:
    """Returns the operators that stay float, with the reasons."""
    assert model.report.quantization is not None
    return {layer.op: layer.reason for layer in model.report.quantization.layers if layer.form == "float32"}


SLOW: tuple[tuple[str, dict[str, Any]], ...] = (
    ("hard_swish", {}),
    ("softmax", {"beta": 1.0}),
    ("abs", {}),
    ("l2_normalization", {"fused_activation_function": "NONE"}),
)


@pytest.mark.parametrize("operator", SLOW, ids=lambda each: str(each[0]))
def test_what_is_slower_with_integers_stays_float(operator: tuple[str, dict[str, Any]], tmp_path: Path) -> None:
    graph, name = _model(operator), operator[0].upper()
    model = _converted(graph, tmp_path)
    floats = _floats(model)
    assert floats.keys() == {name}
    assert "us with floats, and" in floats[name]
    (note,) = [note for note in model.report.notes if note.code == "fast-floats"]
    assert note.message.startswith("1 operator stays float")
    assert "--slow-integers" in (note.hint or "")
    x = random(ROWS, FEATURES, seed=9)
    assert signal_to_noise(run_model(graph.content, [x]), run_model(bytes(model), [x])) > 30


def _image_net(channels: int) -> Graph:
    """Returns a convolution of an image, and one of its result with many weights."""
    graph = Graph((1, 16, 16, channels))
    value = graph.conv(graph.inputs[0], random(8, 3, 3, channels, seed=1, scale=0.3), random(8, seed=2, scale=0.1))
    return graph.returns(graph.conv(value, random(16, 3, 3, 8, seed=3, scale=0.1), random(16, seed=4, scale=0.1)))


@pytest.mark.parametrize("channels", [1, 4])
def test_convolutions_of_one_channel_stay_float(channels: int, tmp_path: Path) -> None:
    """XNNPACK's integer kernels compute as long for one channel as for eight."""
    graph = _image_net(channels)
    model = _converted(graph, tmp_path)
    floats = _floats(model)
    assert floats.keys() == ({"CONV_2D"} if channels == 1 else set())
    assert all("us with floats, and" in reason for reason in floats.values())
    assert model.report.operators["CONV_2D"] == 2
    x = random(1, 16, 16, channels, seed=9)
    assert signal_to_noise(run_model(graph.content, [x]), run_model(bytes(model), [x])) > 30


@pytest.mark.parametrize("features", [8, 64])
def test_small_dense_layers_stay_float_beside_floats(features: int, tmp_path: Path) -> None:
    """Larger ones become integers for the size of the file."""
    graph = Graph((ROWS, features))
    value = graph.op("hard_swish", graph.inputs[0])
    weights = random(features, features, seed=1, scale=features**-0.5)
    value = graph.op("fully_connected", value, weights, random(features, seed=2, scale=0.1), shape=(ROWS, features))
    graph.returns(graph.op("hard_swish", value))
    model = _converted(graph, tmp_path)
    assert _floats(model).keys() == ({"HARD_SWISH", "FULLY_CONNECTED"} if features == 8 else {"HARD_SWISH"})
    integers = _converted(graph, tmp_path, slow_integers=True)
    assert not _floats(integers)


def test_a_table_between_floats_is_stored_as_integers(tmp_path: Path) -> None:
    graph = Graph((ROWS, FEATURES))
    ids = graph.op(
        "arg_max", graph.inputs[0], np.array(1, np.int32), shape=(ROWS,), element=types.I32, output_type="INT32"
    )
    rows = graph.op("gather", random(500, FEATURES, seed=1), ids, shape=(ROWS, FEATURES), axis=0)
    value = graph.op("add", graph.op("hard_swish", rows), graph.inputs[0], fused_activation_function="NONE")
    graph.returns(graph.op("hard_swish", value))
    model = _converted(graph, tmp_path)
    assert _floats(model).keys() == {"HARD_SWISH", "ADD"}
    assert 500 * FEATURES < len(bytes(model)) < 2 * 500 * FEATURES
    # The largest of each row is plain, also after rounding.
    x = random(ROWS, FEATURES, seed=9, scale=0.3) + 2 * np.eye(ROWS, FEATURES, dtype=np.float32)
    assert signal_to_noise(run_model(graph.content, [x]), run_model(bytes(model), [x])) > 30


def test_weights_of_a_recurrent_layer_of_floats_are_stored_as_integers(tmp_path: Path) -> None:
    graph = Graph((1, 10, 32))
    weights = [random(32, 32, seed=seed, scale=0.1) for seed in (1, 2)]
    options: dict[str, Any] = {"fused_activation_function": "TANH", "time_major": False}
    operands = (*weights, random(32, seed=3), np.zeros((1, 32), np.float32))
    steps = graph.op("unidirectional_sequence_rnn", graph.inputs[0], *operands, shape=(1, 10, 32), **options)
    graph.returns(graph.op("abs", graph.op("add", steps, graph.inputs[0], fused_activation_function="NONE")))
    model = _converted(graph, tmp_path)
    assert "UNIDIRECTIONAL_SEQUENCE_RNN" in _floats(model)
    assert len(bytes(model)) < 4 * 2 * 32 * 32
    x = random(1, 10, 32, seed=9)
    assert signal_to_noise(run_model(graph.content, [x]), run_model(bytes(model), [x])) > 30


def _tanh_scale(model: tfconvert.Model) -> float:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=bytes(model), num_threads=1)
    interpreter.allocate_tensors()
    (tanh,) = [op for op in interpreter._get_ops_details() if op["op_name"] == "TANH"]
    scales = {each["index"]: each["quantization"][0] for each in interpreter.get_tensor_details()}
    return float(scales[tanh["outputs"][0]])


@pytest.mark.parametrize("builtin", [False, True])
def test_small_tangents_have_small_steps_on_processors(builtin: bool, tmp_path: Path) -> None:
    graph = Graph((ROWS, FEATURES))
    value = graph.op("mul", _dense(graph, graph.inputs[0], 1), 0.01, fused_activation_function="NONE")
    graph.returns(_dense(graph, graph.op("tanh", value), 2))
    own, fixed = _converted(graph, tmp_path), _converted(graph, tmp_path, slow_integers=True)
    assert _tanh_scale(own) < 0.1 * _tanh_scale(fixed)
    assert _tanh_scale(fixed) == 1 / 128
    x = random(ROWS, FEATURES, seed=9)
    expected = run_model(graph.content, [x], builtin=builtin)
    noise = [signal_to_noise(expected, run_model(bytes(model), [x], builtin=builtin)) for model in (own, fixed)]
    assert noise[0] > noise[1] + 3


def test_a_tangent_that_leaves_the_model_stays_float(tmp_path: Path) -> None:
    graph = Graph((ROWS, FEATURES))
    graph.returns(graph.op("tanh", _dense(graph, graph.inputs[0], 1)))
    assert _floats(_converted(graph, tmp_path)).keys() == {"TANH"}


def test_the_note_has_the_memory_that_floats_cost(tmp_path: Path) -> None:
    def message(model: tfconvert.Model) -> str:
        return next(note.message for note in model.report.notes if note.code == "fast-floats")

    graph = Graph((ROWS, FEATURES))
    value = _dense(graph, graph.inputs[0], 1, features=1024)
    wide = graph.op("hard_swish", graph.op("hard_swish", value))
    weights = random(FEATURES, 1024, seed=3, scale=1024**-0.5)
    graph.returns(graph.op("fully_connected", wide, weights, random(FEATURES, seed=4), shape=(ROWS, FEATURES)))
    model, integers = _converted(graph, tmp_path), _converted(graph, tmp_path, slow_integers=True)
    assert model.report.arena is not None
    assert integers.report.arena is not None
    assert model.report.arena > 1.5 * integers.report.arena
    sizes = f"tensors would need {size_text(integers.report.arena)} instead of {size_text(model.report.arena)}"
    assert message(model).endswith(sizes)
    assert "tensors" not in message(_converted(_model(("softmax", {"beta": 1.0})), tmp_path))


@pytest.mark.parametrize("name", ["logistic", "tanh"])
def test_what_is_as_fast_with_integers_becomes_integers(name: str, tmp_path: Path) -> None:
    assert not _floats(_converted(_model((name, {})), tmp_path))


def test_an_operator_between_floats_needs_no_conversions(tmp_path: Path) -> None:
    product: dict[str, Any] = {"fused_activation_function": "NONE"}
    graph = Graph((ROWS, FEATURES))
    first = graph.op("hard_swish", _dense(graph, graph.inputs[0], 1))
    second = graph.op("hard_swish", _dense(graph, graph.inputs[0], 2))
    both = graph.op("softmax", graph.op("mul", first, second, **product), beta=1.0)
    graph.returns(_dense(graph, both, 3))
    model = _converted(graph, tmp_path)
    assert _floats(model).keys() == {"HARD_SWISH", "MUL", "SOFTMAX"}
    # Those of the input and the output, and those of what is between the layers.
    assert model.report.operators["QUANTIZE"] + model.report.operators["DEQUANTIZE"] == 5


def test_large_constants_become_integers(tmp_path: Path) -> None:
    """An operator between floats is faster with them, but the file would be larger: the runtime converts them once."""
    graph = Graph((ROWS, FEATURES))
    value = graph.op("hard_swish", _dense(graph, graph.inputs[0], 1))
    value = graph.op("add", value, random(ROWS, FEATURES, seed=5), fused_activation_function="NONE")
    graph.returns(_dense(graph, graph.op("hard_swish", value), 2))
    model = _converted(graph, tmp_path)
    assert _floats(model).keys() == {"HARD_SWISH", "ADD"}
    assert len(bytes(model)) < 4 * ROWS * FEATURES
    x = random(ROWS, FEATURES, seed=9)
    assert signal_to_noise(run_model(graph.content, [x]), run_model(bytes(model), [x])) > 30


def test_a_mask_leaves_scores_their_steps(tmp_path: Path) -> None:
    graph = Graph((ROWS, FEATURES))
    mask = np.where(np.tril(np.ones((ROWS, FEATURES))), 0, -1e9).astype(np.float32)
    scores = graph.op("add", _dense(graph, graph.inputs[0], 1), mask, fused_activation_function="NONE")
    graph.returns(_dense(graph, graph.op("softmax", scores, beta=1.0), 2), scores)
    model = _converted(graph, tmp_path)
    assert _floats(model)["ADD"] == "a step of its integers would be several of the results that are computed from them"
    x = random(ROWS, FEATURES, seed=9)
    assert signal_to_noise(run_model(graph.content, [x]), run_model(bytes(model), [x])) > 30


@pytest.mark.parametrize(
    ("settings", "target"),
    [
        ({"io": "int8"}, None),
        ({"strict": True}, None),
        ({"slow_integers": True}, None),
        ({}, tfconvert.LiteRT(accelerator=["micro"])),
        ({}, tfconvert.LiteRT(accelerator=["npu"])),
    ],
    ids=["io", "strict", "slow-integers", "micro", "npu"],
)
def test_integers_throughout_stay_so(settings: dict[str, Any], target: tfconvert.LiteRT | None, tmp_path: Path) -> None:
    model = _converted(_model(("softmax", {"beta": 1.0})), tmp_path, target, **settings)
    assert not _floats(model)
    notes = [note for note in model.report.notes if note.code == "slow-integers"]
    assert len(notes) == (target is None)
    assert all("SOFTMAX" in note.message and "io" in (note.hint or "") for note in notes)
    assert "fast-floats" not in {note.code for note in model.report.notes}


@pytest.mark.parametrize("rows", [1, ROWS])
def test_a_saving_that_nobody_can_measure_is_not_worth_floats(rows: int, tmp_path: Path) -> None:
    graph = Graph((rows, FEATURES))
    half = FEATURES // 2
    weights = random(half, FEATURES, seed=1)
    value = graph.op("fully_connected", graph.inputs[0], weights, random(half, seed=2), shape=(rows, half))
    weights = random(FEATURES, half, seed=3)
    value = graph.op("abs", value)
    graph.returns(graph.op("fully_connected", value, weights, random(FEATURES, seed=4), shape=(rows, FEATURES)))
    assert _floats(_converted(graph, tmp_path)).keys() == ({"ABS"} if rows == ROWS else set())


def test_a_file_that_is_fast_with_integers_has_no_note(tmp_path: Path) -> None:
    model = _converted(_model(("tanh", {})), tmp_path, io="int8")
    assert "slow-integers" not in {note.code for note in model.report.notes}


def test_a_few_microseconds_are_not_worth_a_note(tmp_path: Path) -> None:
    graph = Graph((1, 8))
    path = tmp_path / "source.tflite"
    path.write_bytes(graph.returns(graph.op("softmax", graph.op("add", *graph.inputs * 2), beta=1.0)).content)
    quantize = tfconvert.Quantize("int8", samples=[[random(1, 8, seed=1)]], io="int8")
    model = tfconvert.convert(path, quantize=quantize)
    assert not _floats(model)
    assert "slow-integers" not in {note.code for note in model.report.notes}


def _attention(graph: Graph) -> Value:
    left, right = (_dense(graph, graph.inputs[0], seed) for seed in (1, 2))
    return graph.op("batch_matmul", left, right, shape=(ROWS, ROWS), adj_x=False, adj_y=True)


@pytest.mark.parametrize("io", ["float32", "int8"])
def test_xnnpack_takes_matrix_products(io: str, tmp_path: Path) -> None:
    """The right operand has the zero point 0."""
    from ai_edge_litert.interpreter import Interpreter

    graph = Graph((ROWS, FEATURES))
    graph.returns(_attention(graph))
    content = bytes(_converted(graph, tmp_path, io=io))
    interpreter = Interpreter(model_content=content, num_threads=1)
    interpreter.allocate_tensors()
    operators = interpreter._get_ops_details()
    (product,) = [op for op in operators if op["op_name"] == "BATCH_MATMUL"]
    (piece,) = [op for op in operators if op["op_name"] == "DELEGATE"]
    given = interpreter.get_input_details()[0]["index"]
    assert list(piece["inputs"]).count(given) == 1
    right = next(each for each in interpreter.get_tensor_details() if each["index"] == product["inputs"][1])
    assert right["quantization"][0] > 0
    assert right["quantization"][1] == 0


def test_a_range_far_from_symmetric_keeps_its_zero_point(tmp_path: Path) -> None:
    graph = Graph((ROWS, FEATURES))
    left, right = (_dense(graph, graph.inputs[0], seed) for seed in (1, 2))
    right = graph.op("relu", right)
    graph.returns(graph.op("batch_matmul", left, right, shape=(ROWS, ROWS), adj_x=False, adj_y=True))
    # With integers, LiteRT's own kernel runs it; with floats, XNNPACK does.
    assert "BATCH_MATMUL" in _floats(_converted(graph, tmp_path))
    assert "BATCH_MATMUL" not in _floats(_converted(graph, tmp_path, io="int8"))


def test_a_tiny_constant_gets_a_scale_that_xnnpack_takes(tmp_path: Path) -> None:
    graph = Graph((ROWS, FEATURES))
    value = graph.op("tanh", _dense(graph, graph.inputs[0], 1))
    value = graph.op("add", value, 1e-6, fused_activation_function="NONE")
    graph.returns(_dense(graph, graph.op("logistic", value), 2))
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=bytes(_converted(graph, tmp_path, strict=True)), num_threads=1)
    interpreter.allocate_tensors()
    (addition,) = [op for op in interpreter._get_ops_details() if op["op_name"] == "ADD"]
    scales = {each["index"]: each["quantization"][0] for each in interpreter.get_tensor_details()}
    assert all(2**-10 <= scales[each] / scales[addition["outputs"][0]] < 2**8 for each in addition["inputs"])


def test_the_table_has_the_rows_of_the_benchmark() -> None:
    rows = [line.split("\t") for line in speed.TABLE.read_text().splitlines()[1:]]
    cases = [(case.kind, str(case.work(index))) for case in CASES for index in range(len(case.results))]
    assert [(kind, work) for kind, work, _, _ in rows] == cases
    assert {f"tfl.{case.kind.partition(':')[0]}" for case in CASES} - {"tfl.quantize", "tfl.dequantize"} <= RULES.keys()


def test_operators_without_rows_are_variables_and_copies() -> None:
    measured = {case.kind.partition(":")[0] for case in CASES} | speed.ALIKE.keys()
    assert {name.removeprefix("tfl.") for name in RULES} - measured == {
        *("assign_variable", "dynamic_update_slice", "embedding_lookup", "fill", "read_variable", "topk_v2"),
        "reverse_sequence",  # 16-bit integers only.
    }


def test_times_grow_with_the_work() -> None:
    small, large = speed.times_of("softmax", 512), speed.times_of("softmax", 65536)
    assert small.integers < speed.times_of("softmax", 10000).integers < large.integers
    assert speed.times_of("softmax", 1) == speed.times_of("softmax", 16) < small
    assert speed.times_of("softmax", 131072).floats == pytest.approx(large.floats * 2)


@pytest.mark.parametrize("seed", range(40))
def test_a_cut_costs_the_least(seed: int) -> None:
    draw = np.random.default_rng(seed)
    cut = Cut()
    own = [cut.node() for _ in range(draw.integers(1, 7))]
    edges = []
    for _ in range(draw.integers(0, 20)):
        tail, head = (int(node) for node in draw.choice([SOURCE, SINK, *own], 2, replace=False))
        edges.append((tail, head, float(draw.integers(0, 5))))
        cut.edge(*edges[-1])

    def cost(sink_side: set[int]) -> float:
        return sum(price for tail, head, price in edges if tail not in sink_side and head in sink_side)

    found = cut.sink_side()
    assert SINK in found
    assert SOURCE not in found
    choices = [{SINK, *chosen} for count in range(len(own) + 1) for chosen in combinations(own, count)]
    assert cost(found) == min(map(cost, choices))
