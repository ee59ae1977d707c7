"""Files whose operators contradict each other in shapes, types or options are refused, as LiteRT refuses them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfconvert
from tests.support.run_text import parse
from tfconvert.exporters.tflite.model import export
from tfconvert.schema.diagnostics import ConversionError

ADDITION = """
func.func @main(%x: tensor<2x3xf32>, %y: {other}) -> {result} {{
  %0 = "tfl.add"(%x, %y) <{{fused_activation_function = "NONE"}}> : (tensor<2x3xf32>, {other}) -> {result}
  func.return %0 : {result}
}}
"""
PARTS = """
func.func @main(%x: tensor<2x3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {{
  %0:2 = "tfl.unpack"(%x) <{{num = {count} : i32, axis = {axis} : i32}}>
      : (tensor<2x3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  func.return %0#0, %0#1 : tensor<3xf32>, tensor<3xf32>
}}
"""

DENSE = """
func.func @main(%x: tensor<2x3xf64>, %w: tensor<4x3xf64>) -> tensor<2x4xf64> {
  %n = "tfl.no_value"() <{value}> : () -> none
  %0 = "tfl.fully_connected"(%x, %w, %n) <{fused_activation_function = "NONE", keep_num_dims = false,
      weights_format = "DEFAULT", asymmetric_quantize_inputs = false}>
      : (tensor<2x3xf64>, tensor<4x3xf64>, none) -> tensor<2x4xf64>
  func.return %0 : tensor<2x4xf64>
}
"""


def _saved(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "model.tflite"
    path.write_bytes(export(parse(text, with_relations=False)).to_bytes())
    return path


@pytest.mark.parametrize(
    "text",
    [
        ADDITION.format(other="tensor<2x3xi32>", result="tensor<2x3xf32>"),
        ADDITION.format(other="tensor<2x4xf32>", result="tensor<2x3xf32>"),
        ADDITION.format(other="tensor<2x3xf32>", result="tensor<6xf32>"),
        PARTS.format(count=3, axis=0),
        PARTS.format(count=2, axis=5),
        PARTS.format(count=2, axis=1),
        DENSE,
    ],
)
def test_contradictions_are_refused(tmp_path: Path, text: str) -> None:
    path = _saved(tmp_path, text)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(path)
    assert caught.value.code == "malformed-tflite"


def test_element_types_that_only_the_runtime_knows_are_no_contradiction(tmp_path: Path) -> None:
    text = """
    func.func @main(%x: tensor<2x3xf64>) -> tensor<3x2xf64> {
      %p = "tfl.pseudo_const"() <{value = dense<[1, 0]> : tensor<2xi32>}> : () -> tensor<2xi32>
      %0 = "tfl.transpose"(%x, %p) : (tensor<2x3xf64>, tensor<2xi32>) -> tensor<3x2xf64>
      func.return %0 : tensor<3x2xf64>
    }
    """
    assert tfconvert.convert(_saved(tmp_path, text)).report.operators == {"TRANSPOSE": 1}
