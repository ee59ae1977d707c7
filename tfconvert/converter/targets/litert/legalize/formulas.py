"""Formulas of floats: values that are added, multiplied and compared as numbers are, each time emitting an op."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.ir.constants import Scalar
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder, broadcast_type
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.values import Value


class Formula:
    """A tensor of floats in a formula.

    Attributes:
        emit: Emits the ops.
        value: The tensor.
    """

    __slots__ = ("emit", "value")

    def __init__(self, emit: LiteRTBuilder, value: Value) -> None:
        self.emit = emit
        self.value = value

    def _binary(self, name: str, other: Formula | float, *, turned: bool = False) -> Formula:
        pair = self.value, other.value if isinstance(other, Formula) else float(other)
        return Formula(self.emit, self.emit.binary(name, *(pair[::-1] if turned else pair)))

    def __add__(self, other: Formula | float) -> Formula:
        return self._binary("AddV2", other)

    def __sub__(self, other: Formula | float) -> Formula:
        return self._binary("Sub", other)

    def __rsub__(self, other: float) -> Formula:
        return self._binary("Sub", other, turned=True)

    def __mul__(self, other: Formula | float) -> Formula:
        return self._binary("Mul", other)

    def __rmul__(self, other: float) -> Formula:
        return self._binary("Mul", other)

    def __truediv__(self, other: Formula | float) -> Formula:
        return self._binary("RealDiv", other)

    def __rtruediv__(self, other: float) -> Formula:
        return self._binary("RealDiv", other, turned=True)

    def __abs__(self) -> Formula:
        return self.apply("Abs")

    def minimum(self, other: Formula | float) -> Formula:
        """Returns the smaller one of each pair."""
        return self._binary("Minimum", other)

    def maximum(self, other: Formula | float) -> Formula:
        """Returns the greater one of each pair."""
        return self._binary("Maximum", other)

    def apply(self, name: str) -> Formula:
        """Returns the result of an elementwise op of one operand, `Floor` or `Sin`."""
        return Formula(self.emit, self.emit.unary(name, self.value))

    def compare(self, name: str, other: Formula | float) -> Value:
        """Returns booleans, `Less` or `GreaterEqual`."""
        return self.emit.compare(name, self.value, other.value if isinstance(other, Formula) else float(other))

    def where(self, condition: Value, other: Formula | float) -> Formula:
        """Returns these numbers where a condition holds, others elsewhere."""
        chosen = other.value if isinstance(other, Formula) else float(other)
        return Formula(self.emit, self.emit.select(condition, self.value, chosen))

    def reshape(self, shape: Sequence[int]) -> Formula:
        """Returns the numbers in another shape."""
        return Formula(self.emit, self.emit.reshape(self.value, shape))

    def integers(self) -> Value:
        """Returns the numbers as `i32`, cut off after the point."""
        return self.emit.cast(self.value, types.I32)


def both(emit: LiteRTBuilder, *conditions: Value) -> Value:
    """Returns where all of some conditions hold."""
    first, *others = conditions
    for other in others:
        first = emit.tf("LogicalAnd", (first, other), broadcast_type(first, other, types.I1))
    return first


def number(emit: LiteRTBuilder, scalar: Scalar) -> Formula:
    """Returns a scalar integer as a float."""
    return Formula(emit, emit.cast(emit.value(scalar), types.F32))


def count(emit: LiteRTBuilder, size: Scalar) -> Formula:
    """Returns the numbers from zero up to a size."""
    length = size if isinstance(size, int) else -1
    bounds = (emit.number(0), emit.value(size), emit.number(1))
    return Formula(emit, emit.cast(emit.tf("Range", bounds, types.tensor(types.I32, (length,))), types.F32))
