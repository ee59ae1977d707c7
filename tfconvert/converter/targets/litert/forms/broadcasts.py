"""Broadcasts that `BROADCAST_TO` copies element by element.

broadcast_to(number, shape)  ->  fill(shape, number)
broadcast_to(x, shape)       ->  tile(x, copies)           of rows
broadcast_to(x, shape)       ->  mul(x, fill(shape, 1))    of few floats
"""

from __future__ import annotations

import math
from typing import Any

from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import is_float, large, shape_of, static_shape
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_ELEMENTS = frozenset(("f16", "f32", "i1", "i8", "i16", "i32", "i64"))
"""The types of elements that LiteRT fills tensors with."""

_TILED = frozenset(("f32", "i1", "i8", "i32", "i64", "ui8"))
"""The types of elements that it tiles."""

# The number of elements that are copied together from which tiling is faster than multiplying.
_MIN_TILED = 16
# The maximum rank of XNNPACK's operators.
_MAX_RANK = 6


def _filled(op: Operation) -> Emit:
    x, shape = op.operands
    need(set(shape_of(x)) <= {1}, "it isn't one number")
    need(str(x.element) in _ELEMENTS, "LiteRT doesn't fill tensors of its elements")
    return lambda build: build.tfl("fill", (shape, build.reshape(x, ())), op.results[0].type)


def _multiplied(op: Operation) -> Emit:
    x, kind = op.operands[0], op.results[0].type
    before, shape = _shapes(op)
    need(is_float(x), "it isn't of 32-bit floats")
    need(len(shape) <= _MAX_RANK, "XNNPACK takes fewer dimensions")
    need(_row(before, shape) < _MIN_TILED, "whole rows are repeated")

    def emit_product(build: FormBuilder) -> Value:
        ones = build.tfl("fill", (build.ints(shape), build.scalar(1, types.F32)), kind)
        return build.tfl("mul", (x, ones), kind, {"fused_activation_function": "NONE"})

    return emit_product


def _tiled(op: Operation) -> Emit:
    x = op.operands[0]
    before, shape = _shapes(op)
    need(str(x.element) in _TILED, "LiteRT doesn't tile tensors of its elements")
    need(_row(before, shape) >= _MIN_TILED or not is_float(x), "short rows are repeated")
    copies = [size // own for size, own in zip(shape, before, strict=True)]
    return lambda build: build.tfl("tile", (build.reshape(x, before), build.ints(copies)), op.results[0].type)


def _shapes(op: Operation) -> tuple[Shape, Shape]:
    """Returns the shape of a tensor, with dimensions of size 1 before it, and the one that it is broadcast to."""
    large(op.results[0])
    shape, own = static_shape(op.results[0]), static_shape(op.operands[0])
    before = (*[1] * (len(shape) - len(own)), *own)
    need(before != shape and math.prod(before) > 1, "nothing is repeated, or one number is")
    return before, shape


def _row(before: Shape, shape: Shape) -> int:
    """Returns the number of elements that are copied together: those behind the last dimension that is repeated."""
    last = max(axis for axis, size in enumerate(shape) if before[axis] != size)
    return math.prod(shape[last + 1 :])


FAST_FLOATS: tuple[Pattern[Any], ...] = (
    planned("broadcast-by-fill", "broadcast_to", _filled, benefit=2),
    planned("broadcast-by-tiles", "broadcast_to", _tiled),
    planned("broadcast-by-ones", "broadcast_to", _multiplied),
)
