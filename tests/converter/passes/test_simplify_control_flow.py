"""The pass `simplify-control-flow`."""

from __future__ import annotations

import pytest

from tests.converter import control_flow_programs as programs
from tests.converter.pass_texts import FileCheck
from tests.support.work import check_linear
from tfconvert.converter.passes.simplify_control_flow import SimplifyControlFlow
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp


def _simplified(text: str, unroll_up_to: int = 1) -> ModuleOp:
    module = IRParser(text).parse_module()
    verify(module)
    SimplifyControlFlow(unroll_up_to).apply(module)
    verify(module)
    return module


def _count(module: ModuleOp, name: str) -> int:
    return sum(op.name == name for op in module.walk())


_BRANCHES = """
    func.func private @a(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @b(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
"""


@pytest.mark.parametrize(("index", "chosen"), [(0, "tf.Exp"), (1, "tf.Neg"), (7, "tf.Neg"), (-1, "tf.Neg")])
def test_a_known_index_chooses_a_branch(filecheck: FileCheck, index: int, chosen: str) -> None:
    filecheck(
        SimplifyControlFlow(),
        f"""
    // CHECK: "{chosen}"
    // CHECK-NOT: func.func
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
      %i = "tf.Const"() <{{value = dense<{index}> : tensor<i32>}}> : () -> tensor<i32>
      %0 = "tf.Case"(%i, %x) <{{branches = [@a, @b], is_stateless = true}}>
          : (tensor<i32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }}
    {_BRANCHES}
    """,
    )


def test_equal_branches_need_no_condition(filecheck: FileCheck) -> None:
    filecheck(
        SimplifyControlFlow(),
        f"""
    // CHECK-NOT: tf.If
    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {{
      %0 = "tf.If"(%p, %x) <{{then_branch = @a, else_branch = @a, is_stateless = true}}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }}
    {_BRANCHES}
    """,
    )


def test_a_shared_branch_is_copied_and_stays_as_it_is(filecheck: FileCheck) -> None:
    filecheck(
        SimplifyControlFlow(),
        f"""
    // CHECK: "tf.If"(%p, %x) <{{then_branch = @a, else_branch = @b
    // CHECK: "tf.Exp"
    // CHECK: func.func private @a(%x: tensor<2xf32>)
    // CHECK: "tf.Exp"
    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {{
      %true = "tf.Const"() <{{value = dense<true> : tensor<i1>}}> : () -> tensor<i1>
      %0 = "tf.If"(%p, %x) <{{then_branch = @a, else_branch = @b, is_stateless = true}}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.If"(%true, %0) <{{then_branch = @a, else_branch = @b, is_stateless = true}}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }}
    {_BRANCHES}
    """,
    )


def test_what_decides_nothing_stays(filecheck: FileCheck) -> None:
    """A vector is true if it has elements, and a condition that is computed could be anything."""
    filecheck(
        SimplifyControlFlow(),
        f"""
    // CHECK: "tf.If"(%v, %x)
    // CHECK: "tf.If"(%p, %0)
    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {{
      %v = "tf.Const"() <{{value = dense<false> : tensor<2xi1>}}> : () -> tensor<2xi1>
      %0 = "tf.If"(%v, %x) <{{then_branch = @a, else_branch = @b, is_stateless = true}}>
          : (tensor<2xi1>, tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.If"(%p, %0) <{{then_branch = @a, else_branch = @b, is_stateless = true}}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }}
    {_BRANCHES}
    """,
    )


def _loop(start: int, end: str = "%n", step: int = 1, used: str = "%0#1") -> str:
    """Returns a loop that counts to a limit, with a sum, a dead count, and `%x`, which no iteration changes."""
    kinds = "tensor<i32>, tensor<2xf32>, tensor<i32>, tensor<2xf32>, tensor<i32>"
    arguments = "%i: tensor<i32>, %s: tensor<2xf32>, %t: tensor<i32>, %x: tensor<2xf32>, %n: tensor<i32>"
    return f"""
    func.func @main(%n: tensor<i32>, %x: tensor<2xf32>) -> tensor<2xf32> {{
      %i = "tf.Const"() <{{value = dense<{start}> : tensor<i32>}}> : () -> tensor<i32>
      %0:5 = "tf.While"(%i, %x, %i, %x, {end}) <{{cond = @cond, body = @body, is_stateless = true,
          parallel_iterations = 10 : i64}}> : ({kinds}) -> ({kinds})
      func.return {used} : tensor<2xf32>
    }}
    func.func private @cond({arguments}) -> tensor<i1> {{
      %five = "tf.Const"() <{{value = dense<5> : tensor<i32>}}> : () -> tensor<i32>
      %0 = "tf.Minimum"(%n, %five) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %1 = "tf.Less"(%i, %0) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      func.return %1 : tensor<i1>
    }}
    func.func private @body({arguments}) -> ({kinds}) {{
      %one = "tf.Const"() <{{value = dense<{step}> : tensor<i32>}}> : () -> tensor<i32>
      %0 = "tf.AddV2"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %1 = "tf.AddV2"(%s, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %2 = "tf.Mul"(%t, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %3 = "tf.Identity"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0, %1, %2, %3, %n : {kinds}
    }}
    """


