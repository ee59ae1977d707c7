"""StableHLO text as a target: its contents, where weights are, and errors."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from click.testing import CliRunner

import tfconvert
from tests.converter.targets.stablehlo.engine import Program
from tests.mlir import oracle
from tfconvert.cli.main import main
from tfconvert.converter.executor import executor
from tfconvert.converter.targets.stablehlo import artifact_file
from tfconvert.converter.targets.stablehlo.legalize import lowerings
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

MODEL = """
module attributes {tf_saved_model.semantics} {
  func.func @serve(%x: tensor<?x16xf32> {tf_saved_model.index_path = ["x"]})
      -> (tensor<?x32xf32> {tf_saved_model.index_path = ["y"]})
      attributes {tf_saved_model.exported_names = ["serving_default"],
                  tf.entry_function = {inputs = "x", outputs = "y"}} {
    %w = "tf.Const"() <{value = dense<"0xWEIGHTS"> : tensor<16x32xf32>}> : () -> tensor<16x32xf32>
    %0 = "tf.MatMul"(%x, %w) <{transpose_a = false, transpose_b = false}>
      : (tensor<?x16xf32>, tensor<16x32xf32>) -> tensor<?x32xf32>
    %1 = "tf.Tanh"(%0) : (tensor<?x32xf32>) -> tensor<?x32xf32>
    func.return %1 : tensor<?x32xf32>
  }
}
"""

UNSUPPORTED = """
func.func @main(%x: tensor<?xf32>, %s: tensor<!tf_type.string>) -> (tensor<?xf32>, tensor<i32>, tensor<?xf32>) {
  %0 = "tf.BesselJ0"(%x) : (tensor<?xf32>) -> tensor<?xf32>
  %1 = "tf.StringLength"(%s) <{unit = "BYTE"}> : (tensor<!tf_type.string>) -> tensor<i32>
  %2 = "tf.Tanh"(%x) : (tensor<?xf32>) -> tensor<?xf32>
  func.return %0, %1, %2 : tensor<?xf32>, tensor<i32>, tensor<?xf32>
}
"""


DRAWN = """
func.func @main(%x: tensor<2xi32>) -> tensor<?x?xf32> {
  %0 = "tf.RandomStandardNormal"(%x) <{seed = 1, seed2 = 2}> : (tensor<2xi32>) -> tensor<?x?xf32>
  func.return %0 : tensor<?x?xf32>
}
"""


@pytest.fixture
def weights() -> np.ndarray:
    """Returns the model's weights."""
    return np.random.default_rng(1).normal(size=(16, 32)).astype(np.float32)


@pytest.fixture
def model(tmp_path: Path, weights: np.ndarray) -> Path:
    """Returns the file of a model with a dynamic batch."""
    path = tmp_path / "model.mlir"
    path.write_text(MODEL.replace("WEIGHTS", weights.tobytes().hex()))
    return path


@pytest.mark.parametrize("where", ["resource", "inline"])
def test_the_text_holds_the_weights(model: Path, weights: np.ndarray, where: Literal["resource", "inline"]) -> None:
    converted = tfconvert.convert(model, target=tfconvert.StableHLO(weights=where))
    text = bytes(converted).decode()
    assert ("dialect_resources" in text) == (where == "resource")
    assert len(converted) == len(text) == converted.report.size
    module = IRParser(text).parse_module()
    verify(module)
    held = [op.properties["value"] for op in module.walk() if op.name == "stablehlo.constant"]
    assert [tensor_data.to_array(value).tobytes() for value in held] == [weights.tobytes()]


def test_tensorflow_reads_what_is_written(model: Path) -> None:
    texts = {
        "resource": bytes(tfconvert.convert(model, target="stablehlo")).decode(),
        "inline": bytes(tfconvert.convert(model, target=tfconvert.StableHLO(weights="inline"))).decode(),
    }
    assert oracle.problems(texts) == {}


def test_the_text_speaks_no_more_of_tensorflow(model: Path) -> None:
    text = bytes(tfconvert.convert(model, target="stablehlo")).decode()
    assert "tf." not in text.replace("tfconvert.", "")
    assert "tf_saved_model" not in text
    assert "jax.uses_shape_polymorphism = true" in text
    assert 'tfconvert.name = ["x"]' in text
    assert "func.func @main(" in text


def test_known_sizes_are_attributes(model: Path) -> None:
    model.write_text(model.read_text().replace("?", "4"))
    text = bytes(tfconvert.convert(model, target="stablehlo")).decode()
    assert "uses_shape_polymorphism" not in text
    assert "tensor<?" not in text


