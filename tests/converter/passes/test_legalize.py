"""The pass `legalize`."""

from __future__ import annotations

import pytest
from flatbuffers import flexbuffers

from converter.passes.legalize import Legalize
from schema.diagnostics import ConversionError
from schema.dialects import tfl
from tests.converter.passes.conftest import FileCheck


def test_ops_and_constants(filecheck: FileCheck) -> None:
    filecheck(Legalize(), """
    // CHECK: [[AXES:%[0-9a-z_]+]] = "tfl.pseudo_const"() <{value = dense<[0, 1]> : tensor<2xi32>}>
    // CHECK: [[X:%[0-9a-z_]+]] = "tfl.relu"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    // CHECK: "tfl.sum"([[X]], [[AXES]]) <{keep_dims = false}>
    func.func @main(%x: tensor<2x3xf32>) -> tensor<f32> {
      %0 = "tf.Const"() <{value = dense<[0, 1]> : tensor<2xi32>}> : () -> tensor<2xi32>
      %1 = "tf.Relu"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      %2 = "tf.Sum"(%1, %0) <{keep_dims = false}> : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<f32>
      func.return %2 : tensor<f32>
    }
    """)  # fmt: skip


def test_wide_axes_are_narrowed(filecheck: FileCheck) -> None:
    filecheck(Legalize(), """
    // CHECK: "tfl.pseudo_const"() <{value = dense<1> : tensor<1xi32>}>
    // CHECK-NEXT: "tfl.reduce_max"
    func.func @main(%x: tensor<2x3xf32>) -> tensor<2xf32> {
      %0 = "tf.Const"() <{value = dense<1> : tensor<1xi64>}> : () -> tensor<1xi64>
      %1 = "tf.Max"(%x, %0) : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }
    """)  # fmt: skip


def test_transposes_that_undo_each_other_go(filecheck: FileCheck) -> None:
    filecheck(Legalize(), """
    // CHECK: func.func @main(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
    // CHECK-NEXT: func.return %x
    func.func @main(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
      %0 = "tf.Const"() <{value = dense<[1, 2, 0]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %1 = "tf.Const"() <{value = dense<[2, 0, 1]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %2 = "tf.Transpose"(%x, %0) : (tensor<2x3x4xf32>, tensor<3xi32>) -> tensor<3x4x2xf32>
      %3 = "tf.Transpose"(%2, %1) : (tensor<3x4x2xf32>, tensor<3xi32>) -> tensor<2x3x4xf32>
      func.return %3 : tensor<2x3x4xf32>
    }
    """)  # fmt: skip


_UNSUPPORTED = """
    // CHECK: "tfl.custom"(%x) <{custom_code = "Frobnicate", custom_option = {{.*}}
    func.func @main(%x: tensor<2xf32>, %y: tensor<2xf64>) -> (tensor<2xf32>, tensor<2xf64>) {
      %0 = "tf.Frobnicate"(%x) <{rate = 2.5 : f32, T = i64, sizes = [1, 2]}> : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.Frobnicate"(%0) : (tensor<2xf32>) -> tensor<2xf32>
      %2 = "tf.Exp"(%y) : (tensor<2xf64>) -> tensor<2xf64>
      "tf.NoOp"() : () -> ()
      func.return %1, %2 : tensor<2xf32>, tensor<2xf64>
    }
    """


def test_all_unsupported_ops_are_told_at_once(filecheck: FileCheck) -> None:
    with pytest.raises(ConversionError) as caught:
        filecheck(Legalize(), _UNSUPPORTED)
    first, second = caught.value.diagnostics
    assert (first.code, first.op) == ("unsupported-op", "tf.Frobnicate")
    assert "2 times" in first.message
    assert second.op == "tf.Exp"
    assert "tfl.exp takes f32, not f64" in second.message


def test_unsupported_ops_can_become_custom_ops(filecheck: FileCheck) -> None:
    module = filecheck(Legalize(allow_custom_ops=True), _UNSUPPORTED)
    custom = next(op for op in module.walk() if op.name == "tfl.custom")
    option = custom.properties["custom_option"]
    assert isinstance(option, tfl.ConstBytesAttr)
    assert flexbuffers.Loads(option.data) == {"T": 9, "rate": 2.5, "sizes": [1, 2]}
