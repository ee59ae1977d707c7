"""Parts of an axis, and what joins them."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.accelerators.builder import (
    AcceleratorBuilder,
    form,
    ints_of,
    option,
    static_shape,
)
from tfconvert.converter.targets.litert.accelerators.pieces import part, parted
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.values import Value


def _split(op: tfl.TFLOp, build: AcceleratorBuilder) -> list[Value]:
    """A split: a slice for each part; a single part is the whole."""
    value, axis = _split_of(op)
    return _parts(build, op, value, axis)


def _split_of(op: tfl.TFLOp) -> tuple[Value, int]:
    value, at = (op.operands[1], op.operands[0]) if op.op_name == "split" else (op.operands[0], op.operands[2])
    (axis,) = ints_of(at)
    return value, axis % len(static_shape(value))


def _parts(build: AcceleratorBuilder, op: tfl.TFLOp, value: Value, axis: int) -> list[Value]:
    shapes = [static_shape(result) for result in op.results]
    sizes = [shape[axis] for shape in shapes]
    value = parted(build, value, axis)
    parts = [part(build, value, 2, sum(sizes[:index]), size) for index, size in enumerate(sizes)]
    return [build.reshape(each, shape) for each, shape in zip(parts, shapes, strict=True)]


def _slices_joined(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A join of the parts of a split in another order: of slices."""
    split = op.operands[0].owner
    need(isinstance(split, tfl.TFLOp) and split.op_name in ("split", "split_v"), "it joins no parts of a split")
    assert isinstance(split, tfl.TFLOp)
    value, axis = _split_of(split)
    slices: Sequence[Value] = _parts(build, split, value, axis)
    known: dict[Value, Value] = dict(zip(split.results, slices, strict=True))
    return build.again(op, [known.get(each, each) for each in op.operands]).results[0]


def _single(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A join of one operand: a copy of it."""
    need(len(op.operands) == 1, "it joins several")
    need(option(op, "fused_activation_function") == "NONE", "an activation is fused")
    return build.copy(op.operands[0])


PATTERNS = (
    form("concatenation-of-one", "concatenation", _single, 3),
    form("concatenation-of-slices", "concatenation", _slices_joined, 2),
    form("split-as-slices", "split", _split),
    form("split-v-as-slices", "split_v", _split),
)
