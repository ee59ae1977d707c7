"""Pass `merge-loop-variables`: merges a loop's variables that are always equal.

Loops of Keras and of TensorFlow have two counters, of iterations and of time steps; a masked layer's output and state
are also equal. Variables with equal initial values and equal updates are merged.

Before:

    func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<i32>, tensor<i32>) {
      %0 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %2:3 = "tf.While"(%0, %1, %x) <{cond = @cond, body = @body, is_stateless = true, parallel_iterations = 10 : i64}>
        : (tensor<i32>, tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<i32>, tensor<2xf32>)
      func.return %2#2, %2#1, %2#0 : tensor<2xf32>, tensor<i32>, tensor<i32>
    }
    func.func private @cond(%i: tensor<i32>, %j: tensor<i32>, %x: tensor<2xf32>) -> tensor<i1> {
      %0 = "tf.Const"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tf.Less"(%j, %0) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      func.return %1 : tensor<i1>
    }
    func.func private @body(%i: tensor<i32>, %j: tensor<i32>, %x: tensor<2xf32>)
        -> (tensor<i32>, tensor<i32>, tensor<2xf32>) {
      %0 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %2 = "tf.AddV2"(%i, %0) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %3 = "tf.AddV2"(%j, %1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %4 = "tf.Cast"(%j) <{Truncate = false}> : (tensor<i32>) -> tensor<f32>
      %5 = "tf.Mul"(%x, %4) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
      func.return %2, %3, %5 : tensor<i32>, tensor<i32>, tensor<2xf32>
    }

After:

    func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<i32>, tensor<i32>) {
      %0 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %2:2 = "tf.While"(%0, %x) <{cond = @cond, body = @body, is_stateless = true, parallel_iterations = 10 : i64}>
        : (tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>)
      func.return %2#1, %2#0, %2#0 : tensor<2xf32>, tensor<i32>, tensor<i32>
    }
    func.func private @cond(%i: tensor<i32>, %x: tensor<2xf32>) -> tensor<i1> {
      %0 = "tf.Const"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tf.Less"(%i, %0) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      func.return %1 : tensor<i1>
    }
    func.func private @body(%i: tensor<i32>, %x: tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>) {
      %0 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tf.AddV2"(%i, %0) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %2 = "tf.Cast"(%i) <{Truncate = false}> : (tensor<i32>) -> tensor<f32>
      %3 = "tf.Mul"(%x, %2) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
      func.return %1, %3 : tensor<i32>, tensor<2xf32>
    }
"""

from __future__ import annotations

from typing import ClassVar

from tfconvert.converter.control_flow.constructs import own_loops
from tfconvert.converter.control_flow.loop_variables import drop_unused, merge_equal
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.ir.builtin import ModuleOp


class MergeLoopVariables:
    """Merges equal variables of loops."""

    __slots__ = ()

    name: ClassVar[str] = "merge-loop-variables"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every loop whose functions have no other users; returns the number of merged variables."""
        merged = 0
        for found in own_loops(module):
            equal = merge_equal(found)
            if equal:
                drop_unused(found)
            merged += equal
        return PassResult.of({self.name: merged})
