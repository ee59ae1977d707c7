"""Columns that are joined to a matrix: index vectors, pairs, and what `tf.stack` makes along the last axis."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.iree.rewrites.context import Context, is_open, shape_of
from tfconvert.converter.iree.rewrites.emit import EQ, Emit
from tfconvert.converter.iree.rewrites.origins import int_of
from tfconvert.converter.iree.rewrites.products import is_number
from tfconvert.converter.iree.rewrites.shapes import reshape
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_MOST = 16
"""How many columns are chosen from; of more, each choice would cost more than writing them one after another."""


def concatenate(op: Operation, context: Context) -> Value | None:
    """Returns columns of one element each as a loop nest that chooses among them by the place along the axis."""
    axis, shape = int_of(op, "dimension"), shape_of(op.results[0])
    element = types.element_of(op.results[0].type)
    if not is_open(op.results[0]) or not 1 < len(op.operands) <= _MOST or not is_number(element):
        return None
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

    def body(inside: Emit, arguments: Sequence[Value]) -> Value:
        *columns, chosen, _ = arguments
        place = inside.loop(axis)
        for number in reversed(range(len(columns))):
            chosen = inside.choose(inside.is_(EQ, place, inside.index(number)), columns[number], chosen)
        return chosen

    sizes = [*context.numbers.sizes(op.operands[0])]
    sizes[axis] = len(narrow)
    into = emit.empty(element, sizes, shape)
    everything = list(range(len(shape)))
    return emit.loops([(each, others) for each in narrow], (into, everything), "p" * len(shape), body)
