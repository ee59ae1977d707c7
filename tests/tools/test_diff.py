"""The verb `diff`: what differs is told, section by section; the same file is the same."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import tfconvert
from tests.converter.validation.test_valid_inputs import MODELS, save
from tests.support.sample_models import traced
from tfconvert.cli.main import main


def _diff(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["diff", *map(str, arguments)], catch_exceptions=False)


def _data(*arguments: object) -> Any:
    return json.loads(_diff(*arguments, "--json").stdout)


def test_a_file_is_the_same_as_itself(right: Path) -> None:
    run = _diff(right, right)
    assert run.exit_code == 0, run.output
    assert run.output.endswith("the same\n")


def test_a_changed_weight_is_found(right: Path, wrong: Path) -> None:
    run = _diff(right, wrong)
    assert run.exit_code == 1
    found = _data(right, wrong)
    assert found["structure"] == []
    (weight,) = found["weights"]
    assert (weight["shape"], weight["numbers"]) == ([32], 1)
    assert weight["absolute"] == pytest.approx(3)
    assert all(each["what"] for each in found["outputs"])


def test_quantization_is_reported_in_numbers(right: Path, digits_model: Path, tmp_path: Path) -> None:
    quantized = tmp_path / "quantized.tflite"
    tfconvert.convert(digits_model, quantize="dynamic").save(quantized)
    found = _data(right, quantized)
    assert {each["section"] for each in found["structure"]} >= {"versions", "metadata"}
    assert {each["first"] for each in found["weights"]} == {"f32"}
    assert all(each["second"].startswith("i8") and each["relative"] < 0.01 for each in found["weights"])
    assert all(0 < each["max_relative"] < 0.1 for each in found["outputs"])


def test_outputs_come_first_and_rounding_is_one_line(right: Path, digits_model: Path, tmp_path: Path) -> None:
    quantized = tmp_path / "quantized.tflite"
    tfconvert.convert(digits_model, quantize="dynamic").save(quantized)
    lines = _diff(right, quantized).stdout.splitlines()
    assert lines[1] == "  outputs:"
    weights = lines[lines.index("  weights:") + 1 :]
    found = _data(right, quantized)["weights"]
    assert all(each["is_rounding"] for each in found)
    assert weights[0].startswith(f"    {len(found)} weight")
    assert ", f32 -> i8: differ by rounding only, by up to 0.0" in weights[0]
    assert not weights[1].startswith("    ")


def test_outputs_of_other_shapes_have_no_largest_error(tf: ModuleType, tmp_path: Path) -> None:
    @traced(tf, tf.TensorSpec([4], name="x"))
    def once(x: Any) -> dict[str, Any]:
        return {"y": x * 2.0}

    @traced(tf, tf.TensorSpec([4], name="x"))
    def twice(x: Any) -> dict[str, Any]:
        return {"y": tf.tile(x, [2])}

    files = [tmp_path / "once.tflite", tmp_path / "twice.tflite"]
    for file, function in zip(files, (once, twice), strict=True):
        tfconvert.convert(function).save(file)
    run = _diff(*files)
    assert "serving_default/y has shape [8], not [4]\n" in run.output
    assert "inf" not in run.output


@pytest.mark.parametrize("command", ["diff", "bench", "verify"])
def test_what_is_no_tflite_file_is_named(command: str, right: Path, digits_model: Path, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"\x08\x07\x12\x04onnx")
    (tmp_path / "empty.tflite").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("hello")
    more = {"diff": [str(right)], "verify": ["--against", str(digits_model)]}.get(command, [])
    for path, told in (
        (tmp_path / "model.onnx", "is an ONNX model"),
        (tmp_path / "empty.tflite", "is empty"),
        (tmp_path / "notes.txt", "is not a .tflite file"),
        (digits_model, "is a directory, not a .tflite file"),
    ):
        run = CliRunner().invoke(main, [command, str(path), *more])
        assert run.exit_code
        assert f"{path} {told}" in run.output
        assert ("convert it first" in run.output) is (path == digits_model)


def test_larger_differences_are_not_folded(right: Path, wrong: Path) -> None:
    assert not any(each["is_rounding"] for each in _data(right, wrong)["weights"])
    assert "rounding" not in _diff(right, wrong).stdout


def test_dynamic_sizes_are_those_of_verify(tf: ModuleType, tmp_path: Path) -> None:
    """A convolution in LiteRT refuses an image of one pixel."""
    filters = tf.constant(np.random.default_rng(0).normal(size=(3, 3, 3, 16)).astype(np.float32))

    def serve(image: Any) -> Any:
        return tf.reduce_mean(tf.nn.conv2d(image, filters, 2, "VALID"), [1, 2])

    module = tf.Module()
    module.serve = tf.function(serve, input_signature=[tf.TensorSpec([None, None, None, 3], tf.float32, "image")])
    tf.saved_model.save(module, tmp_path / "model", signatures=module.serve)
    paths = [tmp_path / "a.tflite", tmp_path / "b.tflite"]
    tfconvert.convert(tmp_path / "model").save(paths[0])
    tfconvert.convert(tmp_path / "model", quantize="float16").save(paths[1])
    found = _data(*paths, "--latency")
    assert [each["what"] for each in found["outputs"]] == [""]
    assert "32 for other dynamic sizes" in found["notes"][0]
    assert min(found["latency"]) > 0
    bench = CliRunner().invoke(main, ["bench", str(paths[0]), "--runs", "1"])
    assert "on image float32[1,32,32,3]" in bench.output


def test_the_official_converters_file_computes_the_same(
    right: Path, digits_model: Path, tf: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / "official.tflite"
    path.write_bytes(tf.lite.TFLiteConverter.from_saved_model(str(digits_model)).convert())
    np.savez(tmp_path / "data.npz", pixels=np.random.default_rng(0).random((3, 8, 8, 1), np.float32))
    found = _data(right, path)
    assert {each["section"] for each in found["structure"]} >= {"metadata"}
    assert not any(each["section"] == "operators" for each in found["structure"])
    assert all(each["relative"] < 1e-5 for each in found["weights"])
    (output,) = found["outputs"]
    assert (output["what"], output["output"]) == ("", "output_0")


def test_both_files_run_on_the_given_data(right: Path, wrong: Path, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).uniform(-1, 1, (4, 8, 8, 1)).astype(np.float32)
    np.savez(tmp_path / "data.npz", pixels=pixels)
    (output,) = _data(right, wrong, "--data", tmp_path / "data.npz")["outputs"]
    assert output["what"]
    np.savez(tmp_path / "other.npz", voxels=np.zeros((2, 8, 8, 1), np.float32), labels=np.zeros(2))
    run = _diff(right, wrong, "--data", tmp_path / "other.npz")
    assert run.exit_code == 2
    assert "the inputs are 'pixels'" in run.output
    np.savez(tmp_path / "only.npz", voxels=pixels)
    found = _data(right, wrong, "--data", tmp_path / "only.npz")
    assert found["outputs"] == [output]
    assert found["notes"] == ["'voxels' of the samples is used for the input 'pixels'"]


def test_other_models_differ_in_everything(right: Path, tf: ModuleType, tmp_path: Path) -> None:
    other = tmp_path / "other.tflite"
    tfconvert.convert(save(tf, MODELS["embedding"], tmp_path / "model")).save(other)
    found = _data(right, other)
    assert {each["section"] for each in found["structure"]} >= {"operators", "signatures"}
    assert [each["what"] for each in found["structure"] if each["section"] == "operators"][:2] == ["ADD", "CONV_2D"]
    assert any("the inputs differ" in note for note in found["notes"])


def test_texts_are_compared_too(tf: ModuleType, tmp_path: Path) -> None:
    def write(name: str, *texts: str) -> Path:
        table = tf.constant([*texts, *"defgh"])

        @traced(
            tf,
            tf.TensorSpec([None], tf.int32, name="i"),
            tf.TensorSpec([2], tf.string, name="s"),
            tf.TensorSpec([2], tf.bool, name="b"),
        )
        def call(i: Any, s: Any, b: Any) -> Any:
            return {"picked": tf.gather(table, i), "texts": tf.reshape(s, [2, 1]), "flags": tf.logical_not(b)}

        tfconvert.convert(call).save(tmp_path / name)
        return tmp_path / name

    one, other = write("one.tflite", "a", "b", "c"), write("other.tflite", "a", "x", "c")
    assert _diff(one, write("same.tflite", "a", "b", "c")).output.endswith("the same\n")
    found = _data(one, other)
    assert [(each["first"], each["numbers"]) for each in found["weights"]] == [("string", 1)]
    assert [each["output"] for each in found["outputs"]] == ["picked", "texts", "flags"]
    assert not any(each["what"] for each in found["outputs"] if each["output"] != "picked")
    np.savez(tmp_path / "data.npz", i=np.array([[1, 0]], np.int32), s=np.array([["u", "v"]]), b=np.zeros((1, 2), bool))
    (picked, *_) = _data(one, other, "--data", tmp_path / "data.npz")["outputs"]
    assert picked["what"]


def test_files_that_do_not_run_are_reported(tf: ModuleType, tmp_path: Path) -> None:
    @traced(tf, tf.TensorSpec([None], name="x"))
    def call(x: Any) -> Any:
        return {"y": tf.reshape(x, [3, 1])}

    tfconvert.convert(call).save(tmp_path / "model.tflite")
    found = _data(tmp_path / "model.tflite", tmp_path / "model.tflite")
    assert found["outputs"] == []
    assert any("were not compared: LiteRT refuses" in note for note in found["notes"])


def test_latency_is_measured_on_request(right: Path) -> None:
    assert "latency" not in _data(right, right)
    run = _diff(right, right, "--latency")
    assert run.exit_code == 0
    assert "ms ->" in run.output


def test_invalid_files_are_rejected(right: Path, tmp_path: Path) -> None:
    assert _diff(right, tmp_path / "none.tflite").exit_code == 2
