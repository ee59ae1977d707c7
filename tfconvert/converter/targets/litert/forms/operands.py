"""Operands of elementwise operators, without an operator more: in the ranks that no delegate misreads.

    add(x, [c0, c1, ...])    ->  add(x, [[[[c0, c1, ...]]]])   of integers; in full below rank 4
    select_v2(mask, x, c)    ->  select_v2([[mask]], x, c)     of a constant mask; other constants in full
    sub(x, sum(y))           ->  sub(x, sum{keep_dims}(y))     where the sum is one number
    sub(x, x)                ->  mul(x, 0)                     of floats
    broadcast_to(x, s)       ->  mul(x, ones)                  of floats
    fully_connected(reshape(x, [N, C]), w)  ->  fully_connected(x, w)   of [N, 1, ..., 1, C] that becomes integers

The GPU's shaders read vectors of integers in rank 4 only.
"""

from __future__ import annotations

import math

import numpy as np

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Rewrite
from tfconvert.converter.targets.litert.forms.questions import (
    MAX_RANK,
    PLAIN,
    like,
    need_floats,
    option,
    producer,
    shape_of,
    static_shape,
)
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators

_OF_INTEGERS = sorted(operators.elementwise(2) - {"atan2", "bitwise_xor", "pow", "right_shift"})
_REDUCTIONS = frozenset(("tfl.mean", "tfl.sum", "tfl.reduce_max", "tfl.reduce_min", "tfl.reduce_prod"))

# The maximum number of elements of a constant that is written in full.
_MAX_FULL = 4096


def _constant_of_integers(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A constant vector of integers: in rank 4, or in full."""
    found = [index for index, value in enumerate(op.operands) if tensor_data.constant_of(value) is not None]
    need(len(found) == 1, "not one operand is a constant")
    constant, result = op.operands[found[0]], shape_of(op.results[0])
    need(constant.element in (types.I32, types.I1), "they aren't integers of 32 bits or booleans")
    shape = static_shape(constant)
    need(0 < len(shape) < MAX_RANK >= len(result) and shape != result, "the rank is one that is read right")
    if len(result) == MAX_RANK:
        read = build.reshape(constant, (1,) * (MAX_RANK - len(shape)) + shape)
    else:
        read = build.in_full(constant, result, _MAX_FULL)
    return build.again(op, [read if value is constant else value for value in op.operands]).results[0]


def _constants_of_choice(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A mask in the rank of the result, and constants to choose from in full."""
    mask, *choices = op.operands
    result, shape = shape_of(op.results[0]), shape_of(mask)
    if tensor_data.constant_of(mask) is not None and 0 < len(shape) < len(result) <= MAX_RANK:
        mask = build.reshape(mask, (1,) * (len(result) - len(shape)) + shape)
    for index, value in enumerate(choices):
        if tensor_data.constant_of(value) is not None and shape_of(value) not in ((), result):
            choices[index] = build.in_full(value, result, _MAX_FULL)
    need([mask, *choices] != list(op.operands), "no constant is broadcast")
    return build.again(op, [mask, *choices]).results[0]


def _number_in_dimensions(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A reduction to one number: with the dimensions of 1, in which accelerators take it."""
    rank = len(shape_of(op.results[0]))
    value = next((each for each in op.operands if shape_of(each) == ()), None)
    owner = None if value is None else value.owner
    if value is None or not isinstance(owner, tfl.TFLOp) or owner.name not in _REDUCTIONS:
        need(False, "no operand is reduced to a number")
    assert value is not None
    assert isinstance(owner, tfl.TFLOp)
    before = len(shape_of(owner.operands[0]))
    need(value.has_one_use() and 0 < before == rank <= MAX_RANK, "it has other users, or another rank")
    kept = build.again(owner, owner.operands, [(1,) * rank], {"keep_dims": True}).results[0]
    return build.again(op, [kept if each is value else each for each in op.operands]).results[0]


def _minus_itself(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A difference of equals: the product with zero, which has the same infinities."""
    value = op.operands[0]
    need(op.operands[1] is value, "the operands differ")
    options = {"fused_activation_function": option(op, "fused_activation_function")}
    zero = build.scalar(0, value.element)
    return build.tfl("mul", (value, zero), op.results[0].type, options)


def _broadcast(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A broadcast: the product with ones."""
    need_floats(op.operands[0])
    value, result = op.operands[0], static_shape(op.results[0])
    shape = static_shape(value)
    need(not build.as_integers and len(shape) in (0, len(result)) and len(result) <= 6, "it adds dimensions")
    ones = tuple(1 if shape and dim == shape[axis] else dim for axis, dim in enumerate(result))
    need(math.prod(ones) <= _MAX_FULL, "the ones would be many")
    return build.tfl("mul", (value, build.constant(np.ones(ones, np.float32))), like(value, result), PLAIN)


def _rows_of_ones(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A product of rows that a reshape makes by dropping dimensions of 1: without the reshape.

    Of what becomes integers, for microcontrollers: tools that read files of floats don't expect it.
    """
    need(build.as_integers, "its numbers stay floats")
    value = producer(op.operands[0], "reshape").operands[0]
    shape, rows = shape_of(value), shape_of(op.operands[0])
    need(2 < len(shape) <= MAX_RANK and shape == (rows[0], *[1] * (len(shape) - 2), rows[-1]), "it is no such reshape")
    need(len(rows) == 2 and not option(op, "keep_num_dims"), "the product has the operand's dimensions")
    return build.again(op, (value, *op.operands[1:])).results[0]


_NUMBERS = (types.F32, types.I32)
_ANY = (types.F32, types.I8, types.I32, types.I1)
# What constant integers are computed with, and the results of comparing them.
_INTEGERS = (types.I32, types.I1)

REWRITES = (
    *(Rewrite(f"{name}-of-constant-in-rank-4", name, _constant_of_integers, 9, _INTEGERS) for name in _OF_INTEGERS),
    Rewrite("choice-of-whole-constants", "select_v2", _constants_of_choice, 9, _ANY),
    *(
        Rewrite(f"{name}-of-number-in-dimensions", name, _number_in_dimensions, 8, _NUMBERS, producers=_REDUCTIONS)
        for name in operators.having("arithmetic")
    ),
    Rewrite("minus-itself-by-zero", "sub", _minus_itself, 7, (types.F32,)),
    Rewrite("product-of-rows-of-ones", "fully_connected", _rows_of_ones, 9, (types.F32,)),
    Rewrite("broadcast-by-product", "broadcast_to", _broadcast, 2, (types.F32,)),
)
