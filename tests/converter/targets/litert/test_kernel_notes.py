"""Notes on kernels that may compute something else than TensorFlow's: where it may happen, once for each kind of op."""

from __future__ import annotations

import pytest

from tests.support.run_text import parse
from tfconvert.converter.targets.litert.passes.fit_kernels import FitKernels
from tfconvert.schema.diagnostics import NOTE

DIVISION = """
func.func @main(%x: tensor<2x3xf32>, %y: tensor<3xf32>) -> tensor<2x3xf32> {{
  %c = "tfl.pseudo_const"() <{{value = dense<{divisor}> : tensor<3xf32>}}> : () -> tensor<3xf32>
  %0 = "tfl.floor_div"(%x, {by}) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %1 = "tfl.floor_div"(%0, {by}) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}}
"""
POOL = """
func.func @main(%x: tensor<{image}xf32>) -> tensor<{pooled}xf32> {{
  %0 = "tfl.max_pool_2d"(%x) <{{padding = "{padding}", stride_h = {stride} : i32, stride_w = {stride} : i32,
      filter_height = 3 : i32, filter_width = 3 : i32, fused_activation_function = "NONE"}}>
      : (tensor<{image}xf32>) -> tensor<{pooled}xf32>
  func.return %0 : tensor<{pooled}xf32>
}}
"""
POWER = """
func.func @main(%x: tensor<2x{type}>) -> tensor<2x{type}> {{
  %0 = "tfl.pow"(%x, %x) : (tensor<2x{type}>, tensor<2x{type}>) -> tensor<2x{type}>
  func.return %0 : tensor<2x{type}>
}}
"""
CHOICE = """
func.func @main(%c: tensor<{shape}xi1>, %x: tensor<{shape}xf32>) -> tensor<{shape}xf32> {{
  %y = "tfl.pseudo_const"() <{{value = dense<{number}> : tensor<f32>}}> : () -> tensor<f32>
  %0 = "tfl.select_v2"(%c, %x, %y) : (tensor<{shape}xi1>, tensor<{shape}xf32>, tensor<f32>) -> tensor<{shape}xf32>
  func.return %0 : tensor<{shape}xf32>
}}
"""
PLACES = """
func.func @main(%x: tensor<3xi1>) -> tensor<?x1xi64> {
  %0 = "tfl.where"(%x) : (tensor<3xi1>) -> tensor<?x1xi64>
  func.return %0 : tensor<?x1xi64>
}
"""


def _noted(text: str) -> list[str]:
    notes = FitKernels().apply(parse(text, with_relations=False)).notes
    assert all((note.code, note.severity) == ("runtime-difference", NOTE) for note in notes)
    return [note.op for note in notes]


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        (DIVISION.format(by="%y", divisor="1.0"), ["tfl.floor_div"]),
        (DIVISION.format(by="%c", divisor="[1.0, 0.0, 2.0]"), ["tfl.floor_div"]),
        (DIVISION.format(by="%c", divisor="[1.0, 3.0, 2.0]"), []),
        (POOL.format(image="?x?x8x2", pooled="?x?x6x2", padding="VALID", stride=1), ["tfl.max_pool_2d"]),
        (POOL.format(image="?x?x8x2", pooled="?x?x2x2", padding="VALID", stride=3), ["tfl.max_pool_2d"]),
        (
            POOL.format(image="?x8x?x2", pooled="?x6x?x2", padding="VALID", stride=1).replace("max_", "average_"),
            ["tfl.average_pool_2d"],
        ),
        (POOL.format(image="?x?x8x2", pooled="?x?x8x2", padding="SAME", stride=1), []),
        (POOL.format(image="?x8x8x2", pooled="?x6x6x2", padding="VALID", stride=1), []),
        (POWER.format(type="i32"), ["tfl.pow"]),
        (POWER.format(type="f32"), []),
        (CHOICE.format(shape="2", number="1.0"), []),
        (CHOICE.format(shape="2", number="0xFF800000"), ["tfl.pseudo_const"]),
        (CHOICE.format(shape="*", number="1.0"), ["tfl.select_v2"]),
        (PLACES, ["tfl.where"]),
    ],
)
def test_what_may_differ_is_noted(text: str, noted: list[str]) -> None:
    assert _noted(text) == noted
