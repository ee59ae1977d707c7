"""The pass `lower-tensor-lists` on text: what each op becomes, and what can't become tensors."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.passes.lower_tensor_lists import LowerTensorLists
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.parsing import IRParser

LIST = "tensor<!tf_type.variant>"
MASKS = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
CONSTANTS = """
  %zero = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
  %one = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
  %five = "tf.Const"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>
  %shape = "tf.Const"() <{value = dense<4> : tensor<1xi32>}> : () -> tensor<1xi32>
  %rows = "tf.Const"() <{value = dense<[-1, 4]> : tensor<2xi32>}> : () -> tensor<2xi32>
  %order = "tf.Const"() <{value = dense<[2, 0]> : tensor<2xi32>}> : () -> tensor<2xi32>
  %none = "tf.Const"() <{value = dense<> : tensor<0xi64>}> : () -> tensor<0xi64>
  %lengths = "tf.Const"() <{value = dense<2> : tensor<3xi64>}> : () -> tensor<3xi64>
"""
FROM_TENSOR = f'%list = "tf.TensorListFromTensor"(%x, %shape) : (tensor<3x4xf32>, tensor<1xi32>) -> {LIST}'


def stack(value: str, count: str = "?") -> str:
    """Returns the op that stacks a list of a number of elements."""
    return (
        f'%r = "tf.TensorListStack"({value}, %shape) <{{num_elements = -1 : i64}}>'
        f" : ({LIST}, tensor<1xi32>) -> tensor<{count}x4xf32>"
    )


ONE_BY_ONE = {
    "TensorListGetItem": (
        f'%r = "tf.TensorListGetItem"(%list, %i, %shape) : ({LIST}, tensor<i32>, tensor<1xi32>) -> tensor<4xf32>',
        "tensor<4xf32>",
        'CHECK: "tf.GatherV2"(%x, %i, ',
    ),
    "TensorListGather": (
        f'%r = "tf.TensorListGather"(%list, %order, %shape) : ({LIST}, tensor<2xi32>, tensor<1xi32>)'
        " -> tensor<2x4xf32>",
        "tensor<2x4xf32>",
        'CHECK: "tf.GatherV2"(%x, %order, ',
    ),
    "TensorListLength": (
        f'%r = "tf.TensorListLength"(%list) : ({LIST}) -> tensor<i32>',
        "tensor<i32>",
        "CHECK: dense<3> : tensor<i32>",
    ),
    "TensorListElementShape": (
        f'%r = "tf.TensorListElementShape"(%list) : ({LIST}) -> tensor<1xi32>',
        "tensor<1xi32>",
        "CHECK: dense<4> : tensor<1xi32>",
    ),
    "TensorListSetItem": (
        f'%s = "tf.TensorListSetItem"(%list, %i, %y) <{{resize_if_index_out_of_bounds = false}}>'
        f" : ({LIST}, tensor<i32>, tensor<4xf32>) -> {LIST}\n" + stack("%s", "3"),
        "tensor<3x4xf32>",
        'CHECK: "tf.XlaDynamicUpdateSlice"(%x, ',
    ),
    "TensorListSetItem-growing": (
        f'%s = "tf.TensorListSetItem"(%list, %i, %y) <{{resize_if_index_out_of_bounds = true}}>'
        f" : ({LIST}, tensor<i32>, tensor<4xf32>) -> {LIST}\n" + stack("%s"),
        "tensor<?x4xf32>",
        'CHECK: "tf.ConcatV2"(%x, ',
    ),
    "TensorListPushBack": (
        f'%s = "tf.TensorListPushBack"(%list, %y) : ({LIST}, tensor<4xf32>) -> {LIST}\n' + stack("%s"),
        "tensor<?x4xf32>",
        'CHECK: "tf.ConcatV2"(%x, ',
    ),
    "TensorListPopBack": (
        f'%s, %last = "tf.TensorListPopBack"(%list, %shape) : ({LIST}, tensor<1xi32>) -> ({LIST}, tensor<4xf32>)\n'
        + stack("%s"),
        "tensor<?x4xf32>",
        'CHECK: "tf.Slice"(%x, ',
    ),
    "TensorListResize-shorter": (
        f'%s = "tf.TensorListResize"(%list, %one) : ({LIST}, tensor<i32>) -> {LIST}\n' + stack("%s"),
        "tensor<?x4xf32>",
        'CHECK: "tf.Slice"(%x, {{.*}} -> tensor<1x4xf32>',
    ),
    "TensorListResize-longer": (
        f'%s = "tf.TensorListResize"(%list, %five) : ({LIST}, tensor<i32>) -> {LIST}\n' + stack("%s"),
        "tensor<?x4xf32>",
        'CHECK: "tf.ConcatV2"(%x, {{.*}} -> tensor<5x4xf32>',
    ),
    "TensorListConcatLists": (
        f'%s = "tf.TensorListConcatLists"(%list, %list) <{{element_dtype = f32}}> : ({LIST}, {LIST}) -> {LIST}\n'
        + stack("%s"),
        "tensor<?x4xf32>",
        'CHECK: "tf.ConcatV2"(%x, %x, {{.*}} -> tensor<6x4xf32>',
    ),
    "TensorListConcatV2": (
        f'%r, %n = "tf.TensorListConcatV2"(%list, %shape, %none) : ({LIST}, tensor<1xi32>, tensor<0xi64>)'
        " -> (tensor<12xf32>, tensor<3xi64>)",
        "tensor<12xf32>",
        'CHECK: "tf.Reshape"(%x, {{.*}} -> tensor<12xf32>',
    ),
    "TensorListSplit": (
        f'%s = "tf.TensorListSplit"(%z, %rows, %lengths) : (tensor<6x4xf32>, tensor<2xi32>, tensor<3xi64>) -> {LIST}\n'
        f'%r = "tf.TensorListStack"(%s, %rows) <{{num_elements = 3 : i64}}> : ({LIST}, tensor<2xi32>)'
        " -> tensor<3x2x4xf32>",
        "tensor<3x2x4xf32>",
        'CHECK: "tf.Reshape"(%z, {{.*}} -> tensor<3x2x4xf32>',
    ),
    "TensorListScatterV2": (
        f'%s = "tf.TensorListScatterV2"(%p, %order, %shape, %five)'
        f" : (tensor<2x4xf32>, tensor<2xi32>, tensor<1xi32>, tensor<i32>) -> {LIST}\n" + stack("%s", "5"),
        "tensor<5x4xf32>",
        'CHECK: "tf.GatherV2"({{.*}} -> tensor<5x4xf32>',
    ),
    "TensorListScatterIntoExistingList": (
        f'%s = "tf.TensorListScatterIntoExistingList"(%list, %p, %order)'
        f" : ({LIST}, tensor<2x4xf32>, tensor<2xi32>) -> {LIST}\n" + stack("%s", "3"),
        "tensor<3x4xf32>",
        'CHECK: "tf.GatherV2"({{.*}} -> tensor<3x4xf32>',
    ),
}


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_each_op(filecheck: FileCheck, name: str) -> None:
    ops, result, expected = ONE_BY_ONE[name]
    filecheck(
        LowerTensorLists(),
        f"""
    // {expected}
    // CHECK-NOT: TensorList
    func.func @main(%x: tensor<3x4xf32>, %y: tensor<4xf32>, %z: tensor<6x4xf32>, %p: tensor<2x4xf32>, %n0: tensor<i32>)
        -> {result} {{
      %two = "tf.Const"() <{{value = dense<3> : tensor<i32>}}> : () -> tensor<i32>
      %i = "tf.FloorMod"(%n0, %two) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      {CONSTANTS}
      {FROM_TENSOR}
      {ops}
      func.return %r : {result}
    }}
    """,
    )


def test_a_list_goes_through_loops_and_branches_with_the_batch_of_the_input(filecheck: FileCheck) -> None:
    filecheck(
        LowerTensorLists(),
        f"""
    // CHECK: func.func @main
    // CHECK: "tf.Shape"(%x)
    // CHECK: [[LIST:%[0-9a-z_]+]] = "tf.Fill"({{{{.*}}}} -> tensor<3x?x4xf32>
    // CHECK: "tf.While"({{{{.*}}}}[[LIST]]{{{{.*}}}}tensor<3x?x4xf32>
    // CHECK: func.func private @body({{{{.*}}}}tensor<3x?x4xf32>
    // CHECK: func.func private @set({{{{.*}}}}tensor<3x?x4xf32>
    // CHECK: "tf.XlaDynamicUpdateSlice"
    func.func @main(%x: tensor<?x4xf32>) -> tensor<3x?x4xf32> {{
      {CONSTANTS}
      %three = "tf.Const"() <{{value = dense<3> : tensor<i32>}}> : () -> tensor<i32>
      %list = "tf.TensorListReserve"(%rows, %three) <{{element_dtype = f32}}> : (tensor<2xi32>, tensor<i32>) -> {LIST}
      %0:3 = "tf.While"(%zero, %list, %x) <{{cond = @cond, body = @body, is_stateless = true,
        output_shapes = [#tf_type.shape<>, #tf_type.shape<>, #tf_type.shape<?x4>], parallel_iterations = 10 : i64}}>
        : (tensor<i32>, {LIST}, tensor<?x4xf32>) -> (tensor<i32>, {LIST}, tensor<?x4xf32>)
      %r = "tf.TensorListStack"(%0#1, %rows) <{{num_elements = 3 : i64}}> : ({LIST}, tensor<2xi32>) -> tensor<3x?x4xf32>
      func.return %r : tensor<3x?x4xf32>
    }}
    func.func private @cond(%i: tensor<i32>, %list: {LIST}, %x: tensor<?x4xf32>) -> tensor<i1> {{
      %0 = "tf.Const"() <{{value = dense<3> : tensor<i32>}}> : () -> tensor<i32>
      %1 = "tf.Less"(%i, %0) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      func.return %1 : tensor<i1>
    }}
    func.func private @body(%i: tensor<i32>, %list: {LIST}, %x: tensor<?x4xf32>)
        -> (tensor<i32>, {LIST}, tensor<?x4xf32>) {{
      {CONSTANTS}
      %next = "tf.AddV2"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %p = "tf.Less"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %y = "tf.Tanh"(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
      %s = "tf.If"(%p, %list, %i, %y) <{{then_branch = @set, else_branch = @keep, is_stateless = true}}>
        : (tensor<i1>, {LIST}, tensor<i32>, tensor<?x4xf32>) -> {LIST}
      func.return %next, %s, %y : tensor<i32>, {LIST}, tensor<?x4xf32>
    }}
    func.func private @set(%list: {LIST}, %i: tensor<i32>, %x: tensor<?x4xf32>) -> {LIST} {{
      %0 = "tf.TensorListSetItem"(%list, %i, %x) <{{resize_if_index_out_of_bounds = false}}>
        : ({LIST}, tensor<i32>, tensor<?x4xf32>) -> {LIST}
      func.return %0 : {LIST}
    }}
    func.func private @keep(%list: {LIST}, %i: tensor<i32>, %x: tensor<?x4xf32>) -> {LIST} {{
      func.return %list : {LIST}
    }}
    """,
    )


@pytest.mark.parametrize(("limit", "is_whole"), [("%n", True), ("%m", False)])
def test_rows_that_are_all_of_an_open_length(limit: str, is_whole: bool, filecheck: FileCheck) -> None:
    """The way in which TensorFlow 1 converts a tensor to a list, and a list to a tensor."""
    vector = "(tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32>"
    pick = ", ".join(f"{mask}_mask = {int(mask == 'shrink_axis')} : i64" for mask in MASKS)
    kept = "// CHECK-NOT: tf.GatherV2\n// CHECK: return %x"
    checks = kept if is_whole else "// CHECK: tf.ConcatV2\n// CHECK: tf.GatherV2"
    filecheck(
        LowerTensorLists(),
        f"""
    {checks}
    func.func @main(%x: tensor<?xf32>, %m: tensor<i32>) -> tensor<?xf32> {{
      %zero = "tf.Const"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
      %one = "tf.Const"() <{{value = dense<1> : tensor<i32>}}> : () -> tensor<i32>
      %first = "tf.Const"() <{{value = dense<0> : tensor<1xi32>}}> : () -> tensor<1xi32>
      %second = "tf.Const"() <{{value = dense<1> : tensor<1xi32>}}> : () -> tensor<1xi32>
      %scalar = "tf.Const"() <{{value = dense<> : tensor<0xi32>}}> : () -> tensor<0xi32>
      %shape = "tf.Shape"(%x) : (tensor<?xf32>) -> tensor<1xi32>
      %n = "tf.StridedSlice"(%shape, %first, %second, %second) <{{{pick}}}> : {vector}
      %rows = "tf.Range"(%zero, {limit}, %one) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<?xi32>
      %0 = "tf.TensorListReserve"(%scalar, %n) <{{element_dtype = f32}}> : (tensor<0xi32>, tensor<i32>) -> {LIST}
      %1 = "tf.TensorListScatterIntoExistingList"(%0, %x, %rows) : ({LIST}, tensor<?xf32>, tensor<?xi32>) -> {LIST}
      %r = "tf.TensorListGather"(%1, %rows, %scalar) : ({LIST}, tensor<?xi32>, tensor<0xi32>) -> tensor<?xf32>
      func.return %r : tensor<?xf32>
    }}
    """,
    )


def test_the_type_of_a_list_tells_of_its_elements(filecheck: FileCheck) -> None:
    kind = "tensor<!tf_type.variant<tensor<?x4xi32>>>"
    filecheck(
        LowerTensorLists(),
        f"""
    // CHECK: "tf.Fill"({{{{.*}}}} -> tensor<5x?x4xi32>
    func.func @main(%x: tensor<?x4xi32>, %any: tensor<2xi32>) -> tensor<5x?x4xi32> {{
      {CONSTANTS}
      %list = "tf.TensorListReserve"(%any, %five) : (tensor<2xi32>, tensor<i32>) -> {kind}
      %0 = "tf.TensorListSetItem"(%list, %one, %x) <{{resize_if_index_out_of_bounds = false}}>
        : ({kind}, tensor<i32>, tensor<?x4xi32>) -> {kind}
      %r = "tf.TensorListStack"(%0, %rows) <{{num_elements = 5 : i64}}> : ({kind}, tensor<2xi32>) -> tensor<5x?x4xi32>
      func.return %r : tensor<5x?x4xi32>
    }}
    """,
    )


def test_what_has_no_lists_is_left_alone(filecheck: FileCheck) -> None:
    filecheck(
        LowerTensorLists(),
        """
    // CHECK: "tf.Reshape"({{.*}} -> tensor<*xf32>
    func.func @main(%x: tensor<2xf32>, %shape: tensor<1xi32>) -> tensor<*xf32> {
      %0 = "tf.Reshape"(%x, %shape) : (tensor<2xf32>, tensor<1xi32>) -> tensor<*xf32>
      func.return %0 : tensor<*xf32>
    }
    """,
    )


REFUSED = {
    "list-escapes": f'%r = "tf.Pack"(%list) <{{axis = 0 : i64}}> : ({LIST}) -> tensor<1x!tf_type.variant>',
    "list-escapes: a list of tensors is a result": "",
    "nested-list": f'%o = "tf.EmptyTensorList"(%none32, %one) <{{element_dtype = !tf_type.variant}}>'
    f' : (tensor<0xi32>, tensor<i32>) -> {LIST}\n%s = "tf.TensorListPushBack"(%o, %list) : ({LIST}, {LIST}) -> {LIST}',
    "list-elements-differ": f'%s = "tf.TensorListSetItem"(%list, %one, %x) <{{resize_if_index_out_of_bounds = false}}>'
    f" : ({LIST}, tensor<i32>, tensor<3x4xf32>) -> {LIST}",
    "list-elements-differ: a tensor is split": '%s = "tf.TensorListSplit"(%x, %rows, %n)'
    f" : (tensor<3x4xf32>, tensor<2xi32>, tensor<2xi64>) -> {LIST}",
    "list-rank": f'%s = "tf.EmptyTensorList"(%minus, %one) <{{element_dtype = f32}}> : (tensor<i32>, tensor<i32>)'
    f' -> {LIST}\n%l = "tf.TensorListLength"(%s) : ({LIST}) -> tensor<i32>',
    "list-scatter": '%s = "tf.TensorListScatter"(%x, %j, %shape)'
    f" : (tensor<3x4xf32>, tensor<3xi32>, tensor<1xi32>) -> {LIST}",
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_lists_become_no_tensors(code: str) -> None:
    returned, kind = ("%list", LIST) if not REFUSED[code] else ("%x", "tensor<3x4xf32>")
    text = f"""
    func.func @main(%x: tensor<3x4xf32>, %n: tensor<2xi64>, %j: tensor<3xi32>) -> {kind} {{
      {CONSTANTS}
      %minus = "tf.Const"() <{{value = dense<-1> : tensor<i32>}}> : () -> tensor<i32>
      %none32 = "tf.Const"() <{{value = dense<> : tensor<0xi32>}}> : () -> tensor<0xi32>
      {FROM_TENSOR}
      {REFUSED[code]}
      func.return {returned} : {kind}
    }}
    """
    module = IRParser(text).parse_module()
    with pytest.raises(ConversionError) as caught:
        LowerTensorLists().apply(module)
    assert caught.value.code == code.partition(":")[0]
    assert code.partition(": ")[2] in caught.value.diagnostics[0].message
