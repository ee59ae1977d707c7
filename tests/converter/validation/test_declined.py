"""Results that can't be compared become a note, rounding differences are tolerated, and all others fail."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.validation.test_valid_inputs import save
from tfconvert.converter.targets.litert.runtime_process import LiteRTProcess
from tfconvert.schema.diagnostics import ConversionError


def test_random_numbers_are_not_compared(tf: ModuleType, tmp_path: Path) -> None:
    def build(tf: Any) -> Any:
        return lambda x: x + tf.random.normal([3]), [tf.TensorSpec([3], tf.float32, "x")]

    report = tfconvert.convert(save(tf, build, tmp_path / "model"), verify=True).report
    assert report.verification == ()
    (note,) = [note for note in report.notes if note.code == "not-verified"]
    assert "tf.RandomStandardNormal" in note.message


def test_custom_ops_are_not_compared(tf: ModuleType, tmp_path: Path) -> None:
    def build(tf: Any) -> Any:
        return tf.math.special.bessel_j0, [tf.TensorSpec([3], tf.float32, "x")]

    model = save(tf, build, tmp_path / "model")
    report = tfconvert.convert(model, verify=True, target=tfconvert.LiteRT(allow_custom_ops=True)).report
    assert [note.code for note in report.notes if note.code == "not-verified"]


# StableHLO's total order puts -0 before 0; LiteRT's TOPK_V2 takes them as equal.
TOP = """
func.func @main(%a: tensor<20x7xf32>) -> (tensor<20x3xf32>, tensor<20x3xi32>)
    attributes {tf.entry_function = {inputs = "x", outputs = "values, indices"}} {
  %0:2 = "stablehlo.composite"(%a) <{composite_attributes = {k = 3 : i64}, decomposition = @top, name = "chlo.top_k",
      version = 1 : i32}> : (tensor<20x7xf32>) -> (tensor<20x3xf32>, tensor<20x3xi32>)
  return %0#0, %0#1 : tensor<20x3xf32>, tensor<20x3xi32>
}
func.func private @top(%a: tensor<20x7xf32>) -> (tensor<20x3xf32>, tensor<20x3xi32>) {
  %i = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<20x7xi32>
  %0:2 = "stablehlo.sort"(%a, %i) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>, %m: tensor<i32>, %n: tensor<i32>):
    %less = "stablehlo.compare"(%l, %r) <{compare_type = #stablehlo<comparison_type TOTALORDER>,
        comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<20x7xf32>, tensor<20x7xi32>) -> (tensor<20x7xf32>, tensor<20x7xi32>)
  %1 = "stablehlo.slice"(%0#0) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 20, 3>,
      strides = array<i64: 1, 1>}> : (tensor<20x7xf32>) -> tensor<20x3xf32>
  %2 = "stablehlo.slice"(%0#1) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 20, 3>,
      strides = array<i64: 1, 1>}> : (tensor<20x7xi32>) -> tensor<20x3xi32>
  return %1, %2 : tensor<20x3xf32>, tensor<20x3xi32>
}
"""


@pytest.mark.parametrize("shift", [0, 1])
def test_the_order_of_zeros_is_decided_by_rounding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shift: int) -> None:
    (tmp_path / "top.mlir").write_text(TOP)
    # Many zeros of both signs.
    data = np.round(np.random.default_rng(0).normal(size=(20, 7)).astype(np.float32) / 2)
    verify = tfconvert.Verify(data=[{"x": data}])
    if shift:
        _shifted(shift, monkeypatch)
        with pytest.raises(ConversionError, match="differs"):
            tfconvert.convert(tmp_path / "top.mlir", verify=verify)
    else:
        report = tfconvert.convert(tmp_path / "top.mlir", verify=verify).report
        assert [note.code for note in report.notes if note.code == "decided-by-rounding"]


def _best(tf: Any) -> Any:
    """The two halves are the same numbers, summed in another order."""
    weights = np.random.default_rng(0).normal(size=(4, 64)).astype(np.float32)

    def run(x: Any) -> Any:
        one = tf.reduce_sum(x[:, None, :] * weights, -1)
        other = tf.matmul(x, weights, transpose_b=True)
        return tf.argmax(tf.concat([one, other], -1), -1)

    return run, [tf.TensorSpec([32, 64], tf.float32, "x")]


def _shifted(by: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run_file = LiteRTProcess.run_file

    def wrong(self: LiteRTProcess, *arguments: Any) -> Any:
        return [(value + by) % 8 for value in run_file(self, *arguments)]

    monkeypatch.setattr(LiteRTProcess, "run_file", wrong)


def test_ties_decided_by_rounding_are_reported(tf: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = save(tf, _best, tmp_path / "model")
    _shifted(4, monkeypatch)  # The equal number of the other half.
    report = tfconvert.convert(model, verify=True).report
    assert {note.code for note in report.notes} == {"decided-by-rounding"}


def test_wrong_indices_fail(tf: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = save(tf, _best, tmp_path / "model")
    _shifted(1, monkeypatch)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(model, verify=True)
    assert caught.value.code == "verification-failed"
    assert "numbers" in caught.value.diagnostics[0].message
