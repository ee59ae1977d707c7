"""The pass `functionalize-conditionals`: its output, and that it computes the same."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.converter.pass_texts import FileCheck
from tests.support.run_text import parse
from tfconvert.converter.executor import executor
from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.passes.functionalize_conditionals import FunctionalizeConditionals
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.ir.builtin import ModuleOp

SWITCHED = """
    %sf, %st, %c0 = tf_executor.Switch %x, %p : tensor<f32>
    %neg, %c1 = tf_executor.island wraps "tf.Neg"(%sf) : (tensor<f32>) -> tensor<f32>
    %exp, %c2 = tf_executor.island wraps "tf.Exp"(%st) : (tensor<f32>) -> tensor<f32>
"""
"""Both branches of `%p`: `%neg` and `%exp`."""

MERGED = SWITCHED + "%m, %i, %c3 = tf_executor.Merge %neg, %exp : tensor<f32>\n"

VARIABLE = """
    %v, %cv = tf_executor.island wraps "tf.VarHandleOp"()
      <{container = "", shared_name = "v"}> : () -> tensor<!tf_type.resource<tensor<f32>>>
"""

ASSIGN = 'wraps "tf.AssignVariableOp"(%v, {}) : (tensor<!tf_type.resource<tensor<f32>>>, tensor<f32>) -> ()\n'

READ = 'wraps "tf.ReadVariableOp"(%v) : (tensor<!tf_type.resource<tensor<f32>>>) -> tensor<f32>\n'


def main(body: str, fetched: str = "%m : tensor<f32>") -> str:
    """Returns a function of a graph that takes the predicates p and q, the number x and the index n."""
    results = ", ".join(part.strip() for part in fetched.partition(":")[2].split(",") if "control" not in part)
    count = results.count("tensor")
    returned = ", ".join(f"%r#{index}" for index in range(count))
    return f"""
    func.func @main(%p: tensor<i1>, %q: tensor<i1>, %x: tensor<f32>, %n: tensor<i32>) -> ({results}) {{
      %r:{count} = tf_executor.graph {{
        {body}
        tf_executor.fetch {fetched}
      }}
      func.return {returned} : {results}
    }}"""


def outcome(module: ModuleOp, inputs: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Returns the results of a run, and what is in the variables afterwards."""
    machine = Executor(module)
    results = [value.tolist() for value in machine.run("main", inputs)]
    return results, {
        name: None if each.value is None else each.value.tolist() for name, each in machine.variables.items()
    }


def check(text: str) -> ModuleOp:
    """Returns the module after the pass, which has not changed what it does for any predicates."""
    module, rewritten = parse(text), parse(text)
    FunctionalizeConditionals().apply(rewritten)
    verify(rewritten)
    assert not any(op.name in ("tf_executor.Switch", "tf_executor.Merge") for op in rewritten.walk())
    for p, q, n in product((False, True), (False, True), (0, 1, 2, 5)):
        inputs = [np.array(p), np.array(q), np.float32(1.5), np.int32(n)]
        assert outcome(module, inputs) == outcome(rewritten, inputs), (p, q, n)
    return rewritten


def ops(module: ModuleOp, *names: str) -> int:
    """Returns how many ops of some names there are."""
    return sum(op.name in names for op in module.walk())


