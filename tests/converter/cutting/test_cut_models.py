"""Models that are cut compute what TensorFlow computes from the named tensors on."""

from __future__ import annotations

import importlib
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import tfconvert
from tests.converter.cutting.models import WEIGHTS, X, network
from tests.support.control_flow import control_flow_v1
from tests.support.litert import RunTFLite, run
from tests.support.sample_models import traced
from tfconvert.cli.main import main
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.options import Options
from tfconvert.tools.inspection import inspect


def _relu(x: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.maximum(x, 0)
    return found


def _softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    found: np.ndarray = powers / powers.sum(-1, keepdims=True)
    return found


def _command(model: Path, out: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [str(model), "-o", str(out), *arguments])


def _interface(model: tfconvert.Model) -> tuple[Sequence[str], list[str], list[str]]:
    (found,) = model.report.interfaces
    return found.keys, [str(each) for each in found.inputs], [str(each) for each in found.outputs]


def _error(model: object, **settings: Any) -> ConversionError:
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(model, **settings)
    return caught.value


HIDDEN = [
    "hidden",
    "hidden:0",
    "StatefulPartitionedCall/hidden",
    "StatefulPartitionedCall_1/StatefulPartitionedCall/hidden:0",
]


@pytest.mark.parametrize("name", HIDDEN)
def test_any_form_of_a_name_cuts(networks: Path, name: str, tmp_path: Path) -> None:
    """The only signature that has the tensor is taken; what reads the other input is not converted."""
    out = tmp_path / "model.tflite"
    result = _command(networks, out, "--signature", "once", "--input", name, "--output", "scores", "--verify", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    (interface,) = report["functions"]
    plain = name.removesuffix(":0")
    assert interface["signatures"] == ["once"]
    assert interface["inputs"] == {plain: "f32[?,4]"}
    assert interface["outputs"] == {"scores": "f32[?,5]"}
    (scores,) = run(out.read_bytes(), {plain: X}, signature="once")
    np.testing.assert_allclose(scores, _softmax(_relu(X @ WEIGHTS)), rtol=1e-5)
    assert "TANH" not in report["operators"]


def test_the_order_of_both_sides_is_the_users(networks: Path, run_tflite: RunTFLite) -> None:
    model = tfconvert.convert(networks, signatures="once", outputs=["scores", "active:0", "hidden"], batch=2)
    assert _interface(model) == (("once",), ["x f32[2,4]"], ["scores f32[2,5]", "active f32[2,5]", "hidden f32[2,4]"])
    hidden = np.tanh(X * 2)
    expected = [_softmax(_relu(hidden @ WEIGHTS)), _relu(hidden @ WEIGHTS), hidden]
    for got, want in zip(run_tflite(bytes(model), [X]), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_inputs_in_any_order_with_their_shapes(networks: Path, run_tflite: RunTFLite) -> None:
    model = tfconvert.convert(
        networks,
        signatures="twice",
        inputs=["StatefulPartitionedCall_1/product", "StatefulPartitionedCall/product"],
        input_shapes={"StatefulPartitionedCall/product": [3, 5]},
        rename={"StatefulPartitionedCall_1/product": "second"},
        verify=True,
    )
    assert _interface(model)[1] == ["second f32[?,5]", "StatefulPartitionedCall/product f32[3,5]"]
    values = np.arange(-7, 8, dtype=np.float32).reshape(3, 5)
    np.testing.assert_array_equal(
        run_tflite(bytes(model), [values[:1] * 2, values])[0], _relu(values[:1] * 2) + _relu(values)
    )


def test_what_only_the_rest_needed_is_gone(networks: Path) -> None:
    found = inspect(Source(str(networks), signatures=["once"], inputs=["active"], outputs=["scores"]), Options())
    assert found.model is not None
    assert (found.model.variables, found.mutable_variables) == (0, 0)
    assert set(found.model.operations) == {"Softmax", "Identity"}
    assert [each.keys for each in found.model.signatures] == [("once",)]


def test_a_state_that_the_kept_part_reads_is_kept(networks: Path) -> None:
    """The state is written although no output of one call needs that; the counter is gone."""
    model = tfconvert.convert(networks, signatures="stream", inputs=["bounded"], verify=True, check_passes=True)
    interpreter = tfconvert.Interpreter(model_content=bytes(model))
    state = np.zeros((1, 5), np.float32)
    for step in (0.5, -1.0, 2.0):
        state = state * 0.5 + np.full((1, 4), step, np.float32) @ WEIGHTS
        got = interpreter.get_signature_runner("stream")(bounded=np.full((1, 4), step, np.float32))
        np.testing.assert_allclose(got["output_0"], state, rtol=1e-5)
    found = inspect(Source(str(networks), signatures=["stream"], inputs=["bounded"]), Options())
    assert found.mutable_variables == 1


def test_a_state_whose_write_is_cut_off_keeps_its_value(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite) -> None:
    module = tf.Module()
    module.state = tf.Variable([1.0, 2.0])

    @traced(tf, tf.TensorSpec([2], tf.float32, name="x"))
    def call(x: Any) -> Any:
        y = tf.tanh(x, name="y")
        result = y + module.state
        module.state.assign(x)
        return result

    tf.saved_model.save(module, str(tmp_path / "m"), signatures=call.get_concrete_function())
    model = tfconvert.convert(tmp_path / "m", inputs=["y"])
    assert [note.code for note in model.report.notes if note.code != "wrong-on-gpu"] == ["state-cut-off"]
    np.testing.assert_array_equal(run_tflite(bytes(model), [np.ones(2, np.float32)])[0], [2, 3])


def test_signature_tensors_have_the_main_graphs_names(networks: Path, run_tflite: RunTFLite) -> None:
    tensors = ["once_x:0", "StatefulPartitionedCall_1:1"]
    model = tfconvert.convert(networks, signatures="once", inputs=tensors[:1])
    assert _interface(model)[1] == ["once_x f32[?,4]"]
    graph = pb.SavedModel.FromString((networks / "saved_model.pb").read_bytes()).meta_graphs[0]
    name = graph.signature_def["once"].outputs["scores"].name
    model = tfconvert.convert(networks, outputs=[name], signatures=["once"])
    assert _interface(model)[2] == [f"{name.removesuffix(':0')} f32[?,5]"]
    np.testing.assert_allclose(run_tflite(bytes(model), [X])[0], _softmax(_relu(np.tanh(X * 2) @ WEIGHTS)), rtol=1e-5)


def test_the_signature_is_the_one_that_has_all_tensors(networks: Path) -> None:
    assert _interface(tfconvert.convert(networks, inputs=["sine", "x"]))[0] == ("twice",)
    several = _error(networks, inputs=["x"])
    assert several.code == "ambiguous-tensor"
    assert "--signature loop" in several.diagnostics[0].hint
    none = _error(networks, inputs=["sine"], outputs=["hidden"])
    assert [each.code for each in none.diagnostics] == ["unknown-tensor", "unknown-tensor"]
    assert "no signature has all" in none.diagnostics[0].message


def test_names_that_are_wrong(networks: Path) -> None:
    unknown = _error(networks, signatures="once", outputs=["hiden"])
    assert unknown.code == "unknown-tensor"
    assert "did you mean hidden" in unknown.diagnostics[0].hint
    assert "The results are: hidden_sum, scores" in unknown.diagnostics[0].hint
    missing = _error(networks, signatures="once", outputs=["hidden:1"])
    assert missing.code == "missing-output"
    ambiguous = _error(networks, signatures="twice", outputs=["product"])
    assert ambiguous.code == "ambiguous-tensor"
    assert "StatefulPartitionedCall/product, StatefulPartitionedCall_1/product" in ambiguous.diagnostics[0].hint
    inside = _error(networks, signatures="loop", outputs=["inner"])
    assert inside.code == "uncuttable-tensor"
    assert "tf.While" in inside.diagnostics[0].message
    unfed = _error(networks, signatures="loop", inputs=["start"])
    assert unfed.code == "unfed-input"
    assert "--input n" in unfed.diagnostics[0].hint


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"inputs": ["x", "x:0"]}, "wrong-option"),
        ({"inputs": ["x", "once_x:0"]}, "wrong-option"),
        ({"outputs": []}, "wrong-option"),
        ({"outputs": "scores"}, "wrong-option"),
        ({"inputs": ["product/ReadVariableOp/resource"]}, "unknown-tensor"),
        ({"inputs": ["hidden"], "input_shapes": {"other": [1, 4]}}, "unknown-input"),
        ({"inputs": ["hidden"], "input_shapes": {"hidden": [1, 5]}}, "shape-mismatch"),
        ({"inputs": ["hidden"], "rename": {"x": "y"}}, "wrong-option"),
        ({"inputs": ["hidden"], "batch": 0}, "wrong-option"),
    ],
)
def test_what_is_refused(networks: Path, settings: dict[str, Any], code: str) -> None:
    assert _error(networks, signatures="once", **settings).code == code


