"""Every JSON document that the command prints is as `docs/report.schema.json` says, which leaves out no field."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tfconvert
from tfconvert.cli.json_output import print_json
from tfconvert.cli.main import main
from tfconvert.schema.tensorflow.generated import tensorflow_pb2

jsonschema = pytest.importorskip("jsonschema")


def _strict(schema: Any) -> Any:
    """Returns a schema that allows no field that it doesn't list; readers must expect more, writers must list them."""
    if isinstance(schema, dict):
        stricter = {key: _strict(value) for key, value in schema.items()}
        return {**stricter, "additionalProperties": False} if "required" in schema else stricter
    return [_strict(item) for item in schema] if isinstance(schema, list) else schema


@pytest.fixture(scope="module")
def schema(root: Path) -> dict[str, Any]:
    """Returns the published schema, made strict."""
    read: dict[str, Any] = json.loads((root / "docs" / "report.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(read)
    strict: dict[str, Any] = _strict(read)
    return strict


def check(schema: dict[str, Any], kind: str, *arguments: str | Path, status: int = 0) -> dict[str, Any]:
    """Runs the command with `--json`, checks what it prints against one kind of document, and returns it."""
    result = CliRunner().invoke(main, [*map(str, arguments), "--json"], prog_name="tfconvert")
    assert result.exit_code == status, result.output
    data: dict[str, Any] = json.loads(result.stdout, parse_constant=pytest.fail)
    jsonschema.validate(data, {**schema, "anyOf": [{"$ref": f"#/$defs/{kind}"}]})
    assert (data["schema_version"], data["tfconvert_version"]) == (1, tfconvert.__version__)
    return data


def test_a_conversion(schema: dict[str, Any], digits_model: Path, tmp_path: Path) -> None:
    output = tmp_path / "x.tflite"
    data = check(schema, "report", digits_model, "-o", output, "--verify")
    assert data["output_file"] == str(output)
    assert data["min_runtime_version"] == "2.9.0"
    assert data["operator_versions"].keys() == data["operators"].keys()
    assert data["functions"][0]["inputs"] == {"pixels": "f32[?,8,8,1]"}
    assert data["functions"][0]["arguments"] == [{"name": "pixels", "dtype": "float32", "shape": [None, 8, 8, 1]}]
    assert data["rewrites"]["optimize"]
    assert data["operations_kind"] == "TensorFlow op"


def test_a_metric(schema: dict[str, Any], digits_model: Path, tmp_path: Path) -> None:
    with np.load(digits_model.parent / "held_out.npz") as held_out:
        np.save(tmp_path / "x.npy", held_out["pixels"][:64, ..., None].astype(np.float32) / 16)
        np.save(tmp_path / "small.npy", held_out["pixels"][:64, ..., None].astype(np.float32) / 800)
        np.save(tmp_path / "y.npy", held_out["labels"][:64])
    files: list[str | Path] = [
        "--samples",
        tmp_path / "small.npy",
        "--verify-data",
        tmp_path / "x.npy",
        "--labels",
        tmp_path / "y.npy",
    ]
    common: list[str | Path] = [
        digits_model,
        "-o",
        tmp_path / "x.tflite",
        "--quantize",
        "int8",
        "--metric",
        "top1",
        *files,
    ]
    found = check(schema, "report", *common, "--compare-layers")["quantization"]["fidelity"]
    assert found["metric"]["quantized"] < found["exclusions"]["metric"] <= 1
    assert found["metric"]["limits"] == {}


def test_tuning(schema: dict[str, Any], tmp_path: Path) -> None:
    model, output = tmp_path / "model.pb", tmp_path / "x.tflite"
    graph = tensorflow_pb2.GraphDef()
    x = graph.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = tensorflow_pb2.DT_FLOAT
    for size in (1, 64, 64, 5):
        x.attr["shape"].shape.dim.add(size=size)
    graph.node.add(name="y", op="Softmax", input=["x"]).attr["T"].type = tensorflow_pb2.DT_FLOAT
    model.write_bytes(graph.SerializeToString())
    found = check(schema, "report", model, "-o", output, "--tune", "HOST")["tuning"]
    (form,) = found["forms"]
    assert form["chosen"] == "fast"
    assert found["gain"] == pytest.approx(form["usual"] - form["fast"], abs=0.002)
    written = check(schema, "report", model, "-o", output, "--tune", f"{tmp_path / 'forms'}/")["tuning"]
    assert written["directory"] == f"{tmp_path / 'forms'}/"


def test_accelerators(schema: dict[str, Any], digits_model: Path, tmp_path: Path) -> None:
    output = tmp_path / "x.tflite"
    for accelerator in ("gpu", "npu", "micro", "ethos-u"):
        arguments: list[str | Path] = ["--batch", "1", "--accelerator", accelerator]
        (found,) = check(schema, "report", digits_model, "-o", output, *arguments)["accelerators"]
        assert (found["accelerator"], found["is_whole"]) == (accelerator, not found["obstacles"])
        (inspected,) = check(schema, "inspection", "inspect", output, "--accelerator", accelerator)["accelerators"]
        assert (inspected["verdict"], inspected["taken"]) == (found["verdict"], found["taken"])


@pytest.mark.parametrize("mode", ["dynamic", "int8"])
def test_a_quantization(schema: dict[str, Any], digits_model: Path, tmp_path: Path, mode: str) -> None:
    samples = tmp_path / "samples.npz"
    np.savez(samples, pixels=np.random.default_rng(0).random((4, 8, 8, 1), np.float32))
    arguments: list[str] = ["--samples", str(samples), "--io", "int8"] if mode == "int8" else []
    arguments += ["--quantize", mode, "--verify"]
    data = check(schema, "report", digits_model, "-o", tmp_path / "x.tflite", *arguments)
    assert data["quantization"]["fidelity"]["outputs"]
    assert data["quantization"]["layers"]
    (argument,) = data["functions"][0]["arguments"]
    assert ("scale" in argument) == (mode == "int8")


def test_batches(schema: dict[str, Any], digits_model: Path, tmp_path: Path) -> None:
    arguments: list[str | Path] = [digits_model, tmp_path / "none", "-o", f"{tmp_path}/{{name}}.tflite"]
    data = check(schema, "batch", "batch", *arguments, status=2)
    assert [row["status"] for row in data["models"]] == ["converted", "failed"]


def test_errors(schema: dict[str, Any], digits_model: Path, tmp_path: Path) -> None:
    check(schema, "errors", digits_model, "-o", tmp_path / "x.tflite", "--signature", "none", status=1)
    check(schema, "errors", "inspect", tmp_path / "none", status=2)


def test_inspections(schema: dict[str, Any], digits_model: Path, tmp_path: Path) -> None:
    check(schema, "inspection", "inspect", digits_model)
    unsupported = tmp_path / "no.mlir"
    unsupported.write_text("""func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.BesselK0"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }""")
    check(schema, "inspection", "inspect", unsupported, status=1)
    tfconvert.convert(digits_model).save(tmp_path / "x.tflite")
    check(schema, "inspection", "inspect", tmp_path / "x.tflite")


def test_ops(schema: dict[str, Any]) -> None:
    check(schema, "ops", "ops")


def test_infinite_numbers_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"snr": math.inf, "all": [math.nan, 1.5], "inside": {"one": -math.inf}})
    printed = json.loads(capsys.readouterr().out)
    assert {key: printed[key] for key in ("snr", "all", "inside")} == {
        "snr": None,
        "all": [None, 1.5],
        "inside": {"one": None},
    }
