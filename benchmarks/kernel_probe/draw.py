"""Draws operands of a type and a rank: negative numbers, the type's extremes, and what a narrower type loses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from benchmarks.kernel_probe.case import random
from benchmarks.kernel_probe.operators import NO_OPTIONS
from benchmarks.kernel_probe.tensors import ELEMENTS, Array, Tensor
from tfconvert.schema.dialects import types

FLOATS = ("f32", "f16", "bf16", "f64")
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
COMPLEX = ("complex64", "complex128")
NUMBERS = (*FLOATS, *INTEGERS)
ALL = (*NUMBERS, *COMPLEX, "bool", "string")

HIGHEST_RANK = 8
RANKS = range(HIGHEST_RANK + 1)

_DIMS = (2, 3, 4, 2, 3, 2, 2, 2)


class Draw:
    """Draws the operands of one operator's calls.

    Attributes:
        type: The element type in short, a key of `tensors.ELEMENTS`.
        rank: The rank.
        rng: The generator, which gives the same numbers for the same operator, type and rank.
    """

    __slots__ = ("rank", "rng", "type")

    def __init__(self, operator: str, kind: str, rank: int) -> None:
        self.type = kind
        self.rank = rank
        self.rng = random(crc32(f"{operator} {kind} {rank}".encode()))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an operand of the rank."""
        return _DIMS[: self.rank]

    @property
    def is_thorough(self) -> bool:
        """Whether rarer forms are tried too: parameters that are inputs or of other types, empty tensors."""
        return self.rank <= 3 or self.type == "f32"

    @property
    def is_float(self) -> bool:
        """Whether the element type is a float."""
        return self.type in FLOATS

    def x(self, shape: Sequence[int] | None = None, low: float | None = None, high: float | None = None) -> Tensor:
        """Returns an operand of the element type.

        Args:
            shape: Its shape, by default that of the rank.
            low: Its minimum number; without it the type's own, where the type has a minimum.
            high: Its maximum number.
        """
        return self.of(self.type, self.shape if shape is None else shape, low, high)

    def of(self, kind: str, shape: Sequence[int], low: float | None = None, high: float | None = None) -> Tensor:
        """Returns an operand of some element type."""
        return Tensor(kind, np.array(self._values(kind, tuple(shape), low, high)))

    def _values(self, kind: str, shape: tuple[int, ...], low: float | None, high: float | None) -> Array:
        if kind == "string":
            words = np.empty(shape, object)
            words.reshape(-1)[:] = [b"%x" % number for number in self.rng.integers(0, 40, words.size)]
            return words
        dtype = dtype_of(kind)
        if kind == "bool":
            return self.rng.random(shape) < 0.5
        if kind in COMPLEX:
            return np.asarray(self.rng.normal(size=shape) + 1j * self.rng.normal(size=shape)).astype(dtype)
        if kind in FLOATS:
            bounds = (-4 if low is None else low, 4 if high is None else high)
            return np.asarray(self.rng.uniform(*bounds, shape)).astype(dtype)
        return self._integers(dtype, shape, low, high)

    def _integers(self, dtype: np.dtype[Any], shape: tuple[int, ...], low: float | None, high: float | None) -> Array:
        info = np.iinfo(dtype)
        minimum = max(info.min, -100 if low is None else int(low))
        maximum = min(info.max, 100 if high is None else int(high))
        values = np.array(self.rng.integers(minimum, maximum, shape, endpoint=True)).astype(dtype)
        if low is None and values.size >= 6:
            # Extremes, and numbers that a float of 32 or of 64 bits rounds, or that fit into a narrower type only cut.
            wide = [info.max, info.min, info.max // 3, info.max - 6, info.min // 7, info.max // 2 + 1]
            at = self.rng.permutation(values.size)[: min(len(wide), values.size // 2)]
            values.reshape(-1)[at] = np.array(wide[: len(at)], dtype)
        return values


def dtype_of(kind: str) -> np.dtype[Any]:
    """Returns the dtype of an element type."""
    return types.numpy_dtype(ELEMENTS[kind])


def kind_of(array: Array) -> str:
    """Returns the element type of an array in short."""
    return next(kind for kind in ELEMENTS if kind not in ("i2", "i4") and dtype_of(kind) == array.dtype)


def fixed(value: Any, kind: str = "i32") -> Tensor:
    """Returns a constant parameter: a shape, axes."""
    return Tensor(kind, np.array(value).astype(dtype_of(kind)), is_constant=True)


def fed(value: Any, kind: str = "i32") -> Tensor:
    """Returns a parameter that is an input."""
    return replace(fixed(value, kind), is_constant=False)


class Plan(NamedTuple):
    """A call without its results' values."""

    operands: Sequence[Tensor | None]  # The operands.
    results: Sequence[str]  # The element types of the results.
    options: Mapping[str, Any] = NO_OPTIONS  # Fields of the options table.


class Family(NamedTuple):
    """An operator, and the calls of it that are to be tried."""

    operator: str  # Enumerator of `BuiltinOperator`.
    plans: Callable[[Draw], Iterator[Plan]]  # Yields the calls for an element type and a rank.
    types: Sequence[str] = ALL  # The element types.
    ranks: Sequence[int] = RANKS  # The ranks.
