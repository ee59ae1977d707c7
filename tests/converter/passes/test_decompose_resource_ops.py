"""The pass `decompose-resource-ops`: the reference executor compares the module before and after."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.passes.decompose_resource_ops import DecomposeResourceOps

HANDLE = "tensor<!tf_type.resource<tensor<4x2xf32>>>"
READ = f'%r = "tf.ReadVariableOp"(%v) : ({HANDLE}) -> tensor<4x2xf32>'
SCATTERS = ("Update", "Add", "Sub", "Min", "Max")
ROWS = "dense<[2, 0]> : tensor<2xi32>"


def text(op: str, indices: str, updates: str) -> str:
    shape = "tensor<4x2xf32>, value = dense<[[1.0, 2.0], [3.0, -4.0], [5.0, 6.0], [7.0, 8.0]]> : tensor<4x2xf32>"
    return f"""
    // CHECK-NOT: Resource
    // CHECK: "tf.AssignVariableOp"
    "tf_saved_model.global_tensor"() <{{sym_name = "v", is_mutable, type = {shape}}}> : () -> ()
    func.func @main(%u: {updates}) -> tensor<4x2xf32> {{
      %v = "tf.VarHandleOp"() <{{container = "", dtype = f32, shape = #tf_type.shape<4x2>, shared_name = "v"}}>
        : () -> {HANDLE}
      %i = "tf.Const"() <{{value = {indices}}}> : () -> {indices.partition(": ")[2]}
      {op}
      {READ}
      func.return %r : tensor<4x2xf32>
    }}
    """


@pytest.mark.parametrize("kind", [*SCATTERS, "Mul", "Div"])
def test_rows_are_scattered_into_what_was_read(filecheck: FileCheck, kind: str) -> None:
    types = f"({HANDLE}, tensor<2xi32>, tensor<2x2xf32>) -> ()"
    op = f'"tf.ResourceScatter{kind}"(%v, %i, %u) : {types}'
    filecheck(DecomposeResourceOps(), text(op, ROWS, "tensor<2x2xf32>"))


@pytest.mark.parametrize("kind", SCATTERS)
def test_items_are_scattered_into_what_was_read(filecheck: FileCheck, kind: str) -> None:
    types = f"({HANDLE}, tensor<2x2xi32>, tensor<2xf32>) -> ()"
    op = f'"tf.ResourceScatterNd{kind}"(%v, %i, %u) : {types}'
    filecheck(DecomposeResourceOps(), text(op, "dense<[[2, 0], [1, 1]]> : tensor<2x2xi32>", "tensor<2xf32>"))


def test_what_is_gathered_is_read(filecheck: FileCheck) -> None:
    types = f"({HANDLE}, tensor<1xi32>) -> tensor<1x2xf32>"
    op = f"""%g = "tf.ResourceGather"(%v, %i) <{{batch_dims = 0, validate_indices = true}}> : {types}
      %n = "tf.ResourceGatherNd"(%v, %i) : ({HANDLE}, tensor<1xi32>) -> tensor<2xf32>
      %s = "tf.AddV2"(%g, %n) : (tensor<1x2xf32>, tensor<2xf32>) -> tensor<1x2xf32>
      %a = "tf.AddV2"(%u, %s) : (tensor<4x2xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
      "tf.AssignSubVariableOp"(%v, %a) : ({HANDLE}, tensor<4x2xf32>) -> ()"""
    filecheck(DecomposeResourceOps(), text(op, "dense<3> : tensor<1xi32>", "tensor<4x2xf32>"))


@pytest.mark.parametrize("kind", [*SCATTERS, "Mul", "Div"])
def test_one_number_is_scattered_to_many_rows(filecheck: FileCheck, kind: str) -> None:
    op = f'"tf.ResourceScatter{kind}"(%v, %i, %u) : ({HANDLE}, tensor<2xi32>, tensor<f32>) -> ()'
    filecheck(DecomposeResourceOps(), text(op, ROWS, "tensor<f32>"))
    filecheck(DecomposeResourceOps(), text(op.replace("2xi32", "i32"), "dense<1> : tensor<i32>", "tensor<f32>"))


@pytest.mark.parametrize(("kind", "updates"), [("Mul", "2x2x"), ("Div", "2x2x"), ("Add", "")])
def test_what_needs_the_shape_stays_without_it(filecheck: FileCheck, kind: str, updates: str) -> None:
    updates = f"tensor<{updates}f32>"
    op = f'"tf.ResourceScatter{kind}"(%v, %i, %u) : ({HANDLE}, tensor<2xi32>, {updates}) -> ()'
    kept = text(op, ROWS, updates).replace("// CHECK-NOT: Resource", "").replace("shape<4x2>", "shape<?x?>")
    filecheck(DecomposeResourceOps(), kept.replace("tf.AssignVariableOp", f"tf.ResourceScatter{kind}", 1))


def test_a_slice_is_replaced_in_what_was_read(filecheck: FileCheck) -> None:
    vector = "tensor<2xi32>"
    op = f"""
      %end = "tf.Const"() <{{value = dense<[4, 2]> : {vector}}}> : () -> {vector}
      %step = "tf.Const"() <{{value = dense<[-1, 1]> : {vector}}}> : () -> {vector}
      "tf.ResourceStridedSliceAssign"(%v, %i, %end, %step, %u) <{{begin_mask = 3 : i64, ellipsis_mask = 0 : i64,
        end_mask = 1 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 0 : i64}}>
        : ({HANDLE}, {vector}, {vector}, {vector}, tensor<4x2xf32>) -> ()"""
    filecheck(DecomposeResourceOps(), text(op, ROWS, "tensor<4x2xf32>"))


@pytest.mark.parametrize(("known", "found"), [("4x2", "dense<[4, 2]>"), ("4x?", '"tf.Shape"')])
def test_the_shape_of_a_variable_is_known_or_that_of_its_value(filecheck: FileCheck, known: str, found: str) -> None:
    op = f"""%s = "tf.VariableShape"(%v) : ({HANDLE}) -> tensor<2xi32>
      %n = "tf.Cast"(%s) <{{Truncate = false}}> : (tensor<2xi32>) -> tensor<2xf32>
      %a = "tf.Mul"(%u, %n) : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
      "tf.AssignVariableOp"(%v, %a) <{{validate_shape = false}}> : ({HANDLE}, tensor<4x2xf32>) -> ()"""
    given = text(op, ROWS, "tensor<4x2xf32>").replace("shape<4x2>", f"shape<{known}>")
    filecheck(DecomposeResourceOps(), given.replace("// CHECK:", f"// CHECK: {found}\n    // CHECK:", 1))


def test_a_step_of_training_reads_all_before_it_assigns(filecheck: FileCheck) -> None:
    op = f"""%r1 = "tf.Const"() <{{value = dense<0.1> : tensor<f32>}}> : () -> tensor<f32>
      %m = "tf.VarHandleOp"() <{{container = "", dtype = f32, shape = #tf_type.shape<4x2>, shared_name = "m"}}>
        : () -> {HANDLE}
      "tf.ResourceApplyMomentum"(%v, %m, %r1, %u, %r1) <{{use_nesterov = true, use_locking = false}}>
        : ({HANDLE}, {HANDLE}, tensor<f32>, tensor<4x2xf32>, tensor<f32>) -> ()"""
    order = """
    // CHECK-COUNT-2: tf.ReadVariableOp
    // CHECK-NOT: tf.ReadVariableOp
    // CHECK: [[SUM:%[0-9]+]] = "tf.AddV2"({{.*}}, %u)
    // CHECK: "tf.AssignVariableOp"(%v
    // CHECK: "tf.AssignVariableOp"(%m, [[SUM]])"""
    moments = """"tf_saved_model.global_tensor"() <{sym_name = "m", is_mutable, type = tensor<4x2xf32>,
      value = dense<0.5> : tensor<4x2xf32>}> : () -> ()"""
    given = text(op, ROWS, "tensor<4x2xf32>").replace('// CHECK: "tf.AssignVariableOp"', order + "\n" + moments, 1)
    filecheck(DecomposeResourceOps(), given)
