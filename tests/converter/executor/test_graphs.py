"""tf_executor graphs: what is dead, what runs how often and in which order.

`tests/differential/test_executor_graphs.py` compares random ones with TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support.run_text import run_text
from tfconvert.schema.diagnostics import ConversionError

Values = list[Any]

_FUNCTION = """
func.func @main(%p: tensor<i1>, %x: tensor<i32>) -> tensor<i32> {{
  %0 = tf_executor.graph {{
    {body}
  }}
  func.return %0 : tensor<i32>
}}
"""


def run(body: str, condition: bool = True, value: int = 7, **options: Any) -> int:
    """Runs the ops of a graph that fetches one i32."""
    inputs = [np.array(condition), np.array(value, np.int32)]
    return int(run_text(_FUNCTION.format(body=body), inputs, **options)[0])


def code_of(function: Callable[..., Any], *args: Any, **options: Any) -> str:
    with pytest.raises(ConversionError) as caught:
        function(*args, **options)
    return caught.value.code


SWITCH = """
    %f, %t, %c0 = tf_executor.Switch %x, %p : tensor<i32> {T = i32}
    %neg, %c1 = tf_executor.island wraps "tf.Neg"(%f) : (tensor<i32>) -> tensor<i32>
    %same, %c2 = tf_executor.island wraps "tf.Identity"(%t) : (tensor<i32>) -> tensor<i32>
