"""Random integers of the engine's own generator."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.targets.iree.rewrites.context import Context, shape_of
from tfconvert.converter.targets.iree.rewrites.linalg_builder import LinalgBuilder
from tfconvert.converter.targets.iree.rewrites.products import is_number
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FloatType
from tfconvert.schema.ir.values import Value


def rng(op: Operation, context: Context) -> Value | None:
    """Returns integers below a bound, of floats between 0 and 1."""
    low, high, sizes = op.operands
    result, element = op.results[0], types.element_of(op.results[0].type)
    if isinstance(element, FloatType) or not is_number(element):
        return None
    emit, shape = context.emit, shape_of(result)
    bounds = (emit.scalar(0, types.F32), emit.scalar(1, types.F32), sizes)
    drawn = emit.one("stablehlo.rng", bounds, types.tensor(types.F32, shape), op.properties)
    first = emit.element(low)
    count = emit.one("arith.subi", (emit.element(high), first), element)
    one = emit.element(emit.scalar(1, element))
    last, wide = emit.one("arith.subi", (count, one), element), emit.one("arith.sitofp", (count,), types.F32)

    def body(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
        part = inside.one("arith.mulf", (arguments[0], wide), types.F32)
        number = inside.one("arith.fptosi", (part,), element)
        # Rounding may bring the product of the greatest float up to the bound.
        below = inside.one("arith.minsi", (number, last), element)
        return inside.one("arith.addi", (below, first), element)

    everything = list(range(len(shape)))
    into = emit.empty(element, context.numbers.elements(sizes), shape)
    return emit.loops([(drawn, everything)], (into, everything), "p" * len(shape), body)
