"""Bessel functions."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering
from tfconvert.converter.targets.litert.legalize.formulas import Formula
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.ops.special_functions import BESSEL_I0_BOUND, BESSEL_I0_MIDDLE, BESSEL_I0_TAIL
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _polynomial(x: Formula, coefficients: Sequence[float]) -> Formula:
    """Evaluates a polynomial by Horner's rule."""
    value = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        value = value * x + coefficient
    return value


def _i0e(op: Operation, emit: LiteRTBuilder) -> Value:
    size = abs(Formula(emit, op.operands[0]))
    part = size * (1 / BESSEL_I0_BOUND)
    middle = _polynomial(part.apply("Square"), BESSEL_I0_MIDDLE) * size.apply("Neg").apply("Exp")
    tail = _polynomial(1 / part, BESSEL_I0_TAIL) * part.apply("Rsqrt")
    # What is not chosen may be infinite, or NaN.
    return middle.where(part.compare("Less", 1), tail).value


ENTRIES: tuple[Entry, ...] = (Lowering("BesselI0e", "Mul AddV2 Exp RealDiv Rsqrt SelectV2", _i0e, "f32"),)
