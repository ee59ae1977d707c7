"""The pass `cse`."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.passes.cse import CommonSubexpressions


def test_equal_ops_become_one_in_a_chain(filecheck: FileCheck) -> None:
    filecheck(
        CommonSubexpressions(),
        """
    // CHECK: [[A:%[0-9a-z_]+]] = "tf.Relu"(%x)
    // CHECK-NEXT: [[B:%[0-9a-z_]+]] = "tf.Neg"([[A]])
    // CHECK-NEXT: func.return [[B]], [[B]]
    func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %0 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %2 = "tf.Neg"(%0) : (tensor<2xf32>) -> tensor<2xf32>
      %3 = "tf.Neg"(%1) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %2, %3 : tensor<2xf32>, tensor<2xf32>
    }
    """,
    )


def test_another_attribute_type_or_operand_is_another_op(filecheck: FileCheck) -> None:
    module = filecheck(
        CommonSubexpressions(),
        """
    // CHECK-COUNT-6: "tf.
    // CHECK-NOT: "tf.
    func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xi64> {
      %0 = "tf.LeakyRelu"(%x) <{alpha = 0.1 : f32}> : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.LeakyRelu"(%x) <{alpha = 0.2 : f32}> : (tensor<2xf32>) -> tensor<2xf32>
      %2 = "tf.Sub"(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %3 = "tf.Sub"(%y, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %4 = "tf.Cast"(%x) : (tensor<2xf32>) -> tensor<2xi32>
      %5 = "tf.Cast"(%x) : (tensor<2xf32>) -> tensor<2xi64>
      func.return %5 : tensor<2xi64>
    }
    """,
    )
    assert not CommonSubexpressions().apply(module).counts


def test_sums_and_products_are_equal_in_either_order_and_extremes_are_not(filecheck: FileCheck) -> None:
    filecheck(
        CommonSubexpressions(),
        """
    // CHECK: [[A:%[0-9a-z_]+]] = "tfl.mul"(%x, %y)
    // CHECK-NEXT: [[B:%[0-9a-z_]+]] = "tfl.mul"(%x, %x)
    // CHECK-NEXT: [[C:%[0-9a-z_]+]] = "tfl.maximum"(%x, %y)
    // CHECK-NEXT: [[D:%[0-9a-z_]+]] = "tfl.maximum"(%y, %x)
    // CHECK-NEXT: func.return [[A]], [[A]], [[B]], [[C]], [[D]]
    func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>)
        -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
      %0 = "tfl.mul"(%x, %y) <{fused_activation_function = "NONE"}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %1 = "tfl.mul"(%y, %x) <{fused_activation_function = "NONE"}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %2 = "tfl.mul"(%x, %x) <{fused_activation_function = "NONE"}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %3 = "tfl.maximum"(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %4 = "tfl.maximum"(%y, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0, %1, %2, %3, %4
        : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    }
    """,
    )


def test_the_second_of_a_type_meets_the_first_of_it(filecheck: FileCheck) -> None:
    filecheck(
        CommonSubexpressions(),
        """
    // CHECK: [[A:%[0-9a-z_]+]] = "tf.Cast"(%x) : (tensor<2xf32>) -> tensor<2xi64>
    // CHECK-NEXT: func.return [[A]], [[A]]
    func.func @main(%x: tensor<2xf32>) -> (tensor<2xi64>, tensor<2xi64>) {
      %0 = "tf.Cast"(%x) : (tensor<2xf32>) -> tensor<2xi32>
      %1 = "tf.Cast"(%x) : (tensor<2xf32>) -> tensor<2xi64>
      %2 = "tf.Cast"(%x) : (tensor<2xf32>) -> tensor<2xi64>
      func.return %1, %2 : tensor<2xi64>, tensor<2xi64>
    }
    """,
    )


@pytest.mark.parametrize(
    "op",
    [
        '"tf.RandomUniform"(%n) <{seed = 1 : i64, seed2 = 2 : i64}> : (tensor<1xi32>) -> tensor<?xf32>',
        '"tf.ReadVariableOp"(%v) : (tensor<!tf_type.resource<tensor<?xf32>>>) -> tensor<?xf32>',
        '"tf.NobodyKnowsIt"(%n) : (tensor<1xi32>) -> tensor<?xf32>',
    ],
)
def test_what_is_more_than_a_function_of_its_operands_stays(filecheck: FileCheck, op: str) -> None:
    name = op.partition("(")[0]
    filecheck(
        CommonSubexpressions(),
        f"""
    // CHECK-COUNT-2: {name}
    func.func @main(%n: tensor<1xi32>, %v: tensor<!tf_type.resource<tensor<?xf32>>>)
        -> (tensor<?xf32>, tensor<?xf32>) {{
      %0 = {op}
      "tf.AssignVariableOp"(%v, %0) : (tensor<!tf_type.resource<tensor<?xf32>>>, tensor<?xf32>) -> ()
      %1 = {op}
      func.return %0, %1 : tensor<?xf32>, tensor<?xf32>
    }}
    """,
    )


def test_a_region_sees_what_stands_before_it_and_keeps_its_own(filecheck: FileCheck) -> None:
    filecheck(
        CommonSubexpressions(),
        """
    // CHECK: [[A:%[0-9a-z_]+]] = "tf.Relu"(%x)
    // CHECK-NEXT: "tf.IfRegion"
    // CHECK-NEXT: [[B:%[0-9a-z_]+]] = "tf.Neg"([[A]])
    // CHECK-NEXT: "tf.Yield"([[B]])
    // CHECK: [[C:%[0-9a-z_]+]] = "tf.Neg"([[A]])
    // CHECK-NEXT: "tf.Yield"([[C]])
    // CHECK: "tf.Neg"([[A]])
    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %0 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.IfRegion"(%p) <{is_stateless = true}> ({
        %2 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
        %3 = "tf.Neg"(%2) : (tensor<2xf32>) -> tensor<2xf32>
        "tf.Yield"(%3) : (tensor<2xf32>) -> ()
      }, {
        %4 = "tf.Neg"(%0) : (tensor<2xf32>) -> tensor<2xf32>
        "tf.Yield"(%4) : (tensor<2xf32>) -> ()
      }) : (tensor<i1>) -> tensor<2xf32>
      %5 = "tf.Neg"(%0) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %1, %5 : tensor<2xf32>, tensor<2xf32>
    }
    """,
    )
