"""Pass `unroll-layers`: replaces loops over layers with stacked weights by the layers.

JAX models often scan over the parameters of equal layers. Each step of such a loop copies its weights out of the stack,
and LiteRT multiplies by them as by any other tensor. The weights of a layer outside of a loop are constants: they are
packed once, and their products are fused with biases and activations. The file contains the same weights.

Before:

    func.func @main(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
      %zero = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %0:2 = "tf.While"(%zero, %x) <{cond = @cond, body = @body, is_stateless = true}>
          : (tensor<i32>, tensor<4x16xf32>) -> (tensor<i32>, tensor<4x16xf32>)
      func.return %0#1 : tensor<4x16xf32>
    }
    func.func private @cond(%i: tensor<i32>, %x: tensor<4x16xf32>) -> tensor<i1> {
      %n = "tf.Const"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
      %0 = "tf.Less"(%i, %n) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      func.return %0 : tensor<i1>
    }
    func.func private @body(%i: tensor<i32>, %x: tensor<4x16xf32>) -> (tensor<i32>, tensor<4x16xf32>) {
      %zero = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %one = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %weights = "tf.Const"() <{value = dense<0.5> : tensor<2x16x16xf32>}> : () -> tensor<2x16x16xf32>
      %next = "tf.AddV2"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %0 = "tf.GatherV2"(%weights, %i, %zero) : (tensor<2x16x16xf32>, tensor<i32>, tensor<i32>) -> tensor<16x16xf32>
      %1 = "tf.MatMul"(%x, %0) : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
      %2 = "tf.Tanh"(%1) : (tensor<4x16xf32>) -> tensor<4x16xf32>
      func.return %next, %2 : tensor<i32>, tensor<4x16xf32>
    }

After:

    func.func @main(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
      %w0 = "tf.Const"() <{value = dense<0.5> : tensor<16x16xf32>}> : () -> tensor<16x16xf32>
      %0 = "tf.MatMul"(%x, %w0) : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
      %1 = "tf.Tanh"(%0) : (tensor<4x16xf32>) -> tensor<4x16xf32>
      %w1 = "tf.Const"() <{value = dense<0.5> : tensor<16x16xf32>}> : () -> tensor<16x16xf32>
      %2 = "tf.MatMul"(%1, %w1) : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
      %3 = "tf.Tanh"(%2) : (tensor<4x16xf32>) -> tensor<4x16xf32>
      func.return %3 : tensor<4x16xf32>
    }
"""

from __future__ import annotations

from math import prod
from typing import ClassVar

from tfconvert.converter.control_flow.constructs import Construct, reads_by_count
from tfconvert.converter.passes.shape_inference import ShapeInference
from tfconvert.converter.passes.simplify_control_flow import SimplifyControlFlow
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.limits import budget

MAX_LAYERS = 256
"""Loops with more steps stay loops."""

# A matrix of 16 times 16 floats: smaller slices cost less than the operators of a step.
_MIN_SIZE = 256

_FLOATS = frozenset({types.F16, types.BF16, types.F32})
_READS = frozenset({"tf.GatherV2", "tf.Slice", "tf.StridedSlice"})


class UnrollLayers:
    """Replaces loops over layers with stacked weights by the layers."""

    __slots__ = ()

    name: ClassVar[str] = "unroll-layers"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of unrolled loops."""
        unrolled = SimplifyControlFlow(MAX_LAYERS, budget().operations, unrolls=_is_over_layers).apply(module)
        if unrolled.counts["unroll"]:
            ShapeInference().apply(module)  # the layers' weights become constants
        return PassResult.of({"unrolled": unrolled.counts["unroll"]})


def _is_over_layers(found: Construct) -> bool:
    """Returns whether a loop reads a matrix of weights out of a stack in each step."""
    return any(_is_stack(op) for op in reads_by_count(found, _READS))


def _is_stack(op: Operation) -> bool:
    """Returns whether an op reads at least a matrix of floats out of a constant."""
    table, (result,) = op.operands[0], op.results
    if tensor_data.constant_of(table) is None or table.element not in _FLOATS:
        return False
    shape, whole = result.shape, table.shape
    sizes = [size for size in shape or () if size != 1]
    return len(sizes) >= 2 and shape != whole and prod(sizes) >= _MIN_SIZE
