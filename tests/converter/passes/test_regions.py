"""The passes `functional-to-regions` and `regions-to-functional`."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck, check_results
from tfconvert.converter.passes.functional_to_regions import FunctionalToRegions
from tfconvert.converter.passes.inline import Inline
from tfconvert.converter.passes.regions_to_functional import RegionsToFunctional
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.parsing import IRParser

ALL_FORMS = """
    func.func @main(%p: tensor<i1>, %n: tensor<i32>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %zero = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %0 = "tf.If"(%p, %x) <{then_branch = @exp, else_branch = @same, is_stateless = true}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      %1:2 = "tf.While"(%zero, %0) <{cond = @few, body = @more, is_stateless = true, parallel_iterations = 10 : i64}>
          : (tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>)
      %2 = "tf.Case"(%n, %1#1) <{branches = [@exp, @same, @exp], is_stateless = true}>
          : (tensor<i32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %2 : tensor<2xf32>
    }
    func.func private @exp(%x: tensor<?xf32>) -> tensor<?xf32> {
      %0 = "tf.Tanh"(%x) : (tensor<?xf32>) -> tensor<?xf32>
      func.return %0 : tensor<?xf32>
    }
    func.func private @same(%x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }
    func.func private @few(%i: tensor<i32>, %x: tensor<2xf32>) -> tensor<i32> {
      %limit = "tf.Const"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
      %0 = "tf.Sub"(%limit, %i) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      func.return %0 : tensor<i32>
    }
    func.func private @more(%i: tensor<i32>, %x: tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>) {
      %one = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %0 = "tf.AddV2"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %1 = "tf.AddV2"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0, %1 : tensor<i32>, tensor<2xf32>
    }
"""


def test_all_forms_there_and_back() -> None:
    module = IRParser(ALL_FORMS).parse_module()
    before = module.clone()
    for step in (FunctionalToRegions(), Inline(), RegionsToFunctional()):
        step.apply(module)
        verify(module)
        check_results(before, module, step.name)
        names = {op.name for op in module.walk()}
        assert ("tf.WhileRegion" in names) == (not isinstance(step, RegionsToFunctional))
    assert not any(op.regions for op in module.walk() if op.name.startswith("tf."))


def test_regions_that_only_call_name_what_they_call(filecheck: FileCheck) -> None:
    filecheck(
        RegionsToFunctional(),
        """
    // CHECK: "tf.If"(%p, %x) <{is_stateless = true, then_branch = @exp, else_branch = @neg}>
    // CHECK: "tf.While"(%x) <{is_stateless = true, cond = @again, body = @neg}>
    // CHECK-NOT: func.call
    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %0 = "tf.IfRegion"(%p) <{is_stateless = true}> ({
        %1 = func.call @exp(%x) : (tensor<2xf32>) -> tensor<2xf32>
        "tf.Yield"(%1) : (tensor<2xf32>) -> ()
      }, {
        %1 = func.call @neg(%x) : (tensor<2xf32>) -> tensor<2xf32>
        "tf.Yield"(%1) : (tensor<2xf32>) -> ()
      }) : (tensor<i1>) -> tensor<2xf32>
      %2 = "tf.WhileRegion"(%x) <{is_stateless = true}> ({
      ^bb0(%y: tensor<2xf32>):
        %1 = func.call @again(%y) : (tensor<2xf32>) -> tensor<i1>
        "tf.Yield"(%1) : (tensor<i1>) -> ()
      }, {
      ^bb0(%y: tensor<2xf32>):
        %1 = func.call @neg(%y) : (tensor<2xf32>) -> tensor<2xf32>
        "tf.Yield"(%1) : (tensor<2xf32>) -> ()
      }) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0, %2 : tensor<2xf32>, tensor<2xf32>
    }
    func.func private @exp(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @neg(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @again(%x: tensor<2xf32>) -> tensor<i1> {
      %0 = "tf.Const"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
      func.return %0 : tensor<i1>
    }
    """,
    )


def test_inner_regions_hand_on_what_they_take_from_far_out(filecheck: FileCheck) -> None:
    filecheck(
        RegionsToFunctional(),
        """
    // CHECK: "tf.Case"(%n, %p, %x) <{is_stateless = true, branches = [@case_branch0, @case_branch1]}>
    // CHECK: func.func private @if_then(%{{.*}}: tensor<2xf32>) -> tensor<2xf32>
    // CHECK: func.func private @case_branch0(%{{.*}}: tensor<i1>, %{{.*}}: tensor<2xf32>) -> tensor<2xf32>
    // CHECK: "tf.If"(%{{.*}}, %{{.*}}) <{is_stateless = true, then_branch = @if_then, else_branch = @if_else}>
    func.func @main(%n: tensor<i32>, %p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.CaseRegion"(%n) <{is_stateless = true}> ({
        %1 = "tf.IfRegion"(%p) <{is_stateless = true}> ({
          %2 = "tf.Exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
          "tf.Yield"(%2) : (tensor<2xf32>) -> ()
        }, {
          "tf.Yield"(%x) : (tensor<2xf32>) -> ()
        }) : (tensor<i1>) -> tensor<2xf32>
        "tf.Yield"(%1) : (tensor<2xf32>) -> ()
      }, {
        %2 = "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
        "tf.Yield"(%2) : (tensor<2xf32>) -> ()
      }) : (tensor<i32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    """,
    )


@pytest.mark.parametrize(
    ("op", "code"),
    [
        (
            '"tf.If"(%p, %x) <{then_branch = @gone, else_branch = @gone}> : (tensor<i1>, tensor<f32>) -> tensor<f32>',
            "missing-function",
        ),
        ('"tf.If"(%p) <{then_branch = @same, else_branch = @same}> : (tensor<i1>) -> tensor<f32>', "bad-call"),
        (
            '"tf.If"(%p, %p) <{then_branch = @same, else_branch = @same}> : (tensor<i1>, tensor<i1>) -> tensor<f32>',
            "bad-call",
        ),
    ],
)
def test_functions_that_are_not_there_or_do_not_fit(op: str, code: str) -> None:
    text = f"""
    func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {{
      %0 = {op}
      func.return %0 : tensor<f32>
    }}
    func.func private @same(%x: tensor<f32>) -> tensor<f32> {{
      func.return %x : tensor<f32>
    }}
    """
    with pytest.raises(ConversionError) as caught:
        FunctionalToRegions().apply(IRParser(text).parse_module())
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == [code]
