"""The algebra of sizes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfconvert.schema.ir.dim import (
    DIVISIONS,
    OPERATIONS,
    Dim,
    DimCall,
    Sum,
    Symbol,
    apply,
    emit,
    is_at_least,
    is_known,
    is_multiple,
    is_natural,
    product,
    substitute,
    unknown,
)

X, Y = Symbol("x.0"), Symbol("x.1")
N = Symbol("n[0]", is_natural=False)


def _add(*sizes: Dim) -> Dim:
    found: Dim = 0
    for size in sizes:
        found = apply("add", found, size)
    return found


def test_equal_sizes_are_one_object() -> None:
    assert _add(X, Y, 1) is _add(1, Y, X)
    assert apply("multiply", _add(X, 1), 2) is _add(X, X, 2)
    assert apply("subtract", _add(X, Y), X) is Y
    assert apply("maximum", N, 3) is apply("maximum", 3, N)
    assert apply("GT", N, 3) is apply("LT", 3, N)


def test_texts_are_sums_of_products() -> None:
    assert str(_add(product((4, X, Y)), 16)) == "4*x.0*x.1 + 16"
    assert str(apply("subtract", apply("divide", X, 2), _add(Y, 1))) == "floor(x.0 / 2) - x.1 - 1"
    assert str(apply("divide", _add(X, 1), 2)) == "floor((x.0 + 1) / 2)"
    assert str(apply("remainder", _add(X, Y), X)) == "((x.0 + x.1) mod x.0)"
    assert str(apply("maximum", apply("maximum", N, 3), Symbol("m"))) == "max(m, n[0], 3)"


def test_provable_relations() -> None:
    assert apply("maximum", X, 0) is X
    assert (apply("GE", X, 0), apply("LT", X, 0), apply("EQ", _add(X, 1), 0)) == (1, 0, 0)
    assert is_at_least(_add(X, 2), X)
    assert not is_at_least(N, 0)
    half = apply("divide", _add(X, 1), 2)
    assert is_at_least(product((2, half)), X)
    assert not is_at_least(product((2, half)), _add(X, 1))
    assert is_at_least(product((3, apply("ceil_divide", X, 3))), X)
    assert not is_at_least(product((2, apply("divide", _add(N, 1), 2))), N)
    assert is_multiple(_add(product((6, X)), 4), 2)
    assert not is_multiple(_add(product((6, X)), 4), 4)
    assert apply("divide", _add(product((6, X)), 4), 2) is _add(product((3, X)), 2)
    assert apply("remainder", product((6, X)), 3) == 0
    assert is_known(X)
    assert not is_known(_add(X, unknown()))
    assert unknown() != unknown()


def test_a_product_of_many_sums_stays_small() -> None:
    found: Dim = 1
    for number in range(20):
        found = apply("multiply", found, _add(X, Y, number))
        assert not isinstance(found, Sum) or len(found.terms) <= 64
    expected = 1
    for number in range(20):
        expected *= 5 + number
    assert substitute(found, {X: 2, Y: 3}) == expected


def test_sizes_that_share_parts_stay_small() -> None:
    """Written out, the last one would have 2^100 symbols."""
    found: Dim = X
    number = 5
    for step in range(100):
        found = _add(apply("minimum", apply("divide", found, 2), found), step + 1)
        number = min(number // 2, number) + step + 1
    assert is_natural(found)
    assert substitute(found, {X: 5}) == number
    assert apply("maximum", found, -1) is found


@pytest.mark.parametrize("name", sorted(DIVISIONS))
def test_divisions_by_zero_are_left_to_running(name: str) -> None:
    assert isinstance(apply(name, 7, 0), DimCall)


def _computed(name: str, *numbers: int) -> int:
    if name == "select":
        return numbers[1] if numbers[0] else numbers[2]
    return int(OPERATIONS[name](*numbers))


@given(
    st.lists(st.sampled_from(sorted(OPERATIONS.keys() - DIVISIONS)), min_size=1, max_size=8),
    st.lists(st.integers(-6, 9), min_size=9, max_size=9),
    st.sampled_from(sorted(DIVISIONS)),
    st.integers(1, 5),
    st.sampled_from([N, X]),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_simplified_sizes_equal_plain_ones(
    names: list[str], numbers: list[int], division: str, divisor: int, symbol: Symbol
) -> None:
    value = abs(numbers[0]) if symbol.is_natural else numbers[0]
    size: Dim = symbol
    plain = value
    for name, number in zip(names, numbers[1:], strict=False):
        size = apply(name, size, symbol if number > 6 else number)
        plain = _computed(name, plain, value if number > 6 else number)
        size = apply("select", apply("LT", symbol, number), apply(division, size, divisor), size)
        plain = _computed(division, plain, divisor) if value < number else plain
    assert emit(size, {symbol: value}.__getitem__, _computed) == plain


@given(
    st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(1, 4)), min_size=2, max_size=6),
    st.integers(0, 40),
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_bounds_of_quotients_hold(steps: list[tuple[str, int]], value: int) -> None:
    """Sizes of windows and their padding: quotients, multiplied and compared with what was divided."""
    size, plain = _add(X, 1), value + 1
    for name, number in steps:
        size = apply("maximum", apply("subtract", apply("multiply", apply(name, size, number), number), X), 0)
        plain = max(_computed(name, plain, number) * number - value, 0)
        size, plain = _add(size, X), plain + value
    assert emit(size, {X: value}.__getitem__, _computed) == plain
