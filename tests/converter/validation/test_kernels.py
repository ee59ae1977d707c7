"""Non-maximum suppression is verified on real boxes, and files are verified as far as LiteRT has kernels for them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.validation.test_valid_inputs import save
from tfconvert.converter.targets.litert.runtime_process import LiteRTProcess
from tfconvert.schema.diagnostics import ConversionError

Function = Callable[..., Any]


def _plain(tf: Any) -> Function:
    return lambda boxes, scores: tf.image.non_max_suppression(boxes, scores, 10, 0.5)


def _clipped(tf: Any) -> Function:
    return lambda boxes, scores: _plain(tf)(tf.clip_by_value(boxes, 0.0, 1.0), tf.maximum(scores, 0.1))


def _reshaped(tf: Any) -> Function:
    return lambda boxes, scores: _plain(tf)(tf.reshape(boxes[None], [-1, 4]), tf.reshape(scores[None], [-1]))


def _chosen(tf: Any) -> Function:
    def run(boxes: Any, scores: Any) -> Any:
        best = tf.math.top_k(scores, 20)
        return _plain(tf)(tf.gather(boxes, best.indices), best.values)

    return run


def _with_scores(tf: Any) -> Function:
    return lambda boxes, scores: tf.image.non_max_suppression_with_scores(boxes, scores, 10, 0.5, 0.1, 0.3)


def _padded(tf: Any) -> Function:
    return lambda boxes, scores: tf.image.non_max_suppression_padded(
        boxes, scores, 10, 0.5, pad_to_max_output_size=True
    )


def _codes(report: Any) -> set[str]:
    return {each.code for each in report.notes} & {"kernel-differs", "not-verified"}


@pytest.mark.parametrize("build", [_plain, _clipped, _reshaped, _chosen, _with_scores, _padded])
def test_boxes_and_scores_are_drawn(build: Callable[[Any], Function], tf: ModuleType, tmp_path: Path) -> None:
    def model(tf: Any) -> Any:
        return build(tf), [tf.TensorSpec([50, 4], name="boxes"), tf.TensorSpec([50], name="scores")]

    report = tfconvert.convert(save(tf, model, tmp_path / "model"), verify=True).report
    assert report.verification
    assert not _codes(report)


@pytest.mark.parametrize("size", [5, 300])
def test_wrong_choices_are_found(size: int, tf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [tf.TensorSpec([size, 4], name="boxes"), tf.TensorSpec([size], name="scores")]
    model = save(tf, lambda tf: (_plain(tf), specs), tmp_path / "model")
    assert not _codes(tfconvert.convert(model, verify=True).report)
    run_file = LiteRTProcess.run_file

    def wrong(self: LiteRTProcess, *arguments: Any) -> Any:
        return [(value + 1) % size for value in run_file(self, *arguments)]

    monkeypatch.setattr(LiteRTProcess, "run_file", wrong)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(model, verify=True)
    assert caught.value.code == "verification-failed"


def test_ties_are_the_kernels(tf: Any, tmp_path: Path) -> None:
    """LiteRT takes four equal scores in the order 0, 2, 3, 1."""
    specs = [tf.TensorSpec([4, 4], name="boxes"), tf.TensorSpec([4], name="scores")]
    boxes = np.array([[at / 4, 0.1, at / 4 + 0.2, 0.3] for at in range(4)], np.float32)
    verify = tfconvert.Verify([{"boxes": boxes, "scores": np.ones(4, np.float32)}])
    report = tfconvert.convert(save(tf, lambda tf: (_plain(tf), specs), tmp_path / "model"), verify=verify).report
    (note,) = [each for each in report.notes if each.code == "kernel-differs"]
    assert note.severity == "warning"
    assert "two boxes have the same score in NON_MAX_SUPPRESSION" in note.message


def _with_operator(tmp_path: Path, change: Callable[[Any], None]) -> Path:
    """Returns a file of one operator that is another one."""
    flatbuffers = pytest.importorskip("flatbuffers")
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    text = """func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32>
        attributes {tf.entry_function = {inputs = "x", outputs = "y"}} {
      %0 = "tf.Abs"(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
      func.return %0 : tensor<4x4xf32>
    }"""
    (tmp_path / "abs.mlir").write_text(text)
    content = bytes(tfconvert.convert(tmp_path / "abs.mlir"))
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(content, 0))
    change(model.operatorCodes[0])
    operator = model.subgraphs[0].operators[0]
    operator.builtinOptions, operator.builtinOptionsType = None, 0
    builder = flatbuffers.Builder(0)
    builder.Finish(model.Pack(builder), b"TFL3")
    path = tmp_path / "other.tflite"
    path.write_bytes(bytes(builder.Output()))
    return path


@pytest.mark.parametrize("quantize", [None, "dynamic"])
def test_a_file_that_litert_does_not_load_is_an_error(tmp_path: Path, quantize: Any) -> None:
    def change(code: Any) -> None:
        code.builtinCode, code.deprecatedBuiltinCode = 173, 127  # STABLEHLO_CUSTOM_CALL

    model = _with_operator(tmp_path, change)
    with pytest.raises(ConversionError, match="STABLEHLO_CUSTOM_CALL") as caught:
        tfconvert.convert(model, quantize=quantize, verify=True)
    assert caught.value.code == "runtime-error"


@pytest.mark.parametrize("number", [193, 202])  # STABLEHLO_DYNAMIC_SLICE, STABLEHLO_TRANSPOSE
def test_an_operator_whose_options_do_not_fit_is_an_error(number: int, tmp_path: Path) -> None:
    def change(code: Any) -> None:
        code.builtinCode, code.deprecatedBuiltinCode = number, 127

    with pytest.raises(ConversionError, match=r"do(es)? not fit") as caught:
        tfconvert.convert(_with_operator(tmp_path, change))
    assert caught.value.code == "unsupported-op"


@pytest.mark.parametrize("quantize", [None, "dynamic"])
def test_operators_that_only_apps_have_are_reported(tmp_path: Path, quantize: Any) -> None:
    def change(code: Any) -> None:
        code.builtinCode, code.deprecatedBuiltinCode, code.customCode = 32, 32, b"MyOperator"

    model = _with_operator(tmp_path, change)
    report = tfconvert.convert(model, quantize=quantize, verify=True).report
    (note,) = [each for each in report.notes if each.code == "not-verified"]
    assert note.severity == "warning"
    assert "custom ops" in note.message


def test_warnings_that_are_errors_do_not_end_litert(digits_model: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "samples.npy", np.ones((2, 8, 8, 1), np.float32))
    command = ["-m", "tfconvert", str(digits_model), "-o", "m.tflite", "--quantize", "int8", "--samples", "samples.npy"]
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    subprocess.run([sys.executable, *command, "--verify", "-q"], check=True, cwd=tmp_path, env=environment)
