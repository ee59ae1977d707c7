"""LSTM layers of any batch, in both directions and on one another, in LiteRT against TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.fusions.saved_layers import save_call
from tests.converter.targets.litert.layers import Array

RNG = np.random.default_rng(11)

FEATURES, UNITS = 3, 5


@pytest.fixture(scope="module")
def layers(tf: ModuleType) -> Any:
    return pytest.importorskip("tf_keras").layers


def _compare(tf: ModuleType, model: tfconvert.Model, original: Any, *runs: Sequence[Sequence[int]]) -> None:
    """Compares results on random inputs of some shapes, one after another in one interpreter."""
    interpreter = pytest.importorskip("ai_edge_litert.interpreter").Interpreter(model_content=bytes(model))
    runner = interpreter.get_signature_runner()
    for shapes in runs:
        inputs: dict[str, Array] = {
            name: RNG.normal(size=shape).astype(np.float32) for name, shape in zip("xyz", shapes, strict=False)
        }
        wanted = original(**{name: tf.constant(value) for name, value in inputs.items()})["result"]
        for _ in range(2):
            np.testing.assert_allclose(runner(**inputs)["result"], wanted, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"return_sequences": True}, {"go_backwards": True}])
def test_an_open_batch_and_time(tf: ModuleType, layers: Any, tmp_path: Path, options: dict[str, bool]) -> None:
    layer = layers.LSTM(UNITS, **options)
    original = save_call(tf, tmp_path, layer, (None, None, FEATURES))
    model = tfconvert.convert(tmp_path)
    assert model.report.operators["UNIDIRECTIONAL_SEQUENCE_LSTM"] == 1
    shapes = [(1, 8), (3, 20), (64, 3), (500, 1), (2, 8), (1, 20)]
    _compare(tf, model, original, *[[(*shape, FEATURES)] for shape in shapes])


def test_an_open_batch_and_a_state_that_is_given(tf: ModuleType, layers: Any, tmp_path: Path) -> None:
    layer = layers.LSTM(UNITS, return_sequences=True)
    shapes = ((None, None, FEATURES), (None, UNITS), (None, UNITS))
    original = save_call(tf, tmp_path, lambda x, y, z: layer(x, initial_state=[y, z]), *shapes)
    model = tfconvert.convert(tmp_path)
    assert model.report.operators["UNIDIRECTIONAL_SEQUENCE_LSTM"] == 1
    sizes = [[(batch, time, FEATURES), *[(batch, UNITS)] * 2] for batch, time in ((1, 4), (70, 2), (2, 9))]
    _compare(tf, model, original, *sizes)


def test_both_directions_and_layers_on_layers(tf: ModuleType, layers: Any, tmp_path: Path) -> None:
    stack = [
        layers.Bidirectional(layers.LSTM(UNITS, return_sequences=True)),
        layers.Bidirectional(layers.LSTM(UNITS, return_sequences=True), merge_mode="sum"),
        layers.Bidirectional(layers.LSTM(UNITS)),
    ]
    original = save_call(tf, tmp_path, lambda x: stack[2](stack[1](stack[0](x))), (None, None, FEATURES))
    model = tfconvert.convert(tmp_path)
    sizes = {"SHAPE": 1, "STRIDED_SLICE": 3, "PACK": 1, "MAXIMUM": 1, "FILL": 12}
    ends = {"CONCATENATION": 2, "ADD": 1, "BIDIRECTIONAL_SEQUENCE_LSTM": 3}
    assert dict(model.report.operators) == {**sizes, **ends}
    _compare(tf, model, original, *[[(*shape, FEATURES)] for shape in ((1, 4), (50, 2), (3, 7))])

    model = tfconvert.convert(tmp_path, input_shapes={"x": (1, 6, FEATURES)})
    ends = {"CONCATENATION": 1, "ADD": 1, "STRIDED_SLICE": 2}
    assert dict(model.report.operators) == {"UNPACK": 1, **ends, "BIDIRECTIONAL_SEQUENCE_LSTM": 3}
    _compare(tf, model, original, [(1, 6, FEATURES)])


def test_a_layer_in_a_loop(tf: ModuleType, layers: Any, tmp_path: Path) -> None:
    layer = layers.LSTM(FEATURES, return_sequences=True)

    def call(x: Any) -> Any:
        for _ in tf.range(3):
            x = layer(x)
        return x

    layer.build((None, None, FEATURES))
    original = save_call(tf, tmp_path, tf.function(call), (None, None, FEATURES))
    model = tfconvert.convert(tmp_path)
    assert model.report.operators["WHILE"] == model.report.operators["UNIDIRECTIONAL_SEQUENCE_LSTM"] == 1
    _compare(tf, model, original, *[[(*shape, FEATURES)] for shape in ((1, 4), (50, 2), (3, 7))])


@pytest.mark.parametrize("batch", [2, None])
def test_a_sequence_without_steps(tf: ModuleType, layers: Any, tmp_path: Path, batch: int | None) -> None:
    """Where the batch is open, TensorFlow has no last output then, but a last state."""
    layer = layers.LSTM(UNITS, return_state=True)
    shapes = ((batch, None, FEATURES), (batch, UNITS), (batch, UNITS))
    first = 0 if batch else 1

    def call(x: Any, y: Any, z: Any) -> Any:
        return tf.concat(layer(x, initial_state=[y, z])[first:2], 1)

    original = save_call(tf, tmp_path, call, *shapes)
    model = tfconvert.convert(tmp_path)
    assert model.report.operators["UNIDIRECTIONAL_SEQUENCE_LSTM"] == 1
    _compare(tf, model, original, *[[(2, time, FEATURES), *[(2, UNITS)] * 2] for time in (4, 0, 1)])


@pytest.mark.parametrize(("is_masked", "reason"), [(False, "its last cell state is used"), (True, "by a mask")])
def test_why_a_layer_stays_a_loop_is_told_once(
    tf: ModuleType, layers: Any, tmp_path: Path, is_masked: bool, reason: str
) -> None:
    layer = layers.LSTM(UNITS, return_state=True, name="memory")
    if is_masked:
        save_call(tf, tmp_path, lambda x: layer(layers.Masking()(x))[0], (1, 4, FEATURES))
    else:
        save_call(tf, tmp_path, lambda x: layer(x)[2], (1, 4, FEATURES))
    (note,) = tfconvert.convert(tmp_path).report.notes
    assert note.code == "recurrence-kept"
    assert reason in note.message
    assert "memory" in note.location


def test_a_layer_stays_a_loop_where_it_is_to(tf: ModuleType, layers: Any, tmp_path: Path) -> None:
    layer = layers.LSTM(UNITS)
    original = save_call(tf, tmp_path, layer, (None, None, FEATURES))
    model = tfconvert.convert(tmp_path, target=tfconvert.LiteRT(recurrent="loop"))
    assert "UNIDIRECTIONAL_SEQUENCE_LSTM" not in model.report.operators
    assert not model.report.notes
    _compare(tf, model, original, [(3, 5, FEATURES)])
