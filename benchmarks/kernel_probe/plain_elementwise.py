"""Calls that compute each element by itself, on numbers that are stored as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks.kernel_probe.draw import ALL, COMPLEX, FLOATS, INTEGERS, NUMBERS, Draw, Family, Plan, dtype_of
from benchmarks.kernel_probe.operators import ALONG_ROWS, BINARY, COMPARISONS, NO_OPTIONS, POSITIVE, UNARY
from benchmarks.kernel_probe.tensors import Tensor
from tfconvert.schema.dialects import types

_COMPLEX = dict.fromkeys(
    ("COS", "EXP", "LOG", "LOGISTIC", "NEG", "RSQRT", "SIN", "SQRT", "SQUARE", "TANH"), ("complex64",)
)
_DIVIDE = ("DIV", "FLOOR_DIV", "FLOOR_MOD")
_WORD = ("bool", "string")


def _unary(name: str, options: Mapping[str, Any], d: Draw) -> Iterator[Plan]:
    low = 0.1 if name in POSITIVE and d.is_float else None
    yield Plan([d.x(low=low)], [d.type], options)
    if d.rank and d.is_thorough:
        yield Plan([d.x((0, *d.shape[1:]), low)], [d.type], options)


def shapes(d: Draw) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yields pairs of shapes: equal ones, and those that are broadcast in one of them or both, or are empty."""
    shape = d.shape
    yield shape, shape
    if not d.rank:
        return
    if d.is_thorough:
        yield shape, shape[1:]
        yield shape[1:], shape
        if d.type != "string":  # Python can't set a single one.
            yield shape, ()
        yield (0, *shape[1:]), (0, *shape[1:])
    if d.rank > 1:
        odd = tuple(1 if axis % 2 else dim for axis, dim in enumerate(shape))
        even = tuple(dim if axis % 2 else 1 for axis, dim in enumerate(shape))
        yield odd, even


def _second(name: str, d: Draw, shape: tuple[int, ...]) -> Tensor:
    if name in _DIVIDE:
        y = d.x(shape)
        y.value[y.value == 0] = 1
        # No -1: dividing the minimum integer by it overflows, which ends the process in TensorFlow too.
        if not d.type.startswith("u"):
            y.value[y.value == -1] = 3
        return y
    if name == "POW" and not d.is_float:
        return d.x(shape, 0, 5)
    if name == "RIGHT_SHIFT":
        return d.x(shape, 0, 7)
    return d.x(shape)


def _binary(name: str, options: Mapping[str, Any], d: Draw) -> Iterator[Plan]:
    for one, other in shapes(d):
        low, high = (0.1 if d.is_float else -9, 9) if name == "POW" else (None, None)
        yield Plan([d.x(one, low, high), _second(name, d, other)], [d.type], options)


def _comparison(name: str, d: Draw) -> Iterator[Plan]:
    for one, other in shapes(d):
        x, y = d.x(one), d.x(other)
        if one == other and x.value.ndim:
            y.value[:1] = x.value[:1]
        yield Plan([x, y], ["bool"])


def _select(name: str, d: Draw) -> Iterator[Plan]:
    for one, other in shapes(d) if name == "SELECT_V2" else ((d.shape, d.shape),):
        yield Plan([d.of("bool", one), d.x(other), d.x(one)], [d.type])
        yield Plan([d.of("bool", other), d.x(one), d.x(one)], [d.type])
    if name == "SELECT" and d.rank:
        yield Plan([d.of("bool", d.shape[:1]), d.x(), d.x()], [d.type])
        yield Plan([d.of("bool", ()), d.x(), d.x()], [d.type])


def _add_n(d: Draw) -> Iterator[Plan]:
    yield Plan([d.x(), d.x(), d.x()], [d.type])


def _prelu(d: Draw) -> Iterator[Plan]:
    for shape in (d.shape[-1:], d.shape) if d.rank else ():
        yield Plan([d.x(), d.x(shape)], [d.type])


def _cast(target: str, d: Draw) -> Iterator[Plan]:
    names = {kind: types.from_dtype(dtype_of(kind)).tflite for kind in (d.type, target)}
    options = {"in_data_type": names[d.type], "out_data_type": names[target]}
    source, to_integer = d.type in (*FLOATS, *COMPLEX), target in INTEGERS
    # What no integer represents is undefined, and told by another check.
    x = d.x(low=0 if target.startswith("u") else -100, high=100) if source and to_integer else d.x()
    if d.type in COMPLEX and target.startswith("u"):
        x.value[...] = np.abs(x.value)
    yield Plan([x], [target], options)


def _part(target: Mapping[str, str], d: Draw) -> Iterator[Plan]:
    yield Plan([d.x()], [target[d.type]])


def _bitcast(target: str, d: Draw) -> Iterator[Plan]:
    yield Plan([d.x()], [target])


_WIDTHS: Mapping[str, str] = {
    "f32": "i32 u32",
    "i32": "f32 u32",
    "u32": "f32 i32",
    "f16": "i16 u16",
    "i16": "f16 u16",
    "u16": "f16 i16",
    "i8": "u8",
    "u8": "i8",
    "i64": "f64 u64",
    "f64": "i64",
}

_PARTS = {"complex64": "f32", "complex128": "f64"}

Plans = Callable[[Draw], Iterator[Plan]]

# The operators.
FAMILIES: tuple[Family, ...] = (
    *(
        Family(name, partial(_unary, name, options), (*NUMBERS, *_COMPLEX.get(name, ())), range(name in ALONG_ROWS, 9))
        for name, options in UNARY.items()
    ),
    *(
        Family(name, partial(_binary, name, options), (*NUMBERS, "complex64", "bool"))
        for name, options in BINARY.items()
    ),
    *(Family(name, partial(_comparison, name), (*NUMBERS, *COMPLEX, *_WORD)) for name in COMPARISONS),
    *(Family(name, partial(_select, name)) for name in ("SELECT", "SELECT_V2")),
    Family("ADD_N", _add_n),
    Family("PRELU", _prelu, NUMBERS),
    Family("LOGICAL_NOT", partial(_unary, "LOGICAL_NOT", NO_OPTIONS), ("bool",)),
    *(Family("CAST", partial(_cast, target), ALL[:-1], (0, 1, 4, 5, 8)) for target in ALL[:-1]),
    *(Family(name, partial(_part, _PARTS), COMPLEX) for name in ("REAL", "IMAG", "COMPLEX_ABS")),
    *(
        Family("BITCAST", partial(_bitcast, target), (source,), (0, 1, 4, 5, 8))
        for source, targets in _WIDTHS.items()
        for target in targets.split()
    ),
)
