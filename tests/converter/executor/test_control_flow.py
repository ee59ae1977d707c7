"""Control flow in region form, and bodies nested deeper than Python could recurse."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.support.run_text import parse, run_text
from tfconvert.converter.executor import executor
from tfconvert.converter.executor.executor import Executor
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.types import FunctionType

TRUTH = types.tensor(types.I1, ())
NUMBER = types.tensor(types.F32, ())


@pytest.mark.parametrize(("condition", "expected"), [(True, 6), (False, -3)])
def test_branches_see_values_around_them(condition: bool, expected: int) -> None:
    text = """
    func.func @main(%p: tensor<i1>, %x: tensor<i32>) -> tensor<i32> {
      %twice = "tf.AddV2"(%x, %x) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %0 = "tf.IfRegion"(%p) <{is_stateless = true}> ({
        "tf.Yield"(%twice) : (tensor<i32>) -> ()
      }, {
        %1 = "tf.Neg"(%x) : (tensor<i32>) -> tensor<i32>
        "tf.Yield"(%1) : (tensor<i32>) -> ()
      }) : (tensor<i1>) -> tensor<i32>
      func.return %0 : tensor<i32>
    }
    """
    assert run_text(text, [np.array(condition), np.array(3, np.int32)]) == [expected]


@pytest.mark.parametrize(("index", "expected"), [(0, 5), (1, -5), (9, -5), (-1, -5)])
def test_an_index_without_a_case_means_the_last_one(index: int, expected: int) -> None:
    text = """
    func.func @main(%i: tensor<i32>, %x: tensor<i32>) -> tensor<i32> {
      %0 = "tf.CaseRegion"(%i) <{is_stateless = true}> ({
        "tf.Yield"(%x) : (tensor<i32>) -> ()
      }, {
        %1 = "tf.Neg"(%x) : (tensor<i32>) -> tensor<i32>
        "tf.Yield"(%1) : (tensor<i32>) -> ()
      }) : (tensor<i32>) -> tensor<i32>
      func.return %0 : tensor<i32>
    }
    """
    assert run_text(text, [np.array(index, np.int32), np.array(5, np.int32)]) == [expected]


LOOP = """
    func.func @main(%n: tensor<i32>, %by: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
      %zero = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %0:2 = "tf.WhileRegion"(%zero, %zero) <{is_stateless = true}> ({
      ^bb0(%i: tensor<i32>, %sum: tensor<i32>):
        %less = "tf.Less"(%i, %n) : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "tf.Yield"(%less, %i, %sum) : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()
      }, {
      ^bb0(%i: tensor<i32>, %sum: tensor<i32>):
        %one = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %next = "tf.AddV2"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %more = "tf.AddV2"(%sum, %by) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        "tf.Yield"(%next, %more) : (tensor<i32>, tensor<i32>) -> ()
      }) : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)
      func.return %0#0, %0#1 : tensor<i32>, tensor<i32>
    }
    """


def test_loops_see_values_around_them() -> None:
    assert run_text(LOOP, [np.array(4, np.int32), np.array(10, np.int32)]) == [4, 40]


def test_an_endless_loop_is_stopped_if_required() -> None:
    inputs = [np.array(8, np.int32), np.array(1, np.int32)]
    assert run_text(LOOP, inputs, max_iterations=8) == [8, 8]
    with pytest.raises(ConversionError) as caught:
        run_text(LOOP, inputs, max_iterations=7)
    assert caught.value.code == "endless-loop"


def test_what_runs_once_does_not_run_again() -> None:
    handle = "tensor<!tf_type.resource<tensor<f32>>>"
    variable = f'%v = "tf.VarHandleOp"() <{{container = "", shared_name = "v"}}> : () -> {handle}'
    count = Executor(
        parse(f"""
    func.func @main(%x: tensor<f32>) -> tensor<f32> {{
      "tfl.call_once"() <{{session_init_function = @begin}}> : () -> ()
      {variable}
      "tf.AssignAddVariableOp"(%v, %x) : ({handle}, tensor<f32>) -> ()
      %0 = "tf.ReadVariableOp"(%v) : ({handle}) -> tensor<f32>
      func.return %0 : tensor<f32>
    }}
    func.func private @begin() {{
      {variable}
      %0 = "tf.Const"() <{{value = dense<10.0> : tensor<f32>}}> : () -> tensor<f32>
      "tf.AssignVariableOp"(%v, %0) : ({handle}, tensor<f32>) -> ()
      func.return
    }}""")
    )
    assert [count.run("main", [np.array(2, np.float32)])[0] for _ in range(3)] == [12, 14, 16]


def test_nesting_does_not_reach_the_recursion_limit() -> None:
    depth = 900
    bodies = [Block() for _ in range(depth)]
    main = Block(arg_types=[TRUTH, NUMBER])
    condition, value = main.args
    for outer, inner in itertools.pairwise([main, *bodies]):
        other = Region(Block([tf.build("Yield", [value], [])]))
        branch = tf.build("IfRegion", operands=[condition], result_types=[NUMBER], regions=[Region(inner), other])
        outer.add_op(branch)
        if outer is not main:
            outer.add_op(tf.build("Yield", branch.results, []))
    deepest = tf.build("Neg", [value], [NUMBER])
    bodies[-1].add_ops([deepest, tf.build("Yield", deepest.results, [])])
    assert main.first_op is not None
    main.add_op(ReturnOp.of(main.first_op.results))
    module = ModuleOp.of([FuncOp.of("main", FunctionType.get([TRUTH, NUMBER], [NUMBER]), Region(main))])
    assert executor.run(module, "main", [np.array(True), np.array(3, np.float32)]) == [-3]
