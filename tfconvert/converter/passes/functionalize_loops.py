"""Pass `functionalize-loops`: converts the loops of V1 control flow to `tf.While`, inner ones first.

The ops that a loop's predicate needs become the function `cond`, and those that its next iteration needs the function
`body`. Their arguments are the loop variables, then values that the loop only reads. Constants are copied into the
functions. Conditionals inside are left to `functionalize-conditionals`.

Before:

    func.func @main(%x: tensor<f32>, %limit: tensor<f32>) -> tensor<f32> {
      %0 = tf_executor.graph {
        %next, %token, %1 = tf_executor.NextIteration.Source : tensor<f32>
        %enter, %2 = tf_executor.Enter %x frame "loop" : tensor<f32>
        %bound, %3 = tf_executor.Enter %limit frame "loop" constant : tensor<f32>
        %value, %index, %4 = tf_executor.Merge %enter, %next : tensor<f32>
        %less, %5 = tf_executor.island wraps "tf.Less"(%value, %bound) : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %again, %6 = tf_executor.LoopCond %less : tensor<i1>
        %done, %todo, %7 = tf_executor.Switch %value, %again : tensor<f32>
        %sum, %8 = tf_executor.island wraps "tf.AddV2"(%todo, %todo) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        tf_executor.NextIteration.Sink[%token] %sum : tensor<f32>
        %exit, %9 = tf_executor.Exit %done : tensor<f32>
        tf_executor.fetch %exit : tensor<f32>
      }
      func.return %0 : tensor<f32>
    }

After:

    func.func @main(%x: tensor<f32>, %limit: tensor<f32>) -> tensor<f32> {
      %0 = tf_executor.graph {
        %1:2, %2 = tf_executor.island wraps "tf.While"(%x, %limit)
            <{cond = @loop_cond, body = @loop_body, is_stateless = true, parallel_iterations = 10 : i64}>
            : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
        tf_executor.fetch %1#0 : tensor<f32>
      }
      func.return %0 : tensor<f32>
    }
    func.func private @loop_cond(%value: tensor<f32>, %bound: tensor<f32>) -> tensor<i1> {
      %0 = tf_executor.graph {
        %less, %1 = tf_executor.island wraps "tf.Less"(%value, %bound) : (tensor<f32>, tensor<f32>) -> tensor<i1>
        tf_executor.fetch %less : tensor<i1>
      }
      func.return %0 : tensor<i1>
    }
    func.func private @loop_body(%value: tensor<f32>, %bound: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
      %0:2 = tf_executor.graph {
        %sum, %1 = tf_executor.island wraps "tf.AddV2"(%value, %value) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        tf_executor.fetch %sum, %bound : tensor<f32>, tensor<f32>
      }
      func.return %0#0, %0#1 : tensor<f32>, tensor<f32>
    }
"""

from __future__ import annotations

from typing import ClassVar

from tfconvert.converter.functionalize import loops
from tfconvert.converter.functionalize.loops import find_frames
from tfconvert.converter.functionalize.slices import Outliner, graphs_with, restore
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.dialects.tf_executor import EnterOp, ExitOp, LoopCondOp, NextIterationSinkOp
from tfconvert.schema.ir.builtin import ModuleOp

_OF_LOOPS = frozenset({EnterOp, ExitOp, LoopCondOp, NextIterationSinkOp})


class FunctionalizeLoops:
    """Converts every frame to a `tf.While`."""

    __slots__ = ()

    name: ClassVar[str] = "functionalize-loops"

    def apply(self, module: ModuleOp) -> PassResult:
        outliner = Outliner(module)
        for function in functions_of(module).values():
            for graph in graphs_with(function, _OF_LOOPS):
                block = graph.body
                frames = find_frames(block)
                position = {op: index for index, op in enumerate(block.ops)}
                for frame in frames.innermost_first:
                    loops.functionalize(loops.find_loop(frame, frames), block, position, outliner)
                restore(function, graph, position)
        return NOTHING_DONE
