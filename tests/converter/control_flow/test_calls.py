"""Calls of a module: which values become which."""

from __future__ import annotations

import pytest

from tests.support.run_text import parse
from tfconvert.converter.control_flow.calls import Calls
from tfconvert.schema.diagnostics import ConversionError

LOOP = """
func.func @main(%n: tensor<i32>) -> tensor<i32> {{
  %0 = "tf.While"(%n) <{{{names}}}> : (tensor<i32>) -> tensor<i32>
  func.return %0 : tensor<i32>
}}
func.func private @cond(%n: tensor<i32>) -> tensor<i1> {{
  %zero = "tf.Const"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
  %0 = "tf.Greater"(%n, %zero) : (tensor<i32>, tensor<i32>) -> tensor<i1>
  func.return %0 : tensor<i1>
}}
func.func private @body(%n: tensor<i32>) -> tensor<i32> {{
  %one = "tf.Const"() <{{value = dense<1> : tensor<i32>}}> : () -> tensor<i32>
  %0 = "tf.Sub"(%n, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  func.return %0 : tensor<i32>
}}
"""


def test_a_loop_calls_its_condition_and_its_body() -> None:
    module = parse(LOOP.format(names="cond = @cond, body = @body"))
    calls = Calls(module)
    ((loop, (condition, body)),) = calls.of.items()
    assert (condition.is_condition, body.is_condition) == (True, False)
    variable = calls.functions["body"].body.block.args[0]
    assert (variable, loop.operands[0]) in list(body.same())
    assert (variable, body.returned[0]) in list(body.same())
    assert (loop.results[0], condition.returned[0]) not in list(condition.same())


@pytest.mark.parametrize("missing", ["cond", "body"])
def test_a_loop_must_name_both(missing: str) -> None:
    module = parse(LOOP.format(names="cond = @cond, body = @body"))
    (loop,) = (op for op in module.walk() if op.name == "tf.While")
    del loop.properties[missing]
    with pytest.raises(ConversionError, match="should name a function") as problem:
        Calls(module)
    assert problem.value.code == "bad-operand"
