"""The pass `sink-handles`."""

from __future__ import annotations

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.passes.sink_handles import SinkHandles

HANDLE = "tensor<!tf_type.resource<tensor<f32>>>"


def _text(text: str) -> str:
    return text.replace("HANDLE", HANDLE)


def test_a_loop_in_a_branch_names_its_variable(filecheck: FileCheck) -> None:
    filecheck(
        SinkHandles(),
        _text("""
    // CHECK: func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: "tf.If"(%p, %x)
    // CHECK: func.func private @loop(%{{.*}}: tensor<f32>) -> tensor<f32>
    // CHECK-NEXT: "tf.While"(%{{[0-9a-z_]*}}) <{cond = @small, body = @add, is_stateless = false}>
    // CHECK: func.func private @small(%{{.*}}: tensor<f32>) -> tensor<i1>
    // CHECK: func.func private @add(%{{.*}}: tensor<f32>) -> tensor<f32>
    // CHECK-NEXT: [[W:%[0-9a-z_]+]] = "tf.VarHandleOp"() <{container = "", shared_name = "w"}>
    // CHECK-NEXT: "tf.ReadVariableOp"([[W]])
    func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
      %w = "tf.VarHandleOp"() <{container = "", shared_name = "w"}> : () -> HANDLE
      %0 = "tf.If"(%p, %x, %w) <{then_branch = @loop, else_branch = @same, is_stateless = false}>
          : (tensor<i1>, tensor<f32>, HANDLE) -> tensor<f32>
      func.return %0 : tensor<f32>
    }
    func.func private @loop(%x: tensor<f32>, %w: HANDLE) -> tensor<f32> {
      %0 = "tf.Identity"(%w) : (HANDLE) -> HANDLE
      %1:2 = "tf.While"(%0, %x) <{cond = @small, body = @add, is_stateless = false}>
          : (HANDLE, tensor<f32>) -> (HANDLE, tensor<f32>)
      func.return %1#1 : tensor<f32>
    }
    func.func private @same(%x: tensor<f32>, %w: HANDLE) -> tensor<f32> {
      func.return %x : tensor<f32>
    }
    func.func private @small(%w: HANDLE, %x: tensor<f32>) -> tensor<i1> {
      %0 = "tf.Const"() <{value = dense<9.0> : tensor<f32>}> : () -> tensor<f32>
      %1 = "tf.Less"(%x, %0) : (tensor<f32>, tensor<f32>) -> tensor<i1>
      func.return %1 : tensor<i1>
    }
    func.func private @add(%w: HANDLE, %x: tensor<f32>) -> (HANDLE, tensor<f32>) {
      %0 = "tf.ReadVariableOp"(%w) : (HANDLE) -> tensor<f32>
      %1 = "tf.AddV2"(%x, %0) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %2 = "tf.Identity"(%w) : (HANDLE) -> HANDLE
      func.return %2, %1 : HANDLE, tensor<f32>
    }
    """),
    )


def test_a_function_of_two_variables_and_handles_without_a_name_stay(filecheck: FileCheck) -> None:
    filecheck(
        SinkHandles(),
        _text("""
    // CHECK: "tf.If"(%p, %v)
    // CHECK-NEXT: "tf.If"(%p, %w)
    // CHECK-NEXT: "tf.If"(%p, %nameless)
    // CHECK: func.func private @zero(%{{.*}}: tensor<!tf_type.resource
    func.func @main(%p: tensor<i1>) -> tensor<f32> {
      %v = "tf.VarHandleOp"() <{container = "", shared_name = "v"}> : () -> HANDLE
      %w = "tf.VarHandleOp"() <{container = "", shared_name = "w"}> : () -> HANDLE
      %nameless = "tf.VarHandleOp"() <{container = "", shared_name = ""}> : () -> HANDLE
      %0 = "tf.If"(%p, %v) <{then_branch = @read, else_branch = @read, is_stateless = false}>
          : (tensor<i1>, HANDLE) -> tensor<f32>
      %1 = "tf.If"(%p, %w) <{then_branch = @read, else_branch = @read, is_stateless = false}>
          : (tensor<i1>, HANDLE) -> tensor<f32>
      %2 = "tf.If"(%p, %nameless) <{then_branch = @zero, else_branch = @zero, is_stateless = false}>
          : (tensor<i1>, HANDLE) -> tensor<f32>
      %3 = "tf.AddN"(%0, %1, %2) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
      func.return %3 : tensor<f32>
    }
    func.func private @read(%w: HANDLE) -> tensor<f32> {
      %0 = "tf.ReadVariableOp"(%w) : (HANDLE) -> tensor<f32>
      func.return %0 : tensor<f32>
    }
    func.func private @zero(%w: HANDLE) -> tensor<f32> {
      %0 = "tf.Const"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
      func.return %0 : tensor<f32>
    }
    """),
    )


def test_what_others_may_call_takes_what_it_took(filecheck: FileCheck) -> None:
    filecheck(
        SinkHandles(),
        _text("""
    // CHECK: "tf.If"(%p, %v)
    // CHECK: func.func @read(%{{.*}}: tensor<!tf_type.resource
    func.func @main(%p: tensor<i1>) -> tensor<f32> {
      %v = "tf.VarHandleOp"() <{container = "", shared_name = "v"}> : () -> HANDLE
      %0 = "tf.If"(%p, %v) <{then_branch = @read, else_branch = @read, is_stateless = false}>
          : (tensor<i1>, HANDLE) -> tensor<f32>
      func.return %0 : tensor<f32>
    }
    func.func @read(%w: HANDLE) -> tensor<f32> {
      %0 = "tf.ReadVariableOp"(%w) : (HANDLE) -> tensor<f32>
      func.return %0 : tensor<f32>
    }
    """),
    )
