"""The pass `break-up-islands`."""

from __future__ import annotations

from random import Random

import pytest

from tests.converter.pass_texts import FileCheck
from tests.differential import executor_graphs
from tests.differential.random_executor_graphs import random_graph
from tfconvert.converter.ir.edit import erase
from tfconvert.converter.passes.break_up_islands import BreakUpIslands
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.dialects.tf_executor import CONTROL, GraphOp, IslandOp, YieldOp
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value


def test_islands_of_one_op_stay(filecheck: FileCheck) -> None:
    module = filecheck(
        BreakUpIslands(),
        """
    // CHECK: [[A:%[0-9a-z_]+]], [[C:%[0-9a-z_]+]] = tf_executor.island wraps "tf.Relu"(%x)
    // CHECK-NEXT: tf_executor.island([[C]]) wraps "tf.Neg"([[A]])
    // CHECK-NEXT: tf_executor.fetch
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = tf_executor.graph {
        %relu, %c0 = tf_executor.island wraps "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
        %neg, %c1 = tf_executor.island(%c0) wraps "tf.Neg"(%relu) : (tensor<2xf32>) -> tensor<2xf32>
        tf_executor.fetch %neg : tensor<2xf32>
      }
      func.return %0 : tensor<2xf32>
    }
    """,
    )
    assert not BreakUpIslands().apply(module).counts


def test_only_ops_that_touch_the_same_state_wait_for_each_other(filecheck: FileCheck) -> None:
    """Two reads run in any order, the write after both, another variable's write whenever it can."""
    filecheck(
        BreakUpIslands(),
        """
    // CHECK: [[R1:%[0-9a-z_]+]], [[C1:%[0-9a-z_]+]] = tf_executor.island wraps "tf.ReadVariableOp"([[V:%[0-9a-z_]+]])
    // CHECK-NEXT: [[R2:%[0-9a-z_]+]], [[C2:%[0-9a-z_]+]] = tf_executor.island wraps "tf.ReadVariableOp"([[V]])
    // CHECK-NEXT: [[A:%[0-9a-z_]+]], %{{[0-9a-z_]+}} = tf_executor.island wraps "tf.Relu"([[R1]])
    // CHECK-NEXT: [[C3:%[0-9a-z_]+]] = tf_executor.island([[C1]], [[C2]]) wraps "tf.AssignVariableOp"([[V]], [[A]])
    // CHECK-NEXT: [[C4:%[0-9a-z_]+]] = tf_executor.island wraps "tf.AssignVariableOp"([[W:%[0-9a-z_]+]], [[R2]])
    // CHECK-NEXT: [[E:%[0-9a-z_]+]], %{{[0-9a-z_]+}} = tf_executor.island([[C3]], [[C4]]) wraps "tf.Identity"([[R1]])
    // CHECK-NEXT: tf_executor.fetch [[E]]
    func.func @main() -> tensor<f32> {
      %v = "tf.VarHandleOp"() <{container = "", shared_name = "v"}> : () -> tensor<!tf_type.resource<tensor<f32>>>
      %w = "tf.VarHandleOp"() <{container = "", shared_name = "w"}> : () -> tensor<!tf_type.resource<tensor<f32>>>
      %0 = tf_executor.graph {
        %read, %c = tf_executor.island {
          %1 = "tf.ReadVariableOp"(%v) : (tensor<!tf_type.resource<tensor<f32>>>) -> tensor<f32>
          %2 = "tf.ReadVariableOp"(%v) : (tensor<!tf_type.resource<tensor<f32>>>) -> tensor<f32>
          %3 = "tf.Relu"(%1) : (tensor<f32>) -> tensor<f32>
          "tf.AssignVariableOp"(%v, %3) <{validate_shape = false}>
            : (tensor<!tf_type.resource<tensor<f32>>>, tensor<f32>) -> ()
          "tf.AssignVariableOp"(%w, %2) <{validate_shape = false}>
            : (tensor<!tf_type.resource<tensor<f32>>>, tensor<f32>) -> ()
          tf_executor.yield %1 : tensor<f32>
        }
        tf_executor.fetch %read : tensor<f32>
      }
      func.return %0 : tensor<f32>
    }
    """,
    )


