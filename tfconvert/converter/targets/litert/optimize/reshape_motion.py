"""Moves ops over reshapes that don't affect them, if that saves a reshape.

    reshape(tanh(reshape(x, s)), t)  ->  reshape(tanh(x), t)        other elementwise ops as well, several in a row, too
    mean(tanh(reshape(x, s)), a)     ->  mean(tanh(x), b)           where s leaves dimensions of one element out

One-dimensional convolutions are those of images one pixel high, with reshapes before and after each of them.

Activations and per-channel constants move before a reshape, if the previous op can absorb them.

    relu(reshape(conv(x), s))    ->  reshape(relu(conv(x)), s)
    add(reshape(conv(x), s), c)  ->  reshape(add(conv(x), c), s)     where the last dimension stays; mul as well
    add(reshape(conv(x), s), c)  ->  reshape(add(conv(x), d), s)     where s cuts the last dimension into those of c

In one-dimensional convolutions, a reshape is between the convolution and its bias.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.declarative import own_rule
from tfconvert.converter.rewrite.dsl import Op, computed, constant, op, rest, tfl, value
from tfconvert.converter.rewrite.pattern import Pattern, need, required
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import option, shape_of
from tfconvert.converter.targets.litert.optimize import activations, fold_into_weights
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators


def _vector(c: Constant, reshape: Operation, root: Operation) -> Constant:
    """Returns a constant as a vector of the channels before the reshape."""
    before, after = shape_of(reshape.operands[0]), shape_of(reshape.results[0])
    is_known = before[-1:] > (-1,) and bool(after) and after == root.results[0].shape
    need(is_known, "the shape is unknown or changes")
    flat = c if before[-1] == after[-1] else _flat(c, before[-1], after)
    return questions.as_vector(flat, before[-1], len(after))


def _flat(constant: Constant, length: int, after: types.Shape) -> Constant:
    """Returns a constant as a vector of channels, if the reshape splits the last dimension.

    Args:
        constant: The constant.
        length: The number of channels.
        after: The shape whose last dimensions are the channels.
    """
    dims = questions.dims_of(constant)
    while dims and dims[0] == 1:
        dims = dims[1:]
    if math.prod(dims) == length and dims and dims == after[-len(dims) :]:
        return tensor_data.defer("reshape", (constant,), (length,), (length,))
    need(math.prod(dims) == 1, "the last dimension changes, or may change")
    return constant


_DIMS = value("dims")
_VECTOR = computed(_vector, "vector")


def _before_reshape(root: str, sources: tuple[str, ...], *, has_constant: bool = False) -> Pattern[Any]:
    """Returns the pattern of an op that moves before a reshape, if one of the given ops can absorb it."""
    source = op(sources, rest("operands"), **questions.PLAIN).once()
    reshape = tfl.reshape(source, _DIMS).element(np.float32).once().named("reshape")
    matched: Op = op(root, reshape, constant("c")).commutative() if has_constant else op(root, reshape)
    moved = matched.rebuilt(source, *([_VECTOR] if has_constant else [])).like(source)
    where = [_VECTOR] if has_constant else []
    return own_rule(f"{root[4:]}-before-reshape", matched, reshape.rebuilt(moved, _DIMS), where=where, benefit=1)


# Their kernels accept any rank.
_ELEMENTWISE = frozenset(f"tfl.{name}" for name in operators.elementwise(1))

# The maximum length of a chain of elementwise ops.
_LONGEST = 3


def _passed(value: Value) -> tuple[Operation, list[Operation]]:
    """Returns the reshape before the elementwise ops that compute a value, and these in order."""
    ops: list[Operation] = []
    while len(ops) < _LONGEST and (source := value.sole_producer(_ELEMENTWISE)) is not None:
        ops.append(source)
        value = source.operands[0]
    reshape = required(value.sole_producer("tfl.reshape"), "no reshape comes before, or it is used elsewhere too")
    shape_of(reshape.operands[0])
    return reshape, ops[::-1]


def _moved(build: FormBuilder, reshape: Operation, ops: Sequence[Operation]) -> Value:
    """Inserts the elementwise ops on the reshape's operand."""
    moved = reshape.operands[0]
    for each in ops:
        moved = build.again(each, [moved], [shape_of(moved)], location=each.location).results[0]
    return moved


def _over_elementwise(op: Operation) -> Emit:
    reshape, ops = _passed(op.operands[0])
    need(bool(ops), "nothing is between the reshapes")
    return lambda build: build.again(op, (_moved(build, reshape, ops), op.operands[1]))


def _over_reshape(op: Operation) -> Emit:
    reshape, ops = _passed(op.operands[0])
    need(not option(op, "keep_dims"), "the reduced dimensions are kept")
    before, after = shape_of(reshape.operands[0]), shape_of(op.operands[0])
    reduced, kept = required(questions.axes(op.operands[1], after), "the axes are computed"), _kept(before, after)
    axes = sorted({*range(len(before))} - {*kept} | {kept[axis] for axis in reduced})

    def emit_reduction(build: FormBuilder) -> Operation:
        along = build.derived(np.array(axes, np.int32), op.operands[1])
        return build.again(op, (_moved(build, reshape, ops), along))

    return emit_reduction


def _kept(before: types.Shape, after: types.Shape) -> list[int]:
    """Returns the dimensions that a reshape keeps; declines if it does more than remove dimensions of one element."""
    kept: list[int] = []
    for index, dim in enumerate(before):
        if len(kept) < len(after) and dim == after[len(kept)]:
            kept.append(index)
        else:
            need(dim == 1, "the reshape does more than to leave out dimensions of one element")
    need(len(kept) == len(after) and before.count(-1) <= 1, "the reshape does more, or may do so")
    return kept


NEEDS = "reshape"
"""The operators without any of which no pattern matches."""

PATTERNS: tuple[Pattern[Any], ...] = (
    *(_before_reshape(root, tuple(fold_into_weights.OPS), has_constant=True) for root in ("tfl.add", "tfl.mul")),
    *(_before_reshape(root, activations.CLAMPING) for root in activations.ACTIVATIONS),
    planned("reshape-over-elementwise", "reshape", _over_elementwise, 3, _LONGEST + 1, producers={0: _ELEMENTWISE}),
    *(
        planned(
            f"{name}-over-reshape",
            name,
            _over_reshape,
            depth=_LONGEST + 1,
            producers={0: {*_ELEMENTWISE, "tfl.reshape"}},
        )
        for name in operators.having("reduction")
    ),
)
