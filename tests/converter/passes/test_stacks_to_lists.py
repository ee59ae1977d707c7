"""The pass `stacks-to-lists` on text."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.passes.stacks_to_lists import StacksToLists
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.parsing import IRParser

HANDLE = "tensor<!tf_type.resource>"


def _new(element: str = "f32") -> str:
    return f'"tf.StackV2"(%n) <{{stack_name = "", elem_type = {element}}}> : (tensor<i32>) -> {HANDLE}'


def _push(handle: str, value: str, kind: str = "tensor<4xf32>") -> str:
    return f'"tf.StackPushV2"({handle}, {value}) <{{swap_memory = true}}> : ({HANDLE}, {kind}) -> {kind}'


def _pop(handle: str, kind: str = "tensor<4xf32>") -> str:
    return f'"tf.StackPopV2"({handle}) : ({HANDLE}) -> {kind}'


def _if(condition: str, then: str, other: str) -> str:
    return (
        f'"tf.If"({condition}, %h, %x) <{{then_branch = @{then}, else_branch = @{other}, is_stateless = false}}>'
        f" : (tensor<i1>, {HANDLE}, tensor<4xf32>) -> tensor<4xf32>"
    )


def test_a_list_goes_into_branches_and_calls_and_comes_out(filecheck: FileCheck) -> None:
    filecheck(
        StacksToLists(),
        f"""
    // CHECK: func.func @main(%p: tensor<i1>, %x: tensor<4xf32>, %n: tensor<i32>)
    // CHECK: %[[NEW:.*]] = "tf.EmptyTensorList"({{{{.*}}}}variant<tensor<4xf32>>
    // CHECK: %[[PUSHED:.*]] = "tf.TensorListPushBack"(%[[NEW]], %x)
    // CHECK: %a, %[[BOTH:.*]] = "tf.If"(%p, %h, %x, %[[PUSHED]])
    // CHECK-SAME: -> (tensor<4xf32>, tensor<!tf_type.variant>)
    // CHECK: %b, %[[LESS:.*]] = "tf.If"(%p, %same, %a, %[[BOTH]])
    // CHECK: %[[REST:.*]], %[[LAST:.*]] = "tf.TensorListPopBack"(%[[LESS]],
    // CHECK-NEXT: func.return %b, %[[LAST]]
    // CHECK: func.func private @grow(%h: tensor<i32>, %x: tensor<4xf32>, %[[G:.*]]: tensor<!tf_type.variant>)
    // CHECK: %[[MORE:.*]] = "tf.TensorListPushBack"(%[[G]], %x)
    // CHECK: func.return %x, %[[MORE]]
    // CHECK: func.func private @leave(%h: tensor<i32>, %x: tensor<4xf32> {{{{{{tf.named = "x"}}}}}},
    // CHECK-SAME: %[[L:.*]]: tensor<!tf_type.variant>)
    // CHECK-SAME: -> (tensor<4xf32> {{{{{{tf.named = "y"}}}}}}, tensor<!tf_type.variant>)
    // CHECK-NEXT: func.return %x, %[[L]]
    // CHECK: func.func private @shrink(
    // CHECK: "tf.PartitionedCall"(%h, %[[S:.*]]) <{{f = @inner}}> : (tensor<i32>, tensor<!tf_type.variant>)
    // CHECK-SAME: -> (tensor<4xf32>, tensor<!tf_type.variant>)
    // CHECK: func.func private @stay(
    // CHECK: func.func private @inner(%h: tensor<i32>, %[[I:.*]]: tensor<!tf_type.variant>)
    // CHECK: "tf.TensorListPopBack"(%[[I]],
    func.func @main(%p: tensor<i1>, %x: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>) {{
      %h = {_new()}
      %pushed = {_push("%h", "%x")}
      %same = "tf.Identity"(%h) : ({HANDLE}) -> {HANDLE}
      %a = {_if("%p", "grow", "leave")}
      %b = {_if("%p", "shrink", "stay").replace("%x", "%a").replace("%h", "%same")}
      %last = {_pop("%same")}
      "tf.StackCloseV2"(%h) : ({HANDLE}) -> ()
      func.return %b, %last : tensor<4xf32>, tensor<4xf32>
    }}
    func.func private @grow(%h: {HANDLE}, %x: tensor<4xf32>) -> tensor<4xf32> {{
      %0 = {_push("%h", "%x")}
      func.return %0 : tensor<4xf32>
    }}
    func.func private @leave(%h: {HANDLE}, %x: tensor<4xf32> {{tf.named = "x"}})
        -> (tensor<4xf32> {{tf.named = "y"}}) {{
      func.return %x : tensor<4xf32>
    }}
    func.func private @shrink(%h: {HANDLE}, %x: tensor<4xf32>) -> tensor<4xf32> {{
      %0 = "tf.PartitionedCall"(%h) <{{f = @inner}}> : ({HANDLE}) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }}
    func.func private @stay(%h: {HANDLE}, %x: tensor<4xf32>) -> tensor<4xf32> {{
      func.return %x : tensor<4xf32>
    }}
    func.func private @inner(%h: {HANDLE}) -> tensor<4xf32> {{
      %0 = {_pop("%h")}
      func.return %0 : tensor<4xf32>
    }}
    """,
    )


def test_a_stack_that_is_made_in_a_branch_stays_there(filecheck: FileCheck) -> None:
    filecheck(
        StacksToLists(),
        f"""
    // CHECK: "tf.If"(%p, %n, %x) {{{{.*}}}} -> tensor<4xf32>
    // CHECK: func.func private @inside(%n: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32>
    // CHECK: "tf.EmptyTensorList"
    // CHECK: "tf.TensorListPushBack"
    // CHECK: "tf.TensorListPopBack"
    // CHECK-NEXT: func.return
    func.func @main(%p: tensor<i1>, %x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {{
      %0 = "tf.If"(%p, %n, %x) <{{then_branch = @inside, else_branch = @leave, is_stateless = false}}>
        : (tensor<i1>, tensor<i32>, tensor<4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }}
    func.func private @inside(%n: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {{
      %h = {_new()}
      %0 = {_push("%h", "%x")}
      %1 = {_pop("%h")}
      func.return %1 : tensor<4xf32>
    }}
    func.func private @leave(%n: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {{
      func.return %x : tensor<4xf32>
    }}
    """,
    )


FUNCTIONS = {
    "@pops": f"""func.func private @pops(%h: {HANDLE}, %x: tensor<4xf32>) -> tensor<4xf32> {{
      %0 = {_pop("%h")}
      func.return %0 : tensor<4xf32>
    }}""",
    "@public": f"""func.func @public(%h: {HANDLE}, %x: tensor<4xf32>) -> tensor<4xf32> {{
      %0 = {_pop("%h")}
      func.return %0 : tensor<4xf32>
    }}""",
    "@makes": f"""func.func private @makes(%h: {HANDLE}, %x: tensor<4xf32>) -> {HANDLE} {{
      %n = "tf.Const"() <{{value = dense<-1> : tensor<i32>}}> : () -> tensor<i32>
      %0 = {_new()}
      func.return %0 : {HANDLE}
    }}""",
    "@asks": f"""func.func private @asks(%h: {HANDLE}, %x: tensor<4xf32>) -> tensor<i1> {{
      %0 = {_pop("%h", "tensor<i1>")}
      func.return %0 : tensor<i1>
    }}""",
    "@repeats": f"""func.func private @repeats(%h: {HANDLE}, %x: tensor<4xf32>) -> ({HANDLE}, tensor<4xf32>) {{
      func.return %h, %x : {HANDLE}, tensor<4xf32>
    }}""",
}
"""The callees of the ops below."""

POPS = _if("%p", "pops", "pops")


@pytest.mark.parametrize(
    ("code", "why", "ops"),
    [
        ("stack-escapes", "can't be followed", f'"tf.Custom"(%h) : ({HANDLE}) -> ()'),
        (
            "stack-escapes",
            "can't be followed",
            f'%g = "tf.SelectV2"(%p, %h, %h) : (tensor<i1>, {HANDLE}, {HANDLE}) -> {HANDLE}',
        ),
        ("stack-escapes", "an argument of function 'main'", f"%a = {POPS.replace('%h', '%given')}"),
        ("stack-escapes", "an argument of function 'public'", f"%a = {_if('%p', 'public', 'public')}"),
        (
            "stack-escapes",
            "outside of the function that creates it",
            f"%a = {_if('%p', 'makes', 'makes').replace('-> tensor<4xf32>', '-> ' + HANDLE)}\n%b = {_pop('%a')}",
        ),
        ("stack-escapes", "one of 2 stacks", f"%g = {_new()}\n%a = {POPS}\n%b = {POPS.replace('%h', '%g')}"),
        (
            "stack-in-condition",
            "a loop's condition",
            '%a:2 = "tf.While"(%h, %x) <{cond = @asks, body = @repeats, is_stateless = false,'
            f" parallel_iterations = 10 : i64}}> : ({HANDLE}, tensor<4xf32>) -> ({HANDLE}, tensor<4xf32>)",
        ),
        ("list-elements-differ", "of type f32", f"%a = {_pop('%h', 'tensor<4xi32>')}"),
        ("list-elements-differ", "differ", f"%a = {_push('%h', '%x')}\n%b = {_pop('%h', 'tensor<3xf32>')}"),
        ("nested-list", "are handles", f"%g = {_new('!tf_type.resource')}\n%a = {_push('%g', '%h', HANDLE)}"),
        (
            "stack-version",
            "this version",
            '%a = "tf.Stack"() <{stack_name = "", elem_type = f32}> : () -> tensor<!tf_type.stringref>',
        ),
    ],
)
def test_what_becomes_no_list(code: str, why: str, ops: str) -> None:
    text = f"""
    func.func @main(%p: tensor<i1>, %x: tensor<4xf32>, %n: tensor<i32>, %given: {HANDLE}) -> tensor<4xf32> {{
      %h = {_new("i1" if code == "stack-in-condition" else "f32")}
      {ops}
      func.return %x : tensor<4xf32>
    }}
    """ + "\n".join(function for name, function in FUNCTIONS.items() if name in ops)
    module = IRParser(text).parse_module()
    with pytest.raises(ConversionError) as caught:
        StacksToLists().apply(module)
    assert caught.value.code == code
    assert why in caught.value.diagnostics[0].message
