"""Element types, shapes and numbers of random graphs: usual ones, and every odd one."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = ("float32", "float16", "bfloat16", "float64")
SIGNED = ("int32", "int64", "int16", "int8")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS
ALL = (*NUMBERS, "bool", "complex64")
# How often an element type is drawn, 1 if it isn't here.
WEIGHTS = {"float32": 24, "int32": 10, "int64": 4, "bool": 3, "complex64": 0.5}

_ODD = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 1e-40, -1e-40, 1e-20, 1e20, 3.4e38, -3.4e38)
_NOT_FINITE = (float("inf"), -float("inf"), float("nan"))


def dtype_of(name: str) -> np.dtype[Any]:
    """Returns an element type by TensorFlow's name."""
    return BFLOAT16 if name == "bfloat16" else np.dtype(name)


def draw_type(random: Random, names: Sequence[str]) -> str:
    """Returns one of some element types, frequent ones more often."""
    return random.choices(names, [WEIGHTS.get(name, 1) for name in names])[0]


def draw_shape(random: Random, rank: int | None = None, largest: int = 5) -> tuple[int, ...]:
    """Returns a shape; a dimension is empty now and then."""
    if rank is None:
        rank = random.choices(range(7), (2, 4, 5, 4, 4, 1, 0.5))[0]
    limit = largest if rank < 5 else 2
    return tuple(0 if random.random() < 0.015 else random.randint(1, limit) for _ in range(rank))


def draw_array(random: Random, name: str, shape: Sequence[int], *, odd: float = 0.15) -> Array:
    """Returns an array.

    Args:
        random: Draws everything.
        name: The element type.
        shape: The shape.
        odd: How likely it has odd values.
    """
    generator = np.random.default_rng(random.randrange(1 << 32))
    dtype, size = dtype_of(name), tuple(shape)
    if name == "bool":
        return generator.integers(0, 2, size).astype(bool)
    if name.startswith("complex"):
        return np.asarray(generator.normal(0, 2, size) + 1j * generator.normal(0, 2, size)).astype(dtype)
    is_odd = random.random() < odd
    if name in FLOATS:
        values = np.asarray(generator.normal(0, random.choice((0.5, 2, 2, 10)), size))
        if is_odd:
            odds = _ODD + (_NOT_FINITE if random.random() < 0.5 else ())
            values = np.where(generator.random(size) < 0.3, generator.choice(odds, size), values)
        elif random.random() < 0.3:
            values = np.round(values)
        with np.errstate(over="ignore"):
            return np.asarray(values).astype(dtype)
    info = np.iinfo(dtype)
    low, high = (max(-9, info.min), 9) if random.random() < 0.8 else (max(-100, info.min), 100)
    whole = generator.integers(low, high + 1, size)
    result = np.asarray(whole).astype(dtype)
    if is_odd:
        borders = np.array([info.min, info.max, info.min + 1, info.max - 1, 0, 1], dtype)
        result = np.where(generator.random(size) < 0.3, generator.choice(borders, size), result)
    return np.asarray(result, dtype)
