"""Images that are scaled and moved: products with matrices of how much of each pixel is in each pixel of the result."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite
from tfconvert.converter.targets.stablehlo.legalize.expressions import Expression
from tfconvert.converter.targets.stablehlo.legalize.resize import axes_of, multiplied, pixels_of
from tfconvert.converter.targets.stablehlo.legalize.shaping import part
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.ops.resampling import KERNELS, scaled_weights
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _scale_and_translate(op: Operation, emit: StableHLOBuilder) -> Value:
    name = str(tf.get(op, "kernel_type", "lanczos3"))
    if name not in KERNELS:
        raise Declined(f"{name} is not a kernel that is known")
    value = emit.convert(op.operands[0], types.F32)
    antialias = bool(tf.get(op, "antialias", True))
    for axis in axes_of(op, emit):
        at = axis.number - 1
        scale, moved = (
            Expression(emit, emit.reshape(part(emit, operand, 0, at, at + 1), ())) for operand in op.operands[2:]
        )
        weights = scaled_weights(pixels_of(emit, axis), name, scale, moved, antialias=antialias)
        value = multiplied(emit, value, weights, axis.number)
    return value


LOWERINGS: Mapping[str, Rewrite] = {"ScaleAndTranslate": _scale_and_translate}
