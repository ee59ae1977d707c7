"""The matrices of resampling where sizes are open: computed as the model runs, by the formulas of `resampling.py`.

A matrix has the shape [outputs, inputs]; its rows say how much of each input pixel is in an output pixel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from tfconvert.converter.ir.constants import Scalar
from tfconvert.converter.targets.litert.legalize.formulas import Formula, both, count, number
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.ops.resampling import SMALL_SUM, TABLE, TWO_CUBICS
from tfconvert.schema.dialects import tf
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class _Axis(NamedTuple):
    """An axis that is resized: its sizes, and the numbers of the pixels, those of the input as a row."""

    inputs: Formula
    outputs: Formula
    pixels: Formula
    places: Formula


def matrix_of(emit: LiteRTBuilder, op: Operation, axis: int, inputs: Scalar, outputs: Scalar) -> Value:
    """Returns the matrix that resizes an axis.

    Args:
        emit: Emits ops.
        op: `ResizeArea` or `ResizeBicubic` that doesn't align corners, or `ScaleAndTranslate`.
        axis: 0 for rows and 1 for columns.
        inputs: The input's size.
        outputs: The result's size.
    """
    sizes = _Axis(
        number(emit, inputs),
        number(emit, outputs),
        count(emit, inputs).reshape((1, inputs if isinstance(inputs, int) else -1)),
        count(emit, outputs).reshape((outputs if isinstance(outputs, int) else -1, 1)),
    )
    if op.name == "tf.ResizeArea":
        return _area(sizes).value
    if op.name == "tf.ResizeBicubic":
        return _bicubic(sizes, is_half=bool(tf.get(op, "half_pixel_centers", False))).value
    scale, translation = (Formula(emit, emit.pick(operand, axis)) for operand in op.operands[2:])
    kernel, antialias = str(tf.get(op, "kernel_type", "lanczos3")), bool(tf.get(op, "antialias", True))
    return _scaled(sizes, kernel, scale, translation, antialias=antialias).value


def _area(axis: _Axis) -> Formula:
    scale = axis.inputs / axis.outputs
    start, end = axis.places * scale, (axis.places + 1) * scale
    covered = (axis.pixels + 1).minimum(end) - axis.pixels.maximum(start)
    return covered.maximum(0) / scale


def _bicubic(axis: _Axis, *, is_half: bool) -> Formula:
    scale = axis.inputs / axis.outputs
    at = (axis.places + 0.5) * scale - 0.5 if is_half else axis.places * scale
    floor = at.apply("Floor")
    at = floor + ((at - floor) * TABLE).apply("Round") * (1 / TABLE)
    weight = partial(_cubic, -0.5 if is_half else -0.75)
    weights = weight(abs(axis.pixels - at))
    if is_half:
        # Pixels beyond the edge don't count; the others share their weight.
        return weights / _sum(weights)
    # Those are the pixels at the edge once more.
    last = axis.inputs - 1
    before = weight(abs(at + 1)) + weight(abs(at + 2))
    behind = weight(abs(axis.inputs - at)) + weight(abs(axis.inputs + 1 - at))
    nothing = axis.pixels * 0
    is_first, is_last = axis.pixels.compare("Equal", 0), axis.pixels.compare("Equal", last)
    return weights + (before + nothing).where(is_first, 0) + (behind + nothing).where(is_last, 0)


def _cubic(sharpness: float, distance: Formula) -> Formula:
    a = sharpness
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return near.where(distance.compare("LessEqual", 1), far.where(distance.compare("Less", 2), 0))


def _scaled(axis: _Axis, kernel: str, scale: Formula, translation: Formula, *, antialias: bool) -> Formula:
    function, radius = FORMULAS[kernel]
    inverse = 1 / scale
    at = (axis.places + 0.5) * inverse - inverse * translation
    distance = axis.pixels + 0.5 - at
    reach: Formula | float = radius
    if antialias:
        width = inverse.maximum(1)
        distance, reach = distance / width, width * radius
    first, last = (at - reach - 0.5).apply("Ceil"), (at + reach - 0.5).apply("Floor")
    counts = both(
        at.emit,
        axis.pixels.compare("GreaterEqual", first),
        axis.pixels.compare("LessEqual", last),
        at.compare("GreaterEqual", 0),
        at.compare("LessEqual", axis.inputs),
    )
    weights = function(distance).where(counts, 0)
    total = _sum(weights)
    is_small = abs(total).compare("Less", SMALL_SUM)
    return weights / Formula(at.emit, at.emit.select(is_small, math.inf, total.value))


def _sum(weights: Formula) -> Formula:
    return Formula(weights.emit, weights.emit.reduce("Sum", weights.value, (1,), keep_dims=True))


def _lanczos(radius: float, x: Formula) -> Formula:
    size = abs(x)
    is_near = size.compare("LessEqual", 1e-3)
    wide = size.maximum(1e-3) * math.pi
    wave = radius * (wide.apply("Sin") * (wide * (1 / radius)).apply("Sin")) / (wide * wide)
    wave = wave.where(size.compare("LessEqual", radius), 0)
    return Formula(x.emit, x.emit.select(is_near, 1.0, wave.value))


def _gaussian(x: Formula) -> Formula:
    return (x * x * -2).apply("Exp").where(abs(x).compare("Less", 1.5), 0)


def _box(x: Formula) -> Formula:
    size = abs(x)
    edge = (size * 0 + 0.5).where(size.compare("Equal", 0.5), 0)
    return (size * 0 + 1).where(size.compare("Less", 0.5), edge)


def _triangle(x: Formula) -> Formula:
    return (1 - abs(x)).maximum(0)


def _two_cubics(near: tuple[float, ...], far: tuple[float, ...], x: Formula) -> Formula:
    size = abs(x)
    outer = _polynomial(far, size).where(size.compare("Less", 2), 0)
    return _polynomial(near, size).where(size.compare("Less", 1), outer)


def _polynomial(factors: tuple[float, ...], x: Formula) -> Formula:
    first, second, *others = factors
    total = x * first + second
    for factor in others:
        total = total * x + factor
    return total


FORMULAS: Mapping[str, tuple[Callable[[Formula], Formula], float]] = {
    **{f"lanczos{radius}": (partial(_lanczos, float(radius)), float(radius)) for radius in (1, 3, 5)},
    "gaussian": (_gaussian, 1.5),
    "box": (_box, 1.0),
    "triangle": (_triangle, 1.0),
    **{name: (partial(_two_cubics, *factors), 2.0) for name, factors in TWO_CUBICS.items()},
}
"""Kernel of `ScaleAndTranslate` -> its formula and its radius, as `resampling.KERNELS` has them."""
