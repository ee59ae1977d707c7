"""Fake-quantized values: their forms in the IR, and rewrites that commute with fake quantization.

There are two forms:

    tfl.fake_quant{min, max, num_bits, narrow_range}(x)            one range for all
    tfl.dequantize(tfl.quantize(x))                                a range for each slice of an axis, in the type

A layout of a fake-quantized constant is changed below the fake quantization: `transpose(fake_quant(w), p)` is
`fake_quant(transpose(w, p))`. So a filter stays a fake-quantized constant, whatever layout its operator requires.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.rewrite.rewriter import fuse_origins
from tfconvert.ops.fake_quant import nudged
from tfconvert.schema.dialects import quant, tensor_data, tfl, types
from tfconvert.schema.dialects.quant import Uniform, UniformType
from tfconvert.schema.dialects.tensor_data import Array, Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import I8, I16
from tfconvert.schema.ir.values import OpResult, Value

FAKE_QUANT = "tfl.fake_quant"
_QUANTIZE = "tfl.quantize"
_DEQUANTIZE = "tfl.dequantize"

LAST: frozenset[str] = frozenset({FAKE_QUANT, _DEQUANTIZE})
"""The ops whose results may be fake-quantized values."""

# The scale of the range from 0 to 0.
_TINY = np.finfo(np.float32).tiny

Insert = Callable[[Operation], Operation]
"""Inserts an op and returns it."""


def ops_of(value: Value) -> tuple[Operation, ...]:
    """Returns the op or the pair of ops that fake-quantizes a value; empty if it is not fake-quantized."""
    if type(value) is not OpResult:
        return ()
    op = value.op
    if op.name == FAKE_QUANT:
        return (op,)
    if op.name != _DEQUANTIZE or type(op.operands[0]) is not OpResult:
        return ()
    inner = op.operands[0].op
    is_pair = (
        inner.name == _QUANTIZE
        and isinstance(op.operands[0].element, UniformType)
        and inner.operands[0].element == types.F32
    )
    return (inner, op) if is_pair else ()


def source_of(value: Value) -> Value | None:
    """Returns the value before fake quantization, `None` if a value isn't fake-quantized."""
    ops = ops_of(value)
    return ops[0].operands[0] if ops else None


def constant_behind(value: Value) -> Constant | None:
    """Returns the constant before any fake quantization; `None` if a value is computed."""
    source = source_of(value)
    return tensor_data.constant_of(value if source is None else source)


def uniform_of(value: Value) -> Uniform:
    """Returns the mapping of a fake-quantized value, with TensorFlow's scale and zero point."""
    *_, last = ops_of(value)
    if last.name == _DEQUANTIZE:
        element = last.operands[0].element
        assert isinstance(element, UniformType)
        return element.data
    minimum, maximum = (np.float32(tfl.attribute(last, name)) for name in ("min", "max"))
    bits, narrow = tfl.attribute(last, "num_bits"), tfl.attribute(last, "narrow_range")
    return stored_uniform(*steps(minimum, maximum, bits, narrow), bits, narrow, None)


def steps(minimum: Array | np.float32, maximum: Array | np.float32, bits: int, narrow: bool) -> tuple[Array, Array]:
    """Returns the scales of ranges and their unsigned zero points, computed as in TensorFlow."""
    with np.errstate(all="ignore"):
        found = nudged(np.atleast_1d(minimum), np.atleast_1d(maximum), bits, narrow)
    return found.scale, found.zero_point


def stored_uniform(scales: Array, zero_points: Array, bits: int, narrow: bool, axis: int | None) -> Uniform:
    """Returns the mapping of the stored integers, which are signed and have 8 or 16 bits.

    Args:
        scales: The scales.
        zero_points: The unsigned zero points.
        bits: Bits of an integer.
        narrow: Whether the lowest integer isn't used.
        axis: The axis of the scales.
    """
    middle = 2 ** (bits - 1)
    storage = I8 if bits <= I8.width else I16
    limits = quant.limits_within(storage, narrow - middle, middle - 1)
    zeros = (int(zero) - middle for zero in zero_points)
    positive = np.where(scales > 0, scales, _TINY).astype(np.float32)
    return Uniform(storage, tuple(positive.tolist()), tuple(zeros), axis, limits)


def pair(insert: Insert, source: Value, uniform: Uniform) -> Value:
    """Fake-quantizes a value by a pair of ops."""
    quantized = quant.tensor(uniform, source.shape)
    inner = insert(tfl.build("quantize", (source,), (quantized,)))
    return insert(tfl.build("dequantize", inner.results, (source.type,))).results[0]


