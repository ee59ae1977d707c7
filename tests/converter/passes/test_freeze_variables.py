"""The pass `freeze-variables`."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.passes.freeze_variables import FreezeVariables
from tfconvert.schema.diagnostics import ConversionError

VARIABLE = """"tf_saved_model.global_tensor"() <{
      sym_name = "w", type = tensor<2xf32>, is_mutable, value = dense<1.0> : tensor<2xf32>
    }> : () -> ()"""


def test_reads_become_one_constant(filecheck: FileCheck) -> None:
    filecheck(
        FreezeVariables(),
        f"""
    // CHECK-NOT: global_tensor
    // CHECK: [[W:%[0-9a-z_]+]] = "tf.Const"() <{{{{{{?}}}}value = dense<1.000000e+00>
    // CHECK-NEXT: "tf.AddV2"([[W]], [[W]])
    {VARIABLE}
    func.func @main() -> tensor<2xf32> {{
      %0 = "tf.VarHandleOp"() <{{shared_name = "w"}}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
      %1 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
      %2 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
      %3 = "tf.AddV2"(%1, %2) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %3 : tensor<2xf32>
    }}
    """,
    )


def test_what_another_function_writes_stays(filecheck: FileCheck) -> None:
    filecheck(
        FreezeVariables(),
        f"""
    // CHECK: global_tensor
    // CHECK: "tf.ReadVariableOp"
    {VARIABLE}
    func.func @main() -> tensor<2xf32> {{
      %0 = "tf.VarHandleOp"() <{{shared_name = "w"}}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
      %1 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }}
    func.func @train(%x: tensor<2xf32>) {{
      %0 = "tf.VarHandleOp"() <{{shared_name = "w"}}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
      "tf.AssignVariableOp"(%0, %x) : (tensor<!tf_type.resource<tensor<2xf32>>>, tensor<2xf32>) -> ()
      func.return
    }}
    """,
    )


def test_questions_about_a_frozen_variable_are_answered(filecheck: FileCheck) -> None:
    filecheck(
        FreezeVariables(),
        f"""
    // CHECK-NOT: global_tensor
    // CHECK: func.func @main() -> (tensor<i1>, tensor<1xi32>, tensor<2xf32>)
    // CHECK-DAG: dense<true> : tensor<i1>
    // CHECK-DAG: dense<2> : tensor<1xi32>
    // CHECK-DAG: dense<1.000000e+00> : tensor<2xf32>
    // CHECK-NOT: VarHandleOp
    // CHECK: func.return
    {VARIABLE}
    func.func @main() -> (tensor<i1>, tensor<1xi32>, tensor<?xf32>) {{
      %0 = "tf.VarHandleOp"() <{{shared_name = "w"}}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
      %1 = "tf.VarIsInitializedOp"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<i1>
      %2 = "tf.VariableShape"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<1xi32>
      %3 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<?xf32>
      func.return %1, %2, %3 : tensor<i1>, tensor<1xi32>, tensor<?xf32>
    }}
    """,
    )


def test_a_read_in_a_region_is_frozen_a_write_in_one_keeps_the_variable(filecheck: FileCheck) -> None:
    text = f"""
    {VARIABLE}
    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {{
      %0 = "tf.VarHandleOp"() <{{shared_name = "w"}}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
      %1 = "tf.IfRegion"(%p) <{{is_stateless = false}}> ({{
        %2 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
        "tf.Yield"(%2) : (tensor<2xf32>) -> ()
      }}, {{
        WRITE
        "tf.Yield"(%x) : (tensor<2xf32>) -> ()
      }}) : (tensor<i1>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }}
    """
    filecheck(FreezeVariables(), text.replace("WRITE", "") + "// CHECK-NOT: ReadVariableOp\n// CHECK: tf.Const")
    write = '"tf.AssignVariableOp"(%0, %x) : (tensor<!tf_type.resource<tensor<2xf32>>>, tensor<2xf32>) -> ()'
    filecheck(FreezeVariables(), text.replace("WRITE", write) + "// CHECK: global_tensor\n// CHECK: ReadVariableOp")


def test_a_variable_that_stays_is_taken_to_keep_its_first_shape(filecheck: FileCheck) -> None:
    filecheck(
        FreezeVariables(),
        """
    // CHECK: global_tensor"() <{{.*}}tensor<?xf32>
    // CHECK: shape = #tf_type.shape<2>
    "tf_saved_model.global_tensor"() <{
      sym_name = "w", type = tensor<?xf32>, is_mutable, value = dense<1.0> : tensor<2xf32>
    }> : () -> ()
    func.func @main(%x: tensor<2xf32>) {
      %0 = "tf.VarHandleOp"() <{container = "", dtype = f32, shape = #tf_type.shape<?>, shared_name = "w"}>
        : () -> tensor<!tf_type.resource<tensor<?xf32>>>
      "tf.AssignVariableOp"(%0, %x) : (tensor<!tf_type.resource<tensor<?xf32>>>, tensor<2xf32>) -> ()
      func.return
    }
    """,
    )


def test_what_arguments_are_bound_to_stays(filecheck: FileCheck) -> None:
    filecheck(
        FreezeVariables(),
        f"""
    // CHECK: global_tensor
    {VARIABLE}
    func.func @main(%v: tensor<!tf_type.resource<tensor<2xf32>>> {{tf_saved_model.bound_input = @w}}) {{
      func.return
    }}
    """,
    )


def test_a_read_of_another_type_is_an_error(filecheck: FileCheck) -> None:
    text = f"""
    {VARIABLE}
    func.func @main() -> tensor<2xi32> {{
      %0 = "tf.VarHandleOp"() <{{shared_name = "w"}}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
      %1 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xi32>
      func.return %1 : tensor<2xi32>
    }}
    """
    with pytest.raises(ConversionError) as caught:
        filecheck(FreezeVariables(), text)
    assert caught.value.code == "variable-type"


def assigning(value: str) -> str:
    """Returns a module that assigns a value, `%own`, `%other` or `%x`, to the variable `w`."""
    return f"""
    {VARIABLE}
    {VARIABLE.replace('"w"', '"u"')}
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
      %0 = "tf.VarHandleOp"() <{{shared_name = "w"}}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
      %1 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
      %2 = "tf.VarHandleOp"() <{{shared_name = "u"}}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
      %other = "tf.ReadVariableOp"(%2) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
      %3 = "tf.Identity"(%1) : (tensor<2xf32>) -> tensor<2xf32>
      %sum = "tf.AddV2"(%1, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %4, %own = "tf.IdentityN"(%x, %3) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
      "tf.AssignVariableOp"(%0, {value}) : (tensor<!tf_type.resource<tensor<2xf32>>>, tensor<2xf32>) -> ()
      func.return %sum : tensor<2xf32>
    }}
    """


def test_a_variable_that_gets_its_own_value_is_constant(filecheck: FileCheck) -> None:
    checks = "// CHECK-NOT: global_tensor\n// CHECK-NOT: AssignVariableOp\n// CHECK: tf.Const"
    filecheck(FreezeVariables(), assigning("%own") + checks)


@pytest.mark.parametrize("value", ["%other", "%sum", "%4"])
def test_a_variable_that_gets_another_value_stays(value: str, filecheck: FileCheck) -> None:
    filecheck(FreezeVariables(), assigning(value) + "// CHECK: global_tensor\n// CHECK: AssignVariableOp")
