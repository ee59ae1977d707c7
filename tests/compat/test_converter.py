"""Where models come from, attributes that nobody knows, and errors."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import warnings
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import RunTFLite
from tfconvert.compat import converter as module
from tfconvert.compat import v1
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.settings.options import Options
from tfconvert.settings.selection import Order
from tfconvert.settings.targets import LiteRT

DEFAULT = [tfconvert.Optimize.DEFAULT]


def _converter(path: Path) -> tfconvert.TFLiteConverter:
    return tfconvert.TFLiteConverter.from_saved_model(path)


def test_attributes_that_nobody_knows(digits_model: Path) -> None:
    converter = _converter(digits_model)
    with pytest.warns(UserWarning, match=r"no attribute 'optimisations'.*; did you mean optimizations\?"):
        converter.optimisations = DEFAULT
    with pytest.warns(UserWarning, match="no attribute 'xyz'"):
        converter.target_spec.xyz = 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Once is enough.
        converter.optimisations = []
    assert converter.optimisations == []
    converter.convert()
    assert converter.report is not None
    assert [note.code for note in converter.report.notes] == ["same-signature", *["unknown-attribute"] * 2]


def test_what_was_never_set_is_not_there(digits_model: Path) -> None:
    converter = _converter(digits_model)
    assert not hasattr(converter, "no_such_attribute")
    assert converter.experimental_new_converter is True
    assert converter.report is None


def test_default_values_are_each_converter_s_own(digits_model: Path) -> None:
    first, second = _converter(digits_model), _converter(digits_model)
    first.optimizations.add(tfconvert.Optimize.DEFAULT)
    first.target_spec.supported_ops.add(tfconvert.OpsSet.SELECT_TF_OPS)
    assert not second.optimizations
    assert second.target_spec.supported_ops == {tfconvert.OpsSet.TFLITE_BUILTINS}


def test_converting_twice(digits_model: Path) -> None:
    converter = _converter(digits_model)
    floats = converter.convert()
    converter.optimizations = DEFAULT
    assert len(converter.convert()) < len(floats)
    converter.optimizations = []
    assert converter.convert() == floats


def test_a_target_of_tensorflow_s_own(digits_model: Path, tf: ModuleType) -> None:
    converter = _converter(digits_model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.target_spec = tf.lite.TargetSpec(supported_types=[tf.float16])
    assert converter.convert() == bytes(
        tfconvert.convert(digits_model, quantize="float16", target=tfconvert.LiteRT(names="official"))
    )


def test_a_dataset_of_tensorflow_s_own(digits_model: Path, tf: ModuleType) -> None:
    image = np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 8, 8, 1)
    contents = []
    for dataset in (tf.lite.RepresentativeDataset(lambda: iter([[image]])), [[image]], lambda: [(image,)]):
        converter = _converter(digits_model)
        converter.optimizations = DEFAULT
        converter.representative_dataset = dataset
        contents.append(converter.convert())
    quantize = tfconvert.Quantize("int8", samples=[[image]], slow_integers=True)
    assert (
        contents
        == [bytes(tfconvert.convert(digits_model, quantize=quantize, target=tfconvert.LiteRT(names="official")))] * 3
    )


@pytest.mark.parametrize("ends", ["float32", "int8"])
def test_samples_ask_for_integers_throughout(ends: str, digits_model: Path) -> None:
    """Scripts' files may be for accelerators: a hard swish is integers as in TensorFlow, though slower on CPUs."""
    converter = _converter(digits_model)
    converter.optimizations = DEFAULT
    converter.representative_dataset = lambda: [[np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 8, 8, 1)]]
    converter.inference_input_type = converter.inference_output_type = ends
    converter.convert()
    report = converter.report
    assert report is not None
    assert report.quantization is not None
    layers = report.quantization.layers
    # The softmax computes the output: as floats it keeps small probabilities.
    assert {layer.op for layer in layers if layer.form == "float32"} <= {"SOFTMAX"}
    assert "int8" in {layer.form for layer in layers if layer.op == "HARD_SWISH"}
    assert "fast-floats" not in {note.code for note in report.notes}


