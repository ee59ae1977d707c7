"""Element types and their numbers."""

from __future__ import annotations

import pytest

from tfconvert.schema.dialects import types


def test_numbers_above_the_offset_are_references() -> None:
    assert types.element_type(1) == types.F32
    assert types.element_type(types.REF_OFFSET + 1) == types.RefType.get(types.F32)


@pytest.mark.parametrize("number", [-1, 0, 99, types.REF_OFFSET, 2 * types.REF_OFFSET + 1, 2**31 - 1])
def test_other_numbers_are_no_types(number: int) -> None:
    assert types.element_type(number) is None
