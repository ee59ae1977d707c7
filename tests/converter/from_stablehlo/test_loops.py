"""Loops: the range of a counter is known in the body, and loops of constants are computed at conversion."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converter.from_stablehlo.programs import convert, operators, program, results
from tests.support.litert import run
from tfconvert.converter.executor import executor
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.tflite.reader import read_model

# Numbers of LiteRT's operators.
ADD, GATHER, LESS, WHILE = 0, 36, 58, 119

# Reads a row by the loop's counter, counted from the end if it is negative, and adds it up.
SCAN = """    %z = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %f = "stablehlo.constant"() <{value = dense<0.0> : tensor<7xf32>}> : () -> tensor<7xf32>
    %0:3 = "stablehlo.while"(%a, %z, %f) ({
    ^bb0(%x: tensor<5x7xf32>, %i: tensor<i32>, %s: tensor<7xf32>):
      %n = "stablehlo.constant"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>
      %t = "stablehlo.compare"(%i, %n) <{comparison_direction = #stablehlo<comparison_direction LT>}>
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%t) : (tensor<i1>) -> ()
    }, {
    ^bb0(%x: tensor<5x7xf32>, %i: tensor<i32>, %s: tensor<7xf32>):
      %zero = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %one = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %n = "stablehlo.constant"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>
      %l = "stablehlo.compare"(%i, %zero) <{comparison_direction = #stablehlo<comparison_direction LT>}>
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %j = "stablehlo.add"(%i, %n) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %w = "stablehlo.select"(%l, %j, %i) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %r = "stablehlo.dynamic_slice"(%x, %w, %zero) <{slice_sizes = array<i64: 1, 7>}>
          : (tensor<5x7xf32>, tensor<i32>, tensor<i32>) -> tensor<1x7xf32>
      %row = "stablehlo.reshape"(%r) : (tensor<1x7xf32>) -> tensor<7xf32>
      %sum = "stablehlo.add"(%s, %row) : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xf32>
      %next = "stablehlo.add"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%x, %next, %sum) : (tensor<5x7xf32>, tensor<i32>, tensor<7xf32>) -> ()
    }) : (tensor<5x7xf32>, tensor<i32>, tensor<7xf32>) -> (tensor<5x7xf32>, tensor<i32>, tensor<7xf32>)
    return %0#2 : tensor<7xf32>"""


def test_a_counter_needs_no_limits() -> None:
    text = program(SCAN, ["tensor<5x7xf32>"], ["tensor<7xf32>"])
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    (found,) = results(text, x)
    np.testing.assert_array_equal(found, x.sum(0))
    codes = read_model(convert(text)).tree()["operator_codes"]
    assert {code["builtin_code"] for code in codes} == {ADD, GATHER, LESS, WHILE}


def test_a_loop_of_constants_is_computed() -> None:
    body = SCAN.replace("(%a, %z, %f)", "(%k, %z, %f)").replace("    return %0#2", "    %y = X\n    return %y")
    constant = """    %k = "stablehlo.constant"() <{value = dense<2.0> : tensor<5x7xf32>}> : () -> tensor<5x7xf32>\n"""
    body = body.replace("X\n", '"stablehlo.add"(%a, %0#2) : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xf32>\n')
    text = program(constant + body, ["tensor<7xf32>"], ["tensor<7xf32>"])
    x = np.arange(7, dtype=np.float32)
    np.testing.assert_array_equal(results(text, x)[0], x + 10)
    assert operators(convert(text)) == {"ADD": 1}


def _scan(index: str, cell: str) -> str:
    sequence, state = "tensor<5x2x3xf32>", "tensor<2x3xf32>"
    kinds = f"{sequence}, tensor<i32>, {state}, {sequence}"
    body = f"""    %zero = stablehlo.constant dense<0> : tensor<i32>
    %w = stablehlo.constant dense<[[0.5, -0.5, 0.25], [0.125, 1.0, -1.0], [0.75, 0.5, 0.25]]> : tensor<3x3xf32>
    %none = stablehlo.constant dense<0.0> : {state}
    %out = stablehlo.constant dense<0.0> : {sequence}
    %r:4 = stablehlo.while(%x = %a, %i = %zero, %h = %none, %y = %out) : {kinds}
     cond {{
      %n = stablehlo.constant dense<5> : tensor<i32>
      %less = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %less : tensor<i1>
    }} do {{
      %one = stablehlo.constant dense<1> : tensor<i32>
      %last = stablehlo.constant dense<4> : tensor<i32>
      %back = stablehlo.subtract %last, %i : tensor<i32>
      %row = stablehlo.dynamic_slice %x, %{index}, %zero, %zero, sizes = [1, 2, 3]
          : ({sequence}, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x3xf32>
      %v = stablehlo.reshape %row : (tensor<1x2x3xf32>) -> {state}
      {cell}
      %sum = stablehlo.add %v, %p : {state}
      %t = stablehlo.tanh %sum : {state}
      %up = stablehlo.reshape %t : ({state}) -> tensor<1x2x3xf32>
      %new = stablehlo.dynamic_update_slice %y, %up, %back, %zero, %zero
          : ({sequence}, tensor<1x2x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> {sequence}
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %x, %next, %t, %new : {kinds}
    }}
    return %r#3, %r#2 : {sequence}, {state}"""
    return program(body, [sequence], [sequence, state])


PRODUCT = """%p = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0]
          : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>"""


@pytest.mark.parametrize(
    ("index", "cell", "wanted"),
    [
        ("back", PRODUCT, {"REVERSE_V2": 2, "WHILE": 1}),
        ("i", PRODUCT, {"REVERSE_V2": 1, "WHILE": 1}),
        ("back", "%p = stablehlo.negate %h : tensor<2x3xf32>", {"WHILE": 1}),
    ],
    ids=["backwards", "written backwards", "no layer"],
)
def test_recurrent_loops_go_forwards(index: str, cell: str, wanted: dict[str, int]) -> None:
    text = _scan(index, cell)
    assert operators(convert(text)) == wanted
    x = np.linspace(-1, 1, 30, dtype=np.float32).reshape(5, 2, 3)
    expected = executor.run(IRParser(text).parse_module(), "main", [x])
    for found, result in zip(run(convert(text), [x]), expected, strict=True):
        np.testing.assert_allclose(found, result, rtol=1e-5, atol=1e-6)
