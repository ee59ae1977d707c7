"""Shapes across functions, by the pass `shape-inference`."""

from __future__ import annotations

import pytest

from tests.converter import control_flow_programs as programs
from tests.support.work import check_linear
from tfconvert.converter.passes.shape_inference import ShapeInference
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp


def _inferred(text: str) -> ModuleOp:
    module = IRParser(text).parse_module()
    verify(module)
    ShapeInference().apply(module)
    verify(module)
    return module


def _signature(module: ModuleOp, name: str) -> str:
    """Returns a function's type, by the shapes of what it takes and returns."""
    (function,) = (op for op in module.ops if isinstance(op, FuncOp) and op.sym_name == name)
    inputs, outputs = function.function_type.inputs, function.function_type.results
    short = [
        ", ".join(str(kind).removeprefix("tensor<").removesuffix(">") for kind in side) for side in (inputs, outputs)
    ]
    return " -> ".join(short)


def _choice(then_branch: str, else_branch: str, *, condition: str = "%p", op: str = "tf.If") -> str:
    """Returns a module in which one of two functions gets a `2x3` tensor and a constant."""
    return f"""
    func.func @main(%p: tensor<i1>, %x: tensor<2x3xf32>) -> tensor<*xf32> {{
      %true = "tf.Const"() <{{value = dense<true> : tensor<i1>}}> : () -> tensor<i1>
      %k = "tf.Const"() <{{value = dense<[3, 2]> : tensor<2xi32>}}> : () -> tensor<2xi32>
      %0 = "{op}"({condition}, %x, %k, {condition}) <{{then_branch = @a, else_branch = @b, is_stateless = true}}>
          : (tensor<i1>, tensor<2x3xf32>, tensor<2xi32>, tensor<i1>) -> tensor<*xf32>
      func.return %0 : tensor<*xf32>
    }}
    func.func private @a(%x: tensor<*xf32>, %k: tensor<*xi32>, %c: tensor<i1>) -> tensor<*xf32> {{
      {then_branch}
      func.return %r : tensor<*xf32>
    }}
    func.func private @b(%x: tensor<*xf32>, %k: tensor<*xi32>, %c: tensor<i1>) -> tensor<*xf32> {{
      {else_branch}
      func.return %r : tensor<*xf32>
    }}
    """


_RESHAPE = '%r = "tf.Reshape"(%x, %k) : (tensor<*xf32>, tensor<*xi32>) -> tensor<*xf32>'
_NEG = '%r = "tf.Neg"(%x) : (tensor<*xf32>) -> tensor<*xf32>'
_CONCAT = """%one = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %r = "tf.ConcatV2"(%x, %x, %one) : (tensor<*xf32>, tensor<*xf32>, tensor<i32>) -> tensor<*xf32>"""
_SHAPE = """%t = "tf.BroadcastTo"(%x, %k) : (tensor<*xf32>, tensor<*xi32>) -> tensor<*xf32>
    %r = "tf.Neg"(%t) : (tensor<*xf32>) -> tensor<*xf32>"""


@pytest.mark.parametrize(
    ("then_branch", "else_branch", "result"),
    [(_NEG, _NEG, "2x3xf32"), (_NEG, _CONCAT, "2x?xf32"), (_RESHAPE, _RESHAPE, "3x2xf32"), (_RESHAPE, _NEG, "?x?xf32")],
)
def test_a_condition_has_the_common_facts_of_its_branches(then_branch: str, else_branch: str, result: str) -> None:
    module = _inferred(_choice(then_branch, else_branch))
    assert _signature(module, "main") == f"i1, 2x3xf32 -> {result}"
    assert _signature(module, "a").startswith("2x3xf32, 2xi32, i1 -> ")


def test_a_known_condition_chooses() -> None:
    assert _signature(_inferred(_choice(_NEG, _CONCAT, condition="%true")), "main").endswith("-> 2x3xf32")


def test_a_branch_that_contradicts_itself_is_no_error() -> None:
    """It may be there for other shapes, and never run for these."""
    module = _inferred(_choice(_NEG, _SHAPE))
    assert _signature(module, "main").endswith("-> *xf32")


def test_a_condition_is_known_in_its_branches() -> None:
    inner = '%r = "tf.SelectV2"(%c, %x, %y) : (tensor<i1>, tensor<*xf32>, tensor<f32>) -> tensor<*xf32>'
    constant = '%y = "tf.Const"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>\n'
    text = str(_inferred(_choice(constant + inner, constant + inner)))
    assert "value = dense<true>" in text
    assert "value = dense<false>" in text


def _loop(body: str, returns: str, extra: str = "tensor<2xi32>") -> str:
    """Returns a module with a loop over a counter, `%x` (1x4), `%y` (1x4) and a constant shape."""
    kinds = "tensor<i32>, tensor<*xf32>, tensor<*xf32>, tensor<*xi32>"
    arguments = "%i: tensor<i32>, %x: tensor<*xf32>, %y: tensor<*xf32>, %k: tensor<*xi32>"
    return f"""
    func.func @main(%i: tensor<i32>, %x: tensor<1x4xf32>, %y: tensor<1x4xf32>) -> ({kinds}) {{
      %k = "tf.Const"() <{{value = dense<[1, 4]> : tensor<2xi32>}}> : () -> tensor<2xi32>
      %0:4 = "tf.While"(%i, %x, %y, %k)
          <{{cond = @cond, body = @body, is_stateless = true, parallel_iterations = 10 : i64}}>
          : (tensor<i32>, tensor<1x4xf32>, tensor<1x4xf32>, {extra}) -> ({kinds})
      func.return %0#0, %0#1, %0#2, %0#3 : {kinds}
    }}
    func.func private @cond({arguments}) -> tensor<*xi1> {{
      %0 = "tf.Less"(%i, %i) : (tensor<i32>, tensor<i32>) -> tensor<*xi1>
      func.return %0 : tensor<*xi1>
    }}
    func.func private @body({arguments}) -> ({kinds}) {{
      %zero = "tf.Const"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
      {body}
      func.return {returns} : {kinds}
    }}
    """