def test_results_of_one_conditional_come_from_one_op(filecheck: FileCheck) -> None:
    filecheck(
        FunctionalizeConditionals(),
        """
    // CHECK: func.func @main
    // CHECK: [[IF:%[a-z0-9_]+]], [[SAME:%[a-z0-9_]+]], [[C:%[a-z0-9_]+]] = tf_executor.island wraps "tf.If"(%p, %x)
    // CHECK-SAME: is_stateless = true
    // CHECK-SAME: (tensor<i1>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    // CHECK-NEXT: tf_executor.fetch [[IF]], [[SAME]] : tensor<f32>, tensor<f32>
    // CHECK: func.func private @cond_else([[A:%[a-z0-9_]+]]: tensor<f32>) -> (tensor<f32>, tensor<f32>)
    // CHECK: "tf.Neg"([[A]])
    // CHECK: func.func private @cond_then([[B:%[a-z0-9_]+]]: tensor<f32>) -> (tensor<f32>, tensor<f32>)
    // CHECK: [[E:%[a-z0-9_]+]], %{{.*}} = tf_executor.island wraps "tf.Exp"([[B]])
    // CHECK-NEXT: tf_executor.fetch [[E]], [[B]]
    func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
      %r:2 = tf_executor.graph {
        %id, %ci = tf_executor.island wraps "tf.Identity"(%p) : (tensor<i1>) -> tensor<i1>
        %sf, %st, %c0 = tf_executor.Switch %x, %id : tensor<f32>
        %tf, %tt, %c1 = tf_executor.Switch %x, %p : tensor<f32>
        %neg, %c2 = tf_executor.island wraps "tf.Neg"(%sf) : (tensor<f32>) -> tensor<f32>
        %exp, %c3 = tf_executor.island wraps "tf.Exp"(%st) : (tensor<f32>) -> tensor<f32>
        %m, %i, %c4 = tf_executor.Merge %neg, %exp : tensor<f32>
        %k, %j, %c5 = tf_executor.Merge %tf, %tt : tensor<f32>
        tf_executor.fetch %m, %k : tensor<f32>, tensor<f32>
      }
      func.return %r#0, %r#1 : tensor<f32>, tensor<f32>
    }
    """,
    )


SECOND = """
    %uf, %ut, %c10 = tf_executor.Switch {value}, {predicate} : tensor<f32>
    %abs, %c11 = tf_executor.island wraps "tf.Abs"(%uf) : (tensor<f32>) -> tensor<f32>
    %sq, %c12 = tf_executor.island wraps "tf.Square"(%ut) : (tensor<f32>) -> tensor<f32>
    %k, %j, %c13 = tf_executor.Merge %abs, %sq : tensor<f32>
"""

THREE = """
    %of, %ot, %c10 = tf_executor.Switch %st, %q : tensor<f32>
    %abs, %c11 = tf_executor.island wraps "tf.Abs"(%of) : (tensor<f32>) -> tensor<f32>
    %m, %i, %c12 = tf_executor.Merge %ot, %neg, %abs
      : (tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<i32>, !tf_executor.control)
"""

NUMBERED = """
    %s:3, %c0 = tf_executor._SwitchN %x, %n of 3 : tensor<f32>
    %neg, %c1 = tf_executor.island wraps "tf.Neg"(%s#0) : (tensor<f32>) -> tensor<f32>
    %exp, %c2 = tf_executor.island wraps "tf.Exp"(%s#1) : (tensor<f32>) -> tensor<f32>
    %m, %i, %c3 = tf_executor.Merge %s#2, %neg, %exp
      : (tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<i32>, !tf_executor.control)
"""

NEST = """
    %uf, %ut, %c10 = tf_executor.Switch %neg, %q : tensor<f32>
    %abs, %c11 = tf_executor.island wraps "tf.Abs"(%uf) : (tensor<f32>) -> tensor<f32>
    %k, %j, %c12 = tf_executor.Merge %abs, %ut : tensor<f32>
    %m, %i, %c13 = tf_executor.Merge %k, %exp : tensor<f32>
"""

CONSTANT = '%t, %ct = tf_executor.island wraps "tf.Const"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>\n'

FETCH_BOTH = "%m, %k : tensor<f32>, tensor<f32>"

