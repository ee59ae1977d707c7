"""Arithmetic of dimensions, known or not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfconvert.ops.shape import quotient, reshaped
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.dims import (
    UNKNOWN,
    MismatchError,
    add,
    add_elements,
    broadcast,
    compatible,
    compatible_types,
    divide,
    merge,
    multiply,
    multiply_elements,
    symbol,
    window,
)

A, B = symbol(0), symbol(1)


def test_merging_prefers_known_dimensions() -> None:
    assert merge((A, -1, 3), (2, B, -1)) == (2, B, 3)
    assert merge(None, (A,)) == (A,)
    with pytest.raises(MismatchError):
        merge((2,), (3,))
    with pytest.raises(MismatchError):
        merge((2,), (2, 2))


def test_broadcasting_keeps_equal_symbols() -> None:
    assert broadcast((A, 1), (A, 5)) == (A, 5)
    assert broadcast((A,), (1,)) == (A,)
    assert broadcast((A,), (4,)) == (4,)
    assert broadcast((A,), (B,)) == (-1,)
    assert broadcast((A,), (0,)) == (0,)


def test_neutral_elements_keep_symbols() -> None:
    assert (add(A, 0), multiply(A, 1), divide(A, 1), multiply(A, 0)) == (A, A, A, 0)
    assert (add(A, 1), multiply(A, 2), divide(A, 2), multiply(A, B)) == (-1, -1, -1, -1)


def test_quotients_cancel_symbols() -> None:
    assert quotient((A, 6, 4), (A, 3)) == 8
    assert quotient((A, 6, 4), (24,)) == A
    assert quotient((A, 6, 4), (12,)) == -1
    assert quotient((A, B), (B,)) == A
    assert quotient((A, 4), (B,)) == -1


def test_a_reshape_of_nothing_is_not_guessed() -> None:
    assert reshaped((A, 0), (-1, 0)) == (-1, 0)
    assert reshaped((0, 6), (-1, 2)) == (0, 2)


DIMS = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@given(DIMS, DIMS)
def test_broadcasting_known_shapes_is_numpys(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    try:
        expected = np.broadcast_shapes(first, second)
    except ValueError:
        with pytest.raises(MismatchError):
            broadcast(first, second)
        return
    assert broadcast(first, second) == expected


@given(DIMS, DIMS, st.data())
def test_forgetting_dimensions_never_changes_results(
    first: tuple[int, ...], second: tuple[int, ...], data: st.DataObject
) -> None:
    """With less information the inferred result is either the same or unknown."""
    try:
        expected = np.broadcast_shapes(first, second)
    except ValueError:
        return
    vague = tuple(data.draw(st.sampled_from((dim, -1))) for dim in first)
    result = broadcast(vague, second)
    assert result is not None
    assert all(dim in (-1, known) for dim, known in zip(result, expected, strict=True))


@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 4), st.integers(1, 3))
def test_windows_are_counted_right(size: int, kernel: int, stride: int, dilation: int) -> None:
    starts = [at for at in range(0, size, stride) if at + (kernel - 1) * dilation < size]
    if starts:
        assert window(size, kernel, stride, "VALID", dilation) == len(starts)
    else:
        with pytest.raises(MismatchError):
            window(size, kernel, stride, "VALID", dilation)
    assert window(size, kernel, stride, "SAME", dilation) == len(range(0, size, stride))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((1, 2), (1, 2), True),
        ((1, 2), (1, 3), False),
        ((1, 2), (-1, 2), True),
        ((1, symbol(0)), (1, 2), True),
        ((1, 2), (1, 2, 3), False),
        (None, (1, 2), True),
    ],
)
def test_shapes_that_one_value_can_have(
    first: tuple[int, ...] | None, second: tuple[int, ...] | None, expected: bool
) -> None:
    assert compatible(first, second) is compatible(second, first) is expected


def test_types_that_one_value_can_have() -> None:
    one = types.tensor(types.F32, (1, -1))
    assert compatible_types(one, types.tensor(types.F32, (1, 2)))
    assert not compatible_types(one, types.tensor(types.F32, (2, 2)))
    assert not compatible_types(one, types.tensor(types.I32, (1, 2)))


@pytest.mark.parametrize("dim", [0, 1, 5, -1, symbol(3)])
def test_dimensions_are_computed_like_elements_of_shapes(dim: int) -> None:
    assert [add(dim, 0), multiply(dim, 1), multiply(dim, 0)] == [dim, dim, 0]
    assert add(dim, symbol(1)) == (symbol(1) if dim == 0 else -1)
    assert add_elements(-1, 3) == 2
    assert multiply_elements(UNKNOWN, 2) == UNKNOWN
