"""Elementwise operators: in rank 4, where no operand is misread, and with constants in full.

Integers of 64 bits are computed in 32, which is exact as long as they fit these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.fitting.fit import ANY, groups_of, merged
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import PREPARES, Rewrite
from tfconvert.converter.targets.litert.forms.questions import (
    MAX_RANK,
    array_of,
    option,
    source_of,
    static_shape,
    stored_constant,
)
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators

_UNARY = sorted(operators.elementwise(1) | {"cast", "dequantize", "quantize"})
_BINARY = sorted(operators.elementwise(2, 3) | {"prelu", "select"})


def _unary(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """An op of one operand: in the shape from which the operand was reshaped, or in rank 4."""
    need(all(value.element != types.I64 for value in (op.operands[0], op.results[0])), "it is of 64 bits")
    shape = static_shape(op.operands[0])
    source = source_of(op.operands[0])
    before = static_shape(source)
    if not 0 < len(before) <= MAX_RANK or source is op.operands[0]:
        source, before = op.operands[0], _in_rank_4(shape)
    need(before != shape, "its shape is low already")
    (value,) = build.again(op, [build.reshape(source, before)], [before]).results
    return build.reshape(value, shape)


def _in_rank_4(shape: Shape) -> Shape:
    """Returns a shape of rank 4 with a batch of one."""
    if len(shape) <= MAX_RANK:
        return (*[1] * (MAX_RANK - len(shape)), *shape)
    return (1, math.prod(shape[:-2]), *shape[-2:])


def _same_shapes(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """An op whose operands have one shape, or are single numbers: in the shape that one was reshaped from."""
    shape = static_shape(op.results[0])
    need(len(shape) > MAX_RANK, "its rank is low already")
    shapes = [static_shape(value) for value in op.operands]
    need(all(each == shape or math.prod(each) == 1 for each in shapes), "it broadcasts")
    sources = [static_shape(source_of(value)) for value in op.operands if math.prod(static_shape(value)) > 1]
    low = next((each for each in sources if 0 < len(each) <= MAX_RANK), _in_rank_4(shape))
    operands = [
        build.reshape(source_of(value), low if each == shape else (1,) * len(low))
        for value, each in zip(op.operands, shapes, strict=True)
    ]
    (value,) = build.again(op, operands, [low]).results
    return build.reshape(value, shape)


def _grouped(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """An op in rank 4: neighbouring dimensions that broadcast alike are merged."""
    new, _ = _operands_in_rank_4(op, build)
    return _emitted(op, build, new)


def _full(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """As `_grouped`, with constants in the full shape of the result."""
    new, low = _operands_in_rank_4(op, build)
    for index, value in enumerate(new):
        if stored_constant(value) is not None and static_shape(value) != low:
            new[index] = build.in_full(value, low)
    return _emitted(op, build, new)


def _repeated(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """As `_grouped`, with computed operands repeated to the result's shape."""
    new, low = _operands_in_rank_4(op, build)
    for index, value in enumerate(new):
        shape = static_shape(value)
        if stored_constant(value) is None and shape != low:
            new[index] = build.tile(value, [all_ // one for one, all_ in zip(shape, low, strict=True)])
    return _emitted(op, build, new)


def _emitted(op: tfl.TFLOp, build: FormBuilder, operands: Sequence[Value]) -> Value:
    low = np.broadcast_shapes(*[static_shape(value) for value in operands])
    (value,) = build.again(op, operands, [low]).results
    return build.reshape(value, static_shape(op.results[0]))


def _operands_in_rank_4(op: tfl.TFLOp, build: FormBuilder) -> tuple[list[Value], Shape]:
    """Returns the operands in rank 4, no two of them the same value, and the result's shape."""
    shape = static_shape(op.results[0])
    need(op.op_name != "select" or static_shape(op.operands[0]) == shape, "it chooses rows")
    padded = [(*[1] * (len(shape) - len(each)), *each) for each in map(static_shape, op.operands)]
    need(np.broadcast_shapes(shape, *padded) == shape, "its kernel does not broadcast")
    keys = [ANY if size == 1 else tuple(each[axis] == 1 for each in padded) for axis, size in enumerate(shape)]
    groups = groups_of(keys) if len(shape) > MAX_RANK else [(axis, axis + 1) for axis in range(len(shape))]
    need(len(groups) <= MAX_RANK, "its dimensions broadcast in too many ways")
    missing = (1,) * (MAX_RANK - len(groups))
    low = [(*missing, *merged(each, groups)) for each in padded]
    seen: list[Value] = []
    new: list[Value] = []
    for value, each in zip(op.operands, low, strict=True):
        is_number = tfl.is_constant(value) and math.prod(each) == 1
        reshaped = build.reshape(value, () if is_number else each)
        new.append(build.copy(reshaped) if value in seen and not tfl.is_constant(value) else reshaped)
        seen.append(value)
    return new, (*missing, *merged(shape, groups))


def _steep(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """`tfl.leaky_relu` with any slope: the larger one of the operand and the sloped one, above 1 the smaller one."""
    slope = float(option(op, "alpha"))
    name = "minimum" if slope > 1 else "maximum"
    return build.binary(name, op.operands[0], build.binary("mul", op.operands[0], slope))


def _sign_bit(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """Whether the sign bit of a float is set: it or its reciprocal is negative, which tells -0 from 0."""
    value = _with_sign(op)
    return build.compare("less", build.binary("minimum", value, build.binary("div", 1.0, value)), 0.0)


def _with_sign(op: tfl.TFLOp) -> Value:
    """Returns the float whose bits a comparison finds to be negative; declines for other comparisons."""
    bits, zero = op.operands
    need(isinstance(bits.owner, tfl.TFLOp) and bits.owner.op_name == "bitcast", "it compares no bits")
    assert isinstance(bits.owner, tfl.TFLOp)
    (value,) = bits.owner.operands
    need(value.element == types.F32, "the bits are not those of floats")
    need(not array_of(zero).any(), "it compares with another number than 0")
    return value


def _negative_zero(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """Whether a float is -0, for which Keras tests before `argmax`: a number divided by it is -infinity.

    XNNPACK divides by subnormal numbers as by 0. TensorFlow takes them for 0, too.
    """
    need(not build.as_integers, "it will be quantized")
    pair = [value.owner for value in op.operands if isinstance(value.owner, tfl.TFLOp)]
    named = {each.op_name: each for each in pair}
    need({"equal", "less"} == set(named), "it does not test for 0 and for a sign")
    value = _with_sign(named["less"])
    need(named["equal"].operands[0] is value and not array_of(named["equal"].operands[1]).any(), "it is another number")
    return build.compare("less", build.binary("div", _DIVIDED, value), -float(np.finfo(np.float32).max))


# Divided by the smallest float of all, this is still finite.
_DIVIDED = 2.0**-22


# Options that name the type of a result.
_TYPE_OPTIONS = ("output_type", "out_type", "out_data_type", "idx_out_type")

_LIMITS = np.iinfo(np.int32)


def _narrow(op: tfl.TFLOp, build: FormBuilder) -> list[Value]:
    """An op of 64-bit integers: of 32-bit integers, between casts."""
    values = [*op.operands, *op.results]
    need(any(value.element == types.I64 for value in values), "it has no integers of 64 bits")
    need(op.op_name != "cast" or types.I32 not in map(_element, values), "it is such a cast")
    operands = [_narrowed(build, value) for value in op.operands]
    kinds = [types.tensor(_narrow_of(_element(result)), result.shape) for result in op.results]
    fields = tfl.option_fields(op.op_name)
    changed = {name: tfl.to_attribute(fields[name], "INT32") for name in _TYPE_OPTIONS if name in fields}
    changed = {name: value for name, value in changed.items() if tfl.attribute(op, name) == "INT64"}
    new = build.insert(tfl.TFLOp(op.name, operands, kinds, {**op.properties, **changed}, op.attributes))
    return [build.cast(value, _element(old)) for value, old in zip(new.results, op.results, strict=True)]


def _element(value: Value) -> Any:
    return value.element


def _narrow_of(element: Any) -> Any:
    return types.I32 if element == types.I64 else element


def _narrowed(build: FormBuilder, value: Value) -> Value:
    if tfl.is_absent(value) or value.element != types.I64:
        return value
    constant = tensor_data.constant_of(value)
    if constant is None:
        return build.cast(value, types.I32)
    array = tensor_data.to_array(constant)
    fits = not array.size or (array.min() >= _LIMITS.min and array.max() <= _LIMITS.max)
    need(bool(fits), "a constant does not fit 32 bits")
    return build.constant(array.astype(np.int32))


def _cast_once(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A cast of 32-bit integers that were cast to 64 bits: one cast, or none."""
    inner = op.operands[0].owner
    need(isinstance(inner, tfl.TFLOp) and inner.op_name == "cast", "it casts no cast")
    assert isinstance(inner, tfl.TFLOp)
    value = inner.operands[0]
    need(inner.results[0].element == types.I64, "the first one is not to integers of 64 bits")
    need(value.element == types.I32, "the first one is not of integers of 32 bits")
    return build.cast(value, op.results[0].element)


# The operators of integers of 64 bits that are computed in 32.
_NARROWED = (
    "abs add arg_max arg_min cast concatenation cumsum div dynamic_update_slice embedding_lookup equal expand_dims "
    "floor_div floor_mod gather gather_nd greater greater_equal less less_equal maximum minimum mul neg not_equal "
    "one_hot pack pad padv2 reduce_max reduce_min reduce_prod reshape reverse_v2 scatter_nd select select_v2 sign "
    "slice split split_v squeeze strided_slice sub sum tile topk_v2 transpose unpack"
)

NEEDS_BY_DEFAULT = "bitcast"
"""The operators without any of which there is nothing to rewrite by default."""

REWRITES = (
    Rewrite("negative-zero-by-quotient", "logical_and", _negative_zero, 5, (types.I1,)),
    Rewrite("sign-bit-by-reciprocal", "less", _sign_bit, 4),
    Rewrite("leaky-relu-by-formula", "leaky_relu", _steep, 3),
    *(Rewrite(f"{name}-in-rank-4", name, _unary) for name in _UNARY),
    *(Rewrite(f"{name}-in-the-shape-before", name, _same_shapes, 3) for name in _BINARY),
    *(Rewrite(f"{name}-in-rank-4", name, _grouped, 2) for name in _BINARY),
    *(Rewrite(f"{name}-of-whole-constants", name, _full) for name in _BINARY),
    *(Rewrite(f"{name}-of-repeated-operands", name, _repeated, 0) for name in _BINARY),
    Rewrite("cast-once", "cast", _cast_once, PREPARES + 1),
    *(Rewrite(f"{name}-in-32-bits", name, _narrow, PREPARES) for name in _NARROWED.split()),
)
