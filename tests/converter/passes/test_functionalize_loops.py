"""The pass `functionalize-loops`: its output, and that it computes the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.converter.functionalize.graphs import functionalize, imported, refused
from tests.converter.pass_texts import FileCheck
from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.passes.functionalize_loops import FunctionalizeLoops
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.builtin import ModuleOp

LOOP = """
    x Placeholder
    limit Placeholder
    enter Enter x frame=f
    bound Enter limit frame=f constant=yes
    value Merge enter next
    less Less value bound
    cond LoopCond less
    switch Switch value cond
    twice AddV2 switch:1 switch:1
    next NextIteration twice
    exit Exit switch
"""
"""Doubles `x` as long as it is below `limit`."""

VARIABLE = """
    v VarHandleOp shared_name=v
    first AssignVariableOp v x
    ve Enter v frame=f constant=yes T=resource ^first
"""


def test_what_a_loop_only_reads_is_forwarded(filecheck: FileCheck) -> None:
    filecheck(
        FunctionalizeLoops(),
        """
    // CHECK: func.func @main
    // CHECK: [[W:%[a-z0-9_]+]], %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} = tf_executor.island(%before) wraps "tf.While"(%x, %n)
    // CHECK-SAME: body = @"a/loop_body"
    // CHECK-SAME: parallel_iterations = 3
    // CHECK-NEXT: [[N:%[a-z0-9_]+]], %{{[a-z0-9_]+}} = tf_executor.island wraps "tf.Neg"([[W]])
    // CHECK-NEXT: tf_executor.fetch [[N]]
    // CHECK: func.func private @"a/loop_cond"(%{{[a-z0-9_]+}}: tensor<f32>, %{{[a-z0-9_]+}}: tensor<f32>) -> tensor<i1>
    // CHECK: func.func private @"a/loop_body"(%{{[a-z0-9_]+}}: tensor<f32>, [[B:%[a-z0-9_]+]]: tensor<f32>)
    // CHECK: tf_executor.fetch %{{[a-z0-9_]+}}, [[B]] : tensor<f32>, tensor<f32>
    func.func @main(%x: tensor<f32>, %n: tensor<f32>) -> tensor<f32> {
      %0 = tf_executor.graph {
        %unused, %before = tf_executor.island wraps "tf.Neg"(%x) : (tensor<f32>) -> tensor<f32>
        %next, %token, %c0 = tf_executor.NextIteration.Source : tensor<f32>
        %enter, %c1 = tf_executor.Enter %x, %before frame "a/loop" parallel_iterations 3 : tensor<f32>
        %bound, %c2 = tf_executor.Enter %n frame "a/loop" parallel_iterations 3 constant : tensor<f32>
        %value, %index, %c3 = tf_executor.Merge %enter, %next : tensor<f32>
        %less, %c4 = tf_executor.island wraps "tf.Less"(%value, %bound) : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %again, %c5 = tf_executor.LoopCond %less : tensor<i1>
        %done, %todo, %c6 = tf_executor.Switch %value, %again : tensor<f32>
        %sum, %c7 = tf_executor.island wraps "tf.AddV2"(%todo, %bound) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        tf_executor.NextIteration.Sink[%token] %sum : tensor<f32>
        %neg, %c8 = tf_executor.island wraps "tf.Neg"(%done) : (tensor<f32>) -> tensor<f32>
        %exit, %c9 = tf_executor.Exit %neg : tensor<f32>
        tf_executor.fetch %exit : tensor<f32>
      }
      func.return %0 : tensor<f32>
    }
    """,
    )


def changed(old: str, new: str, more: str = "") -> str:
    """Returns the loop with something else in it."""
    assert old in LOOP
    return LOOP.replace(old, new) + more


def outcome(module: ModuleOp) -> tuple[list[Any], list[Any]]:
    """Returns the results of a run, and what is in the variables afterwards."""
    machine = Executor(module, max_iterations=100)
    function = module.body.block.first_op
    assert isinstance(function, FuncOp)
    count = len(function.function_type.inputs)
    results = machine.run("main", [np.array(value, np.float32) for value in (1.5, 20)][:count])
    written = [each.value.tolist() for each in machine.variables.values() if each.value is not None]
    return [value.tolist() for value in results], written


INNER = """
    inner Enter switch:1 frame=g
    ibound Enter bound frame=g constant=yes
    ivalue Merge inner inext
    iless Less ivalue ibound
    icond LoopCond iless
    iswitch Switch ivalue icond
    isum AddV2 iswitch:1 ibound
    inext NextIteration isum
    iexit Exit iswitch
    ineg Abs iexit
"""

BRANCH = """
    positive Less switch:1 bound
    s Switch switch:1 positive
    a Neg s
    b AddV2 s:1 s:1
    m Merge a b
