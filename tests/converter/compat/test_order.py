"""The class has inputs and outputs in the order of TensorFlow's own, so that scripts may use them by number."""

from __future__ import annotations

import importlib
import random
import string
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ai_edge_litert.interpreter import Interpreter

import tfconvert
from tests.support.sample_models import traced
from tfconvert.compat import v1
from tfconvert.importers.official_order import fingerprint

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")


def _sizes(content: bytes) -> tuple[list[int], list[int]]:
    """Returns the last dimensions of inputs and outputs, which tell them apart, in the file's order."""
    interpreter = Interpreter(model_content=content)
    inputs, outputs = (
        [int(each["shape"][-1]) for each in details]
        for details in (interpreter.get_input_details(), interpreter.get_output_details())
    )
    return inputs, outputs


def _check(official: Any, own: Any) -> None:
    assert _sizes(own.convert()) == _sizes(official.convert())


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
        tf.compat.v1.lite.TFLiteConverter.from_saved_model(str(tmp_path)),
        v1.TFLiteConverter.from_saved_model(tmp_path),
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


@pytest.mark.parametrize("owner", ["none", "stranger", "parent", "plain"])
@pytest.mark.parametrize("is_named", [True, False])
def test_functions_that_nobody_owns(tf: ModuleType, owner: str, is_named: bool) -> None:
    module = tf.Module()
    module.scale = tf.Variable(2.0)
    plain = tf.__internal__.tracking.AutoTrackable()
    plain.scale = module.scale
    owners = {"none": None, "stranger": tf.Module(), "parent": module, "plain": plain}

    @traced(tf, *(tf.TensorSpec([1, size + 1], name=f"in_{11 - size}") for size in range(12)))
    def call(*several: Any) -> Any:
        values = [each * module.scale for each in several]
        return {chr(97 + index * 5 % 12): value for index, value in enumerate(values)} if is_named else values[::-1]

    functions = [call.get_concrete_function()]
    kinds = (tf.lite.TFLiteConverter, tfconvert.TFLiteConverter)
    _check(*(kind.from_concrete_functions(functions, owners[owner]) for kind in kinds))
