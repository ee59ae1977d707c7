"""The pass `separate-reads`."""

from __future__ import annotations

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.targets.litert.passes.separate_reads import SeparateReads

HANDLE = "tensor<!tf_type.resource<tensor<2xf32>>>"


def text(body: str, results: str) -> str:
    return f"""
    func.func @main(%x: tensor<2xf32>) -> ({results}) {{
      %v = "tfl.var_handle"() <{{container = "", shared_name = "v"}}> : () -> {HANDLE}
      %r = "tfl.read_variable"(%v) : ({HANDLE}) -> tensor<2xf32>
      {body}
    }}
    """


def test_every_operand_has_a_read_of_its_own(filecheck: FileCheck) -> None:
    source = text(
        """%j = "tfl.concatenation"(%r, %x, %r, %r) <{axis = 0 : i32, fused_activation_function = "NONE"}>
        : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<8xf32>
      func.return %j : tensor<8xf32>""",
        "tensor<8xf32>",
    )
    filecheck(
        SeparateReads(),
        source
        + """
    // CHECK-COUNT-3: tfl.read_variable
    // CHECK: "tfl.concatenation"([[A:%[0-9a-z_]+]], %x, [[B:%[0-9a-z_]+]], [[C:%[0-9a-z_]+]])
    """,
    )


def test_several_operators_may_share_a_read_and_results_too(filecheck: FileCheck) -> None:
    source = text(
        """%a = "tfl.exp"(%r) : (tensor<2xf32>) -> tensor<2xf32>
      %b = "tfl.mul"(%r, %a) <{fused_activation_function = "NONE"}>
        : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %b, %r, %r : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>""",
        "tensor<2xf32>, tensor<2xf32>, tensor<2xf32>",
    )
    filecheck(SeparateReads(), source + "// CHECK-COUNT-1: tfl.read_variable\n// CHECK-NOT: tfl.read_variable")
