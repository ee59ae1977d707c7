"""The runtime that a file needs, and the one that it is for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tfconvert
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tflite.versions import first_release, minimum_runtime, parse_release

MODEL = """
func.func @main(%x: tensor<2x3xf32>, %n: tensor<2x3xi64>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xi64>) {
  %0 = "tf.Sign"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("first")
  %1 = "tf.Sign"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("second")
  %2 = "tf.Atan2"(%1, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32> loc("angle")
  %3 = "tf.AddV2"(%n, %n) : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x3xi64> loc("sum")
  func.return %2, %1, %3 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xi64>
}
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.mlir"
    path.write_text(MODEL, "utf-8")
    return path


def test_every_version_that_is_too_new_is_reported_once_with_a_node(model: Path) -> None:
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(model, target=tfconvert.LiteRT(target_runtime="2.5"))
    found = {(each.op, each.node): each.message for each in caught.value.diagnostics}
    assert {each.code for each in caught.value.diagnostics} == {"newer-runtime"}
    assert found == {
        ("tfl.sign", "first"): "SIGN of version 1 needs the runtime 2.11.0, and the target is 2.5 (and 1 more)",
        ("tfl.atan2", "angle"): "ATAN2 of version 1 needs the runtime 2.10.0, and the target is 2.5",
        ("tfl.add", "sum"): "ADD of version 4 needs the runtime 2.6.0, and the target is 2.5",
    }


@pytest.mark.parametrize(("target", "fails"), [("2.10", True), ("2.11", False), ("2.11.0", False), ("2.14", False)])
def test_the_report_names_the_least_runtime(model: Path, target: str, fails: bool) -> None:
    report = tfconvert.convert(model).report
    assert report.min_runtime_version == report.to_dict()["min_runtime_version"] == "2.11.0"
    assert "runs in TensorFlow Lite 2.11.0 and later" in str(report)
    if fails:
        with pytest.raises(ConversionError, match=r"SIGN of version 1 needs the runtime 2\.11\.0"):
            tfconvert.convert(model, target=tfconvert.LiteRT(target_runtime=target))
    else:
        assert bytes(tfconvert.convert(model, target=tfconvert.LiteRT(target_runtime=target))) == bytes(
            tfconvert.convert(model)
        )


def test_a_file_that_was_read_is_checked_too(model: Path, tmp_path: Path) -> None:
    tfconvert.convert(model).save(tmp_path / "model.tflite")
    with pytest.raises(ConversionError, match="SIGN of version 1"):
        tfconvert.convert(tmp_path / "model.tflite", target=tfconvert.LiteRT(target_runtime="2.10"))


@pytest.mark.parametrize("target", ["2", "new", "2.x", "2.14-rc1", "-1.2", "2.14.0.0", " 2.14"])
def test_invalid_releases_are_rejected(model: Path, target: str) -> None:
    with pytest.raises(ConversionError, match="target_runtime can't be") as caught:
        tfconvert.convert(model, target=tfconvert.LiteRT(target_runtime=target))
    assert caught.value.code == "wrong-option"


def test_the_command_refuses(model: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tfconvert",
        str(model),
        "-o",
        str(tmp_path / "m.tflite"),
        "--target-runtime",
        "2.9",
    ]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    assert run.stderr.count("[newer-runtime]") == 2
    assert not (tmp_path / "m.tflite").exists()


def test_releases_are_numbers() -> None:
    assert first_release("ADD", 1) == "1.5.0"
    assert first_release("BROADCAST_TO", 1) == first_release("ADD", 99) == first_release("NOTHING", 1) == ""
    assert minimum_runtime([("ADD", 1), ("SIGN", 1), ("GELU", 1)]) == "2.11.0"
    assert minimum_runtime([("NOTHING", 1)]) == minimum_runtime([]) == ""
    old, new = parse_release("2.9"), parse_release("2.10.1")
    assert old is not None
    assert new is not None
    assert old < new