def test_handles_are_no_inputs(model_v1: Path) -> None:
    assert _error(model_v1, inputs=["w"]).code == "uncuttable-tensor"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--output", "hidden:0"], ["image f32[?,4]", "hidden f32[?,5]"]),
        (
            ["--input", "product", "--output", "scaled", "--input", "scale"],
            ["product f32[?,5]", "scale f32[5]", "scaled f32[?,5]"],
        ),
        (["--input", "x:0", "--output", "scores", "--batch", "3"], ["x f32[3,4]", "scores f32[3,5]"]),
        (["--input", "x", "--input-shape", "x=1,4"], ["x f32[1,4]", "probabilities f32[1,5]"]),
    ],
)
def test_saved_models_of_tensorflow_1(
    model_v1: Path, arguments: list[str], expected: list[str], tmp_path: Path
) -> None:
    result = _command(model_v1, tmp_path / "model.tflite", *arguments, "--verify", "--json")
    assert result.exit_code == 0, result.output
    (interface,) = json.loads(result.stdout)["functions"]
    assert interface["signatures"] == ["serving_default"]
    tensors = [*interface["inputs"].items(), *interface["outputs"].items()]
    assert [f"{name} {kind}" for name, kind in tensors] == expected


def test_a_tensor_that_no_signature_leads_to_needs_its_placeholders(model_v1: Path, run_tflite: RunTFLite) -> None:
    assert _error(model_v1, outputs=["scaled"]).code == "unfed-input"
    model = tfconvert.convert(model_v1, outputs=["scaled"], inputs=["scale", "image"])
    scale = np.arange(5, dtype=np.float32)
    np.testing.assert_allclose(run_tflite(bytes(model), [scale, X])[0], _relu(X @ WEIGHTS) * scale, rtol=1e-6)