"""


@pytest.mark.parametrize(("condition", "value", "index"), [(True, 7, 1), (False, -7, 0)])
def test_a_merge_yields_its_live_input_and_which_one_it_was(condition: bool, value: int, index: int) -> None:
    merge = SWITCH + "%m, %i, %c3 = tf_executor.Merge %neg, %same : tensor<i32> {N = 2 : i64, T = i32}\n"
    assert run(merge + "tf_executor.fetch %m : tensor<i32>", condition) == value
    assert run(merge + "tf_executor.fetch %i : tensor<i32>", condition) == index


def test_a_merge_of_dead_values_is_dead() -> None:
    body = (
        SWITCH
        + """
    %m, %i, %c3 = tf_executor.Merge %neg, %f : tensor<i32> {N = 2 : i64, T = i32}
    tf_executor.fetch %m : tensor<i32>"""
    )
    assert code_of(run, body) == "dead-fetch"


def test_a_merge_heeds_no_dead_control() -> None:
    body = (
        SWITCH
        + """
    %m, %i, %c3 = tf_executor.Merge %same, %same, %c1 : tensor<i32> {N = 2 : i64, T = i32}
    tf_executor.fetch %m : tensor<i32>"""
    )
    assert run(body) == 7


@pytest.mark.parametrize(("before", "runs"), [("%c0", True), ("%c1", False)])
def test_a_dead_control_stops_an_island(before: str, runs: bool) -> None:
    body = (
        SWITCH
        + f"""
    %late, %c3 = tf_executor.island({before}) wraps "tf.Identity"(%x) : (tensor<i32>) -> tensor<i32>
    tf_executor.fetch %late : tensor<i32>"""
    )
    assert (run(body) == 7) if runs else (code_of(run, body) == "dead-fetch")


def test_a_control_trigger_runs_after_what_is_dead() -> None:
    body = (
        SWITCH
        + """
    %c3 = tf_executor.ControlTrigger %c1 {}
    %late, %c4 = tf_executor.island(%c3) wraps "tf.Identity"(%x) : (tensor<i32>) -> tensor<i32>
    tf_executor.fetch %late : tensor<i32>"""
    )
    assert run(body) == 7


@pytest.mark.parametrize(("index", "taken"), [(0, 0), (1, 1), (2, 2), (3, 2), (-1, 2)])
def test_an_index_without_an_output_means_the_last_one(index: int, taken: int) -> None:
    body = """
    %s:3, %c0 = tf_executor._SwitchN %x, %x of 3 : tensor<i32> {T = i32}
    %m, %i, %c1 = tf_executor.Merge %s#0, %s#1, %s#2
      : (tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>, !tf_executor.control) {}
    tf_executor.fetch %i : tensor<i32>"""
    assert run(body, value=index) == taken


def loop(entered: str = "%x") -> str:
    """Counts from 0 up to a number."""
    return f"""
    %again, %token, %c10 = tf_executor.NextIteration.Source : tensor<i32> {{T = i32}}
    %zero, %c11 = tf_executor.island wraps "tf.Const"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
    %first, %c12 = tf_executor.Enter %zero frame "f" : tensor<i32> {{T = i32}}
    %limit, %c13 = tf_executor.Enter {entered} frame "f" constant : tensor<i32> {{T = i32}}
    %at, %which, %c14 = tf_executor.Merge %first, %again : tensor<i32> {{N = 2 : i64, T = i32}}
    %less, %c15 = tf_executor.island wraps "tf.Less"(%at, %limit) : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %on, %c16 = tf_executor.LoopCond %less : tensor<i1> {{}}
    %out, %in, %c17 = tf_executor.Switch %at, %on : tensor<i32> {{T = i32}}
    %end, %c18 = tf_executor.Exit %out : tensor<i32> {{T = i32}}
    %same_in, %c19 = tf_executor.island wraps "tf.Identity"(%in) : (tensor<i32>) -> tensor<i32>
    %one, %c20 = tf_executor.island(%c19) wraps "tf.Const"() <{{value = dense<1> : tensor<i32>}}> : () -> tensor<i32>
    %more, %c21 = tf_executor.island wraps "tf.AddV2"(%in, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    tf_executor.NextIteration.Sink[%token] %more : tensor<i32> {{T = i32}}
"""


@pytest.mark.parametrize("count", [0, 1, 5, 10_000])
def test_a_loop_ends_where_it_should(count: int) -> None:
    assert run(loop() + "tf_executor.fetch %end : tensor<i32>", value=count) == count


@pytest.mark.parametrize("dead", ["%f", "%neg"])
def test_a_loop_that_is_entered_dead_is_dead_outside(dead: str) -> None:
    body = SWITCH + loop(dead)
    assert code_of(run, body + "tf_executor.fetch %end : tensor<i32>") == "dead-fetch"
    instead = "%m, %i, %c3 = tf_executor.Merge %end, %x : tensor<i32> {N = 2 : i64, T = i32}\n"
    assert run(body + instead + "tf_executor.fetch %i : tensor<i32>") == 1


def test_an_endless_loop_is_stopped_if_required() -> None:
    body = loop() + "tf_executor.fetch %end : tensor<i32>"
    assert run(body, value=50, max_iterations=50) == 50
    assert code_of(run, body, value=51, max_iterations=50) == "endless-loop"


def test_an_exit_outside_of_loops_is_an_error() -> None:
    body = """
    %c, %c0 = tf_executor.island wraps "tf.Identity"(%x) : (tensor<i32>) -> tensor<i32>
    %e, %c1 = tf_executor.Exit %c : tensor<i32> {T = i32}
    tf_executor.fetch %e : tensor<i32>"""
    assert code_of(run, body) == "outside-frame"


def test_islands_hold_several_ops_graphs_and_calls() -> None:
    text = """
    func.func @main(%x: tensor<i32>) -> tensor<i32> {
      %0 = tf_executor.graph {
        %a, %c0 = tf_executor.island {
          %1 = "tf.AddV2"(%x, %x) : (tensor<i32>, tensor<i32>) -> tensor<i32>
          %2 = tf_executor.graph {
            %3, %c1 = tf_executor.island wraps "tf.Mul"(%1, %x) : (tensor<i32>, tensor<i32>) -> tensor<i32>
            tf_executor.fetch %3 : tensor<i32>
          }
          %4 = "tf.Neg"(%2) : (tensor<i32>) -> tensor<i32>
          tf_executor.yield %4 : tensor<i32>
        }
        %b, %c2 = tf_executor.island wraps "tf.StatefulPartitionedCall"(%a)
          <{f = @next, config = "", config_proto = "", executor_type = ""}> : (tensor<i32>) -> tensor<i32>
        tf_executor.fetch %b : tensor<i32>
      }
      func.return %0 : tensor<i32>
    }
    func.func private @next(%x: tensor<i32>) -> tensor<i32> {
      %0 = tf_executor.graph {
        %a, %c0 = tf_executor.island wraps "tf.Neg"(%x) : (tensor<i32>) -> tensor<i32>
        tf_executor.fetch %a : tensor<i32>
      }
      func.return %0 : tensor<i32>
    }
    """
    assert run_text(text, [np.array(3, np.int32)]) == [18]


def test_effects_come_in_the_order_of_the_controls() -> None:
    text = """
    func.func @main(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
      %0:2 = tf_executor.graph {
        %v, %c0 = tf_executor.island wraps "tf.VarHandleOp"()
          <{container = "", shared_name = "v"}> : () -> tensor<!tf_type.resource<tensor<f32>>>
        %c1 = tf_executor.island wraps "tf.AssignVariableOp"(%v, %x) : (tensor<!tf_type.resource<tensor<f32>>>, tensor<f32>) -> ()
        %old, %c2 = tf_executor.island(%c1) wraps "tf.ReadVariableOp"(%v) : (tensor<!tf_type.resource<tensor<f32>>>) -> tensor<f32>
        %c3 = tf_executor.island(%c2) wraps "tf.AssignAddVariableOp"(%v, %x) : (tensor<!tf_type.resource<tensor<f32>>>, tensor<f32>) -> ()
        %new, %c4 = tf_executor.island(%c3) wraps "tf.ReadVariableOp"(%v) : (tensor<!tf_type.resource<tensor<f32>>>) -> tensor<f32>
        tf_executor.fetch %old, %new : tensor<f32>, tensor<f32>
      }
      func.return %0#0, %0#1 : tensor<f32>, tensor<f32>
    }
    """  # noqa: E501
    assert run_text(text, [np.float32(2)]) == [2, 4]


TRANSFER = """
    %c3 = tf_executor.Send %same key "there" : tensor<i32>
    %there, %c4 = tf_executor.Recv key "NAME" : tensor<i32>
    tf_executor.fetch %there : tensor<i32>"""


@pytest.mark.parametrize(
    ("condition", "name", "code"), [(False, "there", "dead-fetch"), (True, "away", "missing-send")]
)
def test_what_is_received_is_what_was_sent(condition: bool, name: str, code: str) -> None:
    assert run(SWITCH + TRANSFER.replace("NAME", "there")) == 7
    assert code_of(run, SWITCH + TRANSFER.replace("NAME", name), condition) == code