def test_what_may_be_dead_stays_together(filecheck: FileCheck) -> None:
    """The Neg alone would run if its operand were alive; it ran only if the other one was alive too."""
    filecheck(
        BreakUpIslands(),
        """
    // CHECK: [[F:%[0-9a-z_]+]], %{{[0-9a-z_]+}}, %{{[0-9a-z_]+}} = tf_executor.Switch %x, %p
    // CHECK: %{{[0-9a-z_]+}}, [[T:%[0-9a-z_]+]], %{{[0-9a-z_]+}} = tf_executor.Switch %x, %q
    // CHECK: [[G:%[0-9a-z_]+]] = tf_executor.island wraps "tf.IdentityN"([[F]], [[T]])
    // CHECK-NEXT: tf_executor.island([[G]]) wraps "tf.Neg"([[F]])
    // CHECK-NEXT: tf_executor.island([[G]]) wraps "tf.Exp"([[T]])
    func.func @main(%p: tensor<i1>, %q: tensor<i1>, %x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
      %0:2 = tf_executor.graph {
        %f, %unused, %c0 = tf_executor.Switch %x, %p : tensor<f32>
        %idle, %t, %c1 = tf_executor.Switch %x, %q : tensor<f32>
        %both:2, %c2 = tf_executor.island {
          %1 = "tf.Neg"(%f) : (tensor<f32>) -> tensor<f32>
          %2 = "tf.Exp"(%t) : (tensor<f32>) -> tensor<f32>
          tf_executor.yield %1, %2 : tensor<f32>, tensor<f32>
        }
        tf_executor.fetch %both#0, %both#1 : tensor<f32>, tensor<f32>
      }
      func.return %0#0, %0#1 : tensor<f32>, tensor<f32>
    }
    """,
    )


def test_islands_without_ops(filecheck: FileCheck) -> None:
    filecheck(
        BreakUpIslands(),
        """
    // CHECK: [[N:%[0-9a-z_]+]] = tf_executor.island wraps "tf.NoOp"()
    // CHECK-NEXT: [[B:%[0-9a-z_]+]], %{{[0-9a-z_]+}} = tf_executor.island([[N]]) wraps "tf.Identity"(%x)
    // CHECK-NEXT: tf_executor.fetch [[B]]
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = tf_executor.graph {
        %c0 = tf_executor.island {
          tf_executor.yield
        }
        %same, %c1 = tf_executor.island(%c0) {
          tf_executor.yield %x : tensor<2xf32>
        }
        tf_executor.fetch %same : tensor<2xf32>
      }
      func.return %0 : tensor<2xf32>
    }
    """,
    )


def _merge(first: IslandOp, second: IslandOp, names: dict[str, str], label: str) -> None:
    """Makes one island of two, the second of which uses the first; notes what its results were called."""
    controls = list(dict.fromkeys(c for c in (*first.operands, *second.operands) if c.owner is not first))
    values: list[Value] = [*first.terminator.operands, *second.terminator.operands]
    ops = [op for island in (first, second) for op in island.body.ops if op is not island.terminator]
    for op in ops:
        op.detach()
    block = Block([*ops, YieldOp.create(operands=values)])
    merged = IslandOp.create(
        operands=controls,
        result_types=[*(value.type for value in values), CONTROL],
        regions=[Region(block)],
        location=NameLoc.get(label),
    )
    assert second.parent is not None
    second.parent.insert_op_before(merged, second)
    count = len(first.terminator.operands)
    for old, new in zip(first.results[:-1], values[:count], strict=True):
        old.replace_uses_with_if(new, lambda use: use.operation in ops or use.operation is block.last_op)
        old.replace_all_uses_with(merged.results[values.index(new)])
    for old, new in zip(second.results[:-1], merged.results[count:-1], strict=True):
        old.replace_all_uses_with(new)
    for island in (first, second):
        island.control.replace_uses_with_if(merged.control, lambda use: use.operation is not second)
    for index, value in enumerate(values):
        assert isinstance(value, OpResult)
        names[f"{label}:{index}"] = f"{node_of(value.op.location)}:{value.index}"
    for island in (second, first):
        erase(island, is_unused=False)


def _coarsen(module: ModuleOp, random: Random) -> dict[str, str]:
    """Merges some islands with ones that feed them; returns what each result of a merged one was called before."""
    names: dict[str, str] = {}
    graph = next(op for op in module.walk() if isinstance(op, GraphOp))
    for number, island in enumerate([op for op in graph.body.ops if isinstance(op, IslandOp)]):
        inputs = [value.owner for op in island.walk() for value in op.operands]
        feeding = [op for op in inputs if isinstance(op, IslandOp) and op.parent is graph.body]
        place = {op: index for index, op in enumerate(graph.body.ops)}
        if feeding and random.random() < 0.7:
            first = random.choice(feeding)
            users = [_at_graph_level(use.operation, graph) for result in first.results for use in result.uses]
            if all(user is island or place[user] > place[island] for user in users):
                _merge(first, island, names, f"merged{number}")
    return names


def _at_graph_level(op: Operation, graph: GraphOp) -> Operation:
    while op.parent is not graph.body:
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return op


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_compute_the_same_and_are_dead_where_they_were(seed: int) -> None:
    random = Random(seed)
    module = executor_graphs.import_whole(random_graph(random, 25))
    names = _coarsen(module, random)
    verify(module)
    before, raced = executor_graphs.run_ours(module)
    assert BreakUpIslands().apply(module).counts["broken-up"] or not names
    verify(module)
    after, raced_after = executor_graphs.run_ours(module)
    raced = raced_after | {names.get(output, output) for output in raced}
    expected = {names.get(output, output): values for output, values in before.items()}
    # What gathers values in between is new, and called after the island that it came from.
    assert {output: values for output, values in after.items() if output not in raced and "merged" not in output} == {
        output: values for output, values in expected.items() if output not in raced
    }
