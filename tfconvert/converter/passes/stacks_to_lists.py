"""Pass `stacks-to-lists`: converts stacks of TensorFlow 1, as gradients of loops use them, to lists.

A stack is state behind a handle; a list is a value. So every push and pop creates a new list from the previous one, and
loops, branches and calls forward it. The handle becomes an unused number, which is dropped with the dead variables of
loops.

Before:

    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %size = "tf.Const"() <{value = dense<-1> : tensor<i32>}> : () -> tensor<i32>
      %handle = "tf.StackV2"(%size) <{stack_name = "", elem_type = f32}> : (tensor<i32>) -> tensor<!tf_type.resource>
      %0:2 = "tf.While"(%x, %handle)
        <{cond = @cond, body = @body, is_stateless = false, parallel_iterations = 10 : i64}>
        : (tensor<4xf32>, tensor<!tf_type.resource>) -> (tensor<4xf32>, tensor<!tf_type.resource>)
      %1 = "tf.StackPopV2"(%handle) : (tensor<!tf_type.resource>) -> tensor<4xf32>
      func.return %1 : tensor<4xf32>
    }
    func.func private @cond(%x: tensor<4xf32>, %handle: tensor<!tf_type.resource>) -> tensor<i1> {
      %axes = "tf.Const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
      %limit = "tf.Const"() <{value = dense<1.0> : tensor<f32>}> : () -> tensor<f32>
      %0 = "tf.Min"(%x, %axes) <{keep_dims = false}> : (tensor<4xf32>, tensor<1xi32>) -> tensor<f32>
      %1 = "tf.Less"(%0, %limit) : (tensor<f32>, tensor<f32>) -> tensor<i1>
      func.return %1 : tensor<i1>
    }
    func.func private @body(%x: tensor<4xf32>, %handle: tensor<!tf_type.resource>)
        -> (tensor<4xf32>, tensor<!tf_type.resource>) {
      %0 = "tf.StackPushV2"(%handle, %x) <{swap_memory = false}>
        : (tensor<!tf_type.resource>, tensor<4xf32>) -> tensor<4xf32>
      %1 = "tf.Exp"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %1, %handle : tensor<4xf32>, tensor<!tf_type.resource>
    }

After:

    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %size = "tf.Const"() <{value = dense<-1> : tensor<i32>}> : () -> tensor<i32>
      %handle = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %shape = "tf.Const"() <{value = dense<4> : tensor<1xi32>}> : () -> tensor<1xi32>
      %most = "tf.Const"() <{value = dense<-1> : tensor<i32>}> : () -> tensor<i32>
      %list = "tf.EmptyTensorList"(%shape, %most)
        : (tensor<1xi32>, tensor<i32>) -> tensor<!tf_type.variant<tensor<4xf32>>>
      %0:3 = "tf.While"(%x, %handle, %list)
        <{cond = @cond, body = @body, is_stateless = false, parallel_iterations = 10 : i64}>
        : (tensor<4xf32>, tensor<i32>, tensor<!tf_type.variant<tensor<4xf32>>>)
        -> (tensor<4xf32>, tensor<i32>, tensor<!tf_type.variant>)
      %1 = "tf.Const"() <{value = dense<4> : tensor<1xi32>}> : () -> tensor<1xi32>
      %rest, %2 = "tf.TensorListPopBack"(%0#2, %1)
        : (tensor<!tf_type.variant>, tensor<1xi32>) -> (tensor<!tf_type.variant>, tensor<4xf32>)
      func.return %2 : tensor<4xf32>
    }
    func.func private @cond(%x: tensor<4xf32>, %handle: tensor<i32>, %list: tensor<!tf_type.variant>) -> tensor<i1> {
      %axes = "tf.Const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
      %limit = "tf.Const"() <{value = dense<1.0> : tensor<f32>}> : () -> tensor<f32>
      %0 = "tf.Min"(%x, %axes) <{keep_dims = false}> : (tensor<4xf32>, tensor<1xi32>) -> tensor<f32>
      %1 = "tf.Less"(%0, %limit) : (tensor<f32>, tensor<f32>) -> tensor<i1>
      func.return %1 : tensor<i1>
    }
    func.func private @body(%x: tensor<4xf32>, %handle: tensor<i32>, %list: tensor<!tf_type.variant>)
        -> (tensor<4xf32>, tensor<i32>, tensor<!tf_type.variant>) {
      %0 = "tf.TensorListPushBack"(%list, %x) : (tensor<!tf_type.variant>, tensor<4xf32>) -> tensor<!tf_type.variant>
      %1 = "tf.Exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %1, %handle, %0 : tensor<4xf32>, tensor<i32>, tensor<!tf_type.variant>
    }
"""

from __future__ import annotations

from typing import ClassVar

from tfconvert.converter.control_flow.calls import Calls
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.converter.tensor_lists import stacks
from tfconvert.schema.dialects.func import defined_functions
from tfconvert.schema.ir.builtin import ModuleOp


class StacksToLists:
    """Converts stacks to lists."""

    __slots__ = ()

    name: ClassVar[str] = "stacks-to-lists"

    def apply(self, module: ModuleOp) -> PassResult:
        functions = list(defined_functions(module).values())
        if any(op.name.startswith(stacks.PREFIX) for function in functions for op in function.body.block.ops):
            calls = Calls(module)
            stacks.to_lists(calls, stacks.find(calls))
            calls.update_types()
        return NOTHING_DONE
