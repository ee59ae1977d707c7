"""Loops: the range of a counter is known in the body, and loops of constants are computed at conversion."""

from __future__ import annotations

import numpy as np

from tests.converter.from_stablehlo.programs import convert, operators, program, results
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
