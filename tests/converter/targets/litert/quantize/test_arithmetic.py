"""Scales, zero points, integers of weights, histograms and groups, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.run_text import parse
from tfconvert.converter.ir.extent import extent
from tfconvert.converter.targets.litert.quantize import observers, weights
from tfconvert.converter.targets.litert.quantize.exclusion import Exclusion
from tfconvert.converter.targets.litert.quantize.groups import Groups
from tfconvert.converter.targets.litert.quantize.observers import Histogram, Range
from tfconvert.converter.targets.litert.quantize.parameters import range_of, range_of_integers, set_ranges, uniform_of
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.quant import Uniform, UniformType
from tfconvert.schema.ir.types import I8, I16
from tfconvert.schema.ir.values import Value

Array = np.ndarray[Any, np.dtype[Any]]

NUMBERS = st.floats(-(2.0**100), 2.0**100, width=32)
RANGES = st.tuples(NUMBERS, NUMBERS).map(lambda ends: Range(min(ends), max(ends)))


@settings(max_examples=200)
@given(RANGES, st.sampled_from((I8, I16)))
def test_mappings_cover_their_range(values: Range, storage: Any) -> None:
    uniform = uniform_of(values, storage)
    (scale,), (zero,) = uniform.scales, uniform.zero_points
    assert uniform.axis is None
    assert np.float32(scale) == scale > 0
    # 0 is an integer, the range is covered up to half a step, and 16-bit integers lie around 0.
    assert -(2 ** (storage.width - 1)) <= zero < 2 ** (storage.width - 1)
    assert storage is I8 or zero == 0
    room = range_of_integers(uniform)
    assert room.low - scale / 2 * 1.001 <= min(values.low, 0)
    assert max(values.high, 0) <= room.high + scale / 2 * 1.001


@settings(max_examples=100)
@given(RANGES, RANGES, st.sampled_from((I8, I16)))
def test_wider_ranges_have_larger_scales(one: Range, other: Range, storage: Any) -> None:
    wide = uniform_of(one.joined(other), storage)
    narrow = uniform_of(one, storage)
    # A range of nothing but 0 has the scale 1.
    assert narrow.scales[0] <= wide.scales[0] or narrow.scales == (1.0,)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (Range(-1, 1), (2 / 255, -1)),
        (Range(0, 6), (6 / 255, -128)),
        (Range(2, 6), (6 / 255, -128)),
        (Range(-6, -2), (6 / 255, 127)),
        (Range(-1, 3), (4 / 255, -64)),
        (Range(0, 0), (1.0, 0)),
        (Range(0, 1e-45), (1.0, 0)),
        (Range(-3.4e38, 3.4e38), (6.8e38 / 255, -1)),
    ],
)
def test_figures_of_bytes(values: Range, expected: tuple[float, int]) -> None:
    assert uniform_of(values, I8) == Uniform(I8, (float(np.float32(expected[0])),), (expected[1],))


def _constant(value: Array) -> Any:
    return tensor_data.of_array(np.ascontiguousarray(value))


SHAPES = st.lists(st.integers(0, 4), max_size=4)


@settings(max_examples=60)
@given(SHAPES, st.integers(0, 2**32 - 1), st.data())
def test_extremes_are_numpys(shape: list[int], seed: int, data: Any) -> None:
    value = np.random.default_rng(seed).normal(0, 3, shape).astype(np.float32)
    axis = data.draw(st.sampled_from([None, *range(len(shape))]))
    low, high, _ = extent(_constant(value), axis)
    if value.size:
        rows = value.reshape(1, -1) if axis is None else np.moveaxis(value, axis, 0).reshape(shape[axis], -1)
        np.testing.assert_array_equal(low, rows.min(1))
        np.testing.assert_array_equal(high, rows.max(1))
    else:
        assert len(low) == len(high) == (1 if axis is None else shape[axis])
        assert not low.any()
        assert not high.any()


def test_large_weights_are_read_in_blocks() -> None:
    value = np.random.default_rng(0).normal(0, 1, (3, 700, 500)).astype(np.float32)
    for axis in (None, 0, 1, 2):
        low, high, _ = extent(_constant(value), axis)
        others = tuple(other for other in range(3) if other != axis)
        np.testing.assert_array_equal(low, np.atleast_1d(value.min(others if axis is not None else None)))
        np.testing.assert_array_equal(high, np.atleast_1d(value.max(others if axis is not None else None)))


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("bits", [8, 4])
def test_weights_are_rounded_as_numpy_does(axis: int | None, bits: int) -> None:
    value = np.random.default_rng(bits).normal(0, 2, (5, 300)).astype(np.float32)
    value[:, 7] = 0
    made = weights.quantize_weight(_constant(value), axis, bits)
    assert made is not None
    most = 2 ** (bits - 1) - 1
    largest = np.abs(value).max(axis=None if axis is None else 1 - axis, keepdims=True)
    scales = largest / np.float32(most)
    scales[scales == 0] = scales.max()
    element = types.element_of(made.type)
    assert isinstance(element, UniformType)
    np.testing.assert_array_equal(element.data.scales, scales.reshape(-1))
    assert element.data.axis == axis
    assert not any(element.data.zero_points)
    stored = tensor_data.to_array(made.stored).astype(np.int32)
    np.testing.assert_array_equal(stored, np.clip(np.rint(value / scales), -most, most))


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_have_no_mapping(number: float) -> None:
    value = np.ones((3, 4), np.float32)
    value[1, 2] = number
    for axis in (None, 0, 1):
        assert weights.quantize_weight(_constant(value), axis) is None


@settings(max_examples=40)
@given(RANGES, st.integers(0, 2**32 - 1))
def test_constants_are_rounded_and_clipped(values: Range, seed: int) -> None:
    value = np.random.default_rng(seed).uniform(values.low, values.high, 20).astype(np.float32)
    uniform = uniform_of(Range(values.low / 2, values.high / 2), I8)
    made = weights.quantize_constant(_constant(value), uniform)
    (scale,), (zero,) = uniform.scales, uniform.zero_points
    # The reciprocal decides where a quotient lies between two integers.
    quotients = np.rint(value * (np.float32(1) / np.float32(scale))).astype(np.float64)
    expected = np.clip(quotients + zero, -128, 127)
    np.testing.assert_array_equal(tensor_data.to_array(made.stored), expected)


def _histogram(*parts: Array) -> Histogram:
    counted = Histogram()
    for part in parts:
        counted.add(part)
    return counted


@settings(max_examples=40)
@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(1e-3, 20)), min_size=1, max_size=5), st.integers(0, 99))
def test_percentiles_are_numpys(parts: list[tuple[float, float]], seed: int) -> None:
    random = np.random.default_rng(seed)
    arrays = [random.normal(mean, spread, 4000).astype(np.float32) for mean, spread in parts]
    found = _histogram(*arrays).percentile()
    together = np.concatenate(arrays)
    # The range doubles as it grows, so that a bin may be up to twice as wide.
    width = 2.5 * float(np.ptp(together)) / observers.BINS
    expected = np.percentile(together, [50 * observers.CUT, 100 - 50 * observers.CUT], method="inverted_cdf")
    spare = np.sort(together)
    slack = width + max(spare[1] - spare[0], spare[-1] - spare[-2])
    np.testing.assert_allclose([found.low, found.high], expected, atol=slack)
    assert together.min() <= found.low <= found.high <= together.max()


def _error(value: Array, kept: Range, levels: int) -> float:
    step = (kept.high - kept.low) / (levels - 1)
    outside = np.maximum(kept.low - value, 0) + np.maximum(value - kept.high, 0)
    return float(np.where(outside > 0, outside**2, step**2 / 12).sum())


@pytest.mark.parametrize("levels", [256, 65536])
def test_least_squares_are_the_best_of_all_shares(levels: int) -> None:
    value = np.random.default_rng(0).standard_t(3, 40_000).astype(np.float32)
    found = _histogram(*np.split(value, 8)).least_squares(levels)
    shares = np.linspace(1, 0.3, 15)
    whole = value.astype(np.float64)
    costs = [_error(whole, Range(whole.min() * low, whole.max() * high), levels) for low in shares for high in shares]
    assert _error(whole, found, levels) <= min(costs) * 1.02
    # It is only worth to cut something off if steps are coarse.
    assert (found.high < whole.max()) == (levels == 256)


def test_a_histogram_of_nothing_has_no_range() -> None:
    for found in (Histogram().percentile(), Histogram().least_squares(256)):
        assert found.low > found.high


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_histogram_of_what_is_not_finite_has_no_finite_range(number: float) -> None:
    counted = _histogram(np.ones(3, np.float32), np.array([1, number], np.float32), np.ones(3, np.float32))
    assert not counted.percentile().is_finite
    assert not counted.least_squares(256).is_finite


@pytest.mark.parametrize("values", [[0.0, 0.0], [3.0], [1e-30, 1e30], [-3e38, 3e38], [5e-39, 1e-38], [1e6, 1e6 + 1]])
def test_a_histogram_takes_all_sizes(values: list[float]) -> None:
    array = np.array(values, np.float32)
    counted = _histogram(array, *(array[index : index + 1] for index in range(len(array))))
    for found in (counted.percentile(), counted.least_squares(256)):
        assert found.is_finite
        assert found.low <= found.high
    assert counted.percentile().low >= array.min()
    assert counted.percentile().high <= array.max()
    assert counted._counts.sum() == 2 * len(array)


def _values(count: int) -> list[Value]:
    arguments = ", ".join(f"%a{index}: tensor<2xf32>" for index in range(count))
    module = parse(f"func.func @main({arguments}) {{\n func.return\n }}")
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    return list(function.body.block.args)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=10))
def test_groups_are_connected_components(pairs: list[tuple[int, int]]) -> None:
    values = _values(8)
    ranges = [Range(-float(index), 2.0**index) for index in range(8)]
    set_ranges(dict(zip(values, ranges, strict=True)))
    groups = Groups(I8, range_of)
    component = list(range(8))
    for one, other in pairs:
        groups.join(values[one], values[other])
        component = [component[one] if each == component[other] else each for each in component]
    for index, value in enumerate(values):
        members = [ranges[other] for other in range(8) if component[other] == component[index]]
        whole = Range(min(each.low for each in members), max(each.high for each in members))
        assert groups.uniform(value) == uniform_of(whole, I8)


def test_a_given_mapping_beats_a_range() -> None:
    one, other, third = _values(3)
    set_ranges({one: Range(-9, 9)})
    fixed = Uniform(I8, (0.25,), (3,))
    groups = Groups(I8, range_of)
    assert groups.give(other, fixed)
    assert groups.give(other, fixed)
    assert not groups.give(other, Uniform(I8, (0.5,), (3,)))
    groups.join(one, other)
    assert groups.uniform(one) == fixed
    assert groups.given(one) == fixed
    assert groups.uniform(third) is None


def test_ranges_are_of_single_values() -> None:
    one, other, third = _values(3)
    set_ranges({third: Range(-1.5, 2.0), one: Range(0.0, float("inf"))})
    assert range_of(one) == Range(0.0, float("inf"))
    assert range_of(other) is None
    assert range_of(third) == Range(-1.5, 2.0)


def test_patterns_are_of_nodes_and_operators() -> None:
    module = parse("""
    func.func @main(%x: tensor<2xf32>) {
      %0 = "tfl.softmax"(%x) : (tensor<2xf32>) -> tensor<2xf32> loc("net/head/probabilities")
      func.return
    }
    """)
    op = next(op for op in module.walk() if op.name == "tfl.softmax")
    assert [
        pattern
        for pattern in ("SOFTMAX", "SOFT*", "softmax", "*/head/*", "net", "net/*", "*")
        if Exclusion([pattern]).excludes(op)
    ] == ["SOFTMAX", "SOFT*", "*/head/*", "net/*", "*"]
    assert Exclusion(["ADD", "SOFTMAX"]).excludes(op)
    assert not Exclusion([]).excludes(op)
