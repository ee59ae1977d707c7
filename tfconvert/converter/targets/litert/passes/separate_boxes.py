"""Pass `separate-boxes`: LiteRT's non-maximum suppression gets boxes that have an area.

The kernel puts a chosen box back into the queue, and relies on its overlap with itself to drop it. A box without area
overlaps nothing, so it is chosen again and again, and later detections are lost. The same is true of areas that are
infinite or no number. TensorFlow chooses each of these once, as boxes that overlap none. That is what they become:
boxes with an area, far away, each at another place, whose overlaps are 0, and 1 with themselves. Boxes that are clipped
to an image are often such. The ratio of an area and twice the area is a half for all others.

Before:

    func.func @main(%b: tensor<5x4xf32>, %s: tensor<5xf32>, %m: tensor<i32>, %o: tensor<f32>) -> tensor<5xi32> {
      %0, %1 = "tfl.non_max_suppression_v4"(%b, %s, %m, %o, %o)
          : (tensor<5x4xf32>, tensor<5xf32>, tensor<i32>, tensor<f32>, tensor<f32>) -> (tensor<5xi32>, tensor<i32>)
      func.return %0 : tensor<5xi32>
    }

After:

    func.func @main(%b: tensor<5x4xf32>, %s: tensor<5xf32>, %m: tensor<i32>, %o: tensor<f32>) -> tensor<5xi32> {
      %0 = "tfl.pseudo_const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %1, %2 = "tfl.split"(%0, %b) <{num_splits = 2 : i32}>
          : (tensor<i32>, tensor<5x4xf32>) -> (tensor<5x2xf32>, tensor<5x2xf32>)
      %3 = "tfl.sub"(%2, %1) <{fused_activation_function = "NONE"}>
          : (tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<5x2xf32>
      %4 = "tfl.reduce_prod"(%3, %0) <{keep_dims = false}> : (tensor<5x2xf32>, tensor<i32>) -> tensor<5xf32>
      %5 = "tfl.add"(%4, %4) <{fused_activation_function = "NONE"}> : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
      %6 = "tfl.div"(%4, %5) <{fused_activation_function = "NONE"}> : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
      %7 = "tfl.pseudo_const"() <{value = dense<5.000000e-01> : tensor<f32>}> : () -> tensor<f32>
      %8 = "tfl.not_equal"(%6, %7) : (tensor<5xf32>, tensor<f32>) -> tensor<5xi1>
      %9 = "tfl.pseudo_const"() <{value = dense<5.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %10 = "tfl.pseudo_const"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %11 = "tfl.pseudo_const"() <{value = dense<-1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %12 = "tfl.range"(%9, %10, %11) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<5xf32>
      %13 = "tfl.pseudo_const"() <{value = dense<[-1, 1]> : tensor<2xi32>}> : () -> tensor<2xi32>
      %14 = "tfl.reshape"(%12, %13) <{new_shape = [-1 : i32, 1 : i32]}>
          : (tensor<5xf32>, tensor<2xi32>) -> tensor<5x1xf32>
      %15 = "tfl.pseudo_const"()
          <{value = dense<[1.1529215e+18, 1.1529215e+18, 1.15292178e+18, 1.15292178e+18]> : tensor<4xf32>}>
          : () -> tensor<4xf32>
      %16 = "tfl.mul"(%14, %15) <{fused_activation_function = "NONE"}>
          : (tensor<5x1xf32>, tensor<4xf32>) -> tensor<5x4xf32>
      %17 = "tfl.select"(%8, %16, %b) : (tensor<5xi1>, tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x4xf32>
      %18, %19 = "tfl.non_max_suppression_v4"(%17, %s, %m, %o, %o)
          : (tensor<5x4xf32>, tensor<5xf32>, tensor<i32>, tensor<f32>, tensor<f32>) -> (tensor<5xi32>, tensor<i32>)
      func.return %18 : tensor<5xi32>
    }
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.values import Value

SUPPRESSIONS = ("tfl.non_max_suppression_v4", "tfl.non_max_suppression_v5")

# Corners of the nearest far box; others are its multiples. They are apart, and areas are finite, up to 2**22 boxes.
_FAR = np.float32(2.0**60) * np.array([1, 1, 1 + 2.0**-22, 1 + 2.0**-22], np.float32)


class SeparateBoxes:
    """Moves boxes without an area far away, each to a place of its own."""

    __slots__ = ()

    name: ClassVar[str] = "separate-boxes"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of operators that get other boxes."""
        made: dict[tuple[Block | None, Value], Value] = {}
        count = 0
        for op in list(module.walk()):
            if op.name not in SUPPRESSIONS or _is_separated(boxes := op.operands[0]):
                continue
            key = op.parent, boxes
            if key not in made:
                builder = TFLBuilder(op)
                builder.location = op.location
                made[key] = _separated(builder, boxes)
            op.set_operand(0, made[key])
            count += 1
        return PassResult.of({"separated": count})


