"""Shifts by negative amounts or by more bits than there are, and powers that wrap around."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converter.targets.litert.legalize.cases import Case, Check

_PLACES = [-9, -1, 0, 1, 6, 7, 8, 15, 16, 31, 32, 63, 64, 100]


@pytest.mark.parametrize("element", ["i8", "ui8", "i16", "ui16", "i32", "ui32", "i64"])
def test_shifts_to_the_left_wrap_around(check: Check, element: str) -> None:
    sign = "u" * element.startswith("u")
    dtype = np.dtype(f"{sign}int{element.removeprefix('ui').removeprefix('i')}")
    places = np.array([each for each in _PLACES if np.iinfo(dtype).min <= each <= np.iinfo(dtype).max], dtype)
    operators = check(Case("LeftShift", [f"{element}[?3,1]", places]))
    assert {"MUL"} <= set(operators) <= {"CAST", "MUL"}  # the factors are known
    check(Case("LeftShift", [np.array([[-7], [5], [120]]).astype(dtype), f"{element}[2,3,14]@0:100"]))


@pytest.mark.parametrize("element", ["i8", "ui8", "i16", "ui16", "i32", "ui32"])
def test_shifts_to_the_right(check: Check, element: str) -> None:
    check(Case("RightShift", [f"{element}[3,14]", f"{element}[14]@0:100"]))


@pytest.mark.parametrize(("exponent", "products"), [(1, 0), (2, 1), (3, 2), (31, 8), (64, 6)])
@pytest.mark.parametrize("element", ["i32", "i64"])
def test_powers_of_integers_wrap_around(check: Check, element: str, exponent: int, products: int) -> None:
    number = np.array(exponent, element.replace("i", "int"))
    operators = check(Case("Pow", [f"{element}[?2,3]@-100:100", number]))
    assert operators == (["MUL"] if products else ["RESHAPE"]), "an input that is an output is copied"
