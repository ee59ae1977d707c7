"""Loops for IREE: carried values, and bounds of sizes."""

from __future__ import annotations

import pytest

from benchmarks.iree_probe import forms
from tfconvert.converter.targets.iree.passes.stablehlo_to_iree_input import StablehloToIreeInput
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp


def test_a_loop_that_iree_may_mix_up_is_told() -> None:
    text = """func.func @main(%x: tensor<?x?x?x?x512xf32>, %y: tensor<?x?x?x?x512xf32>, %c: tensor<i1>)
      -> tensor<?x?x?x?x512xf32> {
      %r:2 = "stablehlo.while"(%x, %y) ({
      ^bb0(%a: tensor<?x?x?x?x512xf32>, %b: tensor<?x?x?x?x512xf32>):
        "stablehlo.return"(%c) : (tensor<i1>) -> ()
      }, {
      ^bb0(%a: tensor<?x?x?x?x512xf32>, %b: tensor<?x?x?x?x512xf32>):
        "stablehlo.return"(%b, %a) : (tensor<?x?x?x?x512xf32>, tensor<?x?x?x?x512xf32>) -> ()
      }) : (tensor<?x?x?x?x512xf32>, tensor<?x?x?x?x512xf32>) -> (tensor<?x?x?x?x512xf32>, tensor<?x?x?x?x512xf32>)
      func.return %r#0 : tensor<?x?x?x?x512xf32>
    }"""
    result = StablehloToIreeInput().apply(IRParser(text).parse_module())
    assert [(note.code, note.severity) for note in result.notes] == [("iree-loop", "warning")]
    for other in ("?x?x?x512", "4x4x4x4x512"):
        assert not StablehloToIreeInput().apply(IRParser(text.replace("?x?x?x?x512", other)).parse_module()).notes


def test_a_loop_with_a_size_that_is_a_quotient_is_told() -> None:
    text = """func.func @main(%x: tensor<?x?xf32>, %c: tensor<i1>) -> tensor<?xf32> {
      %n = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?x?xf32>) -> tensor<i32>
      %m = "stablehlo.get_dimension_size"(%x) <{dimension = 1 : i64}> : (tensor<?x?xf32>) -> tensor<i32>
      %0 = "stablehlo.divide"(%n, %m) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %1 = "stablehlo.reshape"(%0) : (tensor<i32>) -> tensor<1xi32>
      %y = "stablehlo.dynamic_iota"(%1) <{iota_dimension = 0 : i64}> : (tensor<1xi32>) -> tensor<?xf32>
      %r:2 = "stablehlo.while"(%x, %y) ({
      ^bb0(%a: tensor<?x?xf32>, %b: tensor<?xf32>):
        "stablehlo.return"(%c) : (tensor<i1>) -> ()
      }, {
      ^bb0(%a: tensor<?x?xf32>, %b: tensor<?xf32>):
        %d = "stablehlo.tanh"(%a) : (tensor<?x?xf32>) -> tensor<?x?xf32>
        %e = "stablehlo.tanh"(%b) : (tensor<?xf32>) -> tensor<?xf32>
        "stablehlo.return"(%d, %e) : (tensor<?x?xf32>, tensor<?xf32>) -> ()
      }) : (tensor<?x?xf32>, tensor<?xf32>) -> (tensor<?x?xf32>, tensor<?xf32>)
      func.return %r#1 : tensor<?xf32>
    }"""
    result = StablehloToIreeInput().apply(IRParser(text).parse_module())
    assert [note.code for note in result.notes] == ["iree-loop"]
    known = text.replace('"stablehlo.divide"(%n, %m)', '"stablehlo.multiply"(%n, %m)')
    assert not StablehloToIreeInput().apply(IRParser(known).parse_module()).notes


LOOP = """func.func @main(%n: tensor<i32>, %x: TYPE) -> (TYPE, TYPE) {
  %0:3 = "stablehlo.while"(%n, %x, %x) ({
  ^bb0(%i: tensor<i32>, %a: TYPE, %y: TYPE):
    %1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = "stablehlo.compare"(%i, %1) <{comparison_direction = #stablehlo<comparison_direction GT>}>
      : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.return"(%2) : (tensor<i1>) -> ()
  }, {
  ^bb0(%i: tensor<i32>, %a: TYPE, %y: TYPE):
    %1 = "stablehlo.subtract"(%n, %i) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %2 = "stablehlo.add"(ADDED) : (TYPE, TYPE) -> TYPE
    "stablehlo.return"(%1, RETURNED) : (tensor<i32>, TYPE, TYPE) -> ()
  }) : (tensor<i32>, TYPE, TYPE) -> (tensor<i32>, TYPE, TYPE)
  func.return %0#1, %0#2 : TYPE, TYPE
}"""


def _looping(kind: str, added: str = "%a, %y", returned: str = "%a, %2") -> ModuleOp:
    module = IRParser(LOOP.replace("TYPE", kind).replace("ADDED", added).replace("RETURNED", returned)).parse_module()
    StablehloToIreeInput().apply(module)
    return module


@pytest.mark.parametrize(
    ("added", "returned", "count"),
    [
        ("%a, %y", "%y, %2", 0),
        ("%a, %y", "%a, %2", 0),
        ("%a, %a", "%a, %2", 1),  # The step doesn't read `%y`.
        ("%a, %y", "%2, %x", 1),  # It carries the same value each time,
        ("%a, %y", "%2, %2", 1),  # or one value twice.
    ],
)
@pytest.mark.parametrize("kind", ["tensor<4xf32>", "tensor<?xf32>", "tensor<2xui8>", "tensor<i32>"])
def test_what_iree_would_remove_on_one_side_of_a_loop_is_kept(kind: str, added: str, returned: str, count: int) -> None:
    ops = [op.name for op in _looping(kind, added, returned).walk()]
    assert ops.count("arith.select") == count
    assert ops.count("util.optimization_barrier") == min(count, 1)


def test_the_values_of_variables_are_copied_before_loops() -> None:
    (form,) = [each for each in forms() if each.form == "two variables that a loop begins with"]
    module = IRParser(form.text).parse_module()
    StablehloToIreeInput().apply(module)
    ops = [op.name for op in module.walk()]
    assert ops.count("arith.select") == 2
    assert ops.index("arith.select") < ops.index("stablehlo.while")


def test_sizes_are_bounded_where_there_are_loops() -> None:
    text = str(_looping("tensor<?x?x4xf32>"))
    most = (1 << (58 - 5) // 2) - 1  # A row of four has sixteen bytes, a number of five bits.
    assert text.count(f"a size is above {most}") == 2
    assert text.count("flow.tensor.tie_shape") == 1
    assert "a size is above 2147483647" in str(_looping("tensor<?xf32>"))
    assert "a size is above" not in str(_looping("tensor<4xf32>"))
    straight = "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { func.return %x : tensor<?xf32> }"
    module = IRParser(straight).parse_module()
    StablehloToIreeInput().apply(module)
    assert "a size is above" not in str(module)
