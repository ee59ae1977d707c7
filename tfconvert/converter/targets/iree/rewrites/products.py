"""Products of tensors with several dimensions of a kind."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.targets.iree.rewrites.context import Context, is_open, shape_of
from tfconvert.converter.targets.iree.rewrites.linalg_builder import Body, Index, LinalgBuilder, arithmetic
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.stablehlo import DotAttr
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FloatType, IntegerType, Signedness
from tfconvert.schema.ir.values import Value


def dot_general(op: Operation, context: Context) -> Value | None:
    """Returns a product as one loop nest."""
    lhs, rhs = op.operands
    numbers = op.properties["dot_dimension_numbers"]
    assert isinstance(numbers, DotAttr)
    batch = numbers.of("lhs_batching_dimensions"), numbers.of("rhs_batching_dimensions")
    summed = numbers.of("lhs_contracting_dimensions"), numbers.of("rhs_contracting_dimensions")
    free = [
        [axis for axis in range(len(shape_of(value))) if axis not in (*batch[side], *summed[side])]
        for side, value in enumerate((lhs, rhs))
    ]
    element = types.element_of(op.results[0].type)
    if not is_open(lhs, rhs) or (len(free[0]) == len(free[1]) == len(summed[0]) == 1) or not is_number(element):
        return None
    emit, size = context.emit, context.numbers.size
    places = [dict[int, int](), dict[int, int]()]
    sizes: list[Index] = []
    for side, value, dims in ((0, lhs, batch[0]), (0, lhs, free[0]), (1, rhs, free[1])):
        for position, axis in enumerate(dims):
            places[side][axis] = len(sizes)
            if dims is batch[0]:
                places[1][batch[1][position]] = len(sizes)
            sizes.append(size(value, axis))
    outer = len(sizes)
    for position, axis in enumerate(summed[0]):
        places[0][axis] = places[1][summed[1][position]] = outer + position
    into = emit.filled(emit.scalar(0, element), element, sizes, shape_of(op.results[0]))
    maps = [[places[side][axis] for axis in range(len(shape_of(value)))] for side, value in enumerate((lhs, rhs))]
    iterators = "p" * outer + "r" * len(summed[0])
    return emit.loops([(lhs, maps[0]), (rhs, maps[1])], (into, list(range(outer))), iterators, multiply_add(element))


def is_number(element: Attribute) -> bool:
    """Returns whether an element type is one that loop nests compute with."""
    return isinstance(element, FloatType) or (
        isinstance(element, IntegerType) and element.signedness is Signedness.SIGNLESS and element.width > 1
    )


def multiply_add(element: Attribute) -> Body:
    """Returns the body of a loop nest that adds a product to what is there."""

    def body(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
        one, other, total = arguments
        one, other = (_widened(inside, each, element) for each in (one, other))
        product = inside.one(arithmetic(element, "mul"), (one, other), element)
        return inside.one(arithmetic(element, "add"), (total, product), element)

    return body


def _widened(inside: LinalgBuilder, value: Value, element: Attribute) -> Value:
    if value.type is element:
        return value
    return inside.one("arith.extf" if isinstance(element, FloatType) else "arith.extsi", (value,), element)
