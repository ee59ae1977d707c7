"""The conversion metadata of files, as the official reader reads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tfconvert.compat import v1
from tfconvert.schema.tflite.reader import read_model

DEFAULT = [tfconvert.Optimize.DEFAULT]
SAVED_MODEL, KERAS, FUNCTIONS, GRAPH, SESSION = range(1, 6)


@pytest.fixture(scope="module")
def told(tf: ModuleType) -> Callable[[bytes], Any]:
    """Returns the official reader of the metadata."""
    from tensorflow.lite.python.util import get_conversion_metadata

    return get_conversion_metadata  # type: ignore[no-any-return]


def _module(tf: ModuleType) -> Any:
    module = tf.Module()
    spec = tf.TensorSpec([1, 2], tf.float32)
    module.call = tf.function(lambda x: tf.matmul(x, tf.ones((2, 3))), input_signature=[spec])
    return module


def test_files_tell_what_they_were_made_from(tf: ModuleType, told: Callable[[bytes], Any], digits_model: Path) -> None:
    module = _module(tf)
    function = module.call.get_concrete_function()
    converters = {
        SAVED_MODEL: tfconvert.TFLiteConverter.from_saved_model(digits_model),
        FUNCTIONS: tfconvert.TFLiteConverter.from_concrete_functions([function], module),
        KERAS: tfconvert.TFLiteConverter.from_keras_model(
            tf.keras.Sequential([tf.keras.Input([2]), tf.keras.layers.ReLU()])
        ),
    }
    for kind, converter in converters.items():
        environment = told(converter.convert()).environment
        assert (environment.modelType, environment.apiVersion) == (kind, 2)
        assert environment.tensorflowVersion
    assert told(bytes(tfconvert.convert(module))).environment.modelType == FUNCTIONS


def test_the_first_generation_tells_sessions_and_graphs(
    tf: ModuleType, told: Callable[[bytes], Any], tmp_path: Path
) -> None:
    old = tf.compat.v1
    with old.Graph().as_default() as graph, old.Session() as session:
        x = old.placeholder(tf.float32, [1, 2], "x")
        y = tf.identity(x * 2.0, "y")
        environment = told(v1.TFLiteConverter.from_session(session, [x], [y]).convert()).environment
    assert (environment.modelType, environment.apiVersion) == (SESSION, 1)
    assert environment.tensorflowVersion.decode() == tf.__version__
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    environment = told(v1.TFLiteConverter.from_frozen_graph(path, ["x"], ["y"]).convert()).environment
    assert (environment.modelType, environment.apiVersion) == (GRAPH, 1)
    assert told(bytes(tfconvert.convert(path))).environment.modelType == GRAPH


def _trained(tf: ModuleType) -> Any:
    """Returns a module with fake quantization of all that it computes."""
    module = tf.Module()

    def rounded(value: Any) -> Any:
        return tf.quantization.fake_quant_with_min_max_args(value, -6.0, 6.0)

    def call(x: Any) -> Any:
        return rounded(tf.matmul(rounded(x), rounded(tf.ones((2, 3)))))

    module.call = tf.function(call, input_signature=[tf.TensorSpec([1, 2], tf.float32)])
    return module


@pytest.mark.parametrize(
    ("is_trained", "has_samples", "types", "expected"),
    [
        (False, False, [], [1002]),
        (False, True, [], [1003]),
        (False, False, ["float16"], [1001]),
        (True, False, [], [2000]),
        (True, True, [], [1003, 2000]),
        (True, False, ["float16"], [1001]),
    ],
)
def test_how_it_was_quantized(
    tf: ModuleType,
    told: Callable[[bytes], Any],
    is_trained: bool,
    has_samples: bool,
    types: list[str],
    expected: list[int],
) -> None:
    module = _trained(tf) if is_trained else _module(tf)
    converter = tfconvert.TFLiteConverter.from_concrete_functions([module.call.get_concrete_function()], module)
    assert told(converter.convert()).options.modelOptimizationModes.size == 0
    converter.optimizations = DEFAULT
    converter.target_spec.supported_types = types
    if has_samples:
        converter.representative_dataset = lambda: [[np.ones((1, 2), np.float32)]]
    options = told(converter.convert()).options
    assert list(options.modelOptimizationModes) == expected
    assert not any((options.allowCustomOps, options.enableSelectTfOps, options.forceSelectTfOps))


def test_options_and_the_entry_left_out(told: Callable[[bytes], Any], digits_model: Path) -> None:
    converter = tfconvert.TFLiteConverter.from_saved_model(digits_model)
    converter.allow_custom_ops = True
    converter.target_spec.supported_ops = [tfconvert.OpsSet.SELECT_TF_OPS]
    options = told(converter.convert()).options
    assert options.allowCustomOps
    assert options.enableSelectTfOps
    assert options.forceSelectTfOps
    converter.target_spec.supported_ops = [tfconvert.OpsSet.SELECT_TF_OPS, tfconvert.OpsSet.TFLITE_BUILTINS]
    assert not told(converter.convert()).options.forceSelectTfOps
    converter.exclude_conversion_metadata = True
    content = converter.convert()
    assert told(content) is None
    assert [entry["name"] for entry in read_model(content)["metadata"]] == ["min_runtime_version"]
