"""The pass `island-coarsening`."""

from __future__ import annotations

from random import Random

import pytest

from tests.converter.pass_texts import FileCheck
from tests.differential import executor_graphs
from tests.differential.random_executor_graphs import random_graph
from tfconvert.converter.passes.break_up_islands import BreakUpIslands
from tfconvert.converter.passes.island_coarsening import IslandCoarsening
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.tf_executor import IslandOp
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import NameLoc


def test_a_graph_of_islands_becomes_one(filecheck: FileCheck) -> None:
    module = filecheck(
        IslandCoarsening(),
        """
    // CHECK: tf_executor.graph
    // CHECK-NEXT: tf_executor.island {
    // CHECK-NEXT: [[A:%[0-9a-z_]+]] = "tf.Relu"(%x)
    // CHECK-NEXT: [[B:%[0-9a-z_]+]] = "tf.Neg"(%x)
    // CHECK-NEXT: "tf.PrintV2"(%text)
    // CHECK-NEXT: [[C:%[0-9a-z_]+]] = "tf.AddV2"([[A]], [[B]])
    // CHECK-NEXT: tf_executor.yield [[A]], [[C]]
    // CHECK-NEXT: }
    // CHECK-NEXT: tf_executor.fetch
    func.func @main(%x: tensor<2xf32>, %text: tensor<!tf_type.string>) -> (tensor<2xf32>, tensor<2xf32>) {
      %0:2 = tf_executor.graph {
        %relu, %c0 = tf_executor.island wraps "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
        %neg, %c1 = tf_executor.island(%c0) wraps "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
        %print = tf_executor.island(%c1) wraps "tf.PrintV2"(%text) : (tensor<!tf_type.string>) -> ()
        %add, %c2 = tf_executor.island(%print) wraps "tf.AddV2"(%relu, %neg)
          : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        tf_executor.fetch %relu, %add, %print : tensor<2xf32>, tensor<2xf32>, !tf_executor.control
      }
      func.return %0#0, %0#1 : tensor<2xf32>, tensor<2xf32>
    }
    """,
    )
    assert not IslandCoarsening().apply(module).counts


def test_what_two_values_may_kill_stays_alone(filecheck: FileCheck) -> None:
    """The sum needs both values, the Neg one of them."""
    module = filecheck(
        IslandCoarsening(),
        """
    // CHECK: wraps "tf.Neg"
    // CHECK: wraps "tf.AddV2"
    func.func @main(%p: tensor<i1>, %q: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
      %0 = tf_executor.graph {
        %f, %t, %c0 = tf_executor.Switch %x, %p : tensor<f32>
        %g, %u, %c1 = tf_executor.Switch %x, %q : tensor<f32>
        %neg, %c2 = tf_executor.island wraps "tf.Neg"(%f) : (tensor<f32>) -> tensor<f32>
        %add, %c3 = tf_executor.island wraps "tf.AddV2"(%neg, %g) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        %merge, %index, %c4 = tf_executor.Merge %add, %t : tensor<f32>
        tf_executor.fetch %merge : tensor<f32>
      }
      func.return %0 : tensor<f32>
    }
    """,
    )
    assert not IslandCoarsening().apply(module).counts


def _islands(module: ModuleOp) -> int:
    return sum(isinstance(op, IslandOp) for op in module.walk())


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_compute_the_same_and_are_dead_where_they_were(seed: int) -> None:
    """Breaking up islands after joining them gives every op the same operands again."""
    module = executor_graphs.import_whole(random_graph(Random(seed), 25))
    before, raced = executor_graphs.run_ours(module)
    count = _islands(module)
    assert IslandCoarsening().apply(module).counts["joined"] == count - _islands(module) > 0
    verify(module)
    _, coarsely_raced = executor_graphs.run_ours(module)
    for op in module.walk():
        if isinstance(op, IslandOp) and op.wrapped is None:
            op.location = NameLoc.get("joined")  # What gathers its values has its name, not its first op's.
    BreakUpIslands().apply(module)
    verify(module)
    after, finely_raced = executor_graphs.run_ours(module)
    raced |= coarsely_raced | finely_raced
    assert {output: after.get(output) for output in before if output not in raced} == {
        output: values for output, values in before.items() if output not in raced
    }
