"""The pass `graph-pruning`."""

from __future__ import annotations

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.passes.graph_pruning import GraphPruning


def test_a_source_keeps_its_sink_and_what_that_needs(filecheck: FileCheck) -> None:
    module = filecheck(
        GraphPruning(),
        """
    // CHECK: NextIteration.Source
    // CHECK: Enter
    // CHECK: "tf.Less"
    // CHECK: "tf.Neg"
    // CHECK: NextIteration.Sink
    // CHECK: Exit
    // CHECK-NOT: Source
    // CHECK: fetch
    func.func @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
      %0 = tf_executor.graph {
        %next, %token, %c0 = tf_executor.NextIteration.Source : tensor<f32>
        %enter, %c1 = tf_executor.Enter %x frame "f" parallel_iterations 10 : tensor<f32>
        %value, %index, %c2 = tf_executor.Merge %enter, %next : tensor<f32>
        %less, %c3 = tf_executor.island wraps "tf.Less"(%value, %y) : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %again, %c4 = tf_executor.LoopCond %less : tensor<i1>
        %done, %todo, %c5 = tf_executor.Switch %value, %again : tensor<f32>
        %neg, %c6 = tf_executor.island wraps "tf.Neg"(%todo) : (tensor<f32>) -> tensor<f32>
        tf_executor.NextIteration.Sink[%token] %neg : tensor<f32>
        %exit, %c7 = tf_executor.Exit %done : tensor<f32>
        %other, %unused, %c8 = tf_executor.NextIteration.Source : tensor<f32>
        %abs, %c9 = tf_executor.island wraps "tf.Abs"(%other) : (tensor<f32>) -> tensor<f32>
        tf_executor.NextIteration.Sink[%unused] %abs : tensor<f32>
        tf_executor.fetch %exit : tensor<f32>
      }
      func.return %0 : tensor<f32>
    }
    """,
    )
    assert not GraphPruning().apply(module).counts


def test_fetched_controls_keep_effects(filecheck: FileCheck) -> None:
    filecheck(
        GraphPruning(),
        """
    // CHECK: "tf.PrintV2"(%text) <{end = "kept"
    // CHECK-NOT: "tf.PrintV2"
    // CHECK: tf_executor.fetch
    func.func @main(%text: tensor<!tf_type.string>) {
      tf_executor.graph {
        %0 = tf_executor.island wraps "tf.PrintV2"(%text) <{end = "kept"}> : (tensor<!tf_type.string>) -> ()
        %1 = tf_executor.island wraps "tf.PrintV2"(%text) <{end = "unseen"}> : (tensor<!tf_type.string>) -> ()
        tf_executor.fetch %0 : !tf_executor.control
      }
      func.return
    }
    """,
    )


def test_what_nested_graphs_and_regions_use_stays(filecheck: FileCheck) -> None:
    filecheck(
        GraphPruning(),
        """
    // CHECK: "tf.Relu"
    // CHECK-NOT: "tf.Exp"
    // CHECK: "tf.Neg"
    // CHECK-NOT: "tf.Abs"
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = tf_executor.graph {
        %relu, %c0 = tf_executor.island wraps "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
        %exp, %c1 = tf_executor.island wraps "tf.Exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
        %inner, %c2 = tf_executor.island {
          %1 = tf_executor.graph {
            %neg, %c3 = tf_executor.island wraps "tf.Neg"(%relu) : (tensor<2xf32>) -> tensor<2xf32>
            %abs, %c4 = tf_executor.island wraps "tf.Abs"(%exp) : (tensor<2xf32>) -> tensor<2xf32>
            tf_executor.fetch %neg : tensor<2xf32>
          }
          tf_executor.yield %1 : tensor<2xf32>
        }
        tf_executor.fetch %inner : tensor<2xf32>
      }
      func.return %0 : tensor<2xf32>
    }
    """,
    )
