"""Pass `unroll-loops`: replaces loops by their steps, without state and control flow.

Every accelerator supports such models, unlike loops and LiteRT's operators for whole sequences. Counters become
constants. One op splits or joins rows that are read or written one by one. Products of the steps of a sequence with
constants become one product of the whole sequence.

A loop stays if constants don't determine its number of steps, or if it has more than 64; the report gives the reason.

Before:

    func.func @main(%x: tensor<2x1x2xf32>, %h: tensor<1x2xf32>) -> tensor<2x1x2xf32> {
      %zero = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %rows = "tf.Const"() <{value = dense<0.0> : tensor<2x1x2xf32>}> : () -> tensor<2x1x2xf32>
      %0:4 = "tf.While"(%zero, %x, %h, %rows) <{cond = @cond, body = @body, is_stateless = true}>
          : (tensor<i32>, tensor<2x1x2xf32>, tensor<1x2xf32>, tensor<2x1x2xf32>)
          -> (tensor<i32>, tensor<2x1x2xf32>, tensor<1x2xf32>, tensor<2x1x2xf32>)
      func.return %0#3 : tensor<2x1x2xf32>
    }
    func.func private @cond(%i: tensor<i32>, %x: tensor<2x1x2xf32>, %h: tensor<1x2xf32>, %rows: tensor<2x1x2xf32>)
        -> tensor<i1> {
      %n = "tf.Const"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
      %0 = "tf.Less"(%i, %n) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      func.return %0 : tensor<i1>
    }
    func.func private @body(%i: tensor<i32>, %x: tensor<2x1x2xf32>, %h: tensor<1x2xf32>, %rows: tensor<2x1x2xf32>)
        -> (tensor<i32>, tensor<2x1x2xf32>, tensor<1x2xf32>, tensor<2x1x2xf32>) {
      %w = "tf.Const"() <{value = dense<0.5> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>
      %r = "tf.Const"() <{value = dense<0.25> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>
      %zero = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %one = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %next = "tf.AddV2"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %0 = "tf.GatherV2"(%x, %i, %zero) : (tensor<2x1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
      %1 = "tf.MatMul"(%0, %w) : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
      %2 = "tf.MatMul"(%h, %r) : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
      %3 = "tf.AddV2"(%1, %2) : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
      %4 = "tf.Tanh"(%3) : (tensor<1x2xf32>) -> tensor<1x2xf32>
      %5 = "tf.ExpandDims"(%4, %zero) : (tensor<1x2xf32>, tensor<i32>) -> tensor<1x1x2xf32>
      %6 = "tf.Pack"(%i, %zero, %zero) <{axis = 0 : i64}> : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3xi32>
      %7 = "tf.XlaDynamicUpdateSlice"(%rows, %5, %6)
          : (tensor<2x1x2xf32>, tensor<1x1x2xf32>, tensor<3xi32>) -> tensor<2x1x2xf32>
      func.return %next, %x, %4, %7 : tensor<i32>, tensor<2x1x2xf32>, tensor<1x2xf32>, tensor<2x1x2xf32>
    }

After:

    func.func @main(%x: tensor<2x1x2xf32>, %h: tensor<1x2xf32>) -> tensor<2x1x2xf32> {
      %w = "tf.Const"() <{value = dense<0.5> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>
      %r = "tf.Const"() <{value = dense<0.25> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>
      %0 = "tf.BatchMatMulV2"(%x, %w) <{adj_x = false, adj_y = false}>
          : (tensor<2x1x2xf32>, tensor<2x2xf32>) -> tensor<2x1x2xf32>
      %1:2 = "tf.Unpack"(%0) <{axis = 0 : i64}> : (tensor<2x1x2xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>)
      %3 = "tf.MatMul"(%h, %r) : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
      %4 = "tf.AddV2"(%1#0, %3) : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
      %5 = "tf.Tanh"(%4) : (tensor<1x2xf32>) -> tensor<1x2xf32>
      %6 = "tf.MatMul"(%5, %r) : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
      %7 = "tf.AddV2"(%1#1, %6) : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
      %8 = "tf.Tanh"(%7) : (tensor<1x2xf32>) -> tensor<1x2xf32>
      %9 = "tf.Pack"(%5, %8) <{axis = 0 : i64}> : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<2x1x2xf32>
      func.return %9 : tensor<2x1x2xf32>
    }
"""

from __future__ import annotations

from typing import ClassVar

from tfconvert.converter.control_flow.constructs import Construct, construct, trip_count
from tfconvert.converter.passes.cse import CommonSubexpressions
from tfconvert.converter.passes.shape_inference import ShapeInference
from tfconvert.converter.passes.simplify_control_flow import SimplifyControlFlow
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.recurrence.unrolled import hoist_products, join_rows
from tfconvert.converter.targets.litert.recurrent.replacement import not_unrolled
from tfconvert.schema.diagnostics import Diagnostic
from tfconvert.schema.dialects.call_interfaces import KINDS, Kind
from tfconvert.schema.dialects.func import defined_functions
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.limits import budget

MAX_STEPS = 64
"""Loops with more steps stay loops."""

# The maximum number of steps to count.
_MAX_COUNTED = 1000


class UnrollLoops:
    """Replaces loops by their steps."""

    __slots__ = ()

    name: ClassVar[str] = "unroll-loops"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of unrolled loops, and why others have stayed."""
        unrolled = SimplifyControlFlow(MAX_STEPS, budget().operations).apply(module).counts["unroll"]
        functions = defined_functions(module)
        blocks = [function.body.block for function in functions.values()]
        loops = [op for block in blocks for op in block.ops if KINDS.get(op.name) is Kind.LOOP]
        notes = [_stays(found) for op in loops if (found := construct(op, functions)) is not None]
        join_rows(module, blocks)
        CommonSubexpressions().apply(module)
        hoisted = sum(map(hoist_products, blocks))
        ShapeInference().apply(module)
        return PassResult.of({"unrolled": unrolled, "hoisted": hoisted}, notes)


def _stays(found: Construct) -> Diagnostic:
    count = trip_count(found, _MAX_COUNTED)
    if count is None:
        return not_unrolled(found.op, f"its number of steps isn't known, or is more than {_MAX_COUNTED}", fixable=True)
    if count > MAX_STEPS:
        return not_unrolled(found.op, f"it has {count} steps, more than {MAX_STEPS}")
    return not_unrolled(found.op, f"its {count} steps would be more operations than the limit allows")
