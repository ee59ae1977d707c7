"""Concatenations of vectors and of columns, as index vectors, pairs, and what `tf.stack` makes along the last axis."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.targets.iree.rewrites.context import Context, is_open, shape_of
from tfconvert.converter.targets.iree.rewrites.linalg_builder import Index, LinalgBuilder
from tfconvert.converter.targets.iree.rewrites.origins import int_of
from tfconvert.converter.targets.iree.rewrites.products import is_number
from tfconvert.converter.targets.iree.rewrites.shapes import reshape
from tfconvert.converter.targets.iree.rewrites.slices import grown
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# How many columns are chosen from; of more, each choice would cost more than writing them one after another.
_MAX = 16


def concatenate(op: Operation, context: Context) -> Value | None:
    """Returns vectors, or columns of one element each, as a loop nest that chooses by the place along the axis."""
    axis, shape = int_of(op, "dimension"), shape_of(op.results[0])
    element = types.element_of(op.results[0].type)
    if not is_open(op.results[0]) or not 1 < len(op.operands) <= _MAX or not is_number(element):
        return None
    if len(shape) == 1:
        return _vectors(op, context)
    if any(shape_of(each)[axis] != 1 for each in op.operands):
        return None
    others = [each for each in range(len(shape)) if each != axis]
    narrow = []
    for operand in op.operands:
        sizes, dims = context.numbers.sizes(operand), shape_of(operand)
        column = reshape(operand, [sizes[each] for each in others], tuple([dims[each] for each in others]), context)
        if column is None:
            return None
        narrow.append(column)
    emit = context.emit

    def body(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
        *columns, chosen, _ = arguments
        place = inside.loop(axis)
        for number in reversed(range(len(columns))):
            chosen = inside.choose(inside.is_("EQ", place, inside.index(number)), columns[number], chosen)
        return chosen

    sizes = [*context.numbers.sizes(op.operands[0])]
    sizes[axis] = len(narrow)
    into = emit.empty(element, sizes, shape)
    everything = list(range(len(shape)))
    return emit.loops([(each, others) for each in narrow], (into, everything), "p" * len(shape), body)


def _vectors(op: Operation, context: Context) -> Value:
    """Returns vectors, each padded to the length of all, as a loop that chooses among them."""
    emit = context.emit
    element = types.element_of(op.results[0].type)
    lengths = [context.numbers.size(operand, 0) for operand in op.operands]
    ends: list[Index] = []
    for length in lengths:
        ends.append(emit.compute("add", ends[-1], length) if ends else length)
    total = ends[-1]
    filling = emit.element(emit.scalar(0, element))
    whole = []
    for operand, length, end in zip(op.operands, lengths, ends, strict=True):
        low = [emit.compute("subtract", end, length)]
        whole.append(grown(emit, operand, filling, low, [emit.compute("subtract", total, end)], (-1,)))

    def body(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
        *parts, chosen, _ = arguments
        place = inside.loop(0)
        for part, end in zip(reversed(parts), reversed(ends[:-1]), strict=True):
            chosen = inside.choose(inside.is_("LT", place, inside.index(end)), part, chosen)
        return chosen

    into = emit.empty(element, [total], (-1,))
    return emit.loops([(each, [0]) for each in whole], (into, [0]), "p", body)
