"""The witness of a verification: the most independent one is chosen, is named, and finds what it is there to find."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
import pytest
from click.testing import CliRunner

import tfconvert
from tests.converter.validation.test_valid_inputs import save
from tfconvert.cli.main import main
from tfconvert.converter.validation import function_check, tensorflow_process, witness
from tfconvert.converter.validation.inputs import Refused
from tfconvert.importers import keras as keras_importer
from tfconvert.importers.tflite.outline import outline
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.settings.data import check_data, from_data
from tfconvert.tools.against import check

Report = Any


@pytest.fixture(scope="module")
def keras(tf: ModuleType) -> ModuleType:
    module: ModuleType = pytest.importorskip("keras")
    return module


def _witnesses(report: Report) -> set[str]:
    return {each.witness for each in report.verification}


def _network(keras: Any) -> Any:
    model = keras.Sequential([keras.Input((6, 3)), keras.layers.Dense(4), keras.layers.BatchNormalization()])
    model.layers[1].set_weights([np.full(4, each, np.float32) for each in (1.5, 0.5, 2, 3)])
    return model


@pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")  # Keras' own.
def test_a_keras_model_is_its_own_witness(keras: ModuleType, tmp_path: Path) -> None:
    model = _network(keras)
    report = tfconvert.convert(model, verify=True).report
    assert _witnesses(report) == {"model.predict"}
    assert report.verification[0].max_relative < 1e-5
    assert "compared with model.predict" in str(report)
    assert report.to_dict()["verification"][0]["witness"] == "model.predict"
    model.save(tmp_path / "model.keras")
    run = CliRunner().invoke(main, [str(tmp_path / "model.keras"), "-o", str(tmp_path / "m.tflite"), "--verify"])
    assert run.exit_code == 0, run.output
    assert "compared with model.predict" in run.output


@pytest.mark.parametrize("quantize", [None, "dynamic"])
def test_a_model_that_was_traced_in_training_mode_is_found(
    keras: ModuleType, tf: Any, monkeypatch: pytest.MonkeyPatch, quantize: Any
) -> None:
    """The trace and all that follows from it agree with each other: only the model itself doesn't."""

    def in_training(model: Any) -> Any:
        spec = [tf.TensorSpec(model.inputs[0].shape, tf.float32, "x")]
        return tf.function(lambda x: model(x, training=True), input_signature=spec, autograph=False)

    monkeypatch.setattr(keras_importer, "_new_function", in_training)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(_network(keras), quantize=quantize, verify=True)
    assert caught.value.code == "verification-failed"
    assert "compared with model.predict" in caught.value.diagnostics[0].message


def test_inputs_of_a_keras_model_are_matched_by_name(keras: ModuleType) -> None:
    late, early = keras.Input((8,), name="late"), keras.Input((4,), name="early")
    model = keras.Model([late, early], {"sum": keras.layers.Dense(3)(late), "double": early * 2})
    report = tfconvert.convert(model, batch=1, rename={"late": "first", "sum": "scores"}, verify=True).report
    assert _witnesses(report) == {"model.predict"}
    assert {each.output for each in report.verification} == {"scores", "double"}


def test_models_on_jax_and_of_keras_2_are_their_own_witnesses(tmp_path: Path) -> None:
    program = """
import numpy as np, tfconvert
{imports} as keras
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2), keras.layers.BatchNormalization()])
(checked,) = tfconvert.convert(model, verify=True).report.verification
assert checked.witness == "model.predict" and checked.max_relative < 1e-5, checked
"""
    for imports, package in (("import os; os.environ['KERAS_BACKEND'] = 'jax'; import keras", "jax"),) + (
        ("import tf_keras", "tf_keras"),
    ):
        pytest.importorskip(package)
        subprocess.run([sys.executable, "-c", program.format(imports=imports)], check=True, cwd=tmp_path)


def test_a_function_is_its_own_witness_and_keeps_its_state(tf: Any) -> None:
    module = tf.Module()
    module.total = tf.Variable([1.0, 2.0])
    module.add = tf.function(
        lambda x: module.total.assign_add(x) * 2, input_signature=[tf.TensorSpec([2], tf.float32, "x")]
    )
    report = tfconvert.convert(module, verify=True).report
    assert _witnesses(report) == {"the function itself"}
    assert module.total.numpy().tolist() == [1.0, 2.0]


