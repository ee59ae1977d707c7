"""Images that are scaled and moved: products with matrices of how much of each pixel is in each pixel of the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite
from tfconvert.converter.targets.stablehlo.legalize.expressions import Expression, count, number
from tfconvert.converter.targets.stablehlo.legalize.resize import Axis, axes_of, multiplied
from tfconvert.converter.targets.stablehlo.legalize.shaping import part
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.ops.resampling import SMALL_SUM, TWO_CUBICS
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _scale_and_translate(op: Operation, emit: StableHLOBuilder) -> Value:
    name = str(tf.get(op, "kernel_type", "lanczos3"))
    if name not in KERNELS:
        raise Declined(f"{name} is not a kernel that is known")
    value = emit.convert(op.operands[0], types.F32)
    for axis in axes_of(op, emit):
        at = axis.number - 1
        scale, moved = (
            Expression(emit, emit.reshape(part(emit, operand, 0, at, at + 1), ())) for operand in op.operands[2:]
        )
        is_smooth = bool(tf.get(op, "antialias", True))
        value = multiplied(emit, value, _matrix(axis, name, scale, moved, is_smooth=is_smooth), axis.number)
    return value


def _matrix(axis: Axis, name: str, scale: Expression, moved: Expression, *, is_smooth: bool) -> Value:
    """Returns the matrix that resizes an axis: weights by a kernel as wide as a pixel of the result at least."""
    kernel, radius = KERNELS[name]
    emit = scale.emit
    pixels = count(emit, axis.before).spread((1, axis.before))
    places = count(emit, axis.after).spread((axis.after, 1))
    inverse = 1 / scale
    at = (places + 0.5) * inverse - inverse * moved
    distance, reach = pixels + 0.5 - at, Expression(emit, np.full((), radius, np.float32))
    if is_smooth:
        width = inverse.maximum(1)
        distance, reach = distance / width, width * radius
    first, last = (at - reach - 0.5).apply("ceil"), (at + reach - 0.5).apply("floor")
    counts = pixels.compare("GE", first).both(pixels.compare("LE", last))
    inside = at.compare("GE", 0).both(at.compare("LE", number(emit, emit.size(axis.before))))
    weights = kernel(distance).where(counts.both(inside), 0)
    sums = emit.reduce("add", weights.value, (1,), 0)
    total = Expression(emit, emit.reshape(sums, (axis.after, 1)))
    divisor = emit.select(abs(total).compare("LT", SMALL_SUM).value, emit.scalar(math.inf, types.F32), total.value)
    return (weights / Expression(emit, divisor)).value


def _lanczos(radius: float, x: Expression) -> Expression:
    size = abs(x)
    wide = size.maximum(1e-3) * math.pi
    wave = radius * (wide.apply("sine") * (wide * (1 / radius)).apply("sine")) / (wide * wide)
    return wave.where(size.compare("LE", radius), 0).where(size.compare("GT", 1e-3), 1)


def _gaussian(x: Expression) -> Expression:
    return (x * x * -2).apply("exponential").where(abs(x).compare("LT", 1.5), 0)


def _box(x: Expression) -> Expression:
    size = abs(x)
    edge = (size * 0 + 0.5).where(size.compare("EQ", 0.5), 0)
    return (size * 0 + 1).where(size.compare("LT", 0.5), edge)


def _triangle(x: Expression) -> Expression:
    return (1 - abs(x)).maximum(0)


def _two_cubics(near: tuple[float, ...], far: tuple[float, ...], x: Expression) -> Expression:
    size = abs(x)
    outer = _polynomial(far, size).where(size.compare("LT", 2), 0)
    return _polynomial(near, size).where(size.compare("LT", 1), outer)


def _polynomial(factors: tuple[float, ...], x: Expression) -> Expression:
    first, second, *others = factors
    total = x * first + second
    for factor in others:
        total = total * x + factor
    return total


KERNELS: Mapping[str, tuple[Callable[[Expression], Expression], float]] = {
    **{f"lanczos{radius}": (partial(_lanczos, float(radius)), float(radius)) for radius in (1, 3, 5)},
    "gaussian": (_gaussian, 1.5),
    "box": (_box, 1.0),
    "triangle": (_triangle, 1.0),
    **{name: (partial(_two_cubics, *factors), 2.0) for name, factors in TWO_CUBICS.items()},
}
"""Kernel -> its formula and its radius."""

LOWERINGS: Mapping[str, Rewrite] = {"ScaleAndTranslate": _scale_and_translate}
