"""Predicates on a marked function and its calls."""

from __future__ import annotations

from tests.support.run_text import parse
from tfconvert.converter.composites.composite import is_zero
from tfconvert.schema.dialects.func import FuncOp

SOURCE = """
func.func @f(%x: tensor<2x3xf32>, %n: tensor<2xi32>) -> tensor<2x3xf32> {
  %zero = "tf.Const"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
  %one = "tf.Const"() <{value = dense<1.0> : tensor<f32>}> : () -> tensor<f32>
  %mixed = "tf.Const"() <{value = dense<[[0.0, 1.0]]> : tensor<1x2xf32>}> : () -> tensor<1x2xf32>
  %filled = "tf.Fill"(%n, %zero) : (tensor<2xi32>, tensor<f32>) -> tensor<?x?xf32>
  %ones = "tf.Fill"(%n, %one) : (tensor<2xi32>, tensor<f32>) -> tensor<?x?xf32>
  %like = "tf.ZerosLike"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %spread = "tf.BroadcastTo"(%filled, %n) : (tensor<?x?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %cast = "tf.Cast"(%spread) : (tensor<?x?xf32>) -> tensor<?x?xi32>
  %shaped = "tf.Reshape"(%like, %n) : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %onesLike = "tf.OnesLike"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %exp = "tf.Exp"(%like) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %argument = "tf.Identity"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %exp : tensor<2x3xf32>
}
"""


def test_zeros_are_known_by_how_they_are_made() -> None:
    (function,) = (op for op in parse(SOURCE).walk() if isinstance(op, FuncOp))
    values = [op.results[0] for op in function.body.block.ops if op.results]
    zeros = [is_zero(value, lambda argument: []) for value in values]
    assert zeros == [True, False, False, True, False, True, True, True, True, False, False, False]
    made = dict(zip((value.op.name for value in values), values, strict=True))
    passed = {"both": [made["tf.ZerosLike"], made["tf.Cast"]], "one": [made["tf.Cast"], made["tf.Exp"]]}
    assert is_zero(made["tf.Identity"], lambda argument: passed["both"])
    assert not is_zero(made["tf.Identity"], lambda argument: passed["one"])
