"""Pass `shape-inference`: refines types by shape functions, and folds constants and known shapes.

Each function is swept once, in program order. An op's result types are merged with those that its shape function infers
from its operands. Ops on constants become constants; large ones become expressions that are computed while the file is
written. Shape tensors with known elements and shape operands of reshapes with one dynamic dimension also become
constants. Dead ops are erased.

Inference follows branches and loops (`tfconvert/converter/shapes/flow.py`): a branch's arguments have the types of its
operands, a loop's variables the types that hold in every iteration, and a constant operand becomes a constant inside.

Before:

    func.func @main(%x: tensor<?x7x7x160xf32>) -> tensor<*xf32> {
      %0 = "tf.Const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
      %1 = "tf.Const"() <{value = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
      %2 = "tf.Const"() <{value = dense<-1> : tensor<i32>}> : () -> tensor<i32>
      %3 = "tf.Shape"(%x) : (tensor<?x7x7x160xf32>) -> tensor<4xi32>
      %4 = "tf.StridedSlice"(%3, %0, %1, %1) <{begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64,
        new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64}>
        : (tensor<4xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32>
      %5 = "tf.Pack"(%4, %2) <{axis = 0 : i64}> : (tensor<i32>, tensor<i32>) -> tensor<2xi32>
      %6 = "tf.Reshape"(%x, %5) : (tensor<?x7x7x160xf32>, tensor<2xi32>) -> tensor<*xf32>
      %7 = "tf.Relu"(%6) : (tensor<*xf32>) -> tensor<*xf32>
      func.return %7 : tensor<*xf32>
    }

After:

    func.func @main(%x: tensor<?x7x7x160xf32>) -> tensor<?x7840xf32> {
      %0 = "tf.Const"() <{value = dense<[-1, 7840]> : tensor<2xi32>}> : () -> tensor<2xi32>
      %1 = "tf.Reshape"(%x, %0) : (tensor<?x7x7x160xf32>, tensor<2xi32>) -> tensor<?x7840xf32>
      %2 = "tf.Relu"(%1) : (tensor<?x7840xf32>) -> tensor<?x7840xf32>
      func.return %2 : tensor<?x7840xf32>
    }

Before:

    func.func @main(%i: tensor<i32>, %x: tensor<1x4xf32>) -> tensor<*xf32> {
      %axis = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %0:4 = "tf.While"(%i, %x, %x, %axis)
          <{cond = @cond, body = @body, is_stateless = true, parallel_iterations = 10 : i64}>
          : (tensor<i32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<i32>)
          -> (tensor<i32>, tensor<*xf32>, tensor<*xf32>, tensor<i32>)
      func.return %0#1 : tensor<*xf32>
    }
    func.func private @cond(%i: tensor<i32>, %x: tensor<*xf32>, %row: tensor<*xf32>, %axis: tensor<i32>)
        -> tensor<*xi1> {
      %0 = "tf.Greater"(%i, %axis) : (tensor<i32>, tensor<i32>) -> tensor<*xi1>
      func.return %0 : tensor<*xi1>
    }
    func.func private @body(%i: tensor<i32>, %x: tensor<*xf32>, %row: tensor<*xf32>, %axis: tensor<i32>)
        -> (tensor<*xi32>, tensor<*xf32>, tensor<*xf32>, tensor<i32>) {
      %0 = "tf.ConcatV2"(%x, %row, %axis) : (tensor<*xf32>, tensor<*xf32>, tensor<i32>) -> tensor<*xf32>
      %1 = "tf.RightShift"(%i, %i) : (tensor<i32>, tensor<i32>) -> tensor<*xi32>
      func.return %1, %0, %row, %axis : tensor<*xi32>, tensor<*xf32>, tensor<*xf32>, tensor<i32>
    }

After:

    func.func @main(%i: tensor<i32>, %x: tensor<1x4xf32>) -> tensor<?x4xf32> {
      %axis = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %0:4 = "tf.While"(%i, %x, %x, %axis)
          <{cond = @cond, body = @body, is_stateless = true, parallel_iterations = 10 : i64}>
          : (tensor<i32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<i32>)
          -> (tensor<i32>, tensor<?x4xf32>, tensor<1x4xf32>, tensor<i32>)
      func.return %0#1 : tensor<?x4xf32>
    }
    func.func private @cond(%i: tensor<i32>, %x: tensor<?x4xf32>, %row: tensor<1x4xf32>, %axis: tensor<i32>)
        -> tensor<i1> {
      %0 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tf.Greater"(%i, %0) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      func.return %1 : tensor<i1>
    }
    func.func private @body(%i: tensor<i32>, %x: tensor<?x4xf32>, %row: tensor<1x4xf32>, %axis: tensor<i32>)
        -> (tensor<i32>, tensor<?x4xf32>, tensor<1x4xf32>, tensor<i32>) {
      %0 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tf.ConcatV2"(%x, %row, %0) : (tensor<?x4xf32>, tensor<1x4xf32>, tensor<i32>) -> tensor<?x4xf32>
      %2 = "tf.RightShift"(%i, %i) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      func.return %2, %1, %row, %axis : tensor<i32>, tensor<?x4xf32>, tensor<1x4xf32>, tensor<i32>
    }
"""

from __future__ import annotations

from typing import ClassVar

from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.edit import update_function_types
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.converter.shapes import flow
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.ir.builtin import ModuleOp


class ShapeInference:
    """Refines the types of all functions and folds constants."""

    __slots__ = ()

    name: ClassVar[str] = "shape-inference"

    def apply(self, module: ModuleOp) -> PassResult:
        functions = functions_of(module)
        outside = symbol_table.names_outside(module)
        flow.infer(functions, outside)
        update_function_types(list(functions.values()))
        return NOTHING_DONE
