"""Verification: right results pass, wrong ones are found, and what can't be verified is reported."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tfconvert
from tests.support import sample_models
from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.validation import result_check
from tfconvert.importers.checkpoint.bundle import Checkpoint
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.tensor_data import TensorData
from tfconvert.schema.ir.types import TensorType
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb


@pytest.fixture(scope="module")
def content(digits_model: Path) -> bytes:
    """Returns the example, converted."""
    return bytes(tfconvert.convert(digits_model))


def test_a_right_result_passes(digits_model: Path, content: bytes) -> None:
    (checked,) = result_check.verify(Source(digits_model), content).errors
    assert checked.output == "output_0"
    assert checked.max_relative < 1e-5


@pytest.mark.parametrize("name", ["two_heads", "passes_through", "plain_types", "half_weights", "small_network"])
def test_every_output_of_every_signature_is_checked(name: str, tf: ModuleType, tmp_path: Path) -> None:
    folder = sample_models.save(tf, sample_models.MODELS[name], tmp_path / name)
    model = tfconvert.convert(folder, verify=True)
    checked = {each.output for each in model.report.verification}
    assert checked == {tensor.name for interface in model.report.interfaces for tensor in interface.outputs}
    assert max(each.max_relative for each in model.report.verification) < 1e-5


def test_a_wrong_weight_is_found(digits_model: Path, content: bytes) -> None:
    """One weight of the last layer, read off the checkpoint and found in the file, is changed."""
    bias = _last_bias(digits_model).tobytes()
    assert content.count(bias) == 1
    wrong = np.frombuffer(bias, np.float32).copy()
    wrong[3] += 1
    with pytest.raises(ConversionError) as caught:
        result_check.verify(Source(digits_model), content.replace(bias, wrong.tobytes()))
    (problem,) = caught.value.diagnostics
    assert problem.code == "verification-failed"
    assert "output_0" in problem.message


def _last_bias(model: Path) -> np.ndarray:
    checkpoint = Checkpoint(model / "variables" / "variables")
    key = next(key for key, entry in checkpoint.entries().items() if tuple(entry.shape) == (10,))
    return tensor_data.to_array(TensorData.get(TensorType.get(types.F32, (10,)), checkpoint.read(key)))


def test_another_models_file_is_found(digits_model: Path, tf: ModuleType, tmp_path: Path) -> None:
    folder = sample_models.save(tf, sample_models.nested, tmp_path / "model")
    with pytest.raises(ConversionError) as caught:
        result_check.verify(Source(digits_model), bytes(tfconvert.convert(folder)))
    assert caught.value.code in ("runtime-error", "verification-failed")


def test_invalid_models_are_rejected(digits_model: Path) -> None:
    with pytest.raises(ConversionError) as caught:
        result_check.verify(Source(digits_model), b"hello" * 100)
    assert caught.value.code == "runtime-error"


def test_a_missing_runtime_is_reported(digits_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "Interpreter", None)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(digits_model, verify=True)
    (problem,) = caught.value.diagnostics
    assert problem.code == "litert-missing"
    assert "tfconvert[verify]" in problem.hint


def test_strings_are_verified(tf: ModuleType, tmp_path: Path) -> None:
    folder = sample_models.save(tf, sample_models.strings, tmp_path / "model")
    report = tfconvert.convert(folder, verify=True).report
    assert report.verification
    assert all(each.max_absolute == 0 for each in report.verification)


def test_a_single_text_is_verified(tmp_path: Path) -> None:
    """LiteRT's Python binding forwards its address otherwise."""
    path = tmp_path / "model.mlir"
    path.write_text("""
    func.func @main(%x: tensor<!tf_type.string>) -> tensor<2x!tf_type.string>
        attributes {tf.entry_function = {inputs = "x", outputs = "y"}} {
      %0 = "tf.Const"() <{value = dense<2> : tensor<1xi32>}> : () -> tensor<1xi32>
      %1 = "tf.Fill"(%0, %x) : (tensor<1xi32>, tensor<!tf_type.string>) -> tensor<2x!tf_type.string>
      func.return %1 : tensor<2x!tf_type.string>
    }
    """)
    (checked,) = tfconvert.convert(path, verify=True).report.verification
    assert checked.max_absolute == 0


def test_inputs_that_do_not_suit_a_model_are_left_out(tmp_path: Path) -> None:
    """Of the random batches, only one of a single row can be squeezed."""
    path = tmp_path / "model.mlir"
    path.write_text("""
    func.func @main(%x: tensor<?x4xf32>) -> tensor<4xf32>
        attributes {tf.entry_function = {inputs = "x", outputs = "y"}} {
      %0 = "tf.Squeeze"(%x) <{squeeze_dims = [0]}> : (tensor<?x4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }
    """)
    content = bytes(tfconvert.convert(path))
    (checked,) = result_check.verify(Source(path), content).errors
    assert checked.max_absolute == 0


def test_a_model_without_suitable_random_inputs_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text("""
    func.func @main(%x: tensor<?x4xf32>) -> tensor<7x4xf32>
        attributes {tf.entry_function = {inputs = "x", outputs = "y"}} {
      %0 = "tf.Const"() <{value = dense<[7, 4]> : tensor<2xi32>}> : () -> tensor<2xi32>
      %1 = "tf.Reshape"(%x, %0) : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<7x4xf32>
      func.return %1 : tensor<7x4xf32>
    }
    """)
    report = tfconvert.convert(path, verify=True).report
    assert report.verification == ()
    assert [note.code for note in report.notes] == ["not-verified"]
    assert "no random inputs suit it" in report.notes[0].message


def test_a_plain_graph_is_verified_in_its_own_order(tmp_path: Path) -> None:
    """Without a signature, values go to the inputs by position."""
    graph = pb.GraphDef(versions=pb.VersionDef(producer=1882))
    for name, size in (("narrow", 1), ("wide", 5)):
        node = graph.node.add(name=name, op="Placeholder")
        node.attr["dtype"].type = pb.DT_FLOAT
        for dim in (-1, size):
            node.attr["shape"].shape.dim.add(size=dim)
    node = graph.node.add(name="difference", op="Sub", input=["narrow", "wide"])
    node.attr["T"].type = pb.DT_FLOAT
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.SerializeToString())
    (checked,) = tfconvert.convert(path, inputs=["wide", "narrow"], verify=True).report.verification
    assert checked.max_absolute == 0


def test_a_text_that_names_nothing_can_not_be_compared(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(
        "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
        '  %0 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>\n  func.return %0 : tensor<2xf32>\n}\n'
    )
    report = tfconvert.convert(path, verify=True).report
    assert not report.verification
    assert [note.code for note in report.notes] == ["not-verified"]