def transposed(insert: Insert, value: Value, permutation: Sequence[int]) -> Value | None:
    """Returns a fake-quantized constant with its dimensions permuted, `None` if a value isn't such a constant."""
    constant = constant_behind(value)
    if constant is None or source_of(value) is None:
        return None
    shape = tuple(constant.type.shape[axis] for axis in permutation)
    moved = tensor_data.defer("transpose", (constant,), shape, tuple(permutation))
    uniform = uniform_of(value)
    axis = None if uniform.axis is None else tuple(permutation).index(uniform.axis)
    return _fake_quantized_like(insert, value, moved, uniform._replace(axis=axis))


def reshaped(insert: Insert, value: Value, shape: Sequence[int]) -> Value | None:
    """Returns a fake-quantized constant in another shape.

    Returns:
        The value; `None` if it isn't such a constant, or if no dimension of the new shape has slices with one range.
    """
    constant = constant_behind(value)
    if constant is None or source_of(value) is None or -1 in shape:
        return None
    uniform = _reshaped_uniform(uniform_of(value), constant.type.shape, shape)
    if uniform is None:
        return None
    moved = tensor_data.defer("reshape", (constant,), tuple(shape), tuple(shape))
    return _fake_quantized_like(insert, value, moved, uniform)


def can_reshape(value: Value, shape: Sequence[int]) -> bool:
    """Returns whether the ranges of a fake-quantized constant also have an axis in another shape."""
    constant = constant_behind(value)
    return constant is not None and _reshaped_uniform(uniform_of(value), constant.type.shape, shape) is not None


def _reshaped_uniform(uniform: Uniform, before: Sequence[int], after: Sequence[int]) -> Uniform | None:
    """Returns the ranges along the dimension of a new shape that contains the old axis."""
    axis = uniform.axis
    if axis is None:
        return uniform
    outer, size = math.prod(before[:axis]), before[axis]
    inner = math.prod(before[axis + 1 :])
    for at, dim in enumerate(after):
        around, within = math.prod(after[:at]), math.prod(after[at + 1 :])
        if not dim or outer % max(around, 1) or inner % max(within, 1):
            continue
        # The dimension joins `outer / around` slices before the old axis, and `inner / within` after it.
        count, each = outer // around, inner // within
        if count * size * each == dim:
            scales, zeros = (tuple(np.tile(np.repeat(part, each), count).tolist()) for part in uniform[1:3])
            return uniform._replace(scales=scales, zero_points=zeros, axis=at)
    return None


def _fake_quantized_like(insert: Insert, value: Value, constant: Constant, uniform: Uniform) -> Value:
    """Fake-quantizes another constant in a value's form with a new mapping."""
    *_, last = ops_of(value)
    origin = ops_of(value)[0].operands[0]
    moved = insert(tfl.constant(constant, fuse_origins([origin]))).results[0]
    if last.name == FAKE_QUANT:
        return insert(rebuild(last, (moved,), (moved.type,))).results[0]
    return pair(insert, moved, uniform)


def scaled(
    insert: Insert, value: Value, constant: Constant, factor: Array, axis: int, origins: Sequence[Value]
) -> Value:
    """Scales a fake-quantized constant and its ranges.

    Args:
        insert: Inserts ops.
        value: The fake-quantized value.
        constant: The scaled constant, before fake quantization.
        factor: One factor for each slice of the axis, or for all.
        axis: The axis; that of the ranges, if they have one.
        origins: The values that the constant is computed from.
    """
    uniform = scaled_uniform(uniform_of(value), factor, axis)
    moved = insert(tfl.constant(constant, fuse_origins(origins))).results[0]
    (op, *_) = ops_of(value)
    if op.name != FAKE_QUANT or uniform.axis is not None:
        return pair(insert, moved, uniform)
    ends = [np.float32(tfl.attribute(op, name)) * factor.reshape(()) for name in ("min", "max")]
    if ends[0] == ends[1]:
        return pair(insert, moved, uniform)
    options = {"num_bits": tfl.attribute(op, "num_bits"), "narrow_range": tfl.attribute(op, "narrow_range")}
    options |= {"min": float(min(ends)), "max": float(max(ends))}
    return insert(tfl.build("fake_quant", (moved,), (moved.type,), options)).results[0]


def scaled_uniform(uniform: Uniform, factor: Array, axis: int) -> Uniform:
    """Returns the mapping of ranges times factors; negative factors mirror the integers.

    A slice with the factor 0 keeps its scale, since a scale can't be zero.
    """
    factor = factor.reshape(-1)
    count = max(len(uniform.scales), len(factor))
    old = np.broadcast_to(np.array(uniform.scales, np.float32), count)
    scales = old * np.abs(factor)
    zeros = np.broadcast_to(np.array(uniform.zero_points, np.int64), count)
    mirrored = np.where(factor < 0, sum(uniform.range) - zeros, zeros)
    scales = np.where((scales > 0) & np.isfinite(scales), scales, old)
    along = uniform.axis if count == 1 else axis
    return uniform._replace(scales=tuple(scales.tolist()), zero_points=tuple(mirrored.tolist()), axis=along)
