"""Ops that TensorFlow no longer runs, or that earlier passes remove: the results of modules that have them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converter.targets.stablehlo.stage_checks import stablehlo_of
from tfconvert.converter.executor.executor import run
from tfconvert.converter.targets.stablehlo.passes.legalize_to_stablehlo import LegalizeToStablehlo
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.parsing import IRParser

C = "tensor<?x2x4x4xcomplex<f32>>"
M, V = "tensor<?x4x4xf32>", "tensor<?x4xf32>"
SOLVED = f"({M}, {M}) -> {M}"
RENAMED = {
    **{
        f"{kind}{suffix}": (f'"tf.{kind}{suffix}"(%c)', f"({C}) -> {C}")
        for kind in ("FFT", "IFFT")
        for suffix in ("", "2D", "3D")
    },
    "MatrixBandPart": ('"tf.MatrixBandPart"(%m, %one, %one)', f"({M}, tensor<i64>, tensor<i64>) -> {M}"),
    "MatrixDiag": ('"tf.MatrixDiag"(%v)', f"({V}) -> {M}"),
    "MatrixDiagPart": ('"tf.MatrixDiagPart"(%m)', f"({M}) -> {V}"),
    "MatrixSetDiag": ('"tf.MatrixSetDiag"(%m, %v)', f"({M}, {V}) -> {M}"),
    "Cholesky": ('"tf.Cholesky"(%m)', f"({M}) -> {M}"),
    "MatrixInverse": ('"tf.MatrixInverse"(%m) <{adjoint = true}>', f"({M}) -> {M}"),
    "MatrixSolve": ('"tf.MatrixSolve"(%m, %m) <{adjoint = true}>', SOLVED),
    "MatrixTriangularSolve": ('"tf.MatrixTriangularSolve"(%m, %m) <{adjoint = true, lower = false}>', SOLVED),
}
"""Calls of ops that have older names with `Batch` before them, and their types."""


@pytest.mark.parametrize("name", RENAMED)
def test_ops_of_batches_are_what_they_became(name: str) -> None:
    call, kind = RENAMED[name]
    result = kind.rpartition(" -> ")[2]
    text = f"""func.func @main(%c: {C}, %m: {M}, %v: {V}) -> {result} {{
      %one = "tf.Const"() <{{value = dense<1> : tensor<i64>}}> : () -> tensor<i64>
      %0 = {call} : {kind}
      func.return %0 : {result}
    }}"""
    older = stablehlo_of(text.replace(f"tf.{name}", f"tf.Batch{name}"))
    verify(older)
    assert str(older) == str(stablehlo_of(text))


def test_top_k_had_its_count_as_an_attribute() -> None:
    text = """func.func @main(%x: tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>) {
      %0, %1 = "tf.TopK"(%x) <{k = 2, sorted = true}> : (tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
      func.return %0, %1 : tensor<2x2xf32>, tensor<2x2xi32>
    }"""
    values, places = run(stablehlo_of(text), "main", [np.array([[3, 1, 4, 1], [5, 9, 2, 9]], np.float32)])
    assert values.tolist() == [[4, 3], [9, 9]]
    assert places.tolist() == [[2, 0], [1, 3]]


FORWARDED = """func.func @main(%x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<i32>, tensor<2xi64>, tensor<2xi64>) {
  %0:2 = "tf.IdentityN"(%x, %x) : (tensor<?x4xf32>, tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>)
  %1 = "tf.EnsureShape"(%0#1) <{shape = #tf_type.shape<?x4>}> : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = "tf.DeepCopy"(%1) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %3 = "tf.Rank"(%2) : (tensor<?x4xf32>) -> tensor<i32>
  %4:2 = "tf.ShapeN"(%2, %0#0) : (tensor<?x4xf32>, tensor<?x4xf32>) -> (tensor<2xi64>, tensor<2xi64>)
  func.return %2, %3, %4#0, %4#1 : tensor<?x4xf32>, tensor<i32>, tensor<2xi64>, tensor<2xi64>
}"""


def test_the_pass_alone_forwards_what_earlier_ones_remove() -> None:
    module = IRParser(FORWARDED).parse_module()
    LegalizeToStablehlo().apply(module)
    verify(module)
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    found, rank, *shapes = run(module, "main", [values])
    np.testing.assert_array_equal(found, values)
    assert (rank, *(shape.tolist() for shape in shapes)) == (2, [3, 4], [3, 4])
