"""The pass `mark-stateless`."""

from __future__ import annotations

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.passes.mark_stateless import MarkStateless
from tfconvert.schema.dialects.func import FuncOp


def test_what_is_inside_decides_however_deep(filecheck: FileCheck) -> None:
    module = filecheck(
        MarkStateless(),
        """
    // CHECK: func.func @main
    // CHECK-NEXT: "tf.If"(%p, %x) <{then_branch = @outer, else_branch = @same, is_stateless = true}>
    // CHECK-NEXT: "tf.If"(%p, %x) <{then_branch = @random, else_branch = @same, is_stateless = false}>
    // CHECK-NEXT: "tf.If"(%p, %x) <{then_branch = @asserts, else_branch = @same, is_stateless = false}>
    // CHECK-NEXT: func.return
    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %0 = "tf.If"(%p, %x) <{then_branch = @outer, else_branch = @same, is_stateless = false}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.If"(%p, %x) <{then_branch = @random, else_branch = @same, is_stateless = false}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      %2 = "tf.If"(%p, %x) <{then_branch = @asserts, else_branch = @same, is_stateless = false}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      %unused = "tf.If"(%p, %0) <{then_branch = @random, else_branch = @lonely, is_stateless = false}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      %unused_too = "tf.While"(%unused) <{cond = @never, body = @lonely, is_stateless = false}>
          : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0, %1 : tensor<2xf32>, tensor<2xf32>
    }
    func.func private @outer(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Const"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
      %1 = "tf.If"(%0, %x) <{then_branch = @same, else_branch = @same, is_stateless = false}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }
    func.func private @same(%x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }
    func.func private @random(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Const"() <{value = dense<2> : tensor<1xi32>}> : () -> tensor<1xi32>
      %1 = "tf.RandomUniform"(%0) : (tensor<1xi32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }
    func.func private @asserts(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Const"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
      "tf.Assert"(%0, %x) : (tensor<i1>, tensor<2xf32>) -> ()
      func.return %x : tensor<2xf32>
    }
    func.func private @lonely(%x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }
    func.func private @never(%x: tensor<2xf32>) -> tensor<i1> {
      %0 = "tf.Const"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
      func.return %0 : tensor<i1>
    }
    """,
    )
    names = {op.sym_name for op in module.ops if isinstance(op, FuncOp)}
    assert names == {"main", "outer", "same", "random", "asserts"}


def test_a_function_that_calls_itself_may_never_end(filecheck: FileCheck) -> None:
    filecheck(
        MarkStateless(),
        """
    // CHECK: "tf.If"(%p, %x) <{then_branch = @again, else_branch = @again, is_stateless = false}>
    func.func @main(%p: tensor<i1>, %x: tensor<f32>) {
      %0 = "tf.If"(%p, %x) <{then_branch = @again, else_branch = @again, is_stateless = false}>
          : (tensor<i1>, tensor<f32>) -> tensor<f32>
      func.return
    }
    func.func private @again(%x: tensor<f32>) -> tensor<f32> {
      %0 = "tf.Const"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
      %1 = "tf.If"(%0, %x) <{then_branch = @again, else_branch = @again, is_stateless = false}>
          : (tensor<i1>, tensor<f32>) -> tensor<f32>
      func.return %1 : tensor<f32>
    }
    """,
    )