"""

SAME: dict[str, tuple[str, str]] = {
    "a loop": (LOOP, "exit"),
    "merges in the other order": (changed("Merge enter next", "Merge next enter"), "exit"),
    "two variables that begin alike": (
        LOOP
        + """
    other Merge enter onext
    oswitch Switch other cond
    osum AddV2 oswitch:1 switch:1
    onext NextIteration osum
    oexit Exit oswitch""",
        "exit oexit",
    ),
    "an unused variable": (
        LOOP + "s Switch other cond\n onext NextIteration s:1\n other Merge enter onext\n o Exit s",
        "o",
    ),
    "what follows the last iteration": (
        changed("exit Exit switch", "neg Neg switch\n sum AddV2 neg bound\n exit Exit sum"),
        "exit",
    ),
    "a constant that comes out": (LOOP + "same Exit bound", "same exit"),
    "the predicate's value in the body": (changed("switch:1 switch:1", "switch:1 value"), "exit"),
    "a value of the body comes out": (
        changed("exit Exit switch", "exit Exit switch\n no Identity less T=bool\n nexit Exit no T=bool"),
        "exit nexit",
    ),
    "a loop in it": (changed("twice AddV2 switch:1 switch:1", INNER + "twice AddV2 ineg bound"), "exit"),
    "a condition in it": (changed("twice AddV2 switch:1 switch:1", BRANCH + "twice AddV2 m m"), "exit"),
    "control edges into and out of it": (
        changed("enter Enter x", "z Neg x\n enter Enter x ^z") + "w Abs limit ^exit\n",
        "w exit",
    ),
    "an effect in the body": (
        changed("switch:1 switch:1", "switch:1 switch:1 ^w") + VARIABLE + "w AssignVariableOp ve switch:1",
        "exit",
    ),
    "an effect in the predicate": (
        changed("less Less value bound", "less Less value bound ^w") + VARIABLE + "w AssignVariableOp ve value",
        "exit",
    ),
}
"""Name -> graph, what is fetched."""


@pytest.mark.parametrize("name", SAME)
def test_it_computes_the_same(name: str, tmp_path: Path) -> None:
    text, outputs = SAME[name]
    before, after = (imported(text, outputs.split(), tmp_path) for _ in range(2))
    functionalize(after)
    assert outcome(before) == outcome(after)
    assert not any(op.name in ("tf_executor.Enter", "tf_executor.Merge") for op in after.walk())


REFUSED: dict[str, tuple[str, str, str, str]] = {
    "a circle without NextIteration": ("x Placeholder\n a AddV2 x b\n b Neg a", "b", "cyclic-graph", "b <- a <- b"),
    "an output in the loop": (LOOP, "twice", "fetch-in-loop", '"twice"'),
    "an Enter alone": ("x Placeholder\n e Enter x frame=f\n n Neg e\n o Exit n", "o", "loop-condition", "'n'"),
    "an Exit alone": ("x Placeholder\n o Exit x", "o", "mismatched-frames", '"o"'),
    "a NextIteration alone": ("x Placeholder\n n NextIteration x\n o Merge x n", "o", "mismatched-frames", "'o'"),
    "inputs from two loops": (
        LOOP + "other Enter x frame=g\n sum AddV2 twice other\n o Exit sum",
        "o",
        "mismatched-frames",
        "'sum'",
    ),
    "inputs from inside and outside": (LOOP + "sum AddV2 twice x\n o Exit sum", "o", "mismatched-frames", "'twice'"),
    "two predicates": (
        LOOP + "again LoopCond less\n s Switch value again\n o Exit s",
        "exit o",
        "loop-condition",
        "'again'",
    ),
    "a value of the first iteration": (
        changed("switch:1 switch:1", "switch:1 once") + "once Enter x frame=f",
        "exit",
        "loop-variable",
        "'once'",
    ),
    "the number of the first iteration": (
        changed("switch:1 switch:1", "switch:1 n") + "n Cast value:1 SrcT=int DstT=float",
        "exit",
        "loop-variable",
        '"value"',
    ),
    "a Merge of three": (changed("enter next", "enter next bound"), "exit", "loop-variable", '"value"'),
    "a random number that decides and is used": (
        changed("Less value bound", "Less r bound").replace("switch:1 switch:1", "switch:1 r")
        + "shape Const dtype=int value=2\n se Enter shape frame=f constant=yes T=int\n r RandomUniform se ^value",
        "exit",
        "effect-in-condition",
        '"r"',
    ),
    "an effect that predicate and body need": (
        changed("value bound", "value bound ^w").replace("switch:1 switch:1", "switch:1 switch:1 ^w")
        + VARIABLE
        + "w AssignVariableOp ve value",
        "exit",
        "effect-in-condition",
        '"w"',
    ),
}
"""Name -> graph, what is fetched, the error's code, a node that it names."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_loop_is_refused(name: str, tmp_path: Path) -> None:
    text, outputs, code, named = REFUSED[name]
    problem = refused(text, outputs.split(), tmp_path)
    assert problem.code == code
    assert named in str(problem)
