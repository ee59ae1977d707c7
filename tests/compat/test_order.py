"""The class has inputs and outputs in the order and with the names of TensorFlow's own, since scripts use both."""

from __future__ import annotations

import importlib
import random
import string
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

import tfconvert
from tests.support.litert import RunTFLite
from tests.support.sample_models import traced
from tfconvert.compat import v1
from tfconvert.importers.graph.signature_order import fingerprint

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")


def _ports(content: bytes) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Returns names and last dimensions of inputs and outputs, which tell them apart, in the file's order."""
    interpreter = Interpreter(model_content=content)
    inputs, outputs = (
        [(each["name"], int(each["shape"][-1])) for each in details]
        for details in (interpreter.get_input_details(), interpreter.get_output_details())
    )
    return inputs, outputs


def _check(official: Any, own: Any) -> None:
    assert _ports(own.convert()) == _ports(official.convert())


def _module(tf: ModuleType, result: Callable[[list[Any]], Any], count: int = 12) -> Any:
    module = tf.Module()

    @traced(tf, *(tf.TensorSpec([1, size + 1], name=f"in_{size}") for size in range(count)))
    def call(*several: Any) -> Any:
        return result([each * 2.0 for each in several])

    module.call = call
    return module


@pytest.mark.parametrize(
    "result", [list, lambda values: {chr(122 - index): value for index, value in enumerate(values)}]
)
def test_functions_and_saved_models(tf: ModuleType, tmp_path: Path, result: Callable[[list[Any]], Any]) -> None:
    module = _module(tf, result)
    function = module.call.get_concrete_function()
    tf.saved_model.save(module, str(tmp_path), signatures=function)
    official = tf.lite.TFLiteConverter
    _check(
        official.from_concrete_functions([function], module),
        tfconvert.TFLiteConverter.from_concrete_functions([function], module),
    )
    _check(official.from_saved_model(str(tmp_path)), tfconvert.TFLiteConverter.from_saved_model(tmp_path))
    _check(
        tf.compat.v1.lite.TFLiteConverter.from_saved_model(str(tmp_path)), v1.TFLiteConverter.from_saved_model(tmp_path)
    )


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_keras_models(tf: ModuleType, package: str, tmp_path: Path) -> None:
    keras = importlib.import_module(package)
    inputs = [keras.Input((size,), name=name) for size, name in ((3, "zeta"), (4, "mid"), (5, "alpha"))]
    model = keras.Model(inputs, [keras.layers.Dense(8 + index)(each) for index, each in enumerate(inputs)])
    _check(tf.lite.TFLiteConverter.from_keras_model(model), tfconvert.TFLiteConverter.from_keras_model(model))
    if package == "tf_keras":
        path = str(tmp_path / "model.h5")
        model.save(path)
        official = tf.compat.v1.lite.TFLiteConverter
        _check(official.from_keras_model_file(path), v1.TFLiteConverter.from_keras_model_file(path))


def test_models_of_tensorflow_1(tf: ModuleType, tmp_path: Path) -> None:
    folder = str(tmp_path / "model")
    old = tf.compat.v1
    with old.Graph().as_default(), old.Session() as session:
        inputs = [old.placeholder(tf.float32, [1, size], name) for size, name in ((3, "z"), (4, "a"), (5, "q"))]
        outputs = [tf.multiply(each, 2.0, name) for each, name in zip(inputs, ("o", "m", "b"), strict=True)]
        named = dict(zip(("zeta", "alpha", "mid"), inputs, strict=True))
        old.saved_model.simple_save(session, folder, named, dict(zip(("zz", "aa", "mm"), outputs, strict=True)))
        _check(
            old.lite.TFLiteConverter.from_session(session, inputs, outputs),
            v1.TFLiteConverter.from_session(session, inputs, outputs),
        )
    _check(tf.lite.TFLiteConverter.from_saved_model(folder), tfconvert.TFLiteConverter.from_saved_model(folder))
    _check(old.lite.TFLiteConverter.from_saved_model(folder), v1.TFLiteConverter.from_saved_model(folder))


def test_fingerprints_are_tensorflow_s(tf: ModuleType) -> None:
    draw = random.Random(7)
    letters = string.ascii_letters + "_/:é"
    names = ["".join(draw.choice(letters) for _ in range(length)) for length in range(200)]
    wanted = [int.from_bytes(bytes(each), "little") for each in tf.fingerprint(names).numpy()]
    assert [fingerprint(name) for name in names] == wanted


_FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "list": lambda values: values[::-1],
    "dictionary": lambda values: {chr(97 + index * 5 % 12): value for index, value in enumerate(values)},
    "nested": lambda values: ([values[1], {"z": values[0], "b": (values[2], None)}], values[3:]),
}


