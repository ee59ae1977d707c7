"""The verb `verify` on quantized files: ours and the official converter's, with inputs and outputs of integers."""

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
from tests.support import outlier
from tfconvert.cli.main import main


def _verify(file: Path, model: Path, *arguments: object) -> Result:
    command = ["verify", str(file), "--against", str(model), *map(str, arguments)]
    return CliRunner().invoke(main, command, catch_exceptions=False)


@pytest.fixture
def data(outlier_model: Path) -> tuple[str, str]:
    return "--data", str(outlier_model.with_name("images.npy"))


def _file(model: Path, folder: Path, mode: Any, io: Any, exclude: list[str] | None = None) -> Path:
    samples = str(model.with_name("images.npy")) if mode in ("int8", "int16") else None
    quantize = tfconvert.Quantize(mode, samples=samples, io=io, exclude=exclude or [], equalize="off")
    tfconvert.convert(model, quantize=quantize).save(folder / "x.tflite")
    return folder / "x.tflite"


@pytest.mark.parametrize(
    ("mode", "io"),
    [("int8", "int8"), ("int8", "uint8"), ("int8", "float32"), ("int16", "int16"), ("float16", "float32")],
)
def test_a_good_file_agrees(outlier_model: Path, data: tuple[str, str], tmp_path: Path, mode: str, io: str) -> None:
    run = _verify(_file(outlier_model, tmp_path, mode, io, outlier.CULPRITS), outlier_model, *data)
    assert run.exit_code == 0, run.output
    assert "serving_default/y: " in run.stdout
    assert "the same largest element in 100.0%" in run.stdout


@pytest.mark.parametrize("io", ["uint8", "float32"])
def test_a_ruined_file_does_not(outlier_model: Path, data: tuple[str, str], tmp_path: Path, io: str) -> None:
    file = _file(outlier_model, tmp_path, "int8", io)
    run = _verify(file, outlier_model, *data)
    assert run.exit_code == 1
    assert "[low-fidelity]" in run.stderr
    assert "LiteRT refuses" not in run.output
    run = _verify(file, outlier_model)
    assert run.exit_code == 1
    assert "on random inputs" in run.stderr
    assert "pass typical inputs" in run.stderr


def test_limits_are_the_users(outlier_model: Path, data: tuple[str, str], tmp_path: Path) -> None:
    file = _file(outlier_model, tmp_path, "int8", "int8", outlier.CULPRITS)
    assert _verify(file, outlier_model, *data, "--min-snr", 20, "--min-agreement", "90%").exit_code == 0
    run = _verify(file, outlier_model, *data, "--min-snr", 60)
    assert run.exit_code == 1
    assert "the limits are 60 dB and 90%" in run.stderr


def test_layers_are_listed(outlier_model: Path, data: tuple[str, str], tmp_path: Path) -> None:
    file = _file(outlier_model, tmp_path, "int8", "int8")
    run = _verify(file, outlier_model, *data, "--compare-layers", "--json")
    assert run.exit_code == 1
    found = json.loads(run.stdout)
    assert not found["agrees"]
    (problem,) = found["errors"]
    assert problem["code"] == "low-fidelity"
    assert "compare" not in problem["hint"]
    layers = found["fidelity"]["layers"]
    assert (layers[0]["node"], layers[0]["op"]) == ("widened", "CONV_2D")
    assert layers[0]["snr"] > 40 > 1 > layers[0]["channel_snr"]
    assert layers[0]["used"] < 0.01
    assert {"narrowed", "third", "mean"} <= {each["node"] for each in layers}
    text = _verify(file, outlier_model, *data, "--compare-layers").stdout
    assert text.splitlines()[3].split()[:2] == ["layer", "operator"]


def test_the_official_converters_file(
    tf: ModuleType, outlier_model: Path, data: tuple[str, str], tmp_path: Path
) -> None:
    converter = tf.lite.TFLiteConverter.from_saved_model(str(outlier_model))
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([image[None]] for image in outlier.images())
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.uint8
    file = tmp_path / "official.tflite"
    file.write_bytes(converter.convert())
    run = _verify(file, outlier_model, *data, "--compare-layers", "--json")
    assert run.exit_code == 1
    found = json.loads(run.stdout)["fidelity"]
    assert found["snr"] < 1
    assert (found["layers"][0]["node"], found["layers"][0]["op"]) == ("widened", "CONV_2D")
    # A limit that it keeps.
    assert _verify(file, outlier_model, *data, "--min-snr", -1, "--min-agreement", 0).exit_code == 0


def test_a_file_of_floats_has_no_limits(right: Path, digits_model: Path) -> None:
    run = _verify(right, digits_model, "--min-snr", 20)
    assert (run.exit_code, "is not quantized" in run.stderr) == (2, True)


def test_another_type_is_reported_by_name(tf: ModuleType, tmp_path: Path) -> None:
    """The file takes integers that represent nothing but themselves."""

    def build(dtype: Any) -> Any:
        return lambda tf: (lambda x: tf.cast(x, tf.float32) * 2.0, [tf.TensorSpec([3], dtype, "x")])

    integers = save(tf, build(tf.int32), tmp_path / "integers")
    quantize = tfconvert.Quantize("int8", samples=[[np.arange(3, dtype=np.int32)]])
    # Processors would be faster with floats.
    target = tfconvert.LiteRT(accelerator=["npu"])
    tfconvert.convert(integers, quantize=quantize, target=target).save(tmp_path / "x.tflite")
    run = _verify(tmp_path / "x.tflite", save(tf, build(tf.float32), tmp_path / "floats"))
    assert run.exit_code == 2, run.output
    assert "the input 'x' is int32 in the file, and float32 in the model [unlike-interface]" in run.stderr


def test_no_hint_names_settings_in_use(wrong: Path, digits_model: Path) -> None:
    assert "--compare-layers" in _verify(wrong, digits_model).stderr
    assert "--compare-layers" not in _verify(wrong, digits_model, "--compare-layers").stderr