def test_functions_and_modules_in_memory(tf: ModuleType, network: Any, run_tflite: RunTFLite) -> None:
    _, functions = network
    model = tfconvert.convert(functions["once"], inputs=["active"], outputs=["scores"])
    assert _interface(model) == (("serving_default",), ["active f32[?,5]"], ["scores f32[?,5]"])
    values = np.arange(5, dtype=np.float32)[None]
    np.testing.assert_allclose(run_tflite(bytes(model), [values])[0], _softmax(values), rtol=1e-5)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_keras_models_in_memory_and_in_files(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite) -> None:
    layers = tf.keras.layers
    image = tf.keras.Input((6, 6, 1), name="image")
    pooled = layers.GlobalAveragePooling2D(name="pool")(layers.Conv2D(3, 3, name="conv")(image))
    keras = tf.keras.Model(image, layers.Dense(2, activation="softmax", name="head")(pooled))
    path = tmp_path / "model.keras"
    keras.save(path)
    kernel, bias = keras.get_layer("head").get_weights()
    values = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    for model in (keras, path):
        # The names of scopes have numbers that depend on how often Keras has built something.
        name = re.findall(r"[\w/]*pool\w*/Mean", _error(model, inputs=["pool/Mean"]).diagnostics[0].hint)[0]
        converted = tfconvert.convert(model, inputs=[name], verify=True)
        assert _interface(converted)[1][0].endswith("f32[?,3]")
        np.testing.assert_allclose(
            run_tflite(bytes(converted), [values])[0], _softmax(values @ kernel + bias), rtol=1e-5
        )


