"""The pass `merge-loop-variables`: which variables stay equal, and which only begin so."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.passes.merge_loop_variables import MergeLoopVariables

LOOP = """
// CHECK: func.func @main
// CHECK: "tf.While"({{{{.*}}}}) {{{{.*}}}} : ({types}) ->
func.func @main(%n: tensor<i32>, %x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {{
  %0:3 = "tf.While"(%n, %x, {second})
    <{{cond = @cond, body = @body, is_stateless = true, parallel_iterations = 10 : i64}}>
    : (tensor<i32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>, tensor<2xf32>)
  func.return %0#1, %0#2 : tensor<2xf32>, tensor<2xf32>
}}
func.func private @cond(%n: tensor<i32>, %a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<i1> {{
  %0 = "tf.Const"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
  %1 = "tf.Greater"(%n, %0) : (tensor<i32>, tensor<i32>) -> tensor<i1>
  func.return %1 : tensor<i1>
}}
func.func private @body(%n: tensor<i32>, %a: tensor<2xf32>, %b: tensor<2xf32>)
    -> (tensor<i32>, tensor<2xf32>, tensor<2xf32>) {{
  %0 = "tf.Const"() <{{value = dense<1> : tensor<i32>}}> : () -> tensor<i32>
  %1 = "tf.RightShift"(%n, %0) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  {body}
}}"""
TWO, THREE = ("tensor<i32>, tensor<2xf32>" + more for more in ("", ", tensor<2xf32>"))
UNARY = '%{} = "tf.{}"(%{}) : (tensor<2xf32>) -> tensor<2xf32>'
RETURN = f"func.return %1, %2, %3 : {THREE}"


@pytest.mark.parametrize(
    ("first", "second"),
    [("a", "b"), ("b", "a"), ("a", "a")],
    ids=["each of its own", "each of the other", "one of both"],
)
def test_variables_that_stay_equal_are_one(first: str, second: str, filecheck: FileCheck) -> None:
    body = "\n".join([UNARY.format(2, "Tanh", first), UNARY.format(3, "Tanh", second), RETURN])
    filecheck(MergeLoopVariables(), LOOP.format(types=TWO, second="%x", body=body))


def test_what_begins_otherwise_stays(filecheck: FileCheck) -> None:
    body = "\n".join([UNARY.format(2, "Tanh", "a"), UNARY.format(3, "Tanh", "b"), RETURN])
    filecheck(MergeLoopVariables(), LOOP.format(types=THREE, second="%y", body=body))


def test_what_becomes_something_else_stays(filecheck: FileCheck) -> None:
    body = "\n".join([UNARY.format(2, "Tanh", "a"), UNARY.format(3, "Sigmoid", "a"), RETURN])
    filecheck(MergeLoopVariables(), LOOP.format(types=THREE, second="%x", body=body))


def test_random_numbers_are_not_equal(filecheck: FileCheck) -> None:
    draw = '%{} = "tf.RandomUniform"(%shape) <{{seed = 0 : i64, seed2 = 0 : i64}}> : (tensor<1xi32>) -> tensor<2xf32>'
    shape = '%shape = "tf.Const"() <{value = dense<2> : tensor<1xi32>}> : () -> tensor<1xi32>'
    text = LOOP.format(types=THREE, second="%x", body="\n".join([shape, draw.format(2), draw.format(3), RETURN]))
    filecheck(MergeLoopVariables(), text.replace("is_stateless = true", "is_stateless = false"))
