"""The pass `inline`."""

from __future__ import annotations

import pytest

from converter.passes.inline import Inline
from schema.diagnostics import ConversionError
from tests.converter.passes.conftest import FileCheck


def test_bodies_take_the_place_of_calls(filecheck: FileCheck) -> None:
    filecheck(Inline(), """
    // CHECK: func.func @main(%x: tensor<2xf32>)
    // CHECK-NEXT: [[A:%[0-9a-z_]+]] = "tf.Relu"(%x)
    // CHECK-NEXT: [[B:%[0-9a-z_]+]] = "tf.Relu"([[A]])
    // CHECK-NEXT: [[C:%[0-9a-z_]+]] = "tf.Neg"([[B]])
    // CHECK-NEXT: func.return [[C]]
    // CHECK-NOT: func.func
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.PartitionedCall"(%x) <{f = @relu}> : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.StatefulPartitionedCall"(%0) <{f = @outer}> : (tensor<2xf32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }
    func.func private @outer(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.PartitionedCall"(%x) <{f = @relu}> : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.Neg"(%0) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }
    func.func private @relu(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    """)  # fmt: skip


def test_functions_that_ops_name_stay(filecheck: FileCheck) -> None:
    filecheck(Inline(), """
    // CHECK: "tf.If"
    // CHECK: func.func private @then
    // CHECK-NOT: func.func private @unused
    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.If"(%p, %x) <{then_branch = @then, else_branch = @then, is_stateless = true}>
        : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @then(%x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }
    func.func private @unused(%x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }
    """)  # fmt: skip


CALL = '"tf.PartitionedCall"({operands}) <{{f = @{callee}}}> : ({types}) -> tensor<2xf32>'


@pytest.mark.parametrize(
    ("callee", "operands", "types", "code"),
    [
        ("f", "%x", "tensor<2xf32>", "recursive-function"),
        ("g", "%x", "tensor<2xf32>", "missing-function"),
        ("h", "%x, %x", "tensor<2xf32>, tensor<2xf32>", "bad-call"),
    ],
)
def test_bad_calls_are_errors(filecheck: FileCheck, callee: str, operands: str, types: str, code: str) -> None:
    call = CALL.format(callee=callee, operands=operands, types=types)
    text = f"""
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {{
      %0 = {call}
      func.return %0 : tensor<2xf32>
    }}
    func.func private @h(%x: tensor<2xf32>) -> tensor<2xf32> {{
      func.return %x : tensor<2xf32>
    }}
    """
    with pytest.raises(ConversionError) as caught:
        filecheck(Inline(), text)
    assert caught.value.code == code