def test_a_variable_on_which_nothing_depends_goes(filecheck: FileCheck) -> None:
    filecheck(
        SimplifyControlFlow(),
        f"""
    // CHECK: %0, %1, %2, %3 = "tf.While"(%i, %x, %x, %n)
    // CHECK: func.func private @cond(%i: tensor<i32>, %s: tensor<2xf32>, %x: tensor<2xf32>, %n: tensor<i32>)
    // CHECK: func.func private @body(%i: tensor<i32>, %s: tensor<2xf32>, %x: tensor<2xf32>, %n: tensor<i32>)
    // CHECK-NOT: "tf.Mul"
    {_loop(0)}
    """,
    )


def test_what_no_iteration_changes_is_what_it_was_before(filecheck: FileCheck) -> None:
    filecheck(
        SimplifyControlFlow(),
        f"""
    // CHECK: "tf.While"(%i, %n)
    // CHECK: func.return %x
    {_loop(0, used="%0#3").replace("is_stateless = true", "is_stateless = false")}
    """,
    )


def test_an_unused_loop_goes_unless_it_has_effects() -> None:
    pure = _loop(0, used="%x")
    assert _count(_simplified(pure), "tf.While") == 0
    assert _count(_simplified(pure.replace("is_stateless = true", "is_stateless = false")), "tf.While") == 1


@pytest.mark.parametrize(
    ("start", "step", "unroll_up_to", "added"),
    [(5, 1, 0, 0), (9, 1, 1, 0), (4, 1, 1, 1), (3, 1, 1, None), (0, 1, 8, 5), (0, 2, 3, 3), (0, 0, 8, None)],
)
def test_a_loop_that_runs_so_often_is_what_it_computes(
    filecheck: FileCheck, start: int, step: int, unroll_up_to: int, added: int | None
) -> None:
    text = _loop(start, end="%limit", step=step)
    text = text.replace(
        "%i = ", '%limit = "tf.Const"() <{value = dense<100> : tensor<i32>}> : () -> tensor<i32>\n %i = ', 1
    )
    if step:
        module = filecheck(SimplifyControlFlow(unroll_up_to), f"// CHECK: func.return\n{text}")
    else:
        module = _simplified(text, unroll_up_to)
    assert _count(module, "tf.While") == (added is None)
    if added is not None:
        assert _count(module, "tf.AddV2") == added


def test_a_limit_that_is_not_known_leaves_a_loop_alone() -> None:
    assert _count(_simplified(_loop(0), unroll_up_to=100), "tf.While") == 1


def test_a_condition_with_effects_is_asked_as_often_as_it_is() -> None:
    effect = '"tf.PrintV2"(%text) <{output_stream = "stderr", end = ""}> : (tensor<!tf_type.string>) -> ()'
    text = '%text = "tf.Const"() <{value = dense<"x"> : tensor<!tf_type.string>}> : () -> tensor<!tf_type.string>'
    loop = _loop(9, end="%i")
    assert _count(_simplified(loop), "tf.While") == 0
    assert _count(_simplified(loop.replace("%five =", f"{text}\n      {effect}\n      %five =")), "tf.While") == 1


def test_constants_move_into_the_functions_that_get_them(filecheck: FileCheck) -> None:
    filecheck(
        SimplifyControlFlow(),
        """
    // CHECK: "tf.If"(%p) <{
    // CHECK: func.func private @a() -> tensor<f32>
    // CHECK-NEXT: "tf.Const"() <{{{?}}value = dense<2.0
    // CHECK: func.func private @b() -> tensor<f32>
    func.func @main(%p: tensor<i1>) -> tensor<f32> {
      %two = "tf.Const"() <{value = dense<2.0> : tensor<f32>}> : () -> tensor<f32>
      %0 = "tf.If"(%p, %two) <{then_branch = @a, else_branch = @b, is_stateless = true}>
          : (tensor<i1>, tensor<f32>) -> tensor<f32>
      func.return %0 : tensor<f32>
    }
    func.func private @a(%x: tensor<f32>) -> tensor<f32> {
      %0 = "tf.Exp"(%x) : (tensor<f32>) -> tensor<f32>
      func.return %0 : tensor<f32>
    }
    func.func private @b(%x: tensor<f32>) -> tensor<f32> {
      %0 = "tf.Neg"(%x) : (tensor<f32>) -> tensor<f32>
      func.return %0 : tensor<f32>
    }
    """,
    )