def test_no_samples_at_all(digits_model: Path) -> None:
    converter = _converter(digits_model)
    converter.optimizations = DEFAULT
    converter.target_spec.supported_ops = [tfconvert.OpsSet.TFLITE_BUILTINS_INT8]
    with pytest.raises(ConversionError, match="representative_dataset") as caught:
        converter.convert()
    assert caught.value.code == "no-samples"
    converter.representative_dataset = lambda: iter(())
    with pytest.raises(ConversionError):
        converter.convert()


def test_ops_that_would_stay_float(digits_model: Path) -> None:
    image = np.ones((1, 8, 8, 1), np.float32)
    converter = _converter(digits_model)
    converter.optimizations = DEFAULT
    converter.representative_dataset = lambda: [[image]]
    sets = [tfconvert.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8]
    converter.target_spec.supported_ops = sets
    with pytest.raises(ConversionError, match=r"hard_swish.*\n.*add OpsSet\.TFLITE_BUILTINS") as caught:
        converter.convert()
    assert caught.value.code == "stays-float"


def test_errors_of_the_conversion_are_its_own(tmp_path: Path) -> None:
    with pytest.raises(ConversionError) as expected:
        tfconvert.convert(tmp_path / "none")
    with pytest.raises(ConversionError) as caught:
        _converter(tmp_path / "none")
    assert caught.value.diagnostics == expected.value.diagnostics


def test_models_in_memory_are_handed_to_convert(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stop(Exception):  # noqa: N818
        pass

    seen: list[Source] = []

    def convert(source: Source, options: Options) -> None:
        assert options == Options(target=LiteRT(names="official", origin={"force_select_tf_ops": False}))
        seen.append(source)
        raise Stop

    monkeypatch.setattr(module, "convert_source", convert)
    model, one, other = object(), object(), object()
    for converter in (
        tfconvert.TFLiteConverter.from_keras_model(model),
        tfconvert.TFLiteConverter.from_concrete_functions([one], model),
        tfconvert.TFLiteConverter.from_concrete_functions([one, other]),
    ):
        with pytest.raises(Stop):
            converter.convert()
    # Nobody owns the one function.
    orders: Sequence[tuple[object, Order]] = ((model, "official"), (one, "flattened"), ([one, other], "official"))
    assert seen == [Source(given, order=order) for given, order in orders]


def test_the_owner_of_variables_stays_alive() -> None:
    class Owner:
        pass

    owner = Owner()
    alive = weakref.ref(owner)
    converter = tfconvert.TFLiteConverter.from_concrete_functions([object()], owner)
    del owner
    assert alive() is not None
    del converter
    assert alive() is None


def test_frozen_graph(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 2], name="x")
        tf.add(x, [1.0, 2.0], name="y")
    path = tmp_path / "frozen.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    converter = v1.TFLiteConverter.from_frozen_graph(str(path), ["x"], ["y"], input_shapes={"x": [3, 2]})
    content = converter.convert()
    assert converter.report is not None
    assert converter.report.source == str(path)
    (found,) = run_tflite(content, [np.zeros((3, 2), np.float32)])
    assert found.tolist() == [[1, 2]] * 3


def test_session(tf: ModuleType, run_tflite: RunTFLite) -> None:
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [2, 2])
        y = tf.compat.v1.placeholder(tf.float32, [2])
        weight = tf.compat.v1.get_variable("weight", initializer=tf.constant([3.0, 4.0]))
        out = x * weight - y
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            session.run(weight.assign([5.0, 6.0]))
            converter = v1.TFLiteConverter.from_session(session, [y, x], [out])
    (found,) = run_tflite(converter.convert(), [np.array([1, 2], np.float32), np.ones((2, 2), np.float32)])
    assert found.tolist() == [[4, 4], [4, 4]]


