"""Constants as integers: ranges from one read, scales, and integers that are computed when they are needed."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfconvert.converter.ir.extent import extent
from tfconvert.converter.targets.litert.quantize.weights import quantize_weight, symmetric_scales
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.quant import UniformType
from tfconvert.schema.dialects.sources import FileSlice
from tfconvert.schema.dialects.tensor_data import Constant, TensorData
from tfconvert.schema.files import InputFile
from tfconvert.schema.ir.types import IntegerType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]


def _random(*shape: int) -> Array:
    return np.random.default_rng([9, *shape]).normal(size=shape).astype(np.float32)


def _in_file(folder: Path, value: Array) -> TensorData:
    path = folder / "weight"
    path.write_bytes(value.tobytes())
    kind = types.tensor(types.F32, value.shape)
    assert isinstance(kind, TensorType)
    return TensorData.get(kind, FileSlice(InputFile(path), 0, value.nbytes))


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.data())
def test_ranges_of_slices(shape: list[int], data: st.DataObject) -> None:
    axis = data.draw(st.one_of(st.none(), st.integers(0, len(shape) - 1)))
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    value = _random(*shape)
    wanted = value.transpose(order)
    others = tuple(at for at in range(len(shape)) if at != axis)
    turned = tensor_data.defer("transpose", (tensor_data.as_handle(tensor_data.of_array(value)),), wanted.shape, order)
    for constant in (tensor_data.of_array(wanted.copy()), turned):
        low, high, _ = extent(constant, axis)
        np.testing.assert_array_equal(low, wanted.min(others).reshape(-1))
        np.testing.assert_array_equal(high, wanted.max(others).reshape(-1))


def test_ranges_of_transposed_weights(tmp_path: Path) -> None:
    """Large ones are handles; the untransposed constant is read."""
    value = _random(40, 3, 50)
    turned = tensor_data.defer("transpose", (_in_file(tmp_path, value),), (50, 40, 3), (2, 0, 1))
    again = tensor_data.defer("transpose", (turned,), (3, 50, 40), (-1, 0, 1))
    for axis, others in ((0, (0, 2)), (1, (0, 1)), (2, (1, 2))):
        np.testing.assert_array_equal(extent(again, axis).low, value.min(others))
    assert extent(again).high == value.max()


def test_ranges_of_nothing_and_of_no_numbers() -> None:
    found = extent(tensor_data.of_array(np.zeros((0, 3), np.float32)), 1)
    assert [limit.tolist() for limit in (found.low, found.high)] == [[0] * 3] * 2
    value = np.array([[1, 2], [np.nan, 3]], np.float32)
    assert np.isnan(extent(tensor_data.of_array(value), 0).low).tolist() == [False, True]


@pytest.mark.parametrize(("bits", "limit"), [(8, 127), (4, 7)])
def test_scales_reach_the_largest_element(bits: int, limit: int) -> None:
    low, high = np.array([-3, -1, 0, 0], np.float32), np.array([1, 2, 0, 1e-43], np.float32)
    expected = np.array([3, 2, 0, 0], np.float32) / np.float32(limit)
    expected[2:] = expected[0]
    np.testing.assert_array_equal(symmetric_scales(low, high, bits), expected)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_integers_are_the_nearest(axis: int | None, bits: int) -> None:
    value = _random(60, 50)
    value[3] = 0
    quantized = quantize_weight(tensor_data.of_array(value), axis, bits)
    assert quantized is not None
    element = types.element_of(quantized.type)
    assert isinstance(element, UniformType)
    uniform = element.data
    assert (uniform.storage, uniform.axis, set(uniform.zero_points)) == (IntegerType.get(bits), axis, {0})
    scales = np.array(uniform.scales, np.float32).reshape((1,) if axis is None else (-1, 1) if axis == 0 else (1, -1))
    stored = tensor_data.to_array(quantized.stored).astype(np.int8)
    assert np.abs(stored).max() == 2 ** (bits - 1) - 1
    assert np.abs(stored * scales - value).max() <= scales.max() * 0.5001
    assert not stored[3].any()


@pytest.mark.parametrize("wrong", [np.inf, -np.inf, np.nan])
def test_what_is_no_number_has_no_integer(wrong: float) -> None:
    value = _random(60, 50)
    value[59, 49] = wrong
    constant: Constant = tensor_data.of_array(value)
    assert quantize_weight(constant, 0) is None
    assert quantize_weight(constant, None) is None


def test_nothing_is_computed_before_it_is_needed(tmp_path: Path) -> None:
    """Only a block and a tile of a transposed and scaled 64 MB weight are in memory."""
    value = np.broadcast_to(_random(64, 1), (64, 1 << 18)).copy()
    turned = tensor_data.defer("transpose", (_in_file(tmp_path, value),), (1 << 18, 64), (1, 0))
    scaled = tensor_data.defer("mul", (turned, tensor_data.of_array(_random(1, 64))), (1 << 18, 64))
    tracemalloc.start()
    quantized = quantize_weight(scaled, 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert quantized is not None
    assert isinstance(quantized.stored, TensorData)
    assert peak < value.nbytes * 0.65