def test_effects_keep_what_they_depend_on(filecheck: FileCheck) -> None:
    filecheck(
        SimplifyControlFlow(),
        """
    // CHECK: "tf.While"(%x, %p)
    // CHECK: func.func private @body(%x: tensor<f32>, %p: tensor<i1>)
    // CHECK: "tf.AssignAddVariableOp"
    func.func @main(%p: tensor<i1>, %x: tensor<f32>, %y: tensor<f32>) {
      %0:3 = "tf.While"(%x, %p, %y) <{cond = @cond, body = @body, is_stateless = false, parallel_iterations = 10 : i64}>
          : (tensor<f32>, tensor<i1>, tensor<f32>) -> (tensor<f32>, tensor<i1>, tensor<f32>)
      func.return
    }
    func.func private @cond(%x: tensor<f32>, %p: tensor<i1>, %y: tensor<f32>) -> tensor<i1> {
      func.return %p : tensor<i1>
    }
    func.func private @body(%x: tensor<f32>, %p: tensor<i1>, %y: tensor<f32>)
        -> (tensor<f32>, tensor<i1>, tensor<f32>) {
      %v = "tf.VarHandleOp"() <{container = "", shared_name = "v"}> : () -> tensor<!tf_type.resource<tensor<f32>>>
      "tf.AssignAddVariableOp"(%v, %x) : (tensor<!tf_type.resource<tensor<f32>>>, tensor<f32>) -> ()
      %0 = "tf.Exp"(%x) : (tensor<f32>) -> tensor<f32>
      %1 = "tf.Const"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
      %2 = "tf.Exp"(%y) : (tensor<f32>) -> tensor<f32>
      func.return %0, %1, %2 : tensor<f32>, tensor<i1>, tensor<f32>
    }
    """,
    )


def _product(name: str, *, first: str = "%w", second: str = "%w") -> str:
    """Returns a loop whose body computes something of two of its three variables: `%i`, `%x` and, invariant, `%w`."""
    kinds = "tensor<i32>, tensor<2x2xf32>, tensor<2x2xf32>"
    arguments = "%i: tensor<i32>, %x: tensor<2x2xf32>, %w: tensor<2x2xf32>"
    return f"""
    func.func @main({arguments}) -> tensor<2x2xf32> {{
      %0:3 = "tf.While"(%i, %x, %w) <{{cond = @cond, body = @body, is_stateless = true,
          parallel_iterations = 10 : i64}}> : ({kinds}) -> ({kinds})
      func.return %0#1 : tensor<2x2xf32>
    }}
    func.func private @cond({arguments}) -> tensor<i1> {{
      %five = "tf.Const"() <{{value = dense<5> : tensor<i32>}}> : () -> tensor<i32>
      %0 = "tf.Less"(%i, %five) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      func.return %0 : tensor<i1>
    }}
    func.func private @body({arguments}) -> ({kinds}) {{
      %one = "tf.Const"() <{{value = dense<1> : tensor<i32>}}> : () -> tensor<i32>
      %0 = "tf.AddV2"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %t = "tf.Tanh"({first}) : (tensor<2x2xf32>) -> tensor<2x2xf32>
      %1 = "{name}"(%t, {second}) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      %2 = "tf.Sub"(%1, %x) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      func.return %0, %2, %w : {kinds}
    }}
    """


def test_a_product_of_what_no_iteration_changes_is_computed_before(filecheck: FileCheck) -> None:
    filecheck(
        SimplifyControlFlow(),
        f"""
    // CHECK: %t = "tf.Tanh"(%w)
    // CHECK-NEXT: %0 = "tf.MatMul"(%t, %w)
    // CHECK-NEXT: "tf.While"(%i, %x, %0)
    // CHECK: func.func private @body
    // CHECK-NOT: "tf.Tanh"
    // CHECK-NOT: "tf.MatMul"
    {_product("tf.MatMul")}
    """,
    )


@pytest.mark.parametrize(
    "text", [_product("tf.MatMul", first="%x"), _product("tf.MatMul", second="%x"), _product("tf.Mul")]
)
def test_what_changes_or_is_cheap_stays_in_the_loop(text: str) -> None:
    module = _simplified(text)
    main = module.body.block.first_op
    assert main is not None
    assert [op.name for op in main.regions[0].block.ops] == ["tf.While", "func.return"]


@pytest.mark.parametrize(
    ("small", "large"),
    [
        (programs.nested_ifs(100), programs.nested_ifs(500)),
        (programs.nested_loops(60), programs.nested_loops(300)),
        (programs.loops_in_a_row(20, 10), programs.loops_in_a_row(100, 10)),
    ],
    ids=["nested conditions", "nested loops", "loops in a row"],
)
def test_five_times_the_ops_are_five_times_the_work(small: str, large: str) -> None:
    check_linear(SimplifyControlFlow(), small, large, times=5)
