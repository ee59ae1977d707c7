"""Element types and their numbers."""

from __future__ import annotations

import copy
import pickle

import pytest

from tfconvert.schema.dialects import types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr


def test_numbers_above_the_offset_are_references() -> None:
    assert types.element_type(1) == types.F32
    assert types.element_type(types.REF_OFFSET + 1) == types.RefType.get(types.F32)


@pytest.mark.parametrize("number", [-1, 0, 99, types.REF_OFFSET, 2 * types.REF_OFFSET + 1, 2**31 - 1])
def test_other_numbers_are_no_types(number: int) -> None:
    assert types.element_type(number) is None


@pytest.mark.parametrize(
    "attribute",
    [
        types.tensor(types.F32, (2, -1)),
        StringAttr.get("a"),
        IntegerAttr.get(3, types.I64),
        DictionaryAttr.get({"b": StringAttr.get("c"), "a": ArrayAttr.get([types.I1])}),
    ],
    ids=str,
)
def test_equal_attributes_stay_one_object(attribute: Attribute) -> None:
    assert copy.copy(attribute) is attribute
    assert copy.deepcopy(attribute) is attribute
    assert pickle.loads(pickle.dumps(attribute)) is attribute  # noqa: S301
