"""The pass `share-shapes`: which shapes are the same, and which only look so."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.passes.share_shapes import ShareShapes

ROWS = "tensor<?x4xf32>"
DIMS = "tensor<2xi32>"
MASKS = """begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64, new_axis_mask = 0 : i64,
  shrink_axis_mask = 1 : i64"""


def test_shapes_of_different_inputs_stay_apart(filecheck: FileCheck) -> None:
    filecheck(
        ShareShapes(),
        f"""
        // CHECK: [[X:%.*]] = "tf.Shape"
        // CHECK: [[Y:%.*]] = "tf.Shape"
        // CHECK-NOT: tf.
        // CHECK: return [[X]], [[Y]], [[X]]
        func.func @main(%x: {ROWS}, %y: {ROWS}) -> ({DIMS}, {DIMS}, {DIMS}) {{
          %0 = "tf.Shape"(%x) : ({ROWS}) -> {DIMS}
          %1 = "tf.Shape"(%y) : ({ROWS}) -> {DIMS}
          %2 = "tf.Tanh"(%x) : ({ROWS}) -> {ROWS}
          %3 = "tf.Shape"(%2) : ({ROWS}) -> {DIMS}
          func.return %0, %1, %3 : {DIMS}, {DIMS}, {DIMS}
        }}""",
    )


@pytest.mark.parametrize(("op", "number"), [("ZerosLike", "0.000000e+00"), ("OnesLike", "1.000000e+00")])
def test_a_shape_is_packed_of_dimensions_that_are_there(op: str, number: str, filecheck: FileCheck) -> None:
    filecheck(
        ShareShapes(),
        f"""
        // CHECK: [[BATCH:%.*]] = "tf.StridedSlice"
        // CHECK-NOT: tf.Split
        // CHECK: [[SIZE:%.*]] = "tf.Const"() <{{{{.*}}}}dense<2> : tensor<i32>
        // CHECK: [[SHAPE:%.*]] = "tf.Pack"([[BATCH]], [[SIZE]])
        // CHECK: [[NUMBER:%.*]] = "tf.Const"() <{{{{.*}}}}dense<{number}> : tensor<f32>
        // CHECK: "tf.Fill"([[SHAPE]], [[NUMBER]])
        func.func @main(%x: {ROWS}) -> (tensor<i32>, tensor<?x2xf32>) {{
          %zero = "tf.Const"() <{{value = dense<0> : tensor<1xi32>}}> : () -> tensor<1xi32>
          %one = "tf.Const"() <{{value = dense<1> : tensor<1xi32>}}> : () -> tensor<1xi32>
          %axis = "tf.Const"() <{{value = dense<1> : tensor<i32>}}> : () -> tensor<i32>
          %0 = "tf.Shape"(%x) : ({ROWS}) -> {DIMS}
          %1 = "tf.StridedSlice"(%0, %zero, %one, %one) <{{{MASKS}}}>
            : ({DIMS}, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32>
          %2:2 = "tf.Split"(%axis, %x) : (tensor<i32>, {ROWS}) -> (tensor<?x2xf32>, tensor<?x2xf32>)
          %3 = "tf.{op}"(%2#1) : (tensor<?x2xf32>) -> tensor<?x2xf32>
          func.return %1, %3 : tensor<i32>, tensor<?x2xf32>
        }}""",
    )


def test_zeros_of_a_unique_shape_stay(filecheck: FileCheck) -> None:
    filecheck(
        ShareShapes(),
        f"""
        // CHECK: "tf.ZerosLike"
        func.func @main(%x: {ROWS}) -> {ROWS} {{
          %0 = "tf.ZerosLike"(%x) : ({ROWS}) -> {ROWS}
          func.return %0 : {ROWS}
        }}""",
    )


def test_what_is_equal_for_one_caller_only_stays_apart(filecheck: FileCheck) -> None:
    filecheck(
        ShareShapes(),
        f"""
        // CHECK: private @shapes
        // CHECK: [[FIRST:%.*]] = "tf.Shape"
        // CHECK: [[SECOND:%.*]] = "tf.Shape"
        // CHECK: return [[FIRST]], [[SECOND]]
        func.func @main(%p: tensor<i1>, %x: {ROWS}, %y: {ROWS}) -> ({DIMS}, {DIMS}, {DIMS}, {DIMS}) {{
          %0:2 = "tf.If"(%p, %x, %y) <{{then_branch = @shapes, else_branch = @shapes, is_stateless = true}}>
            : (tensor<i1>, {ROWS}, {ROWS}) -> ({DIMS}, {DIMS})
          %1:2 = "tf.If"(%p, %x, %x) <{{then_branch = @shapes, else_branch = @shapes, is_stateless = true}}>
            : (tensor<i1>, {ROWS}, {ROWS}) -> ({DIMS}, {DIMS})
          func.return %0#0, %0#1, %1#0, %1#1 : {DIMS}, {DIMS}, {DIMS}, {DIMS}
        }}
        func.func private @shapes(%x: {ROWS}, %y: {ROWS}) -> ({DIMS}, {DIMS}) {{
          %0 = "tf.Shape"(%x) : ({ROWS}) -> {DIMS}
          %1 = "tf.Shape"(%y) : ({ROWS}) -> {DIMS}
          func.return %0, %1 : {DIMS}, {DIMS}
        }}""",
    )


def test_a_dimension_comes_from_the_first_value_that_has_it(filecheck: FileCheck) -> None:
    filecheck(
        ShareShapes(),
        f"""
        // CHECK: func.func @main([[X:%.*]]: tensor<?x4xf32>)
        // CHECK-NOT: tf.Transpose
        // CHECK: [[SHAPE:%.*]] = "tf.Shape"([[X]])
        // CHECK: [[BATCH:%.*]] = "tf.StridedSlice"([[SHAPE]]
        // CHECK: [[DIMS:%.*]] = "tf.Pack"([[BATCH]]
        // CHECK: return [[BATCH]], [[DIMS]]
        func.func @main(%x: {ROWS}) -> (tensor<i32>, {DIMS}) {{
          %order = "tf.Const"() <{{value = dense<[1, 0]> : {DIMS}}}> : () -> {DIMS}
          %one = "tf.Const"() <{{value = dense<1> : tensor<1xi32>}}> : () -> tensor<1xi32>
          %two = "tf.Const"() <{{value = dense<2> : tensor<1xi32>}}> : () -> tensor<1xi32>
          %axis = "tf.Const"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
          %0 = "tf.Transpose"(%x, %order) : ({ROWS}, {DIMS}) -> tensor<4x?xf32>
          %1 = "tf.Shape"(%0) : (tensor<4x?xf32>) -> {DIMS}
          %2 = "tf.StridedSlice"(%1, %one, %two, %one) <{{{MASKS}}}>
            : ({DIMS}, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32>
          %3 = "tf.ExpandDims"(%2, %axis) : (tensor<i32>, tensor<i32>) -> tensor<1xi32>
          %4 = "tf.ConcatV2"(%3, %one, %axis) : (tensor<1xi32>, tensor<1xi32>, tensor<i32>) -> {DIMS}
          func.return %2, %4 : tensor<i32>, {DIMS}
        }}""",
    )


@pytest.mark.parametrize(("other", "expected"), [("%n, %m", "return [[N]]"), ("%m, %m", "tf.Minimum")])
def test_a_bound_of_what_is_bounded_by_it(other: str, expected: str, filecheck: FileCheck) -> None:
    filecheck(
        ShareShapes(),
        f"""
        // CHECK: func.func @main([[N:%.*]]: tensor<i32>,
        // CHECK: {expected}
        func.func @main(%n: tensor<i32>, %m: tensor<i32>) -> tensor<i32> {{
          %0 = "tf.Maximum"({other}) : (tensor<i32>, tensor<i32>) -> tensor<i32>
          %1 = "tf.Minimum"(%0, %n) : (tensor<i32>, tensor<i32>) -> tensor<i32>
          func.return %1 : tensor<i32>
        }}""",
    )


@pytest.mark.parametrize("is_known", [True, False])
def test_a_loop_gets_a_dimension_that_is_known_before_it(is_known: bool, filecheck: FileCheck) -> None:
    picked = (
        f'"tf.StridedSlice"(%dims, %zero, %one, %one) <{{{MASKS}}}>'
        + f"""
      : ({DIMS}, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32>"""
    )
    constants = """
      %zero = "tf.Const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
      %one = "tf.Const"() <{value = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>"""
    asks = f"""{constants}
      %dims = "tf.Shape"(%x) : ({ROWS}) -> {DIMS}
      %n = {picked}"""
    before = asks if is_known else '%n = "tf.Const"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>'
    checks = """
    // CHECK: private @cond([[I:%.*]]: tensor<i32>, [[X:%.*]]: tensor<?x4xf32>, [[N:%.*]]: tensor<i32>)
    // CHECK-NEXT: "tf.Less"([[I]], [[N]])
    // CHECK: private @body([[I:%.*]]: tensor<i32>, [[X:%.*]]: tensor<?x4xf32>, [[N:%.*]]: tensor<i32>)
    // CHECK: return {{.*}}, [[N]] :"""
    filecheck(
        ShareShapes(),
        f"""{checks if is_known else "// CHECK: private @cond({{.*}}xf32>) -> tensor<i1>"}
        func.func @main(%x: {ROWS}) -> ({ROWS}, tensor<i32>) {{
          {before}
          %i = "tf.Const"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
          %0:2 = "tf.While"(%i, %x)
            <{{cond = @cond, body = @body, is_stateless = true, parallel_iterations = 10 : i64}}>
            : (tensor<i32>, {ROWS}) -> (tensor<i32>, {ROWS})
          func.return %0#1, %n : {ROWS}, tensor<i32>
        }}
        func.func private @cond(%i: tensor<i32>, %x: {ROWS}) -> tensor<i1> {{
          {asks}
          %0 = "tf.Less"(%i, %n) : (tensor<i32>, tensor<i32>) -> tensor<i1>
          func.return %0 : tensor<i1>
        }}
        func.func private @body(%i: tensor<i32>, %x: {ROWS}) -> (tensor<i32>, {ROWS}) {{
          %0 = "tf.Const"() <{{value = dense<1> : tensor<i32>}}> : () -> tensor<i32>
          %1 = "tf.AddV2"(%i, %0) : (tensor<i32>, tensor<i32>) -> tensor<i32>
          %2 = "tf.Tanh"(%x) : ({ROWS}) -> {ROWS}
          func.return %1, %2 : tensor<i32>, {ROWS}
        }}""",
    )
