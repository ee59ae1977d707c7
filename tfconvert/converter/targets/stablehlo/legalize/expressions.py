"""Expressions of floats: numbers that are computed with at once where they are known, and by ops where they are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from tfconvert.converter.targets.stablehlo.legalize.elementwise import BINARY, COMPARISONS, UNARY
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.ops.call import Call
from tfconvert.ops.computed import compute_elementwise
from tfconvert.ops.formula import Elementwise
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.values import Value

# Ops that have a form of their own for each kind of numbers; these are of floats.
_UNARY: Mapping[str, str] = {**UNARY, "Round": "round_nearest_even"}


class Expression(Elementwise):
    """A tensor in an expression, of floats or of booleans; with sizes that are symbols, which ops of `tf` don't have.

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
        return self.held if isinstance(self.held, Value) else self.emit.constant(np.asarray(self.held))

    def _apply(self, name: str, *operands: Self | float) -> Self:
        terms = [each if isinstance(each, Expression) else self._of(np.array(each, np.float32)) for each in operands]
        numbers = tuple([each.held for each in terms if not isinstance(each.held, Value)])
        if len(numbers) == len(terms):
            return self._of(np.asarray(compute_elementwise(Call(name, numbers, {}))[0]))
        values = [each.value for each in terms]
        if name in COMPARISONS:
            return self._of(self.emit.compare(COMPARISONS[name], *values))
        if name == "SelectV2":
            return self._of(self.emit.select(*values))
        if len(values) == 1:
            return self._of(self.emit.unary(_UNARY[name], *values))
        return self._of(self.emit.binary(BINARY[name], *values))

    def _of(self, held: Value | Array) -> Self:
        return type(self)(self.emit, held)

    def reshape(self, dims: Sequence[int]) -> Self:
        if isinstance(self.held, Value):
            return self._of(self.emit.reshape(self.held, dims))
        return self._of(self.held.reshape(tuple(dims)))

    def sum(self, axes: Sequence[int], *, keep_dims: bool = False) -> Self:
        if not isinstance(self.held, Value):
            return self._of(np.asarray(self.held.sum(tuple(axes), dtype=np.float32, keepdims=keep_dims)))
        sums = self.emit.reduce("add", self.held, axes, 0)
        kept = [1 if axis in axes else dim for axis, dim in enumerate(self.emit.dims(self.held))]
        return self._of(self.emit.reshape(sums, kept) if keep_dims else sums)

    def integers(self) -> Value:
        """Returns the numbers as `i32`."""
        if isinstance(self.held, Value):
            return self.emit.convert(self.held, types.I32)
        return self.emit.constant(self.held.astype(np.int32))


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
