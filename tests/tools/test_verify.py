"""The verb `verify`: files of ours, the official converter's, broken ones, and other models'."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import tfconvert
from tests.converter.validation.test_valid_inputs import save
from tfconvert.cli.main import main
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.tools.layers import first_difference


def _verify(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["verify", *map(str, arguments)], catch_exceptions=False)


def test_a_right_file_agrees(right: Path, digits_model: Path) -> None:
    run = _verify(right, "--against", digits_model)
    assert run.exit_code == 0, run.output
    assert "serving_default/output_0: largest error" in run.output


def test_a_wrong_file_differs_and_the_layer_is_found(wrong: Path, digits_model: Path) -> None:
    run = _verify(wrong, "--against", digits_model, "--compare-layers", "--json")
    assert run.exit_code == 1
    found = json.loads(run.stdout)
    assert not found["agrees"]
    assert [each["code"] for each in found["errors"]] == ["verification-failed"]
    (note,) = found["notes"]
    assert note["code"] == "first-difference"
    assert (note["op"], note["node"]) == ("FULLY_CONNECTED", "digits_1/hidden_1/BiasAdd")
    assert "of its inputs: 'digits_1/pool_1/Mean'" in note["message"]


def test_a_right_file_has_no_layer_that_differs(right: Path, digits_model: Path) -> None:
    (note,) = first_difference(Source(digits_model), right.read_bytes())
    assert note.code == "layers-agree"


def test_converting_compares_layers(digits_model: Path) -> None:
    report = tfconvert.convert(digits_model, verify=tfconvert.Verify(compare_layers=True)).report
    assert report.verification
    assert [note.code for note in report.notes] == ["same-signature", "layers-agree"]


def _two(tf: Any) -> Any:
    return lambda zeta, alpha: {"least": zeta - alpha, "best": zeta + 2 * alpha}, [
        tf.TensorSpec([None, 3], tf.float32, "zeta"),
        tf.TensorSpec([None, 3], tf.float32, "alpha"),
    ]


def test_the_official_converters_file_is_compared(tf: ModuleType, tmp_path: Path) -> None:
    model = save(tf, _two, tmp_path / "model")
    file = tmp_path / "official.tflite"
    file.write_bytes(tf.lite.TFLiteConverter.from_saved_model(str(model)).convert())
    np.savez(tmp_path / "data.npz", zeta=np.ones((2, 3), np.float32), alpha=np.zeros((2, 3), np.float32))
    for data in ((), ("--data", tmp_path / "data.npz")):
        run = _verify(file, "--against", model, "--compare-layers", *data)
        assert run.exit_code == 0, run.output


def test_names_decide_over_order(tf: ModuleType, tmp_path: Path) -> None:
    """A file of the model's function without its signature, inputs the other way round."""
    model = save(tf, _two, tmp_path / "model")
    concrete = tf.saved_model.load(str(model)).signatures["serving_default"]
    graph = concrete.graph.as_graph_def()
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.SerializeToString())
    names = [name for name in ("alpha", "zeta") if any(node.name == name for node in graph.node)]
    tfconvert.convert(path, inputs=names[::-1]).save(tmp_path / "file.tflite")
    run = _verify(tmp_path / "file.tflite", "--against", path, *(x for name in names for x in ("--input", name)))
    assert run.exit_code == 0, run.output


@pytest.mark.parametrize(
    ("file", "status", "message"),
    [("none.tflite", 2, "can't read"), ("text.tflite", 2, "not"), ("other.tflite", 2, "the model has the inputs")],
)
def test_unrelated_files_are_rejected(
    file: str, status: int, message: str, digits_model: Path, tf: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "text.tflite").write_text("hello" * 100)
    tfconvert.convert(save(tf, _two, tmp_path / "model")).save(tmp_path / "other.tflite")
    run = _verify(tmp_path / file, "--against", digits_model)
    assert run.exit_code == status, run.output
    assert message in run.output
    assert not isinstance(run.exception, ConversionError)


def test_a_file_of_another_model_is_named(tf: ModuleType, tmp_path: Path) -> None:
    def build(size: int, factor: float) -> Any:
        return lambda tf: (lambda x: x * factor, [tf.TensorSpec([None, size], tf.float32, "x")])

    models = [save(tf, build(*each), tmp_path / f"model_{each}") for each in ((3, 2.0), (4, 2.0), (3, 5.0))]
    tfconvert.convert(models[0]).save(tmp_path / "x.tflite")
    run = _verify(tmp_path / "x.tflite", "--against", models[1])
    assert run.exit_code == 2, run.output
    assert "the model's input x f32[?,4] is x float32[?,3] in the file [unlike-interface]" in run.stderr
    assert "name the model that the file was made from" in run.stderr
    run = _verify(tmp_path / "x.tflite", "--against", models[2])
    assert run.exit_code == 1
    assert "if tfconvert made the file from this model, this is a bug" in run.stderr
