"""Shapes of ops across devices against TensorFlow, and what the verifier refuses of branches and partitions."""

from __future__ import annotations

import pytest

from tests.ops.cases import ShapeCase, by_op, check_shapes
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.errors import VerifyError

SHAPES: list[ShapeCase] = [
    (
        "CollectiveReduce",
        ["f32[?,3]"],
        {
            "group_size": 2,
            "group_key": 1,
            "instance_key": 1,
            "merge_op": "Add",
            "final_op": "Id",
            "subdiv_offsets": [0],
        },
    ),
    ("CrossReplicaSum", ["f32[?,3]", [[0]]], {}),
    ("NcclAllReduce", ["f32[?,3]"], {"reduction": "sum", "num_devices": 1, "shared_name": ""}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


@pytest.mark.parametrize("op", ["Case", "StatelessCase"])
def test_an_index_of_branches_is_a_scalar(op: str) -> None:
    text = f"""
    func.func private @b(%x: tensor<2xf32>) -> tensor<2xf32> {{ return %x : tensor<2xf32> }}
    func.func @main(%i: tensor<1xi32>, %x: tensor<2xf32>) -> tensor<2xf32> {{
      %0 = "tf.{op}"(%i, %x) {{branches = [@b], is_stateless = true}}
        : (tensor<1xi32>, tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }}"""
    with pytest.raises(VerifyError, match="branch_index"):
        verify(IRParser(text).parse_module())


@pytest.mark.parametrize(("dims", "inputs"), [([2], 1), ([1], 2)])
def test_partitions_are_as_many_as_they_say(dims: list[int], inputs: int) -> None:
    values, kinds = ", ".join(["%x"] * inputs), ", ".join(["tensor<2xf32>"] * inputs)
    text = f"""func.func @main(%x: tensor<2xf32>) -> tensor<*xf32> {{
      %0 = "tf.TPUPartitionedInputV2"({values}) {{partition_dims = {dims}, is_packed = false}}
        : ({kinds}) -> tensor<*xf32>
      return %0 : tensor<*xf32>
    }}"""
    with pytest.raises(VerifyError, match=f"expected {dims[0]} operands, found {inputs}"):
        verify(IRParser(text).parse_module())
