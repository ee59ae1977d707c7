"""The pass `initialize-state`."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.targets.litert.passes.initialize_state import InitializeState
from tfconvert.schema.diagnostics import ConversionError

HANDLE = "tensor<!tf_type.resource<tensor<f32>>>"
VARIABLE = f'%v = "tf.VarHandleOp"() <{{container = "", shared_name = "v"}}> : () -> {HANDLE}'
ASSIGN = f'"tf.AssignVariableOp"(%v, %x) : ({HANDLE}, tensor<f32>) -> ()'
VALUE = """"tf_saved_model.global_tensor"() <{
  is_mutable, sym_name = "v", type = tensor<f32>, value = dense<2.0> : tensor<f32>
}> : () -> ()"""


def test_only_functions_that_reach_the_state_initialize_it(filecheck: FileCheck) -> None:
    filecheck(
        InitializeState(),
        f"""
    // CHECK: func.func @calls
    // CHECK-NEXT: "tfl.call_once"() <{{{{.*}}}}@initialize_variables
    // CHECK-NEXT: "tf.While"
    // CHECK: func.func private @body
    // CHECK-NOT: call_once
    // CHECK: func.func private @initialize_variables
    // CHECK: dense<2.000000e+00>
    // CHECK-NEXT: "tf.AssignVariableOp"
    {VALUE}
    func.func @calls(%x: tensor<f32>) -> tensor<f32> {{
      %0 = "tf.While"(%x) <{{cond = @cond, body = @body, is_stateless = false}}> : (tensor<f32>) -> tensor<f32>
      func.return %0 : tensor<f32>
    }}
    func.func @stateless(%x: tensor<f32>) -> tensor<f32> {{
      func.return %x : tensor<f32>
    }}
    func.func private @cond(%x: tensor<f32>) -> tensor<i1> {{
      %0 = "tf.Less"(%x, %x) : (tensor<f32>, tensor<f32>) -> tensor<i1>
      func.return %0 : tensor<i1>
    }}
    func.func private @body(%x: tensor<f32>) -> tensor<f32> {{
      {VARIABLE}
      {ASSIGN}
      func.return %x : tensor<f32>
    }}
    """,
    )


OPEN = VALUE.replace(
    "type = tensor<f32>, value = dense<2.0> : tensor<f32>", "type = tensor<?xf32>, value = dense<2.0> : tensor<3xf32>"
)
EMPTY = OPEN.replace("tensor<3xf32>", "tensor<0xf32>").replace("dense<2.0>", "dense<[]>")
STRING = VALUE.replace(
    "type = tensor<f32>, value = dense<2.0> : tensor<f32>",
    'type = tensor<!tf_type.string>, value = dense<"a"> : tensor<!tf_type.string>',
)


@pytest.mark.parametrize(
    ("value", "code"),
    [("", "unknown-variable"), (OPEN, "variable-shape"), (EMPTY, "variable-shape"), (STRING, "variable-type")],
)
def test_a_variable_that_the_runtime_cannot_hold_is_told(filecheck: FileCheck, value: str, code: str) -> None:
    with pytest.raises(ConversionError) as caught:
        filecheck(InitializeState(), f"{value} func.func @main(%x: tensor<f32>) {{ {VARIABLE} {ASSIGN} func.return }}")
    assert caught.value.code == code


def test_a_variable_of_open_shape_may_stay_if_every_value_has_its_first_shape(filecheck: FileCheck) -> None:
    assign = ASSIGN.replace("tensor<f32>)", "tensor<3xf32>)")
    filecheck(
        InitializeState(),
        f"""
    // CHECK: func.func @main
    // CHECK-NEXT: "tfl.call_once"
    {OPEN}
    func.func @main(%x: tensor<3xf32>) {{
      {VARIABLE}
      {assign}
      func.return
    }}
    """,
    )


def test_constants_fill_a_table_once(filecheck: FileCheck) -> None:
    table = """%t = "tf.HashTableV2"() <{container = "", shared_name = "t", use_node_name_sharing = false,
      key_dtype = i64, value_dtype = !tf_type.string}> : () -> tensor<!tf_type.resource>"""
    fill = (
        '"tf.LookupTableImportV2"(%t, %{}, %s) : (tensor<!tf_type.resource>, tensor<1xi64>, tensor<1x!tf_type.string>)'
    )
    filecheck(
        InitializeState(),
        f"""
    // CHECK: func.func @main
    // CHECK-NEXT: "tfl.call_once"() <{{{{.*}}}}@initialize_tables
    // CHECK-COUNT-1: "tf.LookupTableImportV2"
    // CHECK: func.func private @initialize_tables
    // CHECK: dense<7> : tensor<1xi64>
    // CHECK: "tf.LookupTableImportV2"
    func.func @main(%k: tensor<1xi64>) {{
      {table}
      %c = "tf.Const"() <{{value = dense<7> : tensor<1xi64>}}> : () -> tensor<1xi64>
      %s = "tf.Const"() <{{value = dense<["a"]> : tensor<1x!tf_type.string>}}> : () -> tensor<1x!tf_type.string>
      {fill.format("c")} -> ()
      {fill.format("k")} -> ()
      func.return
    }}
    """,
    )
