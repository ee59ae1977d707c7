"""The pass `freeze-variables`."""

from __future__ import annotations

from converter.passes.freeze_variables import FreezeVariables
from tests.converter.passes.conftest import FileCheck

VARIABLE = """"tf_saved_model.global_tensor"() <{
      sym_name = "w", type = tensor<2xf32>, is_mutable, value = dense<1.0> : tensor<2xf32>
    }> : () -> ()"""


def test_reads_become_one_constant(filecheck: FileCheck) -> None:
    filecheck(FreezeVariables(), f"""
    // CHECK-NOT: global_tensor
    // CHECK: [[W:%[0-9a-z_]+]] = "tf.Const"() <{{{{{{?}}}}value = dense<1.000000e+00>
    // CHECK-NEXT: "tf.AddV2"([[W]], [[W]])
    {VARIABLE}
    func.func @main() -> tensor<2xf32> {{
      %0 = "tf.VarHandleOp"() <{{shared_name = "w"}}> : () -> tensor<!tf_type.resource>
      %1 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource>) -> tensor<2xf32>
      %2 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource>) -> tensor<2xf32>
      %3 = "tf.AddV2"(%1, %2) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %3 : tensor<2xf32>
    }}
    """)  # fmt: skip


def test_what_another_function_writes_stays(filecheck: FileCheck) -> None:
    filecheck(FreezeVariables(), f"""
    // CHECK: global_tensor
    // CHECK: "tf.ReadVariableOp"
    {VARIABLE}
    func.func @main() -> tensor<2xf32> {{
      %0 = "tf.VarHandleOp"() <{{shared_name = "w"}}> : () -> tensor<!tf_type.resource>
      %1 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }}
    func.func @train(%x: tensor<2xf32>) {{
      %0 = "tf.VarHandleOp"() <{{shared_name = "w"}}> : () -> tensor<!tf_type.resource>
      "tf.AssignVariableOp"(%0, %x) : (tensor<!tf_type.resource>, tensor<2xf32>) -> ()
      func.return
    }}
    """)  # fmt: skip