def test_samples_and_metadata_have_the_new_names(networks: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("a\nb\nc\nd\ne\n")
    np.savez(tmp_path / "samples.npz", hidden=np.random.default_rng(1).uniform(-1, 1, (20, 4)).astype(np.float32))
    out, page = tmp_path / "model.tflite", tmp_path / "page.html"
    result = _command(
        networks,
        out,
        "--signature",
        "once",
        "--input",
        "hidden",
        "--output",
        "scores",
        "--quantize",
        "int8",
        "--samples",
        str(tmp_path / "samples.npz"),
        "--metadata",
        f"scores={tmp_path / 'labels.txt'}",
        "--verify",
        "--report",
        str(page),
        "--batch",
        "1",
    )
    assert result.exit_code == 0, result.output
    assert b"labels.txt" in out.read_bytes()
    text = page.read_text()
    assert "hidden" in text
    assert "tf.Tanh" not in text


def test_other_targets(networks: Path) -> None:
    text = bytes(
        tfconvert.convert(
            networks, signatures="once", inputs=["hidden"], outputs=["scores"], verify=True, target="stablehlo"
        )
    )
    assert b"tanh" not in text
    assert b"dot_general" in text


def test_files_are_compared_with_the_cut_model(networks: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.tflite"
    cut = ["--signature", "once", "--input", "hidden", "--output", "scores"]
    assert _command(networks, out, *cut).exit_code == 0
    assert CliRunner().invoke(main, ["verify", str(out), "--against", str(networks), *cut]).exit_code == 0
    shown = CliRunner().invoke(main, ["opt", str(networks), *cut, "--until", "cut"])
    assert shown.exit_code == 0
    assert 'inputs = "hidden", outputs = "scores"' in shown.output
    assert "tfconvert.cut" not in shown.output


def test_batches_of_models(networks: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"inputs": ["hidden"], "outputs": ["scores"]}
    (tmp_path / "m.json").write_text(json.dumps({"models": [{"model": str(networks), "settings": settings}]}))
    place = str(tmp_path / "{name}.tflite")
    ran = CliRunner().invoke(main, ["batch", "--manifest", str(tmp_path / "m.json"), "-o", place, "-j", "1"])
    assert ran.exit_code == 0, ran.output
    assert (tmp_path / "network.tflite").read_bytes() == bytes(tfconvert.convert(networks, **settings))


def test_meta_graphs_with_signatures(model_v1: Path, tmp_path: Path, run_tflite: RunTFLite) -> None:
    message = pb.SavedModel.FromString((model_v1 / "saved_model.pb").read_bytes()).meta_graphs[0]
    (tmp_path / "m.meta").write_bytes(message.SerializeToString())
    for file in (model_v1 / "variables").iterdir():
        shutil.copy(file, tmp_path / file.name.replace("variables", "m"))
    for signatures, expected in (("serving_default", ("serving_default",)), (None, ())):
        model = tfconvert.convert(tmp_path / "m.meta", signatures=signatures, inputs=["product:0"], outputs=["hidden"])
        assert _interface(model)[0] == expected
        np.testing.assert_array_equal(run_tflite(bytes(model), [X @ WEIGHTS])[0], _relu(X @ WEIGHTS))


def test_the_same_input_gives_the_same_bytes(networks: Path) -> None:
    first, second = (bytes(tfconvert.convert(networks, inputs=["hidden"], outputs=["scores"])) for _ in range(2))
    assert first == second


def test_texts_and_finished_files_are_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }")
    assert _error(path, inputs=["x"]).code == "wrong-option"


def test_a_module_of_a_message(tf: ModuleType, tmp_path: Path) -> None:
    module, functions = network(tf)
    tf.saved_model.save(module, str(tmp_path), signatures=functions["twice"])
    message = pb.SavedModel.FromString((tmp_path / "saved_model.pb").read_bytes())
    model = tfconvert.convert(
        tfconvert.Source(message, checkpoint=tmp_path / "variables" / "variables"), outputs=["sine"]
    )
    assert _interface(model) == (("serving_default",), ["x f32[?,4]"], ["sine f32[?,4]"])


def test_vocabularies_that_only_the_rest_needed_are_gone(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite) -> None:
    """One table of two is left, with the file that fills it."""
    for name, text in (("a", "cat\ndog\n"), ("b", "1\n5\n")):
        (tmp_path / f"{name}.txt").write_text(text)
    line, whole = tf.lookup.TextFileIndex.LINE_NUMBER, tf.lookup.TextFileIndex.WHOLE_LINE
    module = tf.Module()
    module.words = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(str(tmp_path / "a.txt"), tf.string, whole, tf.int64, line), -1
    )
    module.numbers = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(str(tmp_path / "b.txt"), tf.int64, whole, tf.int64, line), -1
    )

    @traced(tf, tf.TensorSpec([2], tf.string, name="x"))
    def call(x: Any) -> Any:
        return module.numbers.lookup(tf.identity(module.words.lookup(x) * 5, name="fives"))

    folder = tmp_path / "model"
    tf.saved_model.save(module, str(folder), signatures=call.get_concrete_function())
    whole_model = inspect(Source(str(folder)), Options()).model
    assert whole_model is not None
    assert len(whole_model.assets) == 2
    left = inspect(Source(str(folder), inputs=["fives"]), Options()).model
    assert left is not None
    assert [Path(each).name for each in left.assets] == ["b.txt"]
    model = tfconvert.convert(folder, inputs=["fives"])
    np.testing.assert_array_equal(run_tflite(bytes(model), [np.array([5, 0])])[0], [1, -1])
    nothing = inspect(Source(str(folder), outputs=["x"]), Options()).model
    assert nothing is not None
    assert nothing.assets == ()


