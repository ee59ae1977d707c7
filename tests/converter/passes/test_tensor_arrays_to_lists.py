"""The pass `tensor-arrays-to-lists` on text."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.passes.tensor_arrays_to_lists import TensorArraysToLists
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.parsing import IRParser

HANDLE = "tensor<!tf_type.resource>"
ARRAY = (
    "element_shape = #tf_type.shape<?>, dynamic_size = {dynamic}, clear_after_read = true,"
    ' identical_element_shapes = true, tensor_array_name = "", dtype = f32'
)
NEW = f'"tf.TensorArrayV3"(%n) <{{{ARRAY}}}> : (tensor<i32>) -> ({HANDLE}, tensor<f32>)'


def test_the_flow_is_the_list_in_loops_too(filecheck: FileCheck) -> None:
    array = NEW.replace("{dynamic}", "true")
    filecheck(
        TensorArraysToLists(),
        f"""
    // CHECK: %h = "tf.Const"() {{{{.*}}}}value = dense<0> : tensor<i32>
    // CHECK: %f = "tf.TensorListReserve"({{{{.*}}}}, %n){{{{.*}}}}variant<tensor<4xf32>>
    // CHECK: "tf.While"(%zero, %f, %h, %x, %n)
    // CHECK-SAME: -> (tensor<i32>, tensor<!tf_type.variant>, tensor<i32>, tensor<4xf32>, tensor<i32>)
    // CHECK: "tf.TensorListLength"
    // CHECK: "tf.TensorListConcatV2"
    // CHECK: func.func private @body(%i: tensor<i32>, %f: tensor<!tf_type.variant>, %h: tensor<i32>,
    // CHECK: "tf.TensorListSetItem"(%f, %i, %x) {{{{.*}}}}resize_if_index_out_of_bounds = true
    func.func @main(%x: tensor<4xf32>) -> (tensor<i32>, tensor<*xf32>) {{
      %n = "tf.Const"() <{{value = dense<2> : tensor<i32>}}> : () -> tensor<i32>
      %zero = "tf.Const"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
      %h, %f = {array}
      %0:5 = "tf.While"(%zero, %f, %h, %x, %n)
        <{{cond = @cond, body = @body, is_stateless = false, parallel_iterations = 10 : i64}}>
        : (tensor<i32>, tensor<f32>, {HANDLE}, tensor<4xf32>, tensor<i32>)
        -> (tensor<i32>, tensor<f32>, {HANDLE}, tensor<4xf32>, tensor<i32>)
      %s = "tf.TensorArraySizeV3"(%h, %0#1) : ({HANDLE}, tensor<f32>) -> tensor<i32>
      %r, %l = "tf.TensorArrayConcatV3"(%h, %0#1) <{{element_shape_except0 = #tf_type.shape<*>}}>
        : ({HANDLE}, tensor<f32>) -> (tensor<*xf32>, tensor<*xi64>)
      "tf.TensorArrayCloseV3"(%h) : ({HANDLE}) -> ()
      func.return %s, %r : tensor<i32>, tensor<*xf32>
    }}
    func.func private @cond(%i: tensor<i32>, %f: tensor<f32>, %h: {HANDLE}, %x: tensor<4xf32>, %n: tensor<i32>)
        -> tensor<i1> {{
      %0 = "tf.LessEqual"(%i, %n) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      func.return %0 : tensor<i1>
    }}
    func.func private @body(%i: tensor<i32>, %f: tensor<f32>, %h: {HANDLE}, %x: tensor<4xf32>, %n: tensor<i32>)
        -> (tensor<i32>, tensor<f32>, {HANDLE}, tensor<4xf32>, tensor<i32>) {{
      %one = "tf.Const"() <{{value = dense<1> : tensor<i32>}}> : () -> tensor<i32>
      %0 = "tf.TensorArrayWriteV3"(%h, %i, %x, %f) : ({HANDLE}, tensor<i32>, tensor<4xf32>, tensor<f32>) -> tensor<f32>
      %1 = "tf.AddV2"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      func.return %1, %0, %h, %x, %n : tensor<i32>, tensor<f32>, {HANDLE}, tensor<4xf32>, tensor<i32>
    }}
    """,
    )


def test_rows_go_in_and_come_out(filecheck: FileCheck) -> None:
    array = NEW.replace("{dynamic}", "false")
    filecheck(
        TensorArraysToLists(),
        f"""
    // CHECK: "tf.TensorListScatterIntoExistingList"
    // CHECK: "tf.TensorListGather"({{{{.*}}}} -> tensor<2x4xf32>
    // CHECK: "tf.TensorListSplit"(%x,
    // CHECK: "tf.TensorListGetItem"
    func.func @main(%x: tensor<3x4xf32>) -> (tensor<*xf32>, tensor<*xf32>) {{
      %n = "tf.Const"() <{{value = dense<3> : tensor<i32>}}> : () -> tensor<i32>
      %one = "tf.Const"() <{{value = dense<1> : tensor<i32>}}> : () -> tensor<i32>
      %all = "tf.Const"() <{{value = dense<[2, 0, 1]> : tensor<3xi32>}}> : () -> tensor<3xi32>
      %two = "tf.Const"() <{{value = dense<[1, 2]> : tensor<2xi32>}}> : () -> tensor<2xi32>
      %lengths = "tf.Const"() <{{value = dense<1> : tensor<3xi64>}}> : () -> tensor<3xi64>
      %h, %f = {array}
      %0 = "tf.TensorArrayScatterV3"(%h, %all, %x, %f)
        : ({HANDLE}, tensor<3xi32>, tensor<3x4xf32>, tensor<f32>) -> tensor<f32>
      %1 = "tf.TensorArrayGatherV3"(%h, %two, %0) <{{element_shape = #tf_type.shape<*>}}>
        : ({HANDLE}, tensor<2xi32>, tensor<f32>) -> tensor<*xf32>
      %g, %e = {array.replace("shape<?>", "shape<*>")}
      %2 = "tf.TensorArraySplitV3"(%g, %x, %lengths, %e)
        : ({HANDLE}, tensor<3x4xf32>, tensor<3xi64>, tensor<f32>) -> tensor<f32>
      %3 = "tf.TensorArrayReadV3"(%g, %one, %2) : ({HANDLE}, tensor<i32>, tensor<f32>) -> tensor<*xf32>
      func.return %1, %3 : tensor<*xf32>, tensor<*xf32>
    }}
    """,
    )


@pytest.mark.parametrize(
    ("code", "op"),
    [
        (
            "tensor-array",
            f'"tf.TensorArrayGradV3"(%h, %f) <{{source = "g"}}> : ({HANDLE}, tensor<f32>) -> ({HANDLE}, tensor<f32>)',
        ),
        (
            "tensor-array",
            f'"tf.TensorArrayUnpack"(%h, %x, %f) : ({HANDLE}, tensor<3x4xf32>, tensor<f32>) -> tensor<f32>',
        ),
        (
            "list-elements-differ",
            f'"tf.TensorArrayWriteV3"(%h, %n, %x, %f)'
            f" : ({HANDLE}, tensor<i32>, tensor<3x4xf32>, tensor<f32>) -> tensor<f32>",
        ),
    ],
)
def test_what_becomes_no_list(code: str, op: str) -> None:
    results = "%a:2" if "Grad" in op else "%a"
    text = f"""
    func.func @main(%x: tensor<3x4xf32>, %n: tensor<i32>) -> tensor<i32> {{
      %h, %f = {NEW.replace("{dynamic}", "false")}
      {results} = {op}
      func.return %n : tensor<i32>
    }}
    """
    module = IRParser(text).parse_module()
    with pytest.raises(ConversionError) as caught:
        TensorArraysToLists().apply(module)
    assert caught.value.code == code
