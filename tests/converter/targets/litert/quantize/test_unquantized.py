"""A quantization that changes nothing reports the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tfconvert
from tfconvert.cli.main import main
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb


def _model(op: str, weight: np.ndarray[Any, Any]) -> pb.GraphDef:
    graph = pb.GraphDef()
    kind = pb.DT_FLOAT if weight.dtype == np.float32 else pb.DT_INT32
    x = graph.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = kind
    for size in (1, weight.shape[0]):
        x.attr["shape"].shape.dim.add(size=size)
    w = graph.node.add(name="w", op="Const")
    w.attr["dtype"].type = kind
    tensor = w.attr["value"].tensor
    tensor.dtype = kind
    tensor.tensor_content = weight.tobytes()
    for size in weight.shape:
        tensor.tensor_shape.dim.add(size=size)
    y = graph.node.add(name="y", op=op, input=["x", "w"])
    y.attr["T"].type = kind
    return graph


def _weights(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


LARGE = _weights(32, 64)


@pytest.mark.parametrize(
    ("op", "weight", "quantize", "reason"),
    [
        ("MatMul", _weights(8, 27), "dynamic", "the largest tensor has 216 elements, 1024 are needed"),
        ("MatMul", _weights(8, 27), "weights", "the largest tensor has 216 elements, 1024 are needed"),
        ("MatMul", _weights(3, 2), "float16", "the largest tensor has 6 elements, 64 are needed"),
        ("MatMul", LARGE, tfconvert.Quantize("dynamic", exclude=["FULLY_CONNECTED"]), "1 tensor of excluded operators"),
        ("MatMul", LARGE * np.float32("inf"), "dynamic", "1 tensor with elements that are not finite"),
        ("AddV2", _weights(2048), "dynamic", "1 tensor of operators that take them as floats only (ADD)"),
        ("AddV2", np.arange(2048, dtype=np.int32), "dynamic", "the model has no constants of 32-bit floats"),
    ],
)
def test_the_reason_is_told(op: str, weight: np.ndarray[Any, Any], quantize: Any, reason: str) -> None:
    report = tfconvert.convert(_model(op, weight), quantize=quantize).report
    (note,) = [note for note in report.notes if note.code == "nothing-quantized"]
    assert (note.severity, note.message) == ("note", f"quantized weights: none: {reason}")


def test_no_bytes_are_told_of_no_weights() -> None:
    report = tfconvert.convert(_model("MatMul", _weights(8, 27)), quantize="dynamic", verify=True).report
    assert report.quantization is not None
    assert "weights: 0" not in report.to_text()


def test_the_command_tells_it(tmp_path: Path) -> None:
    (tmp_path / "m.pb").write_bytes(_model("MatMul", _weights(4, 4)).SerializeToString())
    command = [str(tmp_path / "m.pb"), "-o", str(tmp_path / "m.tflite"), "--quantize", "dynamic"]
    assert "note: quantized weights: none: the largest" in CliRunner().invoke(main, command).stdout


def test_nothing_is_told_of_what_was_quantized() -> None:
    notes = tfconvert.convert(_model("MatMul", LARGE), quantize="dynamic").report.notes
    assert "nothing-quantized" not in {note.code for note in notes}


SAMPLES = np.random.default_rng(1).normal(size=(8, 1, 32)).astype(np.float32)


@pytest.fixture(scope="module", params=["int8", "uint8", "int16"])
def integers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a file that has integers as inputs and outputs."""
    path = tmp_path_factory.mktemp("integers") / f"{request.param}.tflite"
    mode: Any = "int16" if request.param == "int16" else "int8"
    wanted = tfconvert.Quantize(mode, samples=SAMPLES, io=request.param)
    path.write_bytes(bytes(tfconvert.convert(_model("MatMul", LARGE), quantize=wanted)))
    return path


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("mode", ["dynamic", "float16", "weights", "int8", "int16"])
def test_integers_stay(integers: Path, mode: Any, verify: bool) -> None:
    """Samples are the integers of such inputs, or the floats that these represent."""
    for samples in [SAMPLES, _stored(integers)] if mode.startswith("int") else [None]:
        model = tfconvert.convert(integers, quantize=tfconvert.Quantize(mode, samples=samples), verify=verify)
        (note,) = [note for note in model.report.notes if note.code == "nothing-quantized"]
        if samples is not None:
            assert "with integers already" in note.message
        if samples is not None and verify:
            quantization = model.report.quantization
            assert quantization is not None
            assert quantization.fidelity is not None
            assert quantization.fidelity.snr == float("inf")


def _stored(path: Path) -> np.ndarray[Any, Any]:
    limits = np.iinfo(path.stem)
    return np.random.default_rng(2).integers(limits.min, limits.max, SAMPLES.shape, path.stem)
