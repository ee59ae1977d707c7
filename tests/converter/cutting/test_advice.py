"""Errors about ops that belong outside of a model name the options that cut them off, and these do."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tfconvert
from tests.converter.cutting.models import WEIGHTS
from tests.support.litert import RunTFLite
from tests.support.sample_models import traced
from tfconvert.cli.main import main
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb


def _advised(hint: str) -> tuple[list[str], dict[str, Any]]:
    """Returns the options that a hint names, as those of the command and as keyword arguments."""
    found = re.search(r"cut it off: (--.*) \((\w+=\[.*\])\)$", hint)
    assert found is not None, hint
    return shlex.split(found[1]), eval(f"dict({found[2]})")  # noqa: S307  # what a user would paste


def _hint(model: object, **settings: Any) -> str:
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(model, **settings)
    return next(each.hint for each in caught.value.diagnostics if "cut it off" in each.hint)


def _image(values: np.ndarray) -> np.ndarray:
    """Returns what is computed of an image's pixels."""
    result: np.ndarray = (values.astype(np.float32) / 255).mean(1) @ WEIGHTS
    return result


PIXELS = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
ROWS = np.arange(8, dtype=np.float32).reshape(2, 4)
IDS = np.array([[1, 2, 0], [3, 0, 0]])
EMBEDDING = np.linspace(0, 1, 96, dtype=np.float32).reshape(6, 16)


@pytest.mark.parametrize(
    ("signature", "expected", "inputs", "result"),
    [
        ("image", {"inputs": ["DecodePng"]}, [PIXELS], _image(PIXELS)),
        ("images", {"inputs": ["map/TensorArrayV2Stack/TensorListStack"]}, [ROWS], ROWS @ WEIGHTS),
        ("text", {"inputs": ["None_Lookup/LookupTableFindV2"]}, [IDS], EMBEDDING[IDS].sum(1)),
        ("python", {"inputs": ["f", "doubled"]}, [np.float32(3), ROWS], ROWS * 3 @ WEIGHTS),
        ("labels", {"outputs": ["best", "sum"]}, [ROWS], (ROWS @ WEIGHTS).argmax(1)),
    ],
)
def test_the_hint_converts_and_computes_the_same(
    outsides: Path,
    signature: str,
    expected: dict[str, Any],
    inputs: list[np.ndarray],
    result: np.ndarray,
    tmp_path: Path,
    run_tflite: RunTFLite,
) -> None:
    options, settings = _advised(_hint(outsides, signatures=signature))
    assert settings == expected
    out = tmp_path / "model.tflite"
    command = [str(outsides), "-o", str(out), "--signature", signature, *options, "--verify"]
    ran = CliRunner().invoke(main, command)
    assert ran.exit_code == 0, ran.output
    model = tfconvert.convert(outsides, signatures=signature, **settings)
    assert bytes(model) == out.read_bytes()
    np.testing.assert_allclose(run_tflite(bytes(model), inputs)[0], result, rtol=1e-5)


def test_the_results_are_tensorflows(tf: ModuleType, outside: Any, outsides: Path, run_tflite: RunTFLite) -> None:
    """The uncut function gets the file, the cut one what TensorFlow decodes."""
    _, functions = outside
    file = tf.io.encode_png(PIXELS)
    model = tfconvert.convert(outsides, signatures="image", inputs=["DecodePng"])
    expected = functions["image"](file)
    expected = next(iter(expected.values())) if isinstance(expected, dict) else expected
    np.testing.assert_allclose(run_tflite(bytes(model), [tf.io.decode_png(file, 4).numpy()])[0], expected, rtol=1e-5)


def test_one_signature_of_several_is_named(outsides: Path) -> None:
    options, settings = _advised(_hint(outsides))
    assert settings["signatures"] == ["python"]
    assert options[:2] == ["--signature", "python"]
    tfconvert.convert(outsides, **settings)


def test_inputs_that_are_named_already_are_repeated(outsides: Path) -> None:
    """The advice replaces the options that were given."""
    hint = _hint(outsides, signatures="text", inputs=["StringLower"])
    assert _advised(hint)[1] == {"inputs": ["None_Lookup/LookupTableFindV2"]}
    hint = _hint(outsides, signatures="python", inputs=["x", "f"])
    assert _advised(hint)[1] == {"inputs": ["f", "doubled"]}


def test_other_targets_say_so_too(outsides: Path) -> None:
    assert _advised(_hint(outsides, signatures="image", target="stablehlo"))[1] == {"inputs": ["DecodePng"]}


def test_functions_in_memory(outside: Any) -> None:
    _, functions = outside
    assert _advised(_hint(functions["image"]))[1] == {"inputs": ["DecodePng"]}


def test_graphs(tf: ModuleType, run_tflite: RunTFLite) -> None:
    with tf.Graph().as_default() as graph:
        file = tf.compat.v1.placeholder(tf.string, (), "file")
        pixels = tf.cast(tf.io.decode_png(file, channels=4, name="pixels"), tf.float32)
        tf.matmul(tf.reduce_mean(pixels / 255.0, [1]), tf.constant(WEIGHTS), name="scores")
    message = pb.GraphDef.FromString(graph.as_graph_def().SerializeToString())
    _, settings = _advised(_hint(message))
    assert settings == {"inputs": ["pixels"]}
    np.testing.assert_allclose(
        run_tflite(bytes(tfconvert.convert(message, **settings)), [PIXELS])[0], _image(PIXELS), rtol=1e-5
    )


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_text_vectorization(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite) -> None:
    """Keras' layer is cut off whole: the model takes its numbers."""
    layers = tf.keras.layers
    vectorize = layers.TextVectorization(max_tokens=20, output_sequence_length=4)
    vectorize.adapt(["the cat sat", "a dog ran"])
    head = tf.keras.Sequential([layers.Embedding(20, 8), layers.GlobalAveragePooling1D(), layers.Dense(3)])
    keras = tf.keras.Sequential([tf.keras.Input((), dtype="string"), vectorize, head])
    keras.export(tmp_path, verbose=False)
    _, settings = _advised(_hint(tmp_path))
    assert len(settings["inputs"]) == 1
    model = tfconvert.convert(tmp_path, **settings, verify=True)
    words = vectorize(tf.constant(["a cat sat", "the dog"]))
    np.testing.assert_allclose(run_tflite(bytes(model), [words.numpy()])[0], head(words), rtol=1e-5)


def test_a_graph_says_which_tensors_it_has() -> None:
    graph = pb.GraphDef(versions=pb.VersionDef(producer=1882))
    for name, op, inputs in (
        ("image", "Placeholder", []),
        ("dense/Relu", "Relu", ["image"]),
        ("Identity", "Identity", ["dense/Relu"]),
    ):
        node = graph.node.add(name=name, op=op, input=inputs)
        node.attr["dtype" if op == "Placeholder" else "T"].type = pb.DT_FLOAT
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(graph, outputs=["probabilities"])
    assert caught.value.diagnostics[0].hint == "the results are: Identity"
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(graph, inputs=["relu"])
    assert caught.value.diagnostics[0].hint == "did you mean dense/Relu? The results are: Identity"


def test_ops_without_an_outside_have_no_such_hint(tf: ModuleType, tmp_path: Path) -> None:
    @traced(tf, tf.TensorSpec([2, 2], tf.float32))
    def call(x: Any) -> Any:
        return tf.linalg.svd(x)[0]

    tf.saved_model.save(tf.Module(), str(tmp_path), signatures=call.get_concrete_function())
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(tmp_path)
    assert "cut" not in str(caught.value)
