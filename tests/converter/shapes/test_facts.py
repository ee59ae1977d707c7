"""Facts of values, joined."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfconvert.converter.shapes.facts import Fact, agreed, constant_of, join
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.dims import UNKNOWN, symbol

DIMS = st.sampled_from([-1, 0, 1, 4, symbol(0), symbol(1)])
SHAPES = st.none() | st.lists(DIMS, max_size=3).map(tuple)
CONSTANTS = st.none() | st.sampled_from([1, 2]).map(lambda value: tensor_data.of_array(np.array(value, np.int32)))
PARTIALS = st.none() | st.lists(st.sampled_from([0, 3, symbol(0), UNKNOWN]), min_size=1, max_size=2).map(tuple)
FACTS = st.builds(Fact, SHAPES, CONSTANTS, PARTIALS)


@given(FACTS, FACTS)
def test_a_join_keeps_common_facts(one: Fact, other: Fact) -> None:
    joined = join(one, other)
    assert join(one, one) == one
    assert joined == join(other, one)
    # A loop's variables stop changing.
    assert join(joined, one) == joined
    assert join(joined, joined) == joined


@pytest.mark.parametrize(
    ("found", "declared", "expected"),
    [((2, -1), (-1, 3), (2, 3)), (None, (2,), (2,)), ((2,), (3,), (2,)), ((2,), None, (2,)), ((2,), (2, 2), (2,))],
)
def test_a_type_refines_facts_and_never_overrules_them(
    found: tuple[int, ...] | None, declared: tuple[int, ...] | None, expected: tuple[int, ...]
) -> None:
    assert agreed(found, declared) == expected


def test_elements_known_one_by_one_make_a_constant() -> None:
    constant = constant_of(Fact((2,), None, (3, -1)), types.I64)
    assert constant is not None
    np.testing.assert_array_equal(tensor_data.to_array(constant), np.array([3, -1]))
    assert constant_of(Fact((2,), None, (3, UNKNOWN)), types.I64) is None
    assert constant_of(Fact((2,), None, (3, symbol(4))), types.I64) is None
