"""The pass `separate-outputs`, by the numbers that both of LiteRT's interfaces compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.flat_settings import converted
from tests.support.litert import RunTFLite, run_compiled

Array = np.ndarray[Any, np.dtype[Any]]

FIXED, OPEN, OPENER = "tensor<2x3xKIND>", "tensor<?x3xKIND>", "tensor<?x?xKIND>"


def _convert(folder: Path, text: str, **settings: Any) -> tfconvert.Model:
    path = folder / "model.mlir"
    path.write_text(text)
    return converted(path, **settings)


def _main(kind: str, body: str, *results: str, type_of: Mapping[str, str] | None = None) -> str:
    types = ", ".join((type_of or {}).get(result, kind) for result in results)
    return f"func.func @main(%x: {kind}) -> ({types}) {{\n{body}\nfunc.return {', '.join(results)} : {types}\n}}"


def _expect(model: tfconvert.Model, run: RunTFLite, inputs: Sequence[Array], wanted: Sequence[Array]) -> None:
    for found in (run(bytes(model), inputs), run_compiled(bytes(model), inputs, wanted)):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["f32", "f16", "i32", "i8", "ui8", "i1"])
@pytest.mark.parametrize("shape", [FIXED, OPEN, OPENER, "tensor<KIND>", "tensor<0xKIND>"])
def test_an_output_that_is_an_input(shape: str, dtype: str, run_tflite: RunTFLite, tmp_path: Path) -> None:
    numpy_type = {"f32": "float32", "f16": "float16", "i32": "int32", "i8": "int8", "ui8": "uint8", "i1": "bool"}
    model = _convert(tmp_path, _main(shape.replace("KIND", dtype), "", "%x"))
    sizes = {FIXED: (2, 3), OPEN: (4, 3), OPENER: (3, 5), "tensor<KIND>": (), "tensor<0xKIND>": (0,)}[shape]
    x = np.arange(1, 1 + np.prod(sizes, dtype=int)).reshape(sizes).astype(numpy_type[dtype])
    assert model.report.operators["RESHAPE"] == 1
    if x.size:
        _expect(model, run_tflite, [x], [x])
    else:
        assert run_tflite(bytes(model), [x])[0].shape == (0,)


@pytest.mark.parametrize("kind", ["tensor<2x3xf32>", "tensor<?x3xf32>"])
def test_outputs_that_are_one_tensor_beside_others(kind: str, run_tflite: RunTFLite, tmp_path: Path) -> None:
    body = f"""
      %0 = "tf.Identity"(%x) : ({kind}) -> {kind}
      %1 = "tf.Cast"(%0) <{{Truncate = false}}> : ({kind}) -> {kind}
      %2 = "tf.Relu"(%x) : ({kind}) -> {kind}
      %3 = "tf.Neg"(%x) : ({kind}) -> {kind}
      %4 = "tf.Neg"(%3) : ({kind}) -> {kind}
      %5 = "tf.Relu"(%1) : ({kind}) -> {kind}
    """
    model = _convert(tmp_path, _main(kind, body, "%1", "%2", "%3", "%2", "%x", "%5"))
    x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
    _expect(model, run_tflite, [x], [x, np.maximum(x, 0), -x, np.maximum(x, 0), x, np.maximum(x, 0)])
    assert model.report.operators["RESHAPE"] == 4, "two inputs, and two that repeat the second"


def test_64_bit_integers(run_tflite: RunTFLite, tmp_path: Path) -> None:
    body = '%0 = "tf.Cast"(%x) <{Truncate = false}> : (tensor<2xi32>) -> tensor<2xi64>'
    model = _convert(tmp_path, _main("tensor<2xi32>", body, "%0", "%0", type_of={"%0": "tensor<2xi64>"}))
    x = np.array([3, -4], np.int32)
    for found in run_tflite(bytes(model), [x]):
        assert found.tolist() == [3, -4]
    # Python's buffers have no such type: each number is read as its two halves.
    for found in run_compiled(bytes(model), [x], [np.zeros(4, np.int32)] * 2):
        assert found.view(np.int64).tolist() == [3, -4]


def test_sizes_that_only_the_run_tells(run_tflite: RunTFLite, tmp_path: Path) -> None:
    body = '%0 = "tf.Where"(%x) : (tensor<?xi32>) -> tensor<?x1xi64>'
    model = _convert(tmp_path, _main("tensor<?xi32>", body, "%0", "%0", type_of={"%0": "tensor<?x1xi64>"}))
    for found in run_tflite(bytes(model), [np.array([1, 0, 4], np.int32)]):
        assert found.tolist() == [[0], [2]]


def test_text(run_tflite: RunTFLite, tmp_path: Path) -> None:
    model = _convert(tmp_path, _main("tensor<?x!tf_type.string>", "", "%x", "%x"))
    words = np.array([b"a", b"", b"bcd"], object)
    for found in run_tflite(bytes(model), [words]):
        assert found.tolist() == words.tolist()


def test_constants_may_be_outputs(run_tflite: RunTFLite, tmp_path: Path) -> None:
    body = '%0 = "tf.Const"() <{value = dense<[1.0, 2.0]> : tensor<2xf32>}> : () -> tensor<2xf32>'
    x, constant = np.array([3, 4], np.float32), np.array([1, 2], np.float32)
    model = _convert(tmp_path, _main("tensor<2xf32>", body, "%0"))
    assert not model.report.operators
    _expect(model, run_tflite, [x], [constant])
    _expect(_convert(tmp_path, _main("tensor<2xf32>", body, "%0", "%0", "%x")), run_tflite, [x], [constant] * 2 + [x])


SIGNATURES = """
module attributes {tf_saved_model.semantics} {
func.func @main(%x: tensor<2xf32> {tf_saved_model.index_path = ["x"]})
    -> (tensor<2xf32> {tf_saved_model.index_path = ["a"]}, tensor<2xf32> {tf_saved_model.index_path = ["b"]},
        tensor<2xf32> {tf_saved_model.index_path = ["c"]})
    attributes {tf_saved_model.exported_names = ["one", "other"]} {
  %0 = "tf.Exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0, %x, %0 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
}
"""


def test_signatures_that_share_a_subgraph(run_tflite: RunTFLite, tmp_path: Path) -> None:
    model = _convert(tmp_path, SIGNATURES)
    assert dict(model.report.operators) == {"EXP": 1, "RESHAPE": 2}
    x = np.array([0, 1], np.float32)
    wanted = [np.exp(x), x, np.exp(x)]
    for key in ("one", "other"):
        for found, other in zip(run_tflite(bytes(model), {"x": x}, signature=key), wanted, strict=True):
            np.testing.assert_allclose(found, other, rtol=1e-6)
    for found, other in zip(run_compiled(bytes(model), [x], wanted), wanted, strict=True):
        np.testing.assert_allclose(found, other, rtol=1e-6)


@pytest.mark.parametrize("io", ["float32", "int8"])
def test_quantized_models(io: Any, run_tflite: RunTFLite, tmp_path: Path) -> None:
    body = '%0 = "tf.Relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>'
    x = np.array([-1.01, 0.013, 0.5, 1], np.float32)
    quantize = tfconvert.Quantize("int8", samples=[[x]], io=io)
    model = _convert(tmp_path, _main("tensor<4xf32>", body, "%x", "%0", "%0"), quantize=quantize)
    given = x if io == "float32" else np.array([-128, -3, 50, 127], np.int8)
    found = run_tflite(bytes(model), [given])
    np.testing.assert_array_equal(found[0], given, "an input that is an output is not rounded")
    np.testing.assert_array_equal(found[1], found[2])
    for one, other in zip(run_compiled(bytes(model), [given], found), found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_loops_are_left_alone(run_tflite: RunTFLite, tmp_path: Path) -> None:
    model = _convert(
        tmp_path,
        """
    func.func @main(%n: tensor<i32>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0:2 = "tf.While"(%n, %x) <{cond = @cond, body = @body, is_stateless = true}>
          : (tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>)
      func.return %0#1 : tensor<2xf32>
    }
    func.func private @cond(%n: tensor<i32>, %x: tensor<2xf32>) -> tensor<i1> {
      %0 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tf.Less"(%0, %n) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      func.return %1 : tensor<i1>
    }
    func.func private @body(%n: tensor<i32>, %x: tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>) {
      %0 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tf.Sub"(%n, %0) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %2 = "tf.AddV2"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %1, %2 : tensor<i32>, tensor<2xf32>
    }
    """,
    )
    assert "RESHAPE" not in model.report.operators
    x = np.array([1, 2], np.float32)
    _expect(model, run_tflite, [np.array(3, np.int32), x], [8 * x])