def _trained_for_integers(tf: ModuleType) -> Any:
    """Returns a graph with fake quantization everywhere but at its input."""
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [1, 4], name="x")
        weight = tf.quantization.fake_quant_with_min_max_args(
            tf.constant(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)), -1, 1, narrow_range=True
        )
        tf.quantization.fake_quant_with_min_max_args(tf.matmul(x, weight), -4, 4, name="y")
    return graph


@pytest.mark.parametrize(("kind", "mean"), [("uint8", 128), ("int8", 0)])
def test_ranges_of_inputs_as_numbers(tf: ModuleType, tmp_path: Path, kind: str, mean: int) -> None:
    path = tmp_path / "frozen.pb"
    path.write_bytes(_trained_for_integers(tf).as_graph_def().SerializeToString())
    converter = v1.TFLiteConverter.from_frozen_graph(str(path), ["x"], ["y"])
    assert converter.get_input_arrays() == ["x"]
    converter.inference_type = np.dtype(kind)
    converter.quantized_input_stats = {"x": (mean, 127.0)}
    interpreter = tfconvert.Interpreter(model_content=converter.convert())
    interpreter.allocate_tensors()
    (taken,), (given,) = interpreter.get_input_details(), interpreter.get_output_details()
    assert taken["dtype"] == given["dtype"] == np.dtype(kind)
    scale, zero = taken["quantization"]
    assert scale == pytest.approx(1 / 127, rel=1e-4)
    assert zero == mean
    x = np.array([[0.5, -0.25, 1, -1]], np.float32)
    interpreter.set_tensor(taken["index"], np.round(x / scale + zero).astype(kind))
    interpreter.invoke()
    with tf.compat.v1.Session(graph=_trained_for_integers(tf)) as session:
        expected = session.run("y:0", {"x:0": x})
    scale, zero = given["quantization"]
    found = (interpreter.get_tensor(given["index"]).astype(np.float32) - zero) * scale
    np.testing.assert_allclose(found, expected, atol=1.01 * 8 / 255)


@pytest.mark.parametrize(
    ("stats", "message"),
    [
        ({"z": (128, 127)}, "no input 'z'"),
        ({"x": 3}, "not a mean and a standard deviation"),
        ({"x": (128, 0)}, "can't have the mean 128 and the standard deviation 0"),
        ({"x": (300, 1)}, "the mean 300"),
    ],
)
def test_ranges_of_inputs_that_are_wrong(tf: ModuleType, stats: Any, message: str) -> None:
    graph = _trained_for_integers(tf)
    with tf.compat.v1.Session(graph=graph) as session:
        x, y = graph.get_tensor_by_name("x:0"), graph.get_tensor_by_name("y:0")
        converter = v1.TFLiteConverter.from_session(session, [x], [y])
    converter.inference_type = "uint8"
    converter.quantized_input_stats = stats
    with pytest.raises(ConversionError, match=message) as caught:
        converter.convert()
    assert caught.value.code == "wrong-option"


def test_ranges_of_inputs_of_other_models_are_refused(digits_model: Path) -> None:
    converter = v1.TFLiteConverter.from_saved_model(digits_model)
    assert converter.get_input_arrays() == ["pixels"]
    converter.quantized_input_stats = {"pixels": (0, 255)}
    converter.convert()  # Floats have no ranges.
    converter.inference_type = "uint8"
    with pytest.raises(ConversionError, match="for frozen graphs and sessions only"):
        converter.convert()


@pytest.mark.parametrize(("functions", "inputs"), [([], []), ([abs, abs], [[("x", 1.0)], [("x", 1.0)]]), ([abs], [[]])])
def test_not_one_function_of_jax(functions: list[Any], inputs: list[Any]) -> None:
    with pytest.raises(ConversionError) as caught:
        tfconvert.TFLiteConverter.experimental_from_jax(functions, inputs)
    assert caught.value.code == "wrong-option"
    assert caught.value.diagnostics[0].hint


