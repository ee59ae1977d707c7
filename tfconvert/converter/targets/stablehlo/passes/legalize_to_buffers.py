"""Pass `legalize-to-buffers`: StableHLO becomes calls of kernels on buffers, each allocated, used and freed.

A buffer is allocated before the op that writes it, with a size that the host computes, and freed right after its last
use. An elementwise op overwrites an operand that has its last use there. Arguments are never freed, and results belong
to the caller.

Before:

    func.func @main(%x: tensor<?x4xf32>, %y: tensor<4x2xf32>) -> tensor<?x2xf32> {
      %0 = "stablehlo.tanh"(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
      %1 = "stablehlo.dot_general"(%0, %y) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
      %2 = "stablehlo.negate"(%1) : (tensor<?x2xf32>) -> tensor<?x2xf32>
      func.return %2 : tensor<?x2xf32>
    }

After:

    func.func @main(%x: memref<?x4xf32>, %y: memref<4x2xf32>) -> memref<?x2xf32> {
      %0 = arith.constant 0 : index
      %1 = "memref.dim"(%x, %0) : (memref<?x4xf32>, index) -> index
      %2 = "memref.alloc"(%1) <{operandSegmentSizes = array<i32: 1, 0>}> : (index) -> memref<?x4xf32>
      func.call @tanh(%x, %2) : (memref<?x4xf32>, memref<?x4xf32>) -> ()
      %3 = "memref.alloc"(%1) <{operandSegmentSizes = array<i32: 1, 0>}> : (index) -> memref<?x2xf32>
      func.call @dot_general(%2, %y, %3) : (memref<?x4xf32>, memref<4x2xf32>, memref<?x2xf32>) -> ()
      "memref.dealloc"(%2) : (memref<?x4xf32>) -> ()
      func.call @negate(%3, %3) : (memref<?x2xf32>, memref<?x2xf32>) -> ()
      func.return %3 : memref<?x2xf32>
    }
    func.func private @tanh(%0: memref<?x4xf32>, %1: memref<?x4xf32>) attributes {dhlo.kernel = "op"} {
      %2 = "bufferization.to_tensor"(%0) : (memref<?x4xf32>) -> tensor<?x4xf32>
      %3 = "stablehlo.tanh"(%2) : (tensor<?x4xf32>) -> tensor<?x4xf32>
      "bufferization.materialize_in_destination"(%3, %1) <{writable}> : (tensor<?x4xf32>, memref<?x4xf32>) -> ()
      func.return
    }
    func.func private @dot_general(%0: memref<?x4xf32>, %1: memref<4x2xf32>, %2: memref<?x2xf32>) attributes {dhlo.kernel = "op"} {
      %3 = "bufferization.to_tensor"(%0) : (memref<?x4xf32>) -> tensor<?x4xf32>
      %4 = "bufferization.to_tensor"(%1) : (memref<4x2xf32>) -> tensor<4x2xf32>
      %5 = "stablehlo.dot_general"(%3, %4) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
      "bufferization.materialize_in_destination"(%5, %2) <{writable}> : (tensor<?x2xf32>, memref<?x2xf32>) -> ()
      func.return
    }
    func.func private @negate(%0: memref<?x2xf32>, %1: memref<?x2xf32>) attributes {dhlo.kernel = "op"} {
      %2 = "bufferization.to_tensor"(%0) : (memref<?x2xf32>) -> tensor<?x2xf32>
      %3 = "stablehlo.negate"(%2) : (tensor<?x2xf32>) -> tensor<?x2xf32>
      "bufferization.materialize_in_destination"(%3, %1) <{writable}> : (tensor<?x2xf32>, memref<?x2xf32>) -> ()
      func.return
    }
"""  # noqa: E501  # Types and attributes are as long as they are.

from __future__ import annotations

from typing import ClassVar

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.targets.stablehlo.buffers.lowering import BufferLowering
from tfconvert.schema.ir.builtin import ModuleOp


class LegalizeToBuffers:
    """Turns StableHLO into calls of kernels on buffers."""

    __slots__ = ()

    name: ClassVar[str] = "legalize-to-buffers"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the numbers of allocated and overwritten buffers."""
        lowering = BufferLowering(module)
        lowering.run()
        return PassResult.of(lowering.counts)
