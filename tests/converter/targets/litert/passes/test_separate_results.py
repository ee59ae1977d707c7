"""The pass `separate-results`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tfconvert
from tests.converter.pass_texts import FileCheck
from tests.support.litert import RunTFLite
from tfconvert.converter.targets.litert.passes import separate_results
from tfconvert.converter.targets.litert.passes.separate_results import SeparateResults

LOOP = """
    func.func @main(%x: KIND, %y: KIND) -> KIND {
      %0:2 = "tfl.while"(%x, %y) <{cond = @cond, body = @body}> : (KIND, KIND) -> (KIND, KIND)
      func.return %0#0 : KIND
    }
    func.func private @cond(%x: KIND, %y: KIND) -> tensor<i1> {
      %0 = "tfl.pseudo_const"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
      func.return %0 : tensor<i1>
    }
"""

BRANCHES = """
    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0:2 = "tfl.if"(%p, %x) <{then_branch = @then, else_branch = @else}>
          : (tensor<i1>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
      func.return %0#0 : tensor<2xf32>
    }
"""


def test_a_variable_that_stays_needs_no_copy(filecheck: FileCheck) -> None:
    filecheck(
        SeparateResults(),
        LOOP.replace("KIND", "tensor<2xf32>")
        + """
    // CHECK: func.func private @body
    // CHECK-NEXT: func.return %x, %x
    func.func private @body(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      func.return %x, %x : tensor<2xf32>, tensor<2xf32>
    }
    """,
    )


def test_variables_that_change_places_are_copied_whatever_their_shape(filecheck: FileCheck) -> None:
    filecheck(
        SeparateResults(),
        LOOP.replace("KIND", "tensor<2x?x?xf32>")
        + """
    // CHECK: func.func private @body
    // CHECK-NEXT: [[SIZES:%[0-9a-z_]+]] = "tfl.shape"(%y) <{out_type = "INT32"}> : (tensor<2x?x?xf32>) -> tensor<3xi32>
    // CHECK-NEXT: [[Y:%[0-9a-z_]+]] = "tfl.reshape"(%y, [[SIZES]])
    // CHECK-NEXT: "tfl.shape"(%x)
    // CHECK-NEXT: [[X:%[0-9a-z_]+]] = "tfl.reshape"(%x
    // CHECK-NEXT: func.return [[Y]], [[X]]
    func.func private @body(%x: tensor<2x?x?xf32>, %y: tensor<2x?x?xf32>) -> (tensor<2x?x?xf32>, tensor<2x?x?xf32>) {
      func.return %y, %x : tensor<2x?x?xf32>, tensor<2x?x?xf32>
    }
    """,
    )


def test_text_is_copied_even_where_it_stays(filecheck: FileCheck) -> None:
    filecheck(
        SeparateResults(),
        LOOP.replace("KIND", "tensor<?x!tf_type.string>")
        + """
    // CHECK: func.func private @body
    // CHECK-NEXT: [[SIZES:%[0-9a-z_]+]] = "tfl.pseudo_const"() <{value = dense<-1> : tensor<1xi32>}>
    // CHECK-NEXT: "tfl.reshape"(%x, [[SIZES]]) <{new_shape = [-1 : i32]}>
    // CHECK: "tfl.reshape"(%y
    func.func private @body(%x: tensor<?x!tf_type.string>, %y: tensor<?x!tf_type.string>)
        -> (tensor<?x!tf_type.string>, tensor<?x!tf_type.string>) {
      func.return %x, %y : tensor<?x!tf_type.string>, tensor<?x!tf_type.string>
    }
    """,
    )


def test_of_equal_results_of_a_branch_only_computed_ones_are_copied(filecheck: FileCheck) -> None:
    filecheck(
        SeparateResults(),
        BRANCHES
        + """
    // CHECK: func.func private @then
    // CHECK-NEXT: func.return %x, %x
    // CHECK: func.func private @else
    // CHECK: [[COPY:%[0-9a-z_]+]] = "tfl.reshape"([[FIRST:%[0-9a-z_]+]], %{{.*}})
    // CHECK-NEXT: func.return [[FIRST]], [[COPY]]
    func.func private @then(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      func.return %x, %x : tensor<2xf32>, tensor<2xf32>
    }
    func.func private @else(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %0 = "tfl.exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0, %0 : tensor<2xf32>, tensor<2xf32>
    }
    """,
    )


def test_results_that_follow_from_shapes_are_computed_at_each_run(filecheck: FileCheck) -> None:
    filecheck(
        SeparateResults(),
        BRANCHES.replace("%0#0 : tensor<2xf32>", "%0#0 : tensor<2xi32>")
        .replace("(tensor<2xf32>, tensor<2xf32>)", "(tensor<2xi32>, tensor<2xi32>)")
        .replace("-> tensor<2xf32> {", "-> tensor<2xi32> {")
        .replace("tensor<2xf32>", "tensor<?x2xf32>")
        + """
    // CHECK: func.func private @then
    // CHECK: [[TWICE:%[0-9a-z_]+]] = "tfl.mul"
    // CHECK: [[FIRST:%[0-9a-z_]+]] = "tfl.maximum"([[TWICE]],
    // CHECK: [[SECOND:%[0-9a-z_]+]] = "tfl.maximum"([[TWICE]],
    // CHECK: func.return [[FIRST]], [[SECOND]]
    // CHECK: func.func private @else
    // CHECK-NOT: tfl.maximum
    // CHECK: func.return
    func.func private @then(%x: tensor<?x2xf32>) -> (tensor<2xi32>, tensor<2xi32>) {
      %0 = "tfl.pseudo_const"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tfl.shape"(%x) <{out_type = "INT32"}> : (tensor<?x2xf32>) -> tensor<2xi32>
      %2 = "tfl.mul"(%1, %0) <{fused_activation_function = "NONE"}> : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
      func.return %2, %2 : tensor<2xi32>, tensor<2xi32>
    }
    func.func private @else(%x: tensor<?x2xf32>) -> (tensor<2xi32>, tensor<2xi32>) {
      %0 = "tfl.pseudo_const"() <{value = dense<2> : tensor<2xi32>}> : () -> tensor<2xi32>
      %1 = "tfl.pseudo_const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %2 = "tfl.reduce_max"(%x, %1) <{keep_dims = false}> : (tensor<?x2xf32>, tensor<i32>) -> tensor<2xf32>
      %3 = "tfl.cast"(%2) <{in_data_type = "FLOAT32", out_data_type = "INT32"}> : (tensor<2xf32>) -> tensor<2xi32>
      func.return %0, %3 : tensor<2xi32>, tensor<2xi32>
    }
    """,
    )


def test_shapes_come_out_of_a_branch(run_tflite: RunTFLite, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text((separate_results.__doc__ or "").rpartition("Before:")[2].partition("After:")[0])
    content = bytes(tfconvert.convert(path))
    for is_taken, rows, wanted in ((True, 3, [3, 2]), (False, 4, [1, 1]), (True, 5, [5, 2])):
        (shape,) = run_tflite(content, [np.array(is_taken), np.zeros((rows, 2), np.float32)])
        assert shape.tolist() == wanted
