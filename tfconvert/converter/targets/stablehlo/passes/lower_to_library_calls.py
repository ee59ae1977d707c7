"""Pass `lower-to-library-calls`: replaces kernels by calls of library routines.

Before:

    func.func @main(%a: memref<?x4xf32>, %b: memref<4x2xf32>) -> memref<?x2xf32> {
      %0 = arith.constant 0 : index
      %1 = "memref.dim"(%a, %0) : (memref<?x4xf32>, index) -> index
      %2 = "memref.alloc"(%1) <{operandSegmentSizes = array<i32: 1, 0>}> : (index) -> memref<?x2xf32>
      func.call @dot_general(%a, %b, %2) : (memref<?x4xf32>, memref<4x2xf32>, memref<?x2xf32>) -> ()
      func.return %2 : memref<?x2xf32>
    }
    func.func private @dot_general(%a: memref<?x4xf32>, %b: memref<4x2xf32>, %c: memref<?x2xf32>) attributes {dhlo.kernel = "op"} {
      %0 = "bufferization.to_tensor"(%a) : (memref<?x4xf32>) -> tensor<?x4xf32>
      %1 = "bufferization.to_tensor"(%b) : (memref<4x2xf32>) -> tensor<4x2xf32>
      %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
      "bufferization.materialize_in_destination"(%2, %c) <{writable}> : (tensor<?x2xf32>, memref<?x2xf32>) -> ()
      func.return
    }

After:

    func.func @main(%a: memref<?x4xf32>, %b: memref<4x2xf32>) -> memref<?x2xf32> {
      %0 = arith.constant 0 : index
      %1 = "memref.dim"(%a, %0) : (memref<?x4xf32>, index) -> index
      %2 = "memref.alloc"(%1) <{operandSegmentSizes = array<i32: 1, 0>}> : (index) -> memref<?x2xf32>
      %3 = "memref.cast"(%a) : (memref<?x4xf32>) -> memref<?x?xf32>
      %4 = "memref.cast"(%b) : (memref<4x2xf32>) -> memref<?x?xf32>
      %5 = "memref.cast"(%2) : (memref<?x2xf32>) -> memref<?x?xf32>
      func.call @lib_gemm_f32(%3, %4, %5) : (memref<?x?xf32>, memref<?x?xf32>, memref<?x?xf32>) -> ()
      func.return %2 : memref<?x2xf32>
    }
    func.func private @lib_gemm_f32(memref<?x?xf32>, memref<?x?xf32>, memref<?x?xf32>) -> ()
"""  # noqa: E501  # Types and attributes are as long as they are.

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.targets.stablehlo.buffers.host import constant_of
from tfconvert.converter.targets.stablehlo.buffers.library import Routine, routine_of
from tfconvert.schema.dialects import memref
from tfconvert.schema.dialects.func import CallOp, FuncOp, functions_of
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Region
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.types import INDEX, FunctionType, MemRefType
from tfconvert.schema.ir.values import Value


class LowerToLibraryCalls:
    """Calls routines of libraries instead of kernels."""

    __slots__ = ()

    name: ClassVar[str] = "lower-to-library-calls"

    def apply(self, module: ModuleOp) -> PassResult:
        """Replaces calls of kernels, and erases those kernels; returns the number of calls of each routine."""
        functions = functions_of(module)
        found = {
            name: routine
            for name, function in functions.items()
            if not function.is_declaration and (routine := routine_of(function)) is not None
        }
        elements = {name: _element(functions[name]) for name in found}
        counts: Counter[str] = Counter()
        for op in list(module.walk()):
            if isinstance(op, CallOp) and op.callee in found:
                routine = found[op.callee]
                _call(op, routine, elements[op.callee])
                counts[routine.symbol] += 1
        for name in found:
            functions[name].erase()
        for symbol in sorted(counts):
            name = next(name for name, routine in found.items() if routine.symbol == symbol)
            kind = FunctionType.get(found[name].types(elements[name]), ())
            module.body.block.add_op(FuncOp.of(symbol, kind, Region(), "private"))
        return PassResult(counts)


def _element(function: FuncOp) -> Attribute:
    kind = function.args[0].type
    assert isinstance(kind, MemRefType)
    return kind.element_type


def _call(op: CallOp, routine: Routine, element: Attribute) -> None:
    builder = OpBuilder(op)
    operands: list[Value] = []
    for argument, kind in zip(routine.arguments, routine.types(element), strict=False):
        value = op.operands[argument]
        assert isinstance(kind, MemRefType)
        if value.type is kind:
            operands.append(value)
        else:
            operands.append(builder.insert(memref.build("memref.cast", (value,), (kind,))).results[0])
    operands += [builder.insert(constant_of(number, INDEX)).results[0] for number in routine.options]
    builder.insert(CallOp.of(routine.symbol, operands, []))
    op.erase()