def test_control_flow_of_tensorflow_1(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite) -> None:
    """Where a loop ends can be an input and an output, inside of it nothing can be."""
    v1 = tf.compat.v1
    with control_flow_v1(tf), v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, (2,), "x")
        _, y = tf.while_loop(
            lambda i, _: i < 3, lambda i, y: (i + 1, tf.sin(y, name="sine")), [0, x + 1.0], name="loop"
        )
        z = tf.cond(tf.reduce_sum(y) > 1.0, lambda: tf.cos(y), lambda: y * 2.0, name="choice")
        v1.saved_model.simple_save(session, str(tmp_path / "m"), {"x": x}, {"z": z})
    model = tfconvert.convert(tmp_path / "m", inputs=["loop/Exit_1"], verify=True)
    assert _interface(model)[1:] == (["loop/Exit_1 f32[2]"], ["z f32[2]"])
    values = np.array([0.25, 0.5], np.float32)
    np.testing.assert_allclose(run_tflite(bytes(model), [values])[0], values * 2, rtol=1e-6)
    model = tfconvert.convert(tmp_path / "m", outputs=["loop/Exit_1", "choice/Merge"], verify=True)
    expected = np.sin(np.sin(np.sin(values + 1)))
    for got, want in zip(run_tflite(bytes(model), [values]), (expected, np.cos(expected)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    inside = _error(tmp_path / "m", inputs=["loop/sine"])
    assert inside.code == "fetch-in-loop"
    assert inside.diagnostics[0].node == "loop/sine"


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_recurrent_layers_stay_operators(tmp_path: Path) -> None:
    """Calls that lead to no named tensor aren't inlined: the functions of layers are still recognised."""
    keras = importlib.import_module("tf_keras")
    layers = keras.layers
    model = keras.Sequential(
        [keras.Input((12, 4)), layers.Dense(6, activation="relu", name="first"), layers.LSTM(32, name="lstm")]
    )
    model.save(tmp_path)
    cut = tfconvert.convert(
        tmp_path, inputs=["sequential/first/Relu"], batch=1, verify=True, target=tfconvert.LiteRT(recurrent="fused")
    )
    assert cut.report.operators["UNIDIRECTIONAL_SEQUENCE_LSTM"] == 1
    assert cut.report.rewrites["prepare-composite-functions"]
