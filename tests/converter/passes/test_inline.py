"""The pass `inline`."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.passes.inline import Inline
from tfconvert.schema.diagnostics import ConversionError


def test_bodies_take_the_place_of_calls(filecheck: FileCheck) -> None:
    filecheck(
        Inline(),
        """
    // CHECK: func.func @main(%x: tensor<2xf32>)
    // CHECK-NEXT: [[A:%[0-9a-z_]+]] = "tf.Relu"(%x)
    // CHECK-NEXT: [[B:%[0-9a-z_]+]] = "tf.Relu"([[A]])
    // CHECK-NEXT: [[C:%[0-9a-z_]+]] = "tf.Neg"([[B]])
    // CHECK-NEXT: func.return [[C]]
    // CHECK-NOT: func.func
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.PartitionedCall"(%x) <{f = @relu}> : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.StatefulPartitionedCall"(%0)
        <{config = "", config_proto = "", executor_type = "", f = @outer}> : (tensor<2xf32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }
    func.func private @outer(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.PartitionedCall"(%x) <{f = @relu}> : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.Neg"(%0) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }
    func.func private @relu(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    """,
    )


def test_functions_that_ops_name_stay(filecheck: FileCheck) -> None:
    filecheck(
        Inline(),
        """
    // CHECK: "tf.If"
    // CHECK: func.func private @then
    // CHECK-NOT: func.func private @unused
    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.If"(%p, %x) <{then_branch = @then, else_branch = @then, is_stateless = true}>
        : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @then(%x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }
    func.func private @unused(%x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }
    """,
    )


CALL = '"tf.PartitionedCall"({operands}) <{{f = @{callee}}}> : ({types}) -> tensor<2xf32>'


@pytest.mark.parametrize(
    ("callee", "operands", "types", "code"),
    [
        ("f", "%x", "tensor<2xf32>", "recursive-function"),
        ("g", "%x", "tensor<2xf32>", "missing-function"),
        ("h", "%x, %x", "tensor<2xf32>, tensor<2xf32>", "bad-call"),
    ],
)
def test_bad_calls_are_errors(filecheck: FileCheck, callee: str, operands: str, types: str, code: str) -> None:
    call = CALL.format(callee=callee, operands=operands, types=types)
    text = f"""
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {{
      %0 = {call}
      func.return %0 : tensor<2xf32>
    }}
    func.func private @h(%x: tensor<2xf32>) -> tensor<2xf32> {{
      func.return %x : tensor<2xf32>
    }}
    """
    with pytest.raises(ConversionError) as caught:
        filecheck(Inline(), text)
    assert caught.value.code == code


def test_calls_in_regions_are_inlined(filecheck: FileCheck) -> None:
    filecheck(
        Inline(),
        """
    // CHECK: "tf.IfRegion"(%p)
    // CHECK: [[A:%[0-9a-z_]+]] = "tf.Relu"(%x)
    // CHECK-NEXT: "tf.Yield"([[A]])
    // CHECK: [[B:%[0-9a-z_]+]] = "tf.Neg"(%x)
    // CHECK-NEXT: [[C:%[0-9a-z_]+]] = "tf.Relu"([[B]])
    // CHECK-NEXT: "tf.Yield"([[C]])
    // CHECK-NOT: call
    // CHECK-NOT: func.func
    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.IfRegion"(%p) <{is_stateless = true}> ({
        %1 = func.call @relu(%x) : (tensor<2xf32>) -> tensor<2xf32>
        "tf.Yield"(%1) : (tensor<2xf32>) -> ()
      }, {
        %2 = "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
        %3 = func.call @relu(%2) : (tensor<2xf32>) -> tensor<2xf32>
        "tf.Yield"(%3) : (tensor<2xf32>) -> ()
      }) : (tensor<i1>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @relu(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    """,
    )


def test_what_caller_and_callee_know_of_a_shape_is_kept(filecheck: FileCheck) -> None:
    filecheck(
        Inline(),
        """
    // CHECK: func.func @main(%x: tensor<2x?xf32>) -> (tensor<?x3xf32>, tensor<2x?xf32>)
    // CHECK-NEXT: "tf.Relu"(%x) : (tensor<2x?xf32>) -> tensor<?x3xf32>
    func.func @main(%x: tensor<2x?xf32>) -> (tensor<?x3xf32>, tensor<*xf32>) {
      %0:2 = "tf.PartitionedCall"(%x) <{f = @relu}> : (tensor<2x?xf32>) -> (tensor<?x3xf32>, tensor<*xf32>)
      func.return %0#0, %0#1 : tensor<?x3xf32>, tensor<*xf32>
    }
    func.func private @relu(%x: tensor<*xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
      %0 = "tf.Relu"(%x) : (tensor<*xf32>) -> tensor<*xf32>
      func.return %0, %x : tensor<*xf32>, tensor<*xf32>
    }
    """,
    )


def test_what_initializes_the_model_stays(filecheck: FileCheck) -> None:
    filecheck(
        Inline(),
        """
    // TensorFlow refuses: initializers are exported there
    // CHECK: session_initializer
    // CHECK: func.func private @init
    "tf_saved_model.session_initializer"() <{initializers = [@init]}> : () -> ()
    func.func private @init() {
      func.return
    }
    """,
    )


@pytest.mark.parametrize(
    ("callee", "reason"),
    [
        ("func.func private @f(tensor<2xf32>) -> tensor<2xf32>", "has no body"),
        (
            "func.func private @f(%y: tensor<2xi32>) -> tensor<2xi32> { func.return %y : tensor<2xi32> }",
            "takes tensor<2xi32> as number 0",
        ),
        ("func.func private @f(%y: tensor<2xf32>) { func.return }", "returns 0 values"),
        (
            "func.func private @f(%y: tensor<2xf32>) -> tensor<2xf32> {\n"
            "  func.return %y : tensor<2xf32>\n^bb1:\n  func.return %y : tensor<2xf32>\n}",
            "has branches",
        ),
    ],
)
def test_functions_that_do_not_fit_their_call(filecheck: FileCheck, callee: str, reason: str) -> None:
    text = f"""
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
      {CALL.format(callee="f", operands="%x", types="tensor<2xf32>").replace('"tf', '%0 = "tf', 1)}
      func.return %0 : tensor<2xf32>
    }}
    {callee}
    """
    with pytest.raises(ConversionError, match=reason) as caught:
        filecheck(Inline(), text)
    assert caught.value.code == "bad-call"


def test_a_module_without_functions_stays(filecheck: FileCheck) -> None:
    filecheck(Inline(), "module {}\n// CHECK: builtin.module")


def test_calls_in_loops_are_inlined_and_loops_stay(filecheck: FileCheck) -> None:
    filecheck(
        Inline(),
        """
    // CHECK: "tf.While"(%x)
    // CHECK: func.func private @cond
    // CHECK: func.func private @body
    // CHECK-NEXT: "tf.Exp"
    // CHECK-NOT: func.func private
    func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %0 = "tf.While"(%x) <{cond = @cond, body = @body, is_stateless = true, parallel_iterations = 10 : i64}>
          : (tensor<f32>) -> tensor<f32>
      func.return %0 : tensor<f32>
    }
    func.func private @cond(%x: tensor<f32>) -> tensor<i1> {
      %0 = "tf.Const"() <{value = dense<9.0> : tensor<f32>}> : () -> tensor<f32>
      %1 = "tf.Less"(%x, %0) : (tensor<f32>, tensor<f32>) -> tensor<i1>
      func.return %1 : tensor<i1>
    }
    func.func private @body(%x: tensor<f32>) -> tensor<f32> {
      %0 = "tf.PartitionedCall"(%x) <{f = @exp}> : (tensor<f32>) -> tensor<f32>
      func.return %0 : tensor<f32>
    }
    func.func private @exp(%x: tensor<f32>) -> tensor<f32> {
      %0 = "tf.Exp"(%x) : (tensor<f32>) -> tensor<f32>
      func.return %0 : tensor<f32>
    }
    """,
    )