GROUPED: dict[str, tuple[str, str, int]] = {
    "one": (MERGED, "%m : tensor<f32>", 1),
    "inputs in the other order": (
        SWITCHED + "%m, %i, %c3 = tf_executor.Merge %exp, %neg : tensor<f32>",
        "%m, %i : tensor<f32>, tensor<i32>",
        1,
    ),
    "the index": (MERGED, "%i : tensor<i32>", 1),
    "one in another": (SWITCHED + NEST, "%m : tensor<f32>", 2),
    "one behind another by the same predicate": (MERGED + SECOND.format(value="%m", predicate="%p"), FETCH_BOTH, 2),
    "one beside another by the same predicate": (MERGED + SECOND.format(value="%x", predicate="%p"), FETCH_BOTH, 1),
    "one behind another by another predicate": (MERGED + SECOND.format(value="%m", predicate="%q"), FETCH_BOTH, 2),
    "three inputs": (SWITCHED + THREE, "%m : tensor<f32>", 2),
    "three inputs and the index": (SWITCHED + THREE, "%m, %i : tensor<f32>, tensor<i32>", 2),
    "numbered": (NUMBERED, "%m, %i : tensor<f32>, tensor<i32>", 1),
    "a constant predicate": (CONSTANT + MERGED.replace("%p", "%t"), "%m, %i : tensor<f32>, tensor<i32>", 0),
    "the same predicate inside": (SWITCHED + NEST.replace("%q", "%p"), "%m : tensor<f32>", 1),
    "a control trigger": (
        SWITCHED
        + """
    %c5 = tf_executor.ControlTrigger %c1, %c2 {}
    %m, %c6 = tf_executor.island(%c5) wraps "tf.Abs"(%x) : (tensor<f32>) -> tensor<f32>
    """,
        "%m : tensor<f32>",
        1,
    ),
    "dead control of a merge": (
        CONSTANT
        + """
    %tf, %tt, %c5 = tf_executor.Switch %x, %t : tensor<f32>
    %dead, %c6 = tf_executor.island wraps "tf.Neg"(%tf) : (tensor<f32>) -> tensor<f32>
    """
        + SWITCHED
        + "%m, %i, %c7 = tf_executor.Merge %neg, %exp, %c6 : tensor<f32>",
        "%m : tensor<f32>",
        1,
    ),
}
"""Name -> graph, what is fetched, how many conditionals become of it."""


@pytest.mark.parametrize("name", GROUPED)
def test_it_computes_the_same(name: str) -> None:
    body, fetched, count = GROUPED[name]
    assert ops(check(main(body, fetched)), "tf.If", "tf.Case") == count


def test_two_that_need_each_other_are_apart() -> None:
    """Of two pairs of Merges by `p` and by `q`, one of each needs one of the other."""
    pair = """
    %{0}f, %{0}t, %c0{0} = tf_executor.Switch {1}, {2} : tensor<f32>
    %{0}n, %c1{0} = tf_executor.island wraps "tf.Neg"(%{0}f) : (tensor<f32>) -> tensor<f32>
    %{0}, %{0}i, %c2{0} = tf_executor.Merge %{0}n, %{0}t : tensor<f32>
    """
    body = pair.format("a", "%x", "%p") + pair.format("b", "%a", "%q") + pair.format("d", "%x", "%q")
    body += pair.format("e", "%d", "%p")
    assert ops(check(main(body, "%b, %e : tensor<f32>, tensor<f32>")), "tf.If") == 4


def test_a_value_of_a_branch_is_computed_always_if_it_is_fetched() -> None:
    text = main(MERGED, "%m, %exp : tensor<f32>, tensor<f32>")
    module = parse(text)
    assert FunctionalizeConditionals().apply(module).counts == {"speculate": 1}
    verify(module)
    inputs = [np.array(False), np.array(True), np.array(0, np.float32), np.array(0, np.int32)]
    assert executor.run(module, "main", inputs) == [0, 1]


