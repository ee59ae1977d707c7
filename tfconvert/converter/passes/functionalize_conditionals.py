"""Pass `functionalize-conditionals`: converts Switches and Merges to `tf.If`, inner ones first.

Those of `_SwitchN` become `tf.Case`. The functions of the branches get the ops that a Merge's inputs need and that run
only on their side, copies of constants, and effects on this side that no Merge needs. A known predicate leaves one side
only. A value that is fetched from a branch without a Merge is computed for every predicate; TensorFlow can't fetch it
if the branch is dead. `ControlTrigger`s become NoOps. Loops must have been functionalized before.

Before:

    func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
      %0 = tf_executor.graph {
        %false, %true, %1 = tf_executor.Switch %x, %p : tensor<f32>
        %neg, %2 = tf_executor.island wraps "tf.Neg"(%false) : (tensor<f32>) -> tensor<f32>
        %exp, %3 = tf_executor.island wraps "tf.Exp"(%true) : (tensor<f32>) -> tensor<f32>
        %value, %index, %4 = tf_executor.Merge %neg, %exp : tensor<f32>
        tf_executor.fetch %value : tensor<f32>
      }
      func.return %0 : tensor<f32>
    }

After:

    func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
      %0 = tf_executor.graph {
        %value, %1 = tf_executor.island wraps "tf.If"(%p, %x)
            <{else_branch = @cond_else, then_branch = @cond_then, is_stateless = true}>
            : (tensor<i1>, tensor<f32>) -> tensor<f32>
        tf_executor.fetch %value : tensor<f32>
      }
      func.return %0 : tensor<f32>
    }
    func.func private @cond_else(%x: tensor<f32>) -> tensor<f32> {
      %0 = tf_executor.graph {
        %neg, %1 = tf_executor.island wraps "tf.Neg"(%x) : (tensor<f32>) -> tensor<f32>
        tf_executor.fetch %neg : tensor<f32>
      }
      func.return %0 : tensor<f32>
    }
    func.func private @cond_then(%x: tensor<f32>) -> tensor<f32> {
      %0 = tf_executor.graph {
        %exp, %1 = tf_executor.island wraps "tf.Exp"(%x) : (tensor<f32>) -> tensor<f32>
        tf_executor.fetch %exp : tensor<f32>
      }
      func.return %0 : tensor<f32>
    }
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from tfconvert.converter.functionalize.conditionals import ConditionalGraph
from tfconvert.converter.functionalize.slices import Outliner, graphs_with, restore
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.dialects.tf_executor import ControlTriggerOp, MergeOp, SwitchNOp, SwitchOp
from tfconvert.schema.ir.builtin import ModuleOp

_CONDITIONAL = frozenset({SwitchOp, SwitchNOp, MergeOp, ControlTriggerOp})


class FunctionalizeConditionals:
    """Converts the Merges of each predicate to a `tf.If` or `tf.Case`."""

    __slots__ = ()

    name: ClassVar[str] = "functionalize-conditionals"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every graph of every function; counts values that are computed although they may be dead."""
        outliner = Outliner(module)
        speculated: Counter[str] = Counter()
        for function in functions_of(module).values():
            for graph in graphs_with(function, _CONDITIONAL):
                work = ConditionalGraph(graph.body, outliner)
                work.functionalize()
                restore(function, graph, work.position)
                if work.speculated:
                    speculated["speculate"] += work.speculated
        return PassResult(speculated)