def _is_separated(boxes: Value) -> bool:
    """Returns whether boxes are this pass's result already, as in a file that was converted before."""
    choice = boxes.producer("tfl.select")
    test = None if choice is None else choice.operands[0].producer("tfl.not_equal")
    ratio = None if test is None else test.operands[0].producer("tfl.div")
    twice = None if ratio is None else ratio.operands[1].producer("tfl.add")
    return ratio is not None and twice is not None and list(twice.operands) == [ratio.operands[0]] * 2


def _separated(builder: TFLBuilder, boxes: Value) -> Value:
    size = (boxes.shape or (-1,))[0]
    corner, whole = (types.tensor(types.F32, (size, width)) for width in (2, 4))
    vector = types.tensor(types.F32, (size,))
    axis = builder.constant(np.array(1, np.int32))
    first, second = builder.tfl_op("split", (axis, boxes), (corner, corner), {"num_splits": 2}).results
    sides = builder.tfl("sub", (second, first), corner, tfl.NOT_FUSED)
    area = builder.tfl("reduce_prod", (sides, axis), vector, {"keep_dims": False})
    twice = builder.tfl("add", (area, area), vector, tfl.NOT_FUSED)
    ratio = builder.tfl("div", (area, twice), vector, tfl.NOT_FUSED)
    half = builder.constant(np.array(0.5, np.float32))
    is_empty = builder.tfl("not_equal", (ratio, half), types.tensor(types.I1, (size,)))
    far = builder.tfl("mul", (_places(builder, boxes, size), builder.constant(_FAR)), whole, tfl.NOT_FUSED)
    return builder.tfl("select", (is_empty, far, boxes), whole)  # Of rows, which `select_v2` doesn't choose.


def _places(builder: TFLBuilder, boxes: Value, size: int) -> Value:
    """Inserts a column with another positive number for each box; a constant would make files larger."""
    vector = types.tensor(types.F32, (size,))
    if size >= 0:
        bounds = [builder.scalar(number, types.F32) for number in (size, 0, -1)]
        numbers = builder.tfl("range", bounds, vector)
    else:
        kind = types.tensor(types.I32, (-1,))
        operands = (_count(builder, boxes), builder.number(0), builder.number(-1))
        numbers = builder.tfl("cast", (builder.tfl("range", operands, kind),), vector)
    shape = {"new_shape": (-1, 1)}
    return builder.tfl("reshape", (numbers, builder.ints((-1, 1))), types.tensor(types.F32, (size, 1)), shape)


def _count(builder: TFLBuilder, boxes: Value) -> Value:
    masks = {f"{name}_mask": 0 for name in ("begin", "end", "ellipsis", "new_axis")}
    operands = (builder.shape(boxes, 2), builder.ints((0,)), builder.ints((1,)), builder.ints((1,)))
    options = {**masks, "shrink_axis_mask": 1, "offset": False}
    return builder.tfl("strided_slice", operands, types.tensor(types.I32, ()), options)
