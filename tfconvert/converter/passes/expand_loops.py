"""Pass `expand-loops`: ops that are loops of others become those, before the passes that rewrite loops.

Before:

    func.func @main(%key: tensor<1xui64>, %counter: tensor<2xui64>, %x: tensor<3xf32>) -> tensor<3xf32> {
      %0 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tf.StatelessShuffle"(%x, %key, %counter, %0)
          : (tensor<3xf32>, tensor<1xui64>, tensor<2xui64>, tensor<i32>) -> tensor<3xf32>
      func.return %1 : tensor<3xf32>
    }

After:

    func.func @main(%key: tensor<1xui64>, %counter: tensor<2xui64>, %x: tensor<3xf32>) -> tensor<3xf32> {
      %0 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tf.Const"() <{value = dense<3> : tensor<1xi32>}> : () -> tensor<1xi32>
      %2 = "tf.Bitcast"(%key) : (tensor<1xui64>) -> tensor<1xi64>
      %3 = "tf.Bitcast"(%counter) : (tensor<2xui64>) -> tensor<2xi64>
      %4 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %5 = "tf.ConcatV2"(%2, %3, %4) : (tensor<1xi64>, tensor<2xi64>, tensor<i32>) -> tensor<3xi64>
      %6 = "tf.Bitcast"(%5) : (tensor<3xi64>) -> tensor<3xui64>
      %7 = "tf.Const"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
      %8 = "tf.Const"() <{value = dense<4> : tensor<1xi32>}> : () -> tensor<1xi32>
      %9, %10 = "tf.XlaRngBitGenerator"(%7, %6, %8)
          : (tensor<i32>, tensor<3xui64>, tensor<1xi32>) -> (tensor<3xui64>, tensor<4xui32>)
      %11 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %12 = "tf.Const"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
      %13 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %14 = "tf.Const"() <{value = dense<[0, 1, 2]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %15 = "tf.Const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
      %16 = "tf.Slice"(%10, %15, %1) : (tensor<4xui32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xui32>
      %17 = "tf.Cast"(%16) : (tensor<3xui32>) -> tensor<3xi64>
      %18 = "tf.Const"() <{value = dense<-1> : tensor<i32>}> : () -> tensor<i32>
      %19 = "tf.Const"() <{value = dense<[0, -1, -2]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %20 = "tf.Const"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
      %21 = "tf.Const"() <{value = dense<[3, 2, 1]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %22 = "tf.Const"() <{value = dense<[3, 2, 1]> : tensor<3xi64>}> : () -> tensor<3xi64>
      %23 = "tf.FloorMod"(%17, %22) : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
      %24 = "tf.Cast"(%23) : (tensor<3xi64>) -> tensor<3xi32>
      %25 = "tf.AddV2"(%14, %24) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
      %26 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %27, %28 = "tf.WhileRegion"(%26, %14) <{is_stateless = true, parallel_iterations = 10 : i64}> ({
      ^bb0(%29: tensor<i32>, %30: tensor<3xi32>):
        %31 = "tf.Const"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
        %32 = "tf.Less"(%29, %31) : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "tf.Yield"(%32) : (tensor<i1>) -> ()
      }, {
      ^bb0(%33: tensor<i32>, %34: tensor<3xi32>):
        %35 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %36 = "tf.AddV2"(%33, %35) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %37 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
        %38 = "tf.GatherV2"(%25, %33, %37) : (tensor<3xi32>, tensor<i32>, tensor<i32>) -> tensor<i32>
        %39 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
        %40 = "tf.GatherV2"(%34, %33, %39) : (tensor<3xi32>, tensor<i32>, tensor<i32>) -> tensor<i32>
        %41 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
        %42 = "tf.GatherV2"(%34, %38, %41) : (tensor<3xi32>, tensor<i32>, tensor<i32>) -> tensor<i32>
        %43 = "tf.Equal"(%14, %33) : (tensor<3xi32>, tensor<i32>) -> tensor<3xi1>
        %44 = "tf.Equal"(%14, %38) : (tensor<3xi32>, tensor<i32>) -> tensor<3xi1>
        %45 = "tf.SelectV2"(%44, %40, %34) : (tensor<3xi1>, tensor<i32>, tensor<3xi32>) -> tensor<3xi32>
        %46 = "tf.SelectV2"(%43, %42, %45) : (tensor<3xi1>, tensor<i32>, tensor<3xi32>) -> tensor<3xi32>
        "tf.Yield"(%36, %46) : (tensor<i32>, tensor<3xi32>) -> ()
      }) : (tensor<i32>, tensor<3xi32>) -> (tensor<i32>, tensor<3xi32>)
      %47 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %48 = "tf.GatherV2"(%x, %28, %47) : (tensor<3xf32>, tensor<3xi32>, tensor<i32>) -> tensor<3xf32>
      func.return %48 : tensor<3xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from tfconvert.converter.ir.edit import replace_op
from tfconvert.converter.ir.tensors import expand
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.rewrite.decompose import failure_of
from tfconvert.ops.registry import decompositions
from tfconvert.schema.ir.builtin import ModuleOp


class ExpandLoops:
    """Replaces ops by their decompositions, if those are loops."""

    __slots__ = ()

    name: ClassVar[str] = "expand-loops"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns how many ops of each kind are replaced."""
        applied: Counter[str] = Counter()
        for op in list(module.walk()):
            for each in decompositions(op.name.removeprefix("tf.")) if op.name.startswith("tf.") else ():
                if each.loops and failure_of(each, op, {}, may_loop=True) is None:
                    replace_op(op, expand(each.formula, op, TFBuilder(op)))
                    applied[op.name] += 1
                    break
        return PassResult(applied)