def test_inputs_for_which_there_is_not_enough_memory_are_refused_as_others() -> None:
    def compute(calls: Any) -> NoReturn:
        raise MemoryError("Unable to allocate 8.0 EiB")

    answer = witness._answer(compute)([[np.zeros(1)]])
    assert isinstance(answer, Refused)


def test_a_function_of_jax_is_its_own_witness() -> None:
    jax = pytest.importorskip("jax")
    report = tfconvert.convert(lambda x: jax.numpy.sin(x) + 1, args=(np.ones(3, np.float32),), verify=True).report
    assert _witnesses(report) == {"the function itself"}


def test_random_numbers_are_reported(tf: Any) -> None:
    function = tf.function(lambda x: x + tf.random.normal([3]), input_signature=[tf.TensorSpec([3], tf.float32, "x")])
    report = tfconvert.convert(function, verify=True).report
    (note,) = [each for each in report.notes if each.code == "not-verified"]
    assert "draws random numbers: the function itself has others each time" in note.message


@pytest.fixture(scope="module")
def integers(digits_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the example with integers throughout, its inputs and outputs included."""
    samples = np.random.default_rng(0).random((8, 8, 8, 1), dtype=np.float32)
    target = tfconvert.LiteRT(quantize=tfconvert.Quantize("int8", samples=samples, io="int8"))
    path = tmp_path_factory.mktemp("files") / "int8.tflite"
    tfconvert.convert(digits_model, target=target).save(path)
    return path


def test_a_quantized_file_is_compared_with_itself_in_litert(integers: Path) -> None:
    report = tfconvert.convert(integers, verify=True).report
    assert _witnesses(report) == {"LiteRT on the input file"}
    assert report.verification[0].max_absolute == 0
    assert [each for each in report.notes if each.code == "not-verified"] == []


def test_another_scale_is_found(integers: Path, tmp_path: Path) -> None:
    """The integers are the same: what they stand for is not."""
    tensor = outline(integers.read_bytes()).signatures[0].inputs[0]
    scale = np.float32(tensor.scale).tobytes()
    content = integers.read_bytes()
    assert content.count(scale) == 1
    wrong = tmp_path / "wrong.tflite"
    wrong.write_bytes(content.replace(scale, np.float32(2 * tensor.scale).tobytes()))
    assert not tfconvert.verify(wrong, integers).agrees


def _saved(tf: Any, folder: Path, function: Callable[..., Any], *specs: Any, **fields: Any) -> Path:
    module = tf.Module()
    for name, value in fields.items():
        setattr(module, name, value)
    module.run = tf.function(function, input_signature=specs)
    tf.saved_model.save(module, str(folder))
    return folder


def test_tensorflow_is_the_witness_of_models_in_files(tf: Any, tmp_path: Path) -> None:
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1.0, 2.0]), -1.0)
    total = tf.Variable([1.0, 2.0])
    strings, floats = tf.TensorSpec([None], tf.string, "x"), tf.TensorSpec([2], tf.float32, "x")
    models = [
        _saved(tf, tmp_path / "table", table.lookup, strings, table=table),
        _saved(tf, tmp_path / "state", lambda x: total.assign_add(x) * 2, floats, total=total),
    ]
    for model in models:
        report = tfconvert.convert(model, verify=tfconvert.Verify("tensorflow")).report
        assert _witnesses(report) == {"TensorFlow"}, model


def test_state_is_compared_over_several_calls(tf: Any, tmp_path: Path) -> None:
    """Both models return the same in the first call."""
    values = {name: tf.Variable([1.0, 2.0]) for name in ("grows", "stays")}
    spec = tf.TensorSpec([2], tf.float32, "x")
    grows = _saved(tf, tmp_path / "grows", lambda x: values["grows"].assign_add(x) * 2, spec, v=values["grows"])
    stays = _saved(tf, tmp_path / "stays", lambda x: (values["stays"] + x) * 2, spec, v=values["stays"])
    tfconvert.convert(stays).save(tmp_path / "stays.tflite")
    for wanted in (None, "tensorflow"):
        found = check(tfconvert.Source(grows), tmp_path / "stays.tflite", tfconvert.Verify(witness=wanted))
        assert [each.code for each in found.problems] == ["verification-failed"]
        assert "in call 2 of several in turn" in found.problems[0].message


def test_tensorflow_runs_graphs_of_version_1(tf: Any, tmp_path: Path) -> None:
    program = """
import sys, tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
x = tf.placeholder(tf.float32, [3], "x")
total = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * 1.5 + 1), [0, x])[1]
tf.identity(total, "y")
with open("graph.pb", "wb") as file:
    file.write(tf.get_default_graph().as_graph_def().SerializeToString())
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path, capture_output=True)
    verify = """
import sys, tfconvert
report = tfconvert.convert("graph.pb", outputs=["y"], rename={"y": "z"}, verify="tensorflow").report
assert [each.witness for each in report.verification] == ["TensorFlow"], report
assert "tensorflow" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", verify], check=True, cwd=tmp_path)


def test_tensorflow_on_the_command_line(digits_model: Path, tmp_path: Path) -> None:
    file = str(tmp_path / "m.tflite")
    run = CliRunner().invoke(main, [str(digits_model), "-o", file, "--verify", "tensorflow"])
    assert "compared with TensorFlow" in run.output, run.output
    run = CliRunner().invoke(main, ["verify", file, "--against", str(digits_model), "--verify-witness", "tensorflow"])
    assert "compared with TensorFlow" in run.output, run.output


def test_tensorflow_that_cannot_be_the_witness(
    digits_model: Path, integers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConversionError, match="SavedModels, GraphDefs and MetaGraphs") as caught:
        tfconvert.convert(integers, verify="tensorflow")
    assert caught.value.code == "wrong-option"
    monkeypatch.setattr(tensorflow_process, "find_spec", lambda name: None)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(digits_model, verify="tensorflow")
    assert caught.value.code == "tensorflow-missing"
    assert "pip install 'tfconvert[tensorflow]'" in caught.value.diagnostics[0].hint


def test_clients_do_not_choose_tensorflow() -> None:
    """It runs whatever a model contains, which may read files."""
    settings = {"verify": {"witness": "tensorflow"}}
    verify = from_data(settings)[1].verify
    assert verify is not None
    assert verify.witness == "tensorflow"
    with pytest.raises(ConversionError, match="not allowed here"):
        check_data(settings, "the request", allow_paths=False)


def test_a_part_of_a_model_is_compared_with_the_executor(tf: Any, tmp_path: Path) -> None:
    function = tf.function(lambda x: tf.nn.relu(x) + 1, input_signature=[tf.TensorSpec([2], tf.float32, "x")])
    assert _witnesses(tfconvert.convert(function, outputs=["Relu"], verify=True).report) == {"the reference executor"}


AUDIO = {"known batch": [None], "dynamic batch": [None, None]}


@pytest.mark.parametrize("quantize", [None, "dynamic"])
@pytest.mark.parametrize("name", AUDIO)
def test_dynamic_sizes_are_doubled(tf: Any, tmp_path: Path, name: str, quantize: Any) -> None:
    """A window needs 400 samples."""

    def build(tf: Any) -> Any:
        window = tf.constant(np.random.default_rng(0).normal(size=(400, 1, 8)).astype(np.float32))
        run = lambda x: tf.nn.conv1d(tf.reshape(x, [tf.size(x) // tf.shape(x)[-1], -1, 1]), window, 160, "VALID")  # noqa: E731
        return run, [tf.TensorSpec(AUDIO[name], tf.float32, "x")]

    report = tfconvert.convert(save(tf, build, tmp_path / "model"), quantize=quantize, verify=True).report
    assert [each for each in report.notes if each.code == "not-verified"] == []
    assert report.verification or report.quantization.fidelity.outputs  # type: ignore[union-attr]


def test_the_time_is_limited(digits_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_check.Clock, "is_over", lambda self: True)
    report = tfconvert.convert(digits_model, verify=tfconvert.Verify(seconds=5)).report
    assert report.verification
    (note,) = [each for each in report.notes if each.code == "verification-cut-short"]
    assert "on 1 inputs only: the time of 5 s is over" in note.message


def test_a_run_that_takes_too_long_is_reported(tf: Any, tmp_path: Path) -> None:
    def build(tf: Any) -> Any:
        body = lambda i, x: (i + 1, tf.sin(x))  # noqa: E731
        run = lambda x: tf.while_loop(lambda i, x: i < 10**6, body, [0, x])[1]  # noqa: E731
        return run, [tf.TensorSpec([2], tf.float32, "x")]

    model = save(tf, build, tmp_path / "model")
    limits = tfconvert.Limits(run_iterations=10**7)
    report = tfconvert.convert(model, verify=tfconvert.Verify(seconds=1), limits=limits).report
    assert [each.code for each in report.notes if "the time of 1 s is over" in each.message] == ["not-verified"]
