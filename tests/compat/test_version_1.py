"""Arguments and attributes of the class of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import TestCase

import numpy as np
import pytest

import tfconvert
from tfconvert.compat import v1
from tfconvert.schema.diagnostics import ConversionError

SHAPE = (2, 3)


@pytest.fixture(scope="module")
def difference(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a SavedModel of `b - a`, whose signature calls them x and y, with open batch."""
    old, folder = tf.compat.v1, tmp_path_factory.mktemp("difference") / "saved"
    with old.Graph().as_default(), old.Session() as session:
        b, a = (old.placeholder(tf.float32, (None, *SHAPE[1:]), name) for name in "ba")
        old.saved_model.simple_save(session, str(folder), {"x": b, "y": a}, {"z": tf.subtract(b, a, "c")})
    return folder


def _details(content: bytes) -> tuple[Any, Any, Any]:
    interpreter = tfconvert.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    return interpreter, interpreter.get_input_details(), interpreter.get_output_details()


def _computed(content: bytes, *values: Any) -> Any:
    interpreter, taken, given = _details(content)
    for details, value in zip(taken, values, strict=True):
        interpreter.set_tensor(details["index"], np.full(details["shape"], value, details["dtype"]))
    interpreter.invoke()
    return interpreter.get_tensor(given[0]["index"])


@pytest.mark.parametrize(
    "arguments",
    [
        {"input_shapes": {"a": SHAPE, "b:0": SHAPE}},
        {"input_shapes": {"x": [2, None], "y": {2, 3}}},
        {"input_arrays": ["b", "a"], "output_arrays": {"c"}, "input_shapes": {"a": SHAPE, "b": SHAPE}},
        {"input_arrays": {"x", "y"}, "output_arrays": ["z"], "input_shapes": {"x": SHAPE, "y": SHAPE}},
    ],
)
def test_tensors_of_a_saved_model_by_either_name(difference: Path, arguments: dict[str, Any]) -> None:
    content = v1.TFLiteConverter.from_saved_model(difference, **arguments).convert()
    found = _computed(content, 1, 3)  # in the order of the tensors' names
    assert found.tolist() == np.full(SHAPE, 2).tolist()


def test_shapes_that_are_none(difference: Path) -> None:
    content = v1.TFLiteConverter.from_saved_model(difference, input_shapes={"a": None, "b": SHAPE}).convert()
    _, taken, _ = _details(content)
    assert [details["shape_signature"].tolist() for details in taken] == [[-1, 3], [2, 3]]


def test_the_old_names_of_attributes(digits_model: Path) -> None:
    converter = v1.TocoConverter.from_saved_model(digits_model)
    assert converter.post_training_quantize is False
    assert converter.target_ops == {tfconvert.OpsSet.TFLITE_BUILTINS}
    converter.post_training_quantize = True
    assert converter.optimizations == [tfconvert.Optimize.DEFAULT]
    assert converter.post_training_quantize is True
    small = converter.convert()
    converter.post_training_quantize = False
    assert converter.optimizations == []
    assert len(converter.convert()) > len(small)
    converter.target_ops = [tfconvert.OpsSet.SELECT_TF_OPS]
    assert converter.target_spec.supported_ops == [tfconvert.OpsSet.SELECT_TF_OPS]


def test_graphviz_has_no_effect(digits_model: Path, tmp_path: Path) -> None:
    converter = v1.TFLiteConverter.from_saved_model(digits_model)
    expected = converter.convert()
    converter.output_format, converter.dump_graphviz_dir = "GRAPHVIZ_DOT", str(tmp_path)
    assert converter.convert() == expected
    assert converter.report is not None
    assert [note.code for note in converter.report.notes].count("no-effect") == 2


def test_models_without_inputs(tf: ModuleType) -> None:
    old = tf.compat.v1
    with old.Graph().as_default(), old.Session() as session:
        y = tf.range(old.get_variable("n", initializer=tf.constant(3)))
        session.run(old.global_variables_initializer())
        converter = v1.TFLiteConverter.from_session(session, [], [y])
    assert converter.get_input_arrays() == []
    assert _computed(converter.convert()).tolist() == [0, 1, 2]


