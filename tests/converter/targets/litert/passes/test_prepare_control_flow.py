"""The pass `prepare-control-flow`."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck, check_results
from tfconvert.converter.targets.litert.passes.prepare_control_flow import PrepareControlFlow
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.parsing import IRParser


def _branches(count: int) -> str:
    return "\n".join(
        f"""
    func.func private @b{number}(%x: tensor<f32>) -> tensor<f32> {{
      %0 = "tf.Const"() <{{value = dense<{number}.0> : tensor<f32>}}> : () -> tensor<f32>
      %1 = "tf.AddV2"(%x, %0) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      func.return %1 : tensor<f32>
    }}"""
        for number in range(count)
    )


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 12])
def test_a_case_of_any_size_chooses_the_branch_that_its_index_names(count: int) -> None:
    names = ", ".join(f"@b{number}" for number in range(count))
    for index in range(-1, count + 1):
        module = IRParser(f"""
        func.func @main(%x: tensor<f32>) -> tensor<f32> {{
          %n = "tf.Const"() <{{value = dense<{index}> : tensor<i32>}}> : () -> tensor<i32>
          %0 = "tf.Case"(%n, %x) <{{branches = [{names}], is_stateless = true}}>
              : (tensor<i32>, tensor<f32>) -> tensor<f32>
          func.return %0 : tensor<f32>
        }}
        {_branches(count)}
        """).parse_module()
        before = module.clone()
        assert PrepareControlFlow().apply(module).counts == {"case": 1}
        verify(module)
        check_results(before, module, "prepare-control-flow")
        assert sum(op.name == "tf.If" for op in module.walk()) == max(1, count - 1)


def test_what_decides_is_a_boolean(filecheck: FileCheck) -> None:
    filecheck(
        PrepareControlFlow(),
        """
    // CHECK: [[TEXT:%[0-9a-z_]+]] = "tf.ToBool"(%text) : (tensor<!tf_type.string>) -> tensor<i1>
    // CHECK-NEXT: "tf.If"([[TEXT]], %x)
    // CHECK-NEXT: "tf.If"(%p, %x)
    // CHECK-NEXT: [[MANY:%[0-9a-z_]+]] = "tf.ToBool"(%many) : (tensor<?xi1>) -> tensor<i1>
    // CHECK-NEXT: "tf.If"([[MANY]], %x)
    // CHECK: func.func private @left(%[[I:[0-9a-z_]+]]: tensor<i32>) -> tensor<i1>
    // CHECK-NEXT: "tf.ToBool"(%[[I]]) : (tensor<i32>) -> tensor<i1>
    func.func @main(%text: tensor<!tf_type.string>, %p: tensor<i1>, %many: tensor<?xi1>, %x: tensor<f32>,
                    %i: tensor<i32>) -> (tensor<f32>, tensor<i32>) {
      %0 = "tf.If"(%text, %x) <{then_branch = @b0, else_branch = @b1, is_stateless = true}>
          : (tensor<!tf_type.string>, tensor<f32>) -> tensor<f32>
      %1 = "tf.If"(%p, %x) <{then_branch = @b0, else_branch = @b1, is_stateless = true}>
          : (tensor<i1>, tensor<f32>) -> tensor<f32>
      %2 = "tf.If"(%many, %x) <{then_branch = @b0, else_branch = @b1, is_stateless = true}>
          : (tensor<?xi1>, tensor<f32>) -> tensor<f32>
      %3 = "tf.While"(%i) <{cond = @left, body = @less, is_stateless = true}> : (tensor<i32>) -> tensor<i32>
      %4 = "tf.AddN"(%0, %1, %2) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
      func.return %4, %3 : tensor<f32>, tensor<i32>
    }
    func.func private @left(%i: tensor<i32>) -> tensor<i32> {
      func.return %i : tensor<i32>
    }
    func.func private @less(%i: tensor<i32>) -> tensor<i32> {
      %0 = "tf.ZerosLike"(%i) : (tensor<i32>) -> tensor<i32>
      func.return %0 : tensor<i32>
    }
    func.func private @b0(%x: tensor<f32>) -> tensor<f32> {
      %0 = "tf.Neg"(%x) : (tensor<f32>) -> tensor<f32>
      func.return %0 : tensor<f32>
    }
    func.func private @b1(%x: tensor<f32>) -> tensor<f32> {
      func.return %x : tensor<f32>
    }
    """,
    )


@pytest.mark.parametrize(
    ("op", "code"),
    [
        ('"tf.Case"(%n, %x) <{branches = []}> : (tensor<i32>, tensor<f32>) -> tensor<f32>', "no-branches"),
        (
            '"tf.Case"(%n, %x) <{branches = [@b0, @b1, @gone]}> : (tensor<i32>, tensor<f32>) -> tensor<f32>',
            "missing-function",
        ),
        ('"tf.While"(%x) <{cond = @gone, body = @b0}> : (tensor<f32>) -> tensor<f32>', "missing-function"),
    ],
)
def test_what_is_not_there_is_told(op: str, code: str) -> None:
    text = f"""
    func.func @main(%n: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {{
      %0 = {op}
      func.return %0 : tensor<f32>
    }}
    """ + _branches(2)
    with pytest.raises(ConversionError) as caught:
        PrepareControlFlow().apply(IRParser(text).parse_module())
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == [code]
