"""Calls of operators that compute each element by itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.kernel_probe.case import Case, random
from benchmarks.kernel_probe.operators import COMPARISONS, NO_ACTIVATION, NO_OPTIONS, SUM
from benchmarks.kernel_probe.tensors import Array, Tensor, centred, like, plain, scaled, weights, with_offset, within
from tfconvert.schema.tflite.kernels import fixed_result

SHAPE = (1, 4, 4, 8)
KINDS = ("i8", "u8", "i16")


# Which of two operands are constants.
CONSTANTS: Sequence[Collection[int]] = ((), (1,), (0,))


class Unary(NamedTuple):
    """An operator of one operand."""

    name: str  # Its name.
    low: float  # The minimum operand.
    high: float  # The maximum operand.
    minimum: float  # The minimum result.
    maximum: float  # The maximum result.
    options: Mapping[str, Any] = NO_OPTIONS  # Its options.


_UNARY = (
    Unary("ABS", -1, 0.8, 0, 1),
    Unary("NEG", -1, 0.8, -0.8, 1),
    Unary("SIGN", -1, 1, -1, 1),
    Unary("SQUARE", -2, 2, 0, 4),
    Unary("SQRT", 0, 4, 0, 2),
    Unary("RSQRT", 0.1, 4, 0, 3.2),
    Unary("EXP", -2, 1, 0, 2.8),
    Unary("LOG", 0.1, 3, -2.4, 1.1),
    Unary("SIN", -1, 1, -1, 1),
    Unary("COS", -1, 1, -1, 1),
    Unary("FLOOR", -4, 4, -4, 4),
    Unary("CEIL", -4, 4, -4, 4),
    Unary("ROUND", -4, 4, -4, 4),
    Unary("ELU", -3, 3, -1, 3),
    Unary("GELU", -3, 3, -0.2, 3, {"approximate": False}),
    Unary("HARD_SWISH", -3, 4, -0.4, 4),
    Unary("LEAKY_RELU", -3, 3, -0.6, 3, {"alpha": 0.2}),
    Unary("RELU", -3, 3, 0, 3),
    Unary("RELU6", -3, 8, 0, 6),
    Unary("RELU_N1_TO_1", -3, 3, -1, 1),
    Unary("RELU_0_TO_1", -3, 3, 0, 1),
    Unary("ZEROS_LIKE", -1, 1, -1, 1),
    Unary("LOGISTIC", -4, 4, 0, 1),
    Unary("TANH", -3, 3, -1, 1),
    Unary("SOFTMAX", -4, 4, 0, 1, {"beta": 1.0}),
    Unary("LOG_SOFTMAX", -4, 4, -16, 0),
    Unary("L2_NORMALIZATION", -2, 2, -1, 1, NO_ACTIVATION),
)

_WIDTHS = {"i8": "INT8", "u8": "UINT8", "i16": "INT16"}


def _unary() -> Iterator[Case]:
    for seed, (name, low, high, minimum, maximum, options) in enumerate(_UNARY):
        value = random(seed).uniform(low, high, SHAPE)
        if low < 0:
            # The minimum and the maximum integer: the type cannot represent the negative of the former.
            value[0, 0, 0, :2] = 10 * low, 10 * high
        for kind in KINDS:
            x = within(kind, value, low, high)
            # Some kernels ignore the result's scale: a range of another size shows it.
            yield Case(name, [x], [within(kind, like(SHAPE), minimum * 1.3, maximum * 1.3)], options)
            # Lopsided, so that 0 is not stored as 0 either.
            all_low, all_high = min(low, minimum), 1.25 * max(high, maximum, 1)
            wide = within(kind, value, all_low, all_high)
            yield Case(name, [wide], [within(kind, like(SHAPE), all_low, all_high)], options)
            if kind == "i8":
                yield Case(name, [centred(wide)], [centred(within(kind, like(SHAPE), all_low, all_high))], options)
            fixed = fixed_result(name, _WIDTHS[kind])
            if fixed is not None:
                yield Case(name, [x], [scaled(kind, like(SHAPE), *fixed)], options)


class Binary(NamedTuple):
    """An operator of two operands."""

    name: str  # Its name.
    low: float  # The minimum operand; the second one is never 0 in the operators that divide.
    minimum: float  # The minimum result.
    maximum: float  # The maximum result.
    options: Mapping[str, Any] = NO_OPTIONS  # Its options.


_POWERS = {**NO_ACTIVATION, "pot_scale_int16": True}

_BINARY = (
    Binary("ADD", -1, -2, 2, SUM),
    Binary("SUB", -1, -2, 2, SUM),
    Binary("ADD", -1, -2, 2, _POWERS),
    Binary("SUB", -1, -2, 2, _POWERS),
    Binary("MUL", -1, -1, 1, NO_ACTIVATION),
    Binary("DIV", 0.3, 0, 3.4, NO_ACTIVATION),
    Binary("MAXIMUM", -1, -1, 1),
    Binary("MINIMUM", -1, -1, 1),
    Binary("SQUARED_DIFFERENCE", -1, 0, 4),
    Binary("POW", 0.3, 0, 1),
    Binary("FLOOR_DIV", 0.3, 0, 4),
    Binary("FLOOR_MOD", 0.3, -1, 1),
    Binary("ATAN2", -1, -3.2, 3.2),
)


def _binary() -> Iterator[Case]:
    for seed, (name, low, minimum, maximum, options) in enumerate(_BINARY):
        draw = random(100 + seed)
        x, y, row = (draw.uniform(low, 1, shape) for shape in (SHAPE, SHAPE, SHAPE[-1:]))
        for kind in KINDS:
            one, other = within(kind, x, -1.2, 1), within(kind, y, -1.5, 1)
            result = within(kind, like(SHAPE), minimum, maximum)
            yield Case(name, [one, other], [result], options)
            yield Case(name, [one, within(kind, row, -1.5, 1)], [result], options)
            constants = [within(kind, y, -1.5, 1, is_constant=True), weights(kind, row)]
            yield from (Case(name, [one, constant], [result], options) for constant in constants)
            yield Case(name, [constants[0], one], [result], options)
            low_all, high_all = min(-1, minimum), 1.2 * max(1, maximum)
            for constants_at in CONSTANTS:
                same = [
                    within(kind, value, low_all, high_all, is_constant=index in constants_at)
                    for index, value in enumerate((x, y))
                ]
                total = within(kind, like(SHAPE), low_all, high_all)
                yield Case(name, same, [total], options)
                if kind == "i8":
                    yield Case(name, [centred(each) for each in same], [centred(total)], options)


def _powers_of_two() -> Iterator[Case]:
    """Calls with scales that a kernel may treat as shifts."""
    x, y = random(150).uniform(-1, 1, (2, *SHAPE))
    for name in ("ADD", "SUB"):
        for options in (SUM, _POWERS):
            for powers in ((15, 15, 14), (15, 13, 14), (15, 15, 15), (13, 15, 16)):
                one, other, result = (2.0**-power for power in powers)
                operands = [scaled("i16", x, one), scaled("i16", y, other)]
                yield Case(name, operands, [scaled("i16", like(SHAPE), result)], options)


def _comparisons() -> Iterator[Case]:
    result = Tensor("bool", np.zeros(SHAPE, np.bool_))
    for seed, name in enumerate(COMPARISONS):
        draw = random(200 + seed)
        x = draw.uniform(-1, 1, SHAPE)
        y = np.where(draw.random(SHAPE) < 0.5, x, draw.uniform(-1, 1, SHAPE))
        for kind in KINDS:
            one = within(kind, x, -1, 0.9)
            # Numbers that are the same in both scales are hard to find, other than zero.
            apart = draw.uniform(-1, 1, SHAPE)
            for second in (within(kind, y, -1, 0.9), within(kind, apart, -1.5, 1)):
                yield Case(name, [one, second], [result])
                yield Case(name, [one, replace(second, is_constant=True)], [result])
                yield Case(name, [replace(one, is_constant=True), second], [result])


def _prelu() -> Iterator[Case]:
    draw = random(300)
    x, alpha = draw.uniform(-1, 1, SHAPE), draw.uniform(-0.2, 0.3, (1, 1, 8))
    for kind in KINDS:
        operand, result = within(kind, x, -1, 1), within(kind, like(SHAPE), -0.3, 1)
        for form in dict.fromkeys(("i8", kind)):
            yield Case("PRELU", [operand, weights(form, alpha)], [result])
            yield Case("PRELU", [operand, within(form, alpha, -0.2, 0.3, is_constant=True)], [result])


def _copies() -> Iterator[Case]:
    """Calls of `QUANTIZE` and `DEQUANTIZE`, with a constant or not."""
    value = random(400).uniform(-1, 1, SHAPE)
    kinds = ("f32", *KINDS, "i32")
    for source in kinds:
        for target in kinds[1:]:
            for factor in (1.0, 1.2) if source == target else (1.2,):
                yield Case("QUANTIZE", [_wide(source, value)], [_wide(target, like(SHAPE), factor)])
        if source != "f32":
            yield Case("DEQUANTIZE", [_wide(source, value)], [Tensor("f32", like(SHAPE))])
    yield Case("DEQUANTIZE", [Tensor("f16", value, is_constant=True)], [Tensor("f32", like(SHAPE))])
    yield Case("DEQUANTIZE", [Tensor("f16", value)], [Tensor("f32", like(SHAPE))])
    table = random(401).uniform(-1, 1, (4, 8, 16))
    for form in ("i8", "u8", "i16", "i4", "i2"):
        constants = [weights(form, table), *(weights(form, table, axis) for axis in range(3))]
        constants += [weights(form, value, 3), with_offset(weights(form, table), 1)]
        if form in ("i8", "i4"):
            constants += [weights(form, table[0], block=block) for block in (8, 16)]
        for constant in constants:
            yield Case("DEQUANTIZE", [constant], [Tensor("f32", like(constant.value.shape))])


def _wide(kind: str, value: Array, most: float = 1.0) -> Tensor:
    return scaled(kind, value, 1e-6) if kind == "i32" else within(kind, value, -most, most)


def _other_types() -> Iterator[Case]:
    """Calls whose result is not a real number, and choices by a condition."""
    draw = random(500)
    x, y = draw.uniform(-1, 1, (2, 4, 8))
    condition = plain(draw.random((4, 8)) > 0.5, np.bool_)
    for kind in KINDS:
        one = within(kind, x, -1, 0.8)
        for name in ("ARG_MAX", "ARG_MIN"):
            options = {"output_type": "INT32"}
            yield Case(name, [one, plain(1)], [Tensor("i32", np.zeros(4, np.int32))], options)
        for name in ("SELECT", "SELECT_V2"):
            for most in (0.8, 1.5):
                other, result = within(kind, y, -1, most), within(kind, like((4, 8)), -1, most)
                for at in CONSTANTS:
                    pair = [replace(each, is_constant=index in at) for index, each in enumerate((one, other))]
                    yield Case(name, [condition, *pair], [result])


def cases() -> Iterator[Case]:
    """Yields all calls."""
    yield from _unary()
    yield from _binary()
    yield from _powers_of_two()
    yield from _comparisons()
    yield from _prelu()
    yield from _copies()
    yield from _other_types()
