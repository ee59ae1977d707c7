"""Scans, such as cumulative sums and products, which IREE has an op for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tfconvert.converter.targets.iree.rewrites.linalg_builder import (
    LinalgBuilder,
    arithmetic,
    bits,
    is_unsigned,
    segments,
)
from tfconvert.converter.targets.iree.rewrites.loop_nests import is_computable
from tfconvert.converter.targets.iree.rewrites.numbers import Context, shape_of
from tfconvert.converter.targets.stablehlo.legalize.scans import ADD, ADD_POWERS, MULTIPLY, SCAN
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.attributes import DictionaryAttr, IntegerAttr, StringAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FloatType
from tfconvert.schema.ir.values import Value

Combine = Callable[[LinalgBuilder, Sequence[Value]], Value]
"""Inserts the ops that combine two elements."""


def scan(value: Value, initial: Value, axis: int, combine: Combine, context: Context) -> Value:
    """Inserts a scan.

    Args:
        value: The value.
        initial: A scalar tensor with the neutral element.
        axis: The axis.
        combine: How two elements are combined.
        context: Where it is inserted.
    """
    emit, element = context.emit, value.element
    sizes, shape = context.numbers.sizes(value), shape_of(value)
    into = emit.empty(element, sizes, shape)
    rest, kept = [*sizes[:axis], *sizes[axis + 1 :]], (*shape[:axis], *shape[axis + 1 :])
    total = emit.filled(initial, element, rest, kept)
    block = Block(arg_types=(element, element))
    inside = LinalgBuilder.at_block_end(block, emit.location)
    inside.op("iree_linalg_ext.yield", (combine(inside, block.args),), ())
    properties: dict[str, attrs.Value] = {"dimension": axis, "inclusive": True, "operandSegmentSizes": segments(1, 2)}
    found = emit.op("iree_linalg_ext.scan", (value, into, total), (into.type, total.type), properties, (Region(block),))
    return found.results[0]


def loop(op: Operation, context: Context) -> Sequence[Value] | None:
    """Returns a scan for a loop that is marked as one."""
    mark = op.attributes.get(SCAN)
    if not isinstance(mark, DictionaryAttr):
        return None
    axis, name = (dict(mark.data).get(key) for key in ("axis", "combine"))
    assert isinstance(axis, IntegerAttr)
    assert isinstance(name, StringAttr)
    combine, initial = _COMBINES[name.data]
    count, value = op.operands
    emit, kind = context.emit, value.type
    # Sums and products of bits are those of unsigned integers.
    held = bits(emit, value) if is_unsigned(value) else value
    element = held.element
    if not is_computable(element):
        return None
    found = scan(held, emit.scalar(initial, element), axis.value, combine, context)
    return count, found if held is value else emit.one("stablehlo.bitcast_convert", (found,), kind)


def _arithmetic(name: str) -> Combine:
    def combine(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
        element = arguments[0].type
        return inside.one(arithmetic(element, name), arguments, element)

    return combine


def _add_powers(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
    """Inserts the logarithm of a sum of exponentials; the distance of equal infinities is 0."""
    kind = arguments[0].type
    assert isinstance(kind, FloatType)
    larger, smaller = (inside.one(f"arith.{name}", arguments, kind) for name in ("maximumf", "minimumf"))
    is_same = inside.one("arith.cmpf", arguments, types.I1, {"predicate": EQUAL})
    distance = inside.one("arith.subf", (smaller, larger), kind)
    power = inside.one("math.exp", (inside.choose(is_same, inside.real(0, kind), distance),), kind)
    return inside.one("arith.addf", (larger, inside.one("math.log1p", (power,), kind)), kind)


# The comparison of equal floats, by its number in `arith.cmpf`.
EQUAL = 1

# How elements are combined, and the neutral element.
_COMBINES: Mapping[str, tuple[Combine, float]] = {
    ADD.name: (_arithmetic("add"), ADD.initial),
    MULTIPLY.name: (_arithmetic("mul"), MULTIPLY.initial),
    ADD_POWERS.name: (_add_powers, ADD_POWERS.initial),
}