@pytest.mark.parametrize("owner", ["none", "stranger", "parent", "plain", "function", "concrete function", "text"])
@pytest.mark.parametrize("form", _FORMS)
def test_functions_that_nobody_owns(tf: ModuleType, owner: str, form: str) -> None:
    module = tf.Module()
    module.scale = tf.Variable(2.0)
    plain = tf.__internal__.tracking.AutoTrackable()
    plain.scale = module.scale

    @traced(tf, *(tf.TensorSpec([1, size + 1], name=f"in_{11 - size}") for size in range(12)))
    def call(*several: Any) -> Any:
        return _FORMS[form]([each * module.scale for each in several])

    functions = [call.get_concrete_function()]
    owners = {
        "none": None,
        "stranger": tf.Module(),
        "parent": module,
        "plain": plain,
        "function": call,
        "concrete function": functions[0],
        "text": "x",
    }
    kinds = (tf.lite.TFLiteConverter, tfconvert.TFLiteConverter)
    _check(*(kind.from_concrete_functions(functions, owners[owner]) for kind in kinds))


def test_a_function_that_is_its_own_owner_computes_the_same(tf: ModuleType, run_tflite: RunTFLite) -> None:
    @tf.function  # type: ignore[untyped-decorator]
    def call(zeta: Any, *, mid: Any, alpha: Any) -> Any:
        return [zeta - mid], (zeta * alpha, mid)

    specs = {name: tf.TensorSpec([2], name=name) for name in ("zeta", "mid", "alpha")}
    function = call.get_concrete_function(specs["zeta"], mid=specs["mid"], alpha=specs["alpha"])
    values = [np.array(each, np.float32) for each in ([5, 7], [2, 3], [1, 4])]  # Keywords are sorted.
    content = tfconvert.TFLiteConverter.from_concrete_functions([function], call).convert()
    zeta, alpha, mid = values
    for found, wanted in zip(run_tflite(content, values), (zeta - mid, zeta * alpha, mid), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_several_signatures(tf: ModuleType, tmp_path: Path) -> None:
    module = tf.Module()
    one = traced(tf, tf.TensorSpec([1, 2], name="x"))(lambda x: {"y": x * 2.0})
    other = traced(tf, tf.TensorSpec([1, 2], name="x"))(lambda x: {"y": x * 3.0, "b": x + 1.0})
    tf.saved_model.save(module, str(tmp_path), {"serving_default": one, "same": one, "other": other})
    contents = [
        kind.from_saved_model(str(tmp_path)).convert() for kind in (tf.lite.TFLiteConverter, tfconvert.TFLiteConverter)
    ]
    official, own = (Interpreter(model_content=content) for content in contents)
    assert set(own.get_signature_list()) == set(official.get_signature_list()) == {"serving_default", "same", "other"}
    for key in ("serving_default", "other"):
        found, wanted = (
            [
                {name: each["name"] for name, each in details().items()}
                for details in (runner.get_input_details, runner.get_output_details)
            ]
            for runner in (each.get_signature_runner(key) for each in (own, official))
        )
        assert found == wanted


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_what_keras_exports_is_one_signature(tf: ModuleType, package: str, tmp_path: Path) -> None:
    keras = importlib.import_module(package)
    image = keras.Input((3,), name="image")
    # So many outputs that the two are not small wrappers of one function any more.
    model = keras.Model(image, [keras.layers.Dense(2 + index)(image) for index in range(10)])
    model.export(str(tmp_path))
    converters = [kind.from_saved_model(str(tmp_path)) for kind in (tf.lite.TFLiteConverter, tfconvert.TFLiteConverter)]
    _check(*converters)
    runner = Interpreter(model_content=converters[1].convert()).get_signature_runner()
    assert list(runner.get_input_details()) == ["image"]
    report = converters[1].report
    assert report is not None
    assert ["signature_keys" in note.hint for note in report.notes if note.code == "same-signature"] == [True]


def test_weights_and_operators_have_their_nodes_names(tf: ModuleType) -> None:
    keras = importlib.import_module("tf_keras")
    layers = keras.layers
    image = keras.Input((6, 6, 3), batch_size=1, name="image")
    hidden = layers.Conv2D(4, 3, activation="relu", bias_initializer="ones", name="conv")(image)
    hidden = layers.Flatten(name="flat")(hidden)
    model = keras.Model(image, layers.Dense(5, bias_initializer="ones", name="last")(hidden), name="net")
    samples = [[np.linspace(-1, 1, 108, dtype=np.float32).reshape(1, 6, 6, 3)]]
    for is_quantized in (False, True):
        names = []
        for kind in (tf.lite, tfconvert):
            converter = kind.TFLiteConverter.from_keras_model(model)
            if is_quantized:
                converter.optimizations = [kind.Optimize.DEFAULT]
                converter.representative_dataset = lambda: iter(samples)
            interpreter = Interpreter(model_content=converter.convert())
            names.append({each["name"] for each in interpreter.get_tensor_details()})
        official, own = names
        # Of the bias the official file has a name that says where it was read, too.
        wanted = {"net/conv/Conv2D", "net/last/MatMul", "serving_default_image:0", "StatefulPartitionedCall:0"}
        assert wanted <= own & official
        for beginning in ("net/conv/Relu;net/conv/BiasAdd;net/conv/Conv2D", "net/last/BiasAdd"):
            assert any(name.startswith(beginning) for name in own)
            assert any(name.startswith(beginning) for name in official)
        assert ("tfl.quantize" in own) == ("tfl.quantize" in official) == is_quantized
