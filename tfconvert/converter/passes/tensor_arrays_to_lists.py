"""Pass `tensor-arrays-to-lists`: converts tensor arrays of TensorFlow 1 to lists of tensors, as TensorFlow 2 has them.

An array's ops have its handle and a flow, which determines their order, as operands. The flow becomes the list. The
handle becomes an unused number, which is dropped with the dead variables of loops.

Before:

    func.func @main(%x: tensor<3x4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
      %order = "tf.Const"() <{value = dense<[0, 1, 2]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %handle, %flow = "tf.TensorArrayV3"(%n) <{element_shape = #tf_type.shape<4>, dynamic_size = false,
        clear_after_read = true, identical_element_shapes = true, tensor_array_name = "", dtype = f32}>
        : (tensor<i32>) -> (tensor<!tf_type.resource>, tensor<f32>)
      %0 = "tf.TensorArrayScatterV3"(%handle, %order, %x, %flow)
        : (tensor<!tf_type.resource>, tensor<3xi32>, tensor<3x4xf32>, tensor<f32>) -> tensor<f32>
      %index = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tf.TensorArrayReadV3"(%handle, %index, %0)
        : (tensor<!tf_type.resource>, tensor<i32>, tensor<f32>) -> tensor<4xf32>
      func.return %1 : tensor<4xf32>
    }

After:

    func.func @main(%x: tensor<3x4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
      %order = "tf.Const"() <{value = dense<[0, 1, 2]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %handle = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %0 = "tf.Const"() <{value = dense<4> : tensor<1xi32>}> : () -> tensor<1xi32>
      %flow = "tf.TensorListReserve"(%0, %n)
        : (tensor<1xi32>, tensor<i32>) -> tensor<!tf_type.variant<tensor<4xf32>>>
      %1 = "tf.TensorListScatterIntoExistingList"(%flow, %x, %order)
        : (tensor<!tf_type.variant<tensor<4xf32>>>, tensor<3x4xf32>, tensor<3xi32>) -> tensor<!tf_type.variant>
      %index = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %2 = "tf.Const"() <{value = dense<4> : tensor<1xi32>}> : () -> tensor<1xi32>
      %3 = "tf.TensorListGetItem"(%1, %index, %2)
        : (tensor<!tf_type.variant>, tensor<i32>, tensor<1xi32>) -> tensor<4xf32>
      func.return %3 : tensor<4xf32>
    }
"""

from __future__ import annotations

from typing import ClassVar

from tfconvert.converter.control_flow.calls import Calls
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.converter.tensor_lists import arrays
from tfconvert.schema.dialects.func import defined_functions
from tfconvert.schema.ir.builtin import ModuleOp


class TensorArraysToLists:
    """Converts tensor arrays to lists."""

    __slots__ = ()

    name: ClassVar[str] = "tensor-arrays-to-lists"

    def apply(self, module: ModuleOp) -> PassResult:
        functions = list(defined_functions(module).values())
        if any(op.name.startswith(arrays.PREFIX) for function in functions for op in function.body.block.ops):
            calls = Calls(module)
            arrays.to_lists(calls)
            calls.update_types()
        return NOTHING_DONE
