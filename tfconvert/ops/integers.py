"""Arithmetic of single integers as MLIR's `arith` has it: divisions truncate, results wrap around."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tfconvert.schema.ir.attribute import Attribute


def _quotient(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


FOLDS: Mapping[str, Callable[[int, int], int]] = {
    "addi": lambda x, y: x + y,
    "andi": lambda x, y: x & y,
    "ceildivsi": lambda x, y: -(-x // y),
    "divsi": _quotient,
    "maxsi": max,
    "minsi": min,
    "muli": lambda x, y: x * y,
    "ori": lambda x, y: x | y,
    "remsi": lambda x, y: x - _quotient(x, y) * y,
    "subi": lambda x, y: x - y,
    "xori": lambda x, y: x ^ y,
}
"""The functions that ops of `arith` compute, by their names without the dialect's."""

PREDICATES: Mapping[str, int] = {"EQ": 0, "NE": 1, "LT": 2, "LE": 3, "GT": 4, "GE": 5}
"""The numbers of `arith.cmpi`'s signed predicates, by the directions of `stablehlo.compare`."""

COMPARISONS: Mapping[int, Callable[[int, int], bool]] = {
    0: lambda x, y: x == y,
    1: lambda x, y: x != y,
    2: lambda x, y: x < y,
    3: lambda x, y: x <= y,
    4: lambda x, y: x > y,
    5: lambda x, y: x >= y,
}
"""The functions that they compute."""


def width(kind: Attribute) -> int:
    """Returns the bits of an integer type; 64 of `index`."""
    return int(getattr(kind, "width", 64))


def wrapped(number: int, kind: Attribute) -> int:
    """Returns a number as an integer type holds it."""
    bits = width(kind)
    if bits == 1:
        return number & 1
    return (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
