"""Fused functions compute in LiteRT what their bodies, or the definitions of their interfaces, compute."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.composites.modules import LSTM, LSTM_RESULTS, keras, mark, text
from tests.converter.targets.litert.fusions.saved_layers import save_call
from tests.support.flat_settings import converted
from tests.support.litert import RunTFLite

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(7)


def _convert(folder: Path, source: str, **options: Any) -> tfconvert.Model:
    path = folder / "model.mlir"
    path.write_text(source)
    return converted(path, **options)


def _random(*shapes: tuple[int, ...]) -> list[Array]:
    return [RNG.normal(size=shape).astype(np.float32) for shape in shapes]


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _normalized(x: Array, scale: Array) -> Array:
    return np.asarray((x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-8) * scale)


@pytest.mark.parametrize("is_normalized", [False, True])
@pytest.mark.parametrize("gates", ["cifo", "cfo"])
def test_cells(tmp_path: Path, run_tflite: RunTFLite, gates: str, is_normalized: bool) -> None:
    columns = 4 * len(gates)
    shapes = [(2, 3), (3 + 2, columns), (columns,), (4, 2)] + [(columns,)] * is_normalized
    arrays = _random(*shapes)
    name = "LayerNormalizedLstmCellSimple" if is_normalized else "LSTMCellSimple"
    name += "" if "i" in gates else ",CoupleInputForgetGates"
    kinds = ["x".join(map(str, shape)) + "xf32" for shape in shapes]
    # The first step: nothing has been put out yet.
    sums = dict(zip(gates, np.split(arrays[0] @ arrays[1][:3], len(gates), 1), strict=True))
    if is_normalized:
        scales = dict(zip(gates, np.split(arrays[4], len(gates)), strict=True))
        sums = {gate: _normalized(value, scales[gate]) for gate, value in sums.items()}
    bias = dict(zip(gates, np.split(arrays[2], len(gates)), strict=True))
    sums = {gate: value + bias[gate] for gate, value in sums.items()}
    entry = _sigmoid(sums["i"]) if "i" in gates else 1 - _sigmoid(sums["f"])
    expected = _sigmoid(sums["o"]) * np.tanh(entry * np.tanh(sums["c"])) @ arrays[3]

    model = _convert(tmp_path, _with_constants(text(mark(name), kinds, ["2x2xf32"]), kinds, arrays))
    assert dict(model.report.operators) == {"LSTM": 1}
    assert any("reset_all_variables" in note.message for note in model.report.notes)
    np.testing.assert_allclose(run_tflite(bytes(model), [arrays[0]])[0], expected, atol=1e-5)


def _with_constants(source: str, kinds: list[str], arrays: list[Array], first: int = 1) -> str:
    """Returns a module whose `main` takes some of the inputs only: the others, from `first` on, are constants."""
    lines = [
        f'%a{index} = "tf.Const"() <{{value = dense<{arrays[index].tolist()}> : tensor<{kind}>}}> '
        f": () -> tensor<{kind}>"
        for index, kind in enumerate(kinds)
        if index >= first
    ]
    for index, kind in enumerate(kinds):
        if index >= first:
            source = source.replace(f", %a{index}: tensor<{kind}>", "", 1)
    head, brace, rest = source.partition("{\n")
    return head + brace + "\n".join(lines) + "\n" + rest


@pytest.mark.parametrize("is_diagonal", [False, True])
@pytest.mark.parametrize("time_major", [False, True])
def test_layers_with_a_state_that_is_given(
    tmp_path: Path, run_tflite: RunTFLite, is_diagonal: bool, time_major: bool
) -> None:
    kinds = [*LSTM[:4], "1x20xf32" if is_diagonal else LSTM[4], LSTM[5]]
    if time_major:
        kinds[0] = "4x1x3xf32"
    x, h, c, kernel, recurrent, bias = arrays = _random(
        *(tuple(int(dim) for dim in kind.split("x")[:-1]) for kind in kinds)
    )
    h = h.copy()
    state = c
    for step in range(4):
        past = np.tile(h, 4) * recurrent if is_diagonal else h @ recurrent
        i, f, g, o = np.split((x[step] if time_major else x[:, step]) @ kernel + past + bias, 4, 1)
        state = _sigmoid(f) * state + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(state)
    name = "indy_lstm_0" if is_diagonal else "lstm_0"
    results = [LSTM_RESULTS[0], "4x1x5xf32" if time_major else LSTM_RESULTS[1], *LSTM_RESULTS[2:]]
    source = _with_constants(text(keras(name, time_major=time_major), kinds, results), kinds, arrays, first=3)
    model = _convert(tmp_path, source)
    assert model.report.operators["UNIDIRECTIONAL_SEQUENCE_LSTM"] == 1
    np.testing.assert_allclose(run_tflite(bytes(model), arrays[:3])[0], h, atol=1e-5)


def test_detection(tmp_path: Path, run_tflite: RunTFLite) -> None:
    marks = mark(
        "TFLite_Detection_PostProcess",
        max_detections=2,
        max_classes_per_detection=1,
        num_classes=1,
        nms_score_threshold=0.1,
        nms_iou_threshold=0.5,
        y_scale=1.0,
        x_scale=1.0,
        h_scale=1.0,
        w_scale=1.0,
        use_regular_nms=False,
    )
    source = text(marks, ("1x3x4xf32", "1x3x2xf32", "3x4xf32"), ("1x2x4xf32", "1x2xf32", "1x2xf32", "1xf32"), (0, 2, 3))
    model = _convert(tmp_path, source, allow_custom_ops=True)
    centers = np.array([[0.2, 0.2], [0.21, 0.2], [0.7, 0.7]], np.float32)
    anchors = np.concatenate([centers, np.full((3, 2), 0.2, np.float32)], 1)
    scores = np.array([[[0, 0.9], [0, 0.8], [0, 0.7]]], np.float32)
    boxes, found, count = run_tflite(bytes(model), [np.zeros((1, 3, 4), np.float32), scores, anchors])
    np.testing.assert_allclose(boxes[0], [[0.1, 0.1, 0.3, 0.3], [0.6, 0.6, 0.8, 0.8]], atol=1e-6)
    np.testing.assert_allclose(found, [[0.9, 0.7]])
    assert count == [2]


@pytest.fixture(scope="module")
def keras_of_tf(tf: ModuleType) -> Any:
    return pytest.importorskip("tf_keras")


@pytest.mark.parametrize(
    ("options", "shape", "inputs"),
    [
        # The state is created at each run: several runs.
        ({}, (1, 4, 3), [(1, 4, 3), (1, 4, 3)]),
        ({"return_sequences": True, "go_backwards": True}, (2, 4, 3), [(2, 4, 3), (2, 4, 3)]),
        ({"return_sequences": True, "time_major": True}, (4, 2, 3), [(4, 2, 3), (4, 2, 3)]),
        ({"return_sequences": True}, (2, None, 3), [(2, 5, 3), (2, 2, 3), (2, 2, 3)]),
        # A state of the batch's size, whatever that is.
        ({"return_sequences": True}, (None, None, 3), [(2, 5, 3), (9, 2, 3), (3, 2, 3)]),
    ],
)
def test_keras_layers(
    tf: ModuleType,
    keras_of_tf: Any,
    tmp_path: Path,
    options: dict[str, Any],
    shape: tuple[int | None, ...],
    inputs: list[tuple[int, ...]],
) -> None:
    bias = keras_of_tf.initializers.RandomNormal(seed=3)
    original = save_call(tf, tmp_path, keras_of_tf.layers.LSTM(5, bias_initializer=bias, **options), shape)
    model = tfconvert.convert(tmp_path)
    assert model.report.operators["UNIDIRECTIONAL_SEQUENCE_LSTM"] == 1
    assert not any("reset_all_variables" in note.message for note in model.report.notes)
    interpreter = pytest.importorskip("ai_edge_litert.interpreter").Interpreter(model_content=bytes(model))
    runner = interpreter.get_signature_runner()
    for each in inputs:
        (x,) = _random(each)
        np.testing.assert_allclose(runner(x=x)["result"], original(x=tf.constant(x))["result"], atol=1e-5)


def test_a_layer_that_is_called_twice(tf: ModuleType, keras_of_tf: Any, tmp_path: Path, run_tflite: RunTFLite) -> None:
    shared = keras_of_tf.layers.LSTM(5)
    both = keras_of_tf.layers.Lambda(lambda x: shared(x) - shared(x * 2))
    both.shared = shared
    original = save_call(tf, tmp_path, both, (1, 4, 3))
    model = tfconvert.convert(tmp_path)
    (x,) = _random((1, 4, 3))
    assert model.report.operators["UNIDIRECTIONAL_SEQUENCE_LSTM"] == 2
    np.testing.assert_allclose(run_tflite(bytes(model), [x])[0], original(x=tf.constant(x))["result"], atol=1e-5)


def test_suppression(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite) -> None:
    holder = tf.Module()

    def suppress(x: Any, y: Any) -> dict[str, Any]:
        options = {"pad_to_max_output_size": True}
        indices, count = tf.image.non_max_suppression_padded(x, y, 5, 0.5, 0.3, **options)
        return {"a": indices, "b": count}

    specs = [tf.TensorSpec([12, 4], tf.float32, "x"), tf.TensorSpec([12], tf.float32, "y")]
    holder.f = tf.function(suppress, input_signature=specs)
    tf.saved_model.save(holder, str(tmp_path), signatures=holder.f)
    model = tfconvert.convert(tmp_path)
    assert model.report.operators["NON_MAX_SUPPRESSION_V4"] == 1
    assert "WHILE" not in model.report.operators
    assert "equal scores" in model.report.notes[0].message
    corners = RNG.uniform(0, 1, (12, 2))
    boxes = np.concatenate([corners, corners + RNG.uniform(0.2, 0.6, (12, 2))], 1).astype(np.float32)
    for top in (1.0, 0.35):
        scores = RNG.uniform(0, top, 12).astype(np.float32)
        want = holder.f(tf.constant(boxes), tf.constant(scores))
        indices, count = run_tflite(bytes(model), [boxes, scores])
        assert count == want["b"]
        assert list(indices[: int(count)]) == list(want["a"][: int(count)])


def test_embedding(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite) -> None:
    holder = tf.Module()
    holder.table = tf.Variable(RNG.normal(size=(7, 3)).astype(np.float32))
    rows = tf.function(lambda table, ids: tf.one_hot(ids, 7) @ table, experimental_implements="embedding_matmul")
    holder.f = tf.function(
        lambda ids: {"rows": rows(holder.table, ids)}, input_signature=[tf.TensorSpec([None], tf.int32)]
    )
    tf.saved_model.save(holder, str(tmp_path), signatures=holder.f)
    model = tfconvert.convert(tmp_path)
    ids = np.array([6, 0, 2, 2], np.int32)
    assert dict(model.report.operators) == {"EMBEDDING_LOOKUP": 1}
    assert "outside of the table" in model.report.notes[0].message
    np.testing.assert_array_equal(run_tflite(bytes(model), [ids])[0], holder.table.numpy()[ids])
