"""Expressions of floats: numbers that are computed with at once where they are known, and by ops where they are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.values import Value

# Ops on numbers that are known.
_KNOWN: Mapping[str, Callable[..., Array]] = {
    "abs": np.abs,
    "add": np.add,
    "ceil": np.ceil,
    "divide": np.divide,
    "exponential": np.exp,
    "floor": np.floor,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "round_nearest_even": np.rint,
    "sine": np.sin,
    "subtract": np.subtract,
}

_COMPARED: Mapping[str, Callable[..., Array]] = {
    "EQ": np.equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
}


class Expression:
    """A tensor in an expression, of floats or of truth values.

    Attributes:
        emit: Emits the ops.
        held: The numbers, or the value that has them at run time.
    """

    __slots__ = ("emit", "held")

    def __init__(self, emit: StableHLOBuilder, held: Value | Array) -> None:
        self.emit = emit
        self.held = held

    @property
    def value(self) -> Value:
        """The tensor as a value."""
        if isinstance(self.held, Value):
            return self.held
        return self.emit.constant(np.asarray(self.held))

    def _other(self, other: Expression | float) -> Expression:
        return (
            other
            if isinstance(other, Expression)
            else Expression(self.emit, np.float32(other) * np.ones((), np.float32))
        )

    def binary(self, name: str, other: Expression | float, *, turned: bool = False) -> Expression:
        """Returns the result of an op on two tensors, which are broadcast to each other."""
        first, second = (self._other(other), self) if turned else (self, self._other(other))
        if isinstance(first.held, Value) or isinstance(second.held, Value):
            return Expression(self.emit, self.emit.binary(name, first.value, second.value))
        with np.errstate(all="ignore"):
            return Expression(self.emit, np.asarray(_KNOWN[name](first.held, second.held)))

    def __add__(self, other: Expression | float) -> Expression:
        return self.binary("add", other)

    def __sub__(self, other: Expression | float) -> Expression:
        return self.binary("subtract", other)

    def __rsub__(self, other: float) -> Expression:
        return self.binary("subtract", other, turned=True)

    def __mul__(self, other: Expression | float) -> Expression:
        return self.binary("multiply", other)

    def __rmul__(self, other: float) -> Expression:
        return self.binary("multiply", other)

    def __truediv__(self, other: Expression | float) -> Expression:
        return self.binary("divide", other)

    def __rtruediv__(self, other: float) -> Expression:
        return self.binary("divide", other, turned=True)

    def __abs__(self) -> Expression:
        return self.apply("abs")

    def minimum(self, other: Expression | float) -> Expression:
        """Returns the smaller one of each pair."""
        return self.binary("minimum", other)

    def maximum(self, other: Expression | float) -> Expression:
        """Returns the greater one of each pair."""
        return self.binary("maximum", other)

    def apply(self, name: str) -> Expression:
        """Returns the result of an elementwise op of one operand."""
        if isinstance(self.held, Value):
            return Expression(self.emit, self.emit.unary(name, self.held))
        return Expression(self.emit, np.asarray(_KNOWN[name](self.held)))

    def compare(self, direction: str, other: Expression | float) -> Expression:
        """Returns truth values, for `LT` or `GE`."""
        second = self._other(other)
        if isinstance(self.held, Value) or isinstance(second.held, Value):
            return Expression(self.emit, self.emit.compare(direction, self.value, second.value))
        return Expression(self.emit, np.asarray(_COMPARED[direction](self.held, second.held)))

    def both(self, other: Expression) -> Expression:
        """Returns where two conditions hold."""
        if isinstance(self.held, Value) or isinstance(other.held, Value):
            return Expression(self.emit, self.emit.binary("and", self.value, other.value))
        return Expression(self.emit, np.asarray(np.logical_and(self.held, other.held)))

    def negated(self) -> Expression:
        """Returns where a condition doesn't hold."""
        if isinstance(self.held, Value):
            return Expression(self.emit, self.emit.unary("not", self.held))
        return Expression(self.emit, np.asarray(np.logical_not(self.held)))

    def where(self, condition: Expression, other: Expression | float) -> Expression:
        """Returns these numbers where a condition holds, others elsewhere."""
        second = self._other(other)
        if any(isinstance(each.held, Value) for each in (self, condition, second)):
            return Expression(self.emit, self.emit.select(condition.value, self.value, second.value))
        return Expression(self.emit, np.where(*(np.asarray(each.held) for each in (condition, self, second))))

    def spread(self, dims: Sequence[int]) -> Expression:
        """Returns the numbers in another shape."""
        if isinstance(self.held, Value):
            return Expression(self.emit, self.emit.reshape(self.held, dims))
        return Expression(self.emit, np.asarray(self.held).reshape(dims))

    def integers(self) -> Value:
        """Returns the numbers as `i32`."""
        if isinstance(self.held, Value):
            return self.emit.convert(self.held, types.I32)
        return self.emit.constant(np.asarray(self.held).astype(np.int32))


def number(emit: StableHLOBuilder, scalar: Value | int) -> Expression:
    """Returns a size as a float."""
    if isinstance(scalar, int):
        return Expression(emit, np.full((), scalar, np.float32))
    return Expression(emit, emit.convert(scalar, types.F32))


def count(emit: StableHLOBuilder, dim: int) -> Expression:
    """Returns the numbers from zero up to a size."""
    dim = emit.sizes.find(dim)
    if dim >= 0:
        return Expression(emit, np.arange(dim, dtype=np.float32))
    return Expression(emit, emit.iota((dim,), 0, types.F32))
