"""Squared differences as products, before they become integers: XNNPACK multiplies those, and LiteRT's kernel is slow.

    squared_difference(x, m)  ->  mul(d, d), d = sub(x, m)

A normalization has the difference anyway.
"""

from __future__ import annotations

from typing import Any

from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.fast.fast_form import Emit, FastBuilder, fast, is_float, large
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _squared(op: Operation) -> Emit:
    shape = large(op.results[0])
    need(is_float(op.results[0]), "it isn't of 32-bit floats")

    def emit_product(emit: LiteRTBuilder) -> Value:
        build = FastBuilder(emit)
        difference = build.binary("sub", op.operands[0], op.operands[1], shape)
        return build.binary("mul", difference, difference, shape)

    return emit_product


PATTERNS: tuple[Pattern[Any], ...] = (fast("square-by-product", "squared_difference", _squared),)
