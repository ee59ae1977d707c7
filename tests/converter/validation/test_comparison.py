"""When values count as equal."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tfconvert.converter.validation.comparison import SAME, compare


@pytest.mark.parametrize(
    ("was", "now", "same"),
    [
        ([np.nan, np.inf, 1.0], [np.nan, np.inf, 1.0], True),
        ([np.nan, 1.0], [0.0, 1.0], False),
        ([np.inf], [-np.inf], False),
        ([1000.0, 0.0], [1000.0, 0.5], True),
        ([1.0, 0.0], [1.0, 0.5], False),
        ([0.0], [-0.0], True),
    ],
)
def test_floats_agree_to_a_share_of_the_largest(was: list[float], now: list[float], same: bool) -> None:
    assert (compare(np.array(was, np.float32), np.array(now, np.float32)).what == "") is same


@pytest.mark.parametrize(
    ("was", "now", "what"),
    [
        (np.zeros((2, 1)), np.zeros(2), "has shape [2], not [2, 1]"),
        (np.zeros(2, np.int32), np.zeros(2, np.int64), "is of type int64, not int32"),
        (np.array([1, 5, 9]), np.array([1, 6, 5]), "differs in 2 of 3 numbers, by up to 4"),
        (np.array([True, False]), np.array([True, True]), "differs in 1 of 2 numbers, by up to 1"),
        (np.array([b"a", b"b"], object), np.array([b"a", b"c"], object), "differs from the text it was"),
        (np.array([1 + 2j]), np.array([1 - 2j]), "differs by up to 4; the largest number is 2.24"),
        (np.array([1, -8], ml_dtypes.int4), np.array([1, -8], ml_dtypes.int4), ""),
        (np.array([1, 0.5], ml_dtypes.bfloat16), np.array([1, 0.53], ml_dtypes.bfloat16), ""),
        (np.array([b"a", b""], object), np.array([b"a", b""]), ""),
        (np.zeros((0, 2)), np.zeros((0, 2)), ""),
    ],
)
def test_differences_of_values_are_described(was: np.ndarray[Any, Any], now: np.ndarray[Any, Any], what: str) -> None:
    assert compare(was, now).what == what


def test_differences_are_measured() -> None:
    assert compare(np.ones(3), np.ones(3)) == SAME
    close = compare(np.array([4.0, 2.0], np.float32), np.array([4.0, 2.001], np.float32))
    assert not close.what
    assert close.absolute == pytest.approx(1e-3, rel=1e-3)
    assert close.relative == pytest.approx(2.5e-4, rel=1e-3)
    assert compare(np.zeros(2), np.zeros(3)).absolute == np.inf