def test_arrays_beside_tensors_are_ignored_with_a_warning(tf: ModuleType) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [2], "x")
        y = tf.identity(x * 2.0, "y")
    with TestCase().assertLogs("tfconvert", "WARNING") as logged:
        converter = v1.TFLiteConverter(graph.as_graph_def(), [x], [y], [("z", [1])], ["z"])
    assert converter._has_valid_tensors()
    assert not v1.TFLiteConverter(graph.as_graph_def(), None, None, [("x", [2])], ["y"])._has_valid_tensors()
    assert [record.getMessage().partition(",")[0] for record in logged.records] == [
        f"{name} will be ignored" for name in ("input_arrays_with_shape", "output_arrays")
    ]
    assert _computed(converter.convert(), 2).tolist() == [4, 4]


def _double(tf: ModuleType) -> tuple[Any, Any, Any]:
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [4], "x")
        return graph, x, tf.add(x, x, "y")


def test_integers_into_a_graph_of_floats(tf: ModuleType) -> None:
    graph, x, y = _double(tf)
    converter = v1.TFLiteConverter.from_session(tf.compat.v1.Session(graph=graph), [x], [y])
    converter.inference_input_type = tf.uint8
    converter.quantized_input_stats = {"x": (100, 2)}
    content = converter.convert()
    _, (taken,), (given,) = _details(content)
    assert (taken["dtype"], taken["quantization"]) == (np.uint8, (0.5, 100))
    assert given["dtype"] == np.float32
    assert _computed(content, 104).tolist() == [4] * 4


def test_ranges_of_all_inputs_or_none(tf: ModuleType) -> None:
    with tf.Graph().as_default() as graph:
        inputs = [tf.compat.v1.placeholder(tf.float32, [4], name) for name in "ab"]
        y = tf.quantization.fake_quant_with_min_max_args(tf.add(*inputs), 0, 1)
    converter = v1.TFLiteConverter.from_session(tf.compat.v1.Session(graph=graph), inputs, [y])
    converter.inference_type = tf.uint8
    converter.quantized_input_stats = {"a": (0, 1)}
    with pytest.raises(ValueError, match="no range of the input 'b'"):
        converter.convert()
    # Inputs that stay floats, beside samples, need none.
    converter.inference_input_type = converter.inference_output_type = tf.float32
    converter.representative_dataset = lambda: [[np.ones(4, np.float32)] * 2]
    assert _details(converter.convert())[1][0]["dtype"] == np.float32


def test_ranges_that_are_made_up(tf: ModuleType) -> None:
    graph, x, y = _double(tf)
    converter = v1.TFLiteConverter.from_session(tf.compat.v1.Session(graph=graph), [x], [y])
    converter.inference_type = tf.uint8
    converter.quantized_input_stats = {"x": (0, 1)}
    with pytest.raises(ConversionError):
        converter.convert()
    converter.default_ranges_stats = (0, 6)
    _, (taken,), (given,) = _details(converter.convert())
    assert (taken["dtype"], taken["quantization"]) == (np.uint8, (1, 0))
    assert (given["dtype"], given["quantization"]) == (np.uint8, (pytest.approx(6 / 255), 0))
    assert converter.report is not None
    (note,) = [note for note in converter.report.notes if note.code == "default-range"]
    assert note.severity == "warning"


@pytest.mark.parametrize("value", [6, (6, 0), (0, float("inf")), "06"])
def test_ranges_that_are_none(digits_model: Path, value: Any) -> None:
    converter = v1.TFLiteConverter.from_saved_model(digits_model)
    converter.inference_type, converter.default_ranges_stats = "uint8", value
    with pytest.raises(ValueError, match="default_range can't be"):
        converter.convert()


def test_layers_of_one_s_own_in_a_keras_file(tf: ModuleType, tmp_path: Path) -> None:
    class Twice(tf.keras.layers.Layer):  # type: ignore[misc, name-defined]
        def call(self, x: Any) -> Any:
            return 2.0 * x

    path = tmp_path / "model.keras"
    tf.keras.Sequential([tf.keras.Input([3], name="x"), Twice()]).save(path)
    with pytest.raises(ConversionError, match="custom objects"):
        v1.TFLiteConverter.from_keras_model_file(path)
    converter = v1.TFLiteConverter.from_keras_model_file(path, None, {"x": {2, 3}}, custom_objects={"Twice": Twice})
    for _ in range(2):  # The loaded model stays.
        assert _computed(converter.convert(), 2).tolist() == np.full(SHAPE, 4).tolist()
    assert converter.report is not None
    assert converter.report.source == str(path)
    converter.inference_input_type = "int8"
    with pytest.raises(ValueError, match="nothing is quantized"):
        converter.convert()
    converter.inference_input_type = None
    assert converter.convert()
