"""The pass `decompose-resource-ops`: the reference executor compares the module before and after."""

from __future__ import annotations

import pytest

from converter.passes.decompose_resource_ops import DecomposeResourceOps
from tests.converter.passes.conftest import FileCheck

HANDLE = "tensor<!tf_type.resource<tensor<4x2xf32>>>"
READ = f'%r = "tf.ReadVariableOp"(%v) : ({HANDLE}) -> tensor<4x2xf32>'
SCATTERS = ("Update", "Add", "Sub", "Min", "Max")


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


@pytest.mark.parametrize("kind", SCATTERS)
def test_rows_are_scattered_into_what_was_read(filecheck: FileCheck, kind: str) -> None:
    types = f"({HANDLE}, tensor<2xi32>, tensor<2x2xf32>) -> ()"
    op = f'"tf.ResourceScatter{kind}"(%v, %i, %u) : {types}'
    filecheck(DecomposeResourceOps(), text(op, "dense<[2, 0]> : tensor<2xi32>", "tensor<2x2xf32>"))


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


def test_one_number_for_many_rows_stays(filecheck: FileCheck) -> None:
    op = f'"tf.ResourceScatterAdd"(%v, %i, %u) : ({HANDLE}, tensor<2xi32>, tensor<f32>) -> ()'
    kept = text(op, "dense<[2, 0]> : tensor<2xi32>", "tensor<f32>").replace("// CHECK-NOT: Resource", "")
    filecheck(DecomposeResourceOps(), kept.replace("tf.AssignVariableOp", "tf.ResourceScatterAdd", 1))