def test_a_function_computes_the_sizes_of_results(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.mlir"
    done = CliRunner().invoke(
        main, [str(model), "-o", str(path), "--target", "stablehlo", "--mlir-shape-function", "--verify"]
    )
    assert done.exit_code == 0, done.output
    found = executor.run(IRParser(path.read_text()).parse_module(), "main__shape", [np.array(7)])
    assert [int(each) for each in found] == [7]
    assert path.read_bytes() == bytes(tfconvert.convert(model, target=tfconvert.StableHLO(shape_function=True)))
    assert oracle.problems({"shapes": path.read_text()}) == {}
    assert b"__shape" not in bytes(tfconvert.convert(model, target="stablehlo"))


def test_only_litert_has_delegates_that_ask_for_known_sizes(model: Path) -> None:
    codes = {
        target: [note.code for note in tfconvert.convert(model, target=target).report.input_notes]
        for target in ("litert", "stablehlo")
    }
    assert codes == {"litert": ["open-sizes"], "stablehlo": []}


def test_numbers_of_the_engine_are_told(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(DRAWN)
    notes = tfconvert.convert(path, target="stablehlo").report.notes
    (note,) = [each for each in notes if each.code == "unchecked-or-inexact"]
    assert note.op == "tf.RandomStandardNormal"


def test_saving_and_the_command_write_the_same(model: Path, tmp_path: Path) -> None:
    converted = tfconvert.convert(model, target="stablehlo")
    converted.save(tmp_path / "saved.mlir")
    stream = io.BytesIO()
    converted.save(stream)
    done = CliRunner().invoke(main, [str(model), "-o", str(tmp_path / "out.mlir"), "--target", "stablehlo"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "saved.mlir").read_bytes() == (tmp_path / "out.mlir").read_bytes() == stream.getvalue()


def test_all_ops_without_a_form_are_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(UNSUPPORTED)
    with pytest.raises(tfconvert.ConversionError) as refused:
        tfconvert.convert(path, target="stablehlo")
    found = refused.value.diagnostics
    assert {(each.code, each.op) for each in found} == {
        ("unsupported-op", "tf.BesselJ0"),
        ("unsupported-op", "tf.StringLength"),
    }


REFUSED = {
    "its rows are represented as ROW_LIMITS": """
  %0 = "tf.RaggedTensorToTensor"(%shape, %x, %zero, %i) <{row_partition_types = ["ROW_LIMITS"]}>
    : (tensor<2xi32>, tensor<?xf32>, tensor<f32>, tensor<?xi32>) -> tensor<?x?xf32>""",
    "the number of boxes must be constant": """
  %b = "tf.Reshape"(%x, %four) : (tensor<?xf32>, tensor<4xi32>) -> tensor<1x1x1x4xf32>
  %s = "tf.Reshape"(%x, %three) : (tensor<?xf32>, tensor<3xi32>) -> tensor<1x1x1xf32>
  %0:4 = "tf.CombinedNonMaxSuppression"(%b, %s, %size, %size, %zero, %zero) <{clip_boxes = true,
      pad_per_class = false}> : (tensor<1x1x1x4xf32>, tensor<1x1x1xf32>, tensor<i32>, tensor<i32>, tensor<f32>,
      tensor<f32>) -> (tensor<1x?x4xf32>, tensor<1x?xf32>, tensor<1x?xf32>, tensor<1xi32>)""",
    "the axes must be constant, unless reduced dimensions are kept": """
  %0 = "tf.Sum"(%x, %i) <{keep_dims = false}> : (tensor<?xf32>, tensor<?xi32>) -> tensor<*xf32>""",
    "it makes numbers of f64": """
  %0 = "tf.StatelessTruncatedNormal"(%shape, %shape) : (tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf64>""",
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_has_no_form_is_told_with_its_reason(reason: str, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(f"""
func.func @main(%x: tensor<?xf32>, %i: tensor<?xi32>, %shape: tensor<2xi32>, %size: tensor<i32>) -> tensor<i32> {{
  %zero = "tf.Const"() <{{value = dense<0.0> : tensor<f32>}}> : () -> tensor<f32>
  %four = "tf.Const"() <{{value = dense<[1, 1, 1, 4]> : tensor<4xi32>}}> : () -> tensor<4xi32>
  %three = "tf.Const"() <{{value = dense<1> : tensor<3xi32>}}> : () -> tensor<3xi32>{REFUSED[reason]}
  %1 = "tf.Size"(%0{"#0" if "%0:4" in REFUSED[reason] else ""})
    : ({REFUSED[reason].rpartition("-> ")[2].strip("()").split(">, ")[0].rstrip(">")}>) -> tensor<i32>
  func.return %1 : tensor<i32>
}}
""")
    with pytest.raises(tfconvert.ConversionError) as refused:
        tfconvert.convert(path, target="stablehlo")
    (found,) = (each for each in refused.value.diagnostics if each.op != "tf.Size")
    assert found.code == "unsupported-op"
    assert reason in found.message
    assert bool(found.hint) == ("constant" in reason)


def test_verifying_runs_the_text(model: Path) -> None:
    report = tfconvert.convert(model, target="stablehlo", verify=True).report
    (found,) = report.verification
    assert (found.signature, found.output) == ("serving_default", "y")
    assert found.max_relative < 1e-5
    assert report.notes == ()


def test_a_text_that_computes_something_else_fails_verification(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(lowerings.LOWERINGS, "tf.Tanh", lambda op, emit: emit.unary("sine", op.operands[0]))
    with pytest.raises(tfconvert.ConversionError) as refused:
        tfconvert.convert(model, target="stablehlo", verify=True)
    assert refused.value.code == "verification-failed"


def test_a_text_that_does_not_run_fails_verification(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(op: Operation, emit: StableHLOBuilder) -> Value:
        (x,) = op.operands
        return emit.one("dynamic_reshape", (x, emit.ints((9, 16))), dims=emit.dims(x))

    monkeypatch.setitem(lowerings.LOWERINGS, "tf.Tanh", broken)
    with pytest.raises(tfconvert.ConversionError) as refused:
        tfconvert.convert(model, target="stablehlo", verify=True)
    assert refused.value.code == "verification-failed"
    assert "9" in str(refused.value)


def test_verifying_on_data_of_ones_own(model: Path) -> None:
    data = [{"x": np.ones((size, 16), np.float32)} for size in (1, 4)]
    assert tfconvert.convert(model, target="stablehlo", verify=tfconvert.Verify(data=data)).report.verification


def test_passes_are_checked_down_to_the_text(model: Path) -> None:
    report = tfconvert.convert(model, target="stablehlo", check_passes=True).report
    assert [note for note in report.notes if note.code == "function-not-checked"] == []


def test_weights_as_arguments_are_in_a_file_beside_the_text(model: Path, weights: np.ndarray, tmp_path: Path) -> None:
    converted = tfconvert.convert(model, target=tfconvert.StableHLO(weights="arguments"))
    name = "weight"  # texts name no nodes
    converted.save(tmp_path / "out.mlir")
    text = (tmp_path / "out.mlir").read_text()
    assert f'tfconvert.weight = "{name}"' in text
    assert "dense_resource" not in text
    verify(IRParser(text).parse_module())
    data = (tmp_path / "out.safetensors").read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    entry = json.loads(data[8:end])[name]
    assert entry == {"dtype": "F32", "shape": [16, 32], "data_offsets": [0, weights.nbytes]}
    assert data[end:] == weights.tobytes()
    x = np.ones((3, 16), np.float32)
    tf = pytest.importorskip("tensorflow")
    (found,) = Program(text, [(tf.float32, (None, 32))]).run([x, weights])
    np.testing.assert_allclose(found, np.tanh(x @ weights), rtol=1e-5, atol=1e-5)
    with pytest.raises(tfconvert.ConversionError) as refused:
        converted.save(io.BytesIO())
    assert refused.value.code == "wrong-option"


@pytest.mark.parametrize(
    "settings",
    [
        {"target": "wasm"},
        {"target": tfconvert.StableHLO(weights="elsewhere")},  # type: ignore[arg-type]
        {"target": "stablehlo", "quantize": "dynamic"},
        {"target": "stablehlo", "verify": tfconvert.Verify(compare_layers=True)},
        {"target": "stablehlo", "quantize": tfconvert.Quantize("dynamic")},
        {"target": tfconvert.LiteRT(quantize=tfconvert.Quantize("dynamic")), "quantize": "dynamic"},
    ],
)
def test_settings_that_contradict_each_other_are_refused(model: Path, settings: dict[str, object]) -> None:
    with pytest.raises(tfconvert.ConversionError) as refused:
        tfconvert.convert(model, **settings)  # type: ignore[arg-type]
    assert refused.value.code == "wrong-option"


def test_artifacts_need_a_library(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact_file, "find_spec", lambda name: None)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(model, target=tfconvert.StableHLO(artifact=True))
    assert caught.value.code == "jaxlib-missing"
    assert "tfconvert[artifact]" in caught.value.diagnostics[0].hint