EFFECTS: dict[str, str] = {
    "in one branch, needed": SWITCHED
    + f"""
    %c5 = tf_executor.island(%c1) {ASSIGN.format("%neg")}
    %same, %c6 = tf_executor.island(%c5) wraps "tf.Identity"(%neg) : (tensor<f32>) -> tensor<f32>
    %m, %i, %c7 = tf_executor.Merge %same, %exp : tensor<f32>""",
    "in one branch, fetched": SWITCHED
    + f"""
    %c5 = tf_executor.island {ASSIGN.format("%neg")}
    %m, %i, %c7 = tf_executor.Merge %neg, %exp, %c5 : tensor<f32>""",
    "in a branch of a branch": MERGED
    + f"""
    %uf, %ut, %c10 = tf_executor.Switch %neg, %q : tensor<f32>
    %c11 = tf_executor.island {ASSIGN.format("%ut")}
    %c12 = tf_executor.ControlTrigger %c11 {{}}""",
    "after the conditional": MERGED
    + f"""
    %c5 = tf_executor.island(%c3) {ASSIGN.format("%m")}""",
    "before the conditional": f"""
    %c20 = tf_executor.island {ASSIGN.format("%x")}
    %y, %c21 = tf_executor.island(%c20) {READ}
    """
    + MERGED.replace("%x", "%y"),
    "a read in the branch, a write after it": f"""
    %c20 = tf_executor.island {ASSIGN.format("%x")}
    %sf, %st, %c0 = tf_executor.Switch %x, %p : tensor<f32>
    %same, %c1 = tf_executor.island(%c20) wraps "tf.Identity"(%sf) : (tensor<f32>) -> tensor<f32>
    %read, %c2 = tf_executor.island(%c1) {READ}
    %m, %i, %c3 = tf_executor.Merge %read, %st : tensor<f32>
    %two, %c4 = tf_executor.island(%c3) wraps "tf.AddV2"(%x, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %c5 = tf_executor.island(%c4) {ASSIGN.format("%two")}""",
}


@pytest.mark.parametrize("name", EFFECTS)
def test_effects_happen_where_they_did(name: str) -> None:
    body = VARIABLE + EFFECTS[name]
    last = "%c12" if "%c12 =" in body else "%c5" if "%c5 =" in body else "%c3"
    check(main(body, f"%m, {last} : tensor<f32>, !tf_executor.control"))


REFUSED: dict[str, tuple[str, str, str]] = {
    "a merge of unrelated branches": (
        SWITCHED
        + """
    %uf, %ut, %c10 = tf_executor.Switch %x, %q : tensor<f32>
    %m, %i, %c11 = tf_executor.Merge %neg, %ut : tensor<f32>""",
        "%m : tensor<f32>",
        "unstructured-merge",
    ),
    "a merge of what is always alive": (
        '%a, %c0 = tf_executor.island wraps "tf.Neg"(%x) : (tensor<f32>) -> tensor<f32>\n'
        "%m, %i, %c1 = tf_executor.Merge %a, %x : tensor<f32>",
        "%m : tensor<f32>",
        "unstructured-merge",
    ),
    "both branches at once": (
        SWITCHED + '%m, %c5 = tf_executor.island wraps "tf.AddV2"(%neg, %exp) '
        ": (tensor<f32>, tensor<f32>) -> tensor<f32>",
        "%m : tensor<f32>",
        "dead-fetch",
    ),
    "an effect that is needed outside of its branch": (
        VARIABLE
        + SWITCHED
        + f"""
    %c5 = tf_executor.island {ASSIGN.format("%neg")}
    %same, %c6 = tf_executor.island(%c5) wraps "tf.Identity"(%neg) : (tensor<f32>) -> tensor<f32>
    %m, %i, %c7 = tf_executor.Merge %same, %exp : tensor<f32>
    """,
        "%m, %same : tensor<f32>, tensor<f32>",
        "effect-in-branch",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_functional_form_is_refused(name: str) -> None:
    body, fetched, code = REFUSED[name]
    with pytest.raises(ConversionError) as caught:
        FunctionalizeConditionals().apply(parse(main(body, fetched)))
    assert caught.value.code == code
