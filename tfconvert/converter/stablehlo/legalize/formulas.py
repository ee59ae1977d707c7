"""Formulas of floats: numbers that are computed with at once where they are known, and by ops where they are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tfconvert.converter.stablehlo.legalize.emit import Emit
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.values import Value

_KNOWN: Mapping[str, Callable[..., Array]] = {
    "abs": np.abs,
    "add": np.add,
    "ceil": np.ceil,
    "divide": np.divide,
    "floor": np.floor,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "round_nearest_even": np.rint,
    "subtract": np.subtract,
}
"""Ops on numbers that are known."""

_COMPARED: Mapping[str, Callable[..., Array]] = {
    "EQ": np.equal, "GE": np.greater_equal, "GT": np.greater, "LE": np.less_equal, "LT": np.less,
}  # fmt: skip


class Formula:
    """A tensor in a formula, of floats or of truth values.

    Attributes:
        emit: Emits the ops.
        held: The numbers, or the value that has them at run time.
    """

    __slots__ = ("emit", "held")

    def __init__(self, emit: Emit, held: Value | Array) -> None:
        self.emit = emit
        self.held = held

    @property
    def value(self) -> Value:
        """The tensor as a value."""
        if isinstance(self.held, Value):
            return self.held
        return self.emit.constant(np.asarray(self.held))

    def _other(self, other: Formula | float) -> Formula:
        return other if isinstance(other, Formula) else Formula(self.emit, np.float32(other) * np.ones((), np.float32))

    def binary(self, name: str, other: Formula | float, *, turned: bool = False) -> Formula:
        """Returns the result of an op on two tensors, which are broadcast to each other."""
        first, second = (self._other(other), self) if turned else (self, self._other(other))
        if isinstance(first.held, Value) or isinstance(second.held, Value):
            return Formula(self.emit, self.emit.binary(name, first.value, second.value))
        with np.errstate(all="ignore"):
            return Formula(self.emit, np.asarray(_KNOWN[name](first.held, second.held)))

    def __add__(self, other: Formula | float) -> Formula:
        return self.binary("add", other)

    def __radd__(self, other: float) -> Formula:
        return self.binary("add", other)

    def __sub__(self, other: Formula | float) -> Formula:
        return self.binary("subtract", other)

    def __rsub__(self, other: float) -> Formula:
        return self.binary("subtract", other, turned=True)

    def __mul__(self, other: Formula | float) -> Formula:
        return self.binary("multiply", other)

    def __rmul__(self, other: float) -> Formula:
        return self.binary("multiply", other)

    def __truediv__(self, other: Formula | float) -> Formula:
        return self.binary("divide", other)

    def __rtruediv__(self, other: float) -> Formula:
        return self.binary("divide", other, turned=True)

    def __abs__(self) -> Formula:
        return self.apply("abs")

    def least(self, other: Formula | float) -> Formula:
        """Returns the smaller one of each pair."""
        return self.binary("minimum", other)

    def greatest(self, other: Formula | float) -> Formula:
        """Returns the greater one of each pair."""
        return self.binary("maximum", other)

    def apply(self, name: str) -> Formula:
        """Returns the result of an elementwise op of one operand, `floor` or `abs`."""
        if isinstance(self.held, Value):
            return Formula(self.emit, self.emit.unary(name, self.held))
        return Formula(self.emit, np.asarray(_KNOWN[name](self.held)))

    def compare(self, direction: str, other: Formula | float) -> Formula:
        """Returns truth values, for `LT` or `GE`."""
        second = self._other(other)
        if isinstance(self.held, Value) or isinstance(second.held, Value):
            return Formula(self.emit, self.emit.compare(direction, self.value, second.value))
        return Formula(self.emit, np.asarray(_COMPARED[direction](self.held, second.held)))

    def both(self, other: Formula) -> Formula:
        """Returns where two conditions hold."""
        if isinstance(self.held, Value) or isinstance(other.held, Value):
            return Formula(self.emit, self.emit.binary("and", self.value, other.value))
        return Formula(self.emit, np.asarray(np.logical_and(self.held, other.held)))

    def negated(self) -> Formula:
        """Returns where a condition doesn't hold."""
        if isinstance(self.held, Value):
            return Formula(self.emit, self.emit.unary("not", self.held))
        return Formula(self.emit, np.asarray(np.logical_not(self.held)))

    def where(self, condition: Formula, other: Formula | float) -> Formula:
        """Returns these numbers where a condition holds, others elsewhere."""
        second = self._other(other)
        if any(isinstance(each.held, Value) for each in (self, condition, second)):
            return Formula(self.emit, self.emit.select(condition.value, self.value, second.value))
        return Formula(self.emit, np.where(*(np.asarray(each.held) for each in (condition, self, second))))

    def spread(self, dims: Sequence[int]) -> Formula:
        """Returns the numbers in another shape."""
        if isinstance(self.held, Value):
            return Formula(self.emit, self.emit.reshape(self.held, dims))
        return Formula(self.emit, np.asarray(self.held).reshape(dims))

    def integers(self) -> Value:
        """Returns the numbers as `i32`."""
        if isinstance(self.held, Value):
            return self.emit.convert(self.held, types.I32)
        return self.emit.constant(np.asarray(self.held).astype(np.int32))


def number(scalar: Value | int, emit: Emit) -> Formula:
    """Returns a size as a float."""
    if isinstance(scalar, int):
        return Formula(emit, np.full((), scalar, np.float32))
    return Formula(emit, emit.convert(scalar, types.F32))


def count(dim: int, emit: Emit) -> Formula:
    """Returns the numbers from zero up to a size."""
    dim = emit.sizes.find(dim)
    if dim >= 0:
        return Formula(emit, np.arange(dim, dtype=np.float32))
    return Formula(emit, emit.iota((dim,), 0, types.F32))
