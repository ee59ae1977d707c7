"""Constants as handles: when they are read, their equality, and deferred expressions."""

from __future__ import annotations

from pathlib import Path

import google_crc32c
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.expressions import MAX_DEPTH, Deferred
from tfconvert.schema.dialects.sources import BufferSource, FileSlice
from tfconvert.schema.dialects.tensor_data import Constant, DenseElementsAttr, TensorData, defer, of_array, to_array
from tfconvert.schema.files import InputFile
from tfconvert.schema.ir.types import TensorType


def f32(*shape: int) -> TensorType:
    result = types.tensor(types.F32, shape)
    assert isinstance(result, TensorType)
    return result


def large(*shape: int, seed: int = 0) -> Constant:
    return of_array(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def test_small_values_are_compared_by_value_and_large_ones_by_identity() -> None:
    small = np.arange(4, dtype=np.int32)
    assert isinstance(of_array(small), DenseElementsAttr)
    assert of_array(small) == of_array(small.copy())
    big = np.zeros(1000, np.float32)
    assert isinstance(of_array(big), TensorData)
    assert of_array(big) != of_array(big)
    handle = of_array(big)
    assert handle == handle  # checks that equality is identity
    assert len({handle, of_array(big)}) == 2


@pytest.mark.parametrize(
    "value",
    [
        np.array([1.5, -2], np.float32),
        np.array([True, False, True]),
        np.array(7, np.int64),
        np.array([1, 255], np.uint8),
        np.array([1.5, -2], ml_dtypes.bfloat16),
        np.array([b"a", b"bc"], object),
        np.array([1 + 2j], np.complex64),
        np.zeros((0, 3), np.float32),
    ],
)
def test_values_come_back(value: np.ndarray) -> None:
    got = to_array(of_array(value))
    assert got.dtype == value.dtype
    np.testing.assert_array_equal(got, value)


def test_a_file_is_checked_when_it_is_first_read(tmp_path: Path) -> None:
    data = np.arange(1000, dtype=np.float32)
    path = tmp_path / "shard"
    path.write_bytes(b"head" + data.tobytes())
    good = FileSlice(InputFile(path), 4, data.nbytes, google_crc32c.value(data.tobytes()), "w")
    bad = FileSlice(InputFile(path), 4, data.nbytes, 12345, "w")
    np.testing.assert_array_equal(TensorData.get(f32(1000), good).array(), data)
    handle = TensorData.get(f32(1000), bad)
    with pytest.raises(ConversionError, match="'w'") as caught:
        handle.array()
    assert caught.value.code == "bad-checksum"


def test_released_pages_are_read_again(tmp_path: Path) -> None:
    data = np.arange(100_000, dtype=np.float32)
    path = tmp_path / "shard"
    path.write_bytes(data.tobytes())
    handle = TensorData.get(f32(100_000), FileSlice(InputFile(path), 0, data.nbytes))
    handle.array()
    handle.source.release()
    np.testing.assert_array_equal(handle.array(), data)


@pytest.mark.parametrize("permutation", [(3, 0, 1, 2), (1, 2, 3, 0), (2, 3, 0, 1), (0, 2, 1, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("shape", [(3, 3, 70, 90), (1, 1, 300, 517), (2, 3, 4, 5)])
def test_transpositions(permutation: tuple[int, ...], shape: tuple[int, ...]) -> None:
    source = large(*shape)
    expected = to_array(source).transpose(permutation)
    got = to_array(defer("transpose", (source,), expected.shape, permutation))
    np.testing.assert_array_equal(got, expected)
    assert got.flags.c_contiguous


def test_an_expression_overwrites_only_what_it_made_itself() -> None:
    filters, scale = large(3, 3, 64, 80), large(80, 1, 1, 1, seed=1)
    before = to_array(filters).copy()
    transposed = defer("transpose", (filters,), (80, 3, 3, 64), (3, 0, 1, 2))
    scaled = defer("mul", (transposed, scale), (80, 3, 3, 64))
    first = to_array(scaled).copy()
    np.testing.assert_array_equal(to_array(scaled), first)
    np.testing.assert_array_equal(first, before.transpose(3, 0, 1, 2) * to_array(scale))
    np.testing.assert_array_equal(to_array(filters), before)
    np.testing.assert_array_equal(to_array(defer("mul", (filters, filters), (3, 3, 64, 80))), before * before)
    np.testing.assert_array_equal(to_array(filters), before)


def test_nested_expressions_are_computed_before_they_get_deep() -> None:
    value: Constant = large(1000)
    for _ in range(200):
        value = defer("add", (value, of_array(np.ones(1, np.float32))), (1000,))
        assert isinstance(value, TensorData)
        assert not isinstance(value.source, Deferred) or value.source.depth <= MAX_DEPTH
    np.testing.assert_allclose(to_array(value), to_array(large(1000)) + 200, rtol=1e-5)


@given(st.integers(0, 3), st.integers(0, 3))
def test_equal_contents_have_equal_fingerprints(first: int, second: int) -> None:
    one, other = (BufferSource(np.full(500, value, np.float32)) for value in (first, second))
    assert (one.fingerprint() == other.fingerprint()) == (first == second)
