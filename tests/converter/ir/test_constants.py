"""Constants are looked into where they are small, whatever way they are held."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfconvert.converter.ir.constants import (
    constant_array,
    constant_int,
    constant_ints,
    constant_number,
    is_enumeration,
)
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.values import Value

LARGEST = tensor_data.MAX_READ_BYTES // 4


def _constant(value: Any, dtype: Any = np.int32) -> Value:
    return TFBuilder.at_block_end(Block()).constant(np.array(value, dtype))


def _computed() -> Value:
    return Block(arg_types=[types.tensor(types.I32, ())]).args[0]


@pytest.mark.parametrize(("size", "is_read"), [(0, True), (LARGEST, True), (LARGEST + 1, False)])
def test_large_constants_are_not_read(size: int, is_read: bool) -> None:
    assert (constant_array(_constant([0.5] * size, np.float32)) is not None) is is_read


def test_strings_count_by_their_number() -> None:
    found = constant_array(_constant([b"a", b"b"], object))
    assert found is not None
    assert found.tolist() == [b"a", b"b"]
    assert constant_array(_constant([b""] * (LARGEST // 2 + 1), object)) is None


def test_integers_are_read_row_by_row() -> None:
    assert constant_ints(_constant([[1, 2], [3, 4]])) == (1, 2, 3, 4)
    assert constant_ints(_constant([1.0], np.float32)) is None
    assert constant_ints(_computed()) is None


def test_an_integer_is_a_number_or_a_constant_of_one_element() -> None:
    assert [constant_int(each) for each in (3, _constant(4), _constant([[5]]), _constant([6, 7]))] == [3, 4, 5, None]
    assert constant_int(_constant(0.5, np.float32)) is None


def test_a_number_is_an_integer_or_a_float() -> None:
    values = (_constant(4), _constant([0.5], np.float32), _constant(True, bool), _constant([1, 2]), _computed())
    assert [constant_number(each) for each in values] == [4, 0.5, None, None, None]


def test_enumerations_of_any_length_are_seen() -> None:
    assert is_enumeration(_constant(np.arange(2 * LARGEST)))
    assert not is_enumeration(_constant([0, 2]))
    insert = TFBuilder.at_block_end(Block())
    size, kind = _computed(), types.tensor(types.I32, (-1,))
    assert is_enumeration(insert.tf("Range", (0, size, 1), kind))
    assert not is_enumeration(insert.tf("Range", (1, size, 1), kind))
    assert not is_enumeration(size)