_GROW = '%r = "tf.ConcatV2"(%x, %y, %zero) : (tensor<*xf32>, tensor<*xf32>, tensor<i32>) -> tensor<*xf32>'
_KEEP = '%r = "tf.AddV2"(%x, %y) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>'
_RANK = '%r = "tf.ExpandDims"(%x, %zero) : (tensor<*xf32>, tensor<i32>) -> tensor<*xf32>'
_FIXED = '%r = "tf.Reshape"(%x, %k) : (tensor<*xf32>, tensor<*xi32>) -> tensor<*xf32>'


@pytest.mark.parametrize(
    ("body", "returns", "variables"),
    [
        (_KEEP, "%i, %r, %y, %k", "i32, 1x4xf32, 1x4xf32, 2xi32"),
        (_GROW, "%i, %r, %y, %k", "i32, ?x4xf32, 1x4xf32, 2xi32"),
        # What grows is forwarded, one iteration later.
        (_GROW, "%i, %r, %x, %k", "i32, ?x4xf32, ?x4xf32, 2xi32"),
        (_RANK, "%i, %r, %y, %k", "i32, *xf32, 1x4xf32, 2xi32"),
        (_FIXED, "%i, %r, %y, %k", "i32, 1x4xf32, 1x4xf32, 2xi32"),
    ],
)
def test_a_variable_has_facts_that_hold_in_every_iteration(body: str, returns: str, variables: str) -> None:
    module = _inferred(_loop(body, returns))
    assert _signature(module, "body") == f"{variables} -> {variables}"
    assert _signature(module, "cond") == f"{variables} -> i1"
    assert _signature(module, "main") == f"i32, 1x4xf32, 1x4xf32 -> {variables}"


def test_a_constant_is_known_only_where_no_iteration_changes_it() -> None:
    changed = '%n = "tf.ReverseV2"(%k, %axis) : (tensor<*xi32>, tensor<1xi32>) -> tensor<*xi32>'
    axis = '%axis = "tf.Const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>'
    module = _inferred(_loop("\n".join((axis, changed, _FIXED)), "%i, %r, %y, %n"))
    assert _signature(module, "body").endswith("-> i32, ?x?xf32, 1x4xf32, 2xi32")


@pytest.mark.parametrize(
    ("count", "step", "last"),
    [(3, _GROW, "?x4xf32"), (30, _GROW, "?x?xf32"), (30, _KEEP.replace("%y", "%x"), "1x4xf32"), (30, _RANK, "*xf32")],
)
def test_many_variables_that_change_one_after_the_other_settle_soon(count: int, step: str, last: str) -> None:
    """The first one changes in each iteration, and each is next what the one before it was."""
    values = [f"%x{number}" for number in range(count)]
    kinds = ", ".join(["tensor<1x4xf32>", *["tensor<*xf32>"] * count])
    arguments = ", ".join(["%y: tensor<1x4xf32>", *[f"{value}: tensor<*xf32>" for value in values]])
    module = _inferred(f"""
    func.func @main(%p: tensor<i1>, %x: tensor<1x4xf32>) -> tensor<*xf32> {{
      %0:{count + 2} = "tf.While"(%p, {", ".join(["%x"] * (count + 1))}) <{{cond = @cond, body = @body,
          is_stateless = true}}> : (tensor<i1>, {", ".join(["tensor<1x4xf32>"] * (count + 1))}) -> (tensor<i1>, {kinds})
      func.return %0#{count + 1} : tensor<*xf32>
    }}
    func.func private @cond(%p: tensor<i1>, {arguments}) -> tensor<i1> {{
      func.return %p : tensor<i1>
    }}
    func.func private @body(%p: tensor<i1>, {arguments}) -> (tensor<i1>, {kinds}) {{
      %zero = "tf.Const"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
      {step.replace("%x", "%x0").replace("tensor<*xf32>, tensor<*xf32>,", "tensor<*xf32>, tensor<1x4xf32>,")}
      func.return %p, %y, %r, {", ".join(values[:-1])} : tensor<i1>, {kinds}
    }}
    """)
    assert _signature(module, "main") == f"i1, 1x4xf32 -> {last}"


def test_a_shared_function_uses_its_declared_type() -> None:
    call = '"tf.PartitionedCall"(%0, %k, %p) <{f = @b}> : (tensor<*xf32>, tensor<2xi32>, tensor<i1>) -> tensor<*xf32>'
    text = _choice(_NEG, _NEG).replace("func.return %0", f"%1 = {call}\n      func.return %1")
    assert _signature(_inferred(text), "b") == "*xf32, *xi32, i1 -> *xf32"


@pytest.mark.parametrize(
    ("small", "large"),
    [
        (programs.nested_ifs(100), programs.nested_ifs(500)),
        (programs.nested_loops(60), programs.nested_loops(300)),
        (programs.loops_in_a_row(10, 20), programs.loops_in_a_row(50, 20)),
        (programs.loops_in_a_row(1, 200), programs.loops_in_a_row(1, 1000)),
    ],
    ids=["nested conditions", "nested loops", "loops in a row", "a long body"],
)
def test_five_times_the_ops_are_five_times_the_work(small: str, large: str) -> None:
    check_linear(ShapeInference(), small, large, times=5)