def test_functions_of_jax_need_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.delitem(sys.modules, "jax")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConversionError) as caught:
        tfconvert.TFLiteConverter.experimental_from_jax([abs], [[("x", 1.0)]])
    assert caught.value.code == "no-jax"


def test_the_class_itself_takes_functions(tf: ModuleType, run_tflite: RunTFLite) -> None:
    root = tf.Module()
    root.weight = tf.Variable(3.0)
    function = tf.function(lambda x: x * root.weight).get_concrete_function(tf.TensorSpec([2], tf.float32))
    content = tfconvert.TFLiteConverter([function], trackable_obj=root).convert()
    assert content == tfconvert.TFLiteConverter.from_concrete_functions([function], root).convert()
    (found,) = run_tflite(content, [np.array([1, 2], np.float32)])
    assert found.tolist() == [3, 6]


def test_no_functions_at_all() -> None:
    with pytest.raises(ConversionError, match="no function"):
        tfconvert.TFLiteConverter.from_concrete_functions([])


def test_keras_files_are_left_to_convert(tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    path.write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(ConversionError) as expected:
        tfconvert.convert(path)
    with pytest.raises(ConversionError) as caught:
        v1.TFLiteConverter.from_keras_model_file(path)
    assert caught.value.diagnostics == expected.value.diagnostics


def test_arrays_of_saved_models_are_tensors(digits_model: Path) -> None:
    converter = v1.TFLiteConverter.from_saved_model(
        digits_model, input_arrays=["serving_default_pixels:0"], input_shapes={"serving_default_pixels": [3, 8, 8, 1]}
    )
    interpreter = tfconvert.Interpreter(model_content=converter.convert())
    assert interpreter.get_input_details()[0]["shape"].tolist() == [3, 8, 8, 1]
    with pytest.raises(ConversionError) as caught:
        v1.TFLiteConverter.from_saved_model(digits_model, output_arrays=["nowhere"]).convert()
    assert caught.value.code == "unknown-tensor"


def test_without_litert_its_interpreter_says_what_to_install() -> None:
    program = """
import sys
sys.modules["ai_edge_litert"] = None
from tfconvert import *
try:
    Interpreter(model_content=b"")
except ConversionError as problem:
    print(problem.code)
"""
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert process.stdout.split() == ["litert-missing"]


def test_graphs_of_version_1_may_be_passed_to_the_class_itself(tf: ModuleType) -> None:
    old = tf.compat.v1
    with old.Graph().as_default() as graph:
        inputs = [old.placeholder(tf.float32, [1, size], name) for size, name in ((3, "z"), (4, "a"))]
        outputs = [tf.multiply(each, 2.0, name) for each, name in zip(inputs, ("o", "m"), strict=True)]
    named = [("z", [1, 3]), ("a", [1, 4])], ["o", "m"]
    for kind in (old.lite.TFLiteConverter, v1.TFLiteConverter):
        for converter in (kind(graph.as_graph_def(), inputs, outputs), kind(graph.as_graph_def(), None, None, *named)):
            assert converter.get_input_arrays() == ["z", "a"]
            interpreter = tfconvert.Interpreter(model_content=converter.convert())
            interpreter.allocate_tensors()
            first, second = interpreter.get_input_details()
            assert (first["shape"].tolist(), second["shape"].tolist()) == ([1, 3], [1, 4])
            interpreter.set_tensor(first["index"], np.ones((1, 3), np.float32))
            interpreter.set_tensor(second["index"], np.zeros((1, 4), np.float32))
            interpreter.invoke()
            found = [interpreter.get_tensor(each["index"]).tolist() for each in interpreter.get_output_details()]
            assert found == [[[2.0] * 3], [[0.0] * 4]]


def test_graphs_of_version_1_need_inputs_and_outputs(tf: ModuleType) -> None:
    with pytest.raises(ConversionError, match="what to feed and what to fetch"):
        v1.TFLiteConverter(tf.compat.v1.GraphDef(), None, None)
