"""Constants of one value: what is computed of them is what numpy computes, and they stay one value where they can."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tfconvert.schema.dialects import expressions, tensor_data, types
from tfconvert.schema.dialects.tensor_data import Constant, SplatSource, TensorData
from tfconvert.schema.limits import Limits, limited

SHAPE = (1000, 50)


def _splat(value: Any, shape: tuple[int, ...] = SHAPE) -> Constant:
    return tensor_data.of_array(np.broadcast_to(np.asarray(value), shape))


def _is_splat(constant: Constant) -> bool:
    return isinstance(constant, TensorData) and isinstance(constant.source, SplatSource)


@pytest.mark.parametrize(
    "value",
    [
        np.float32(1.5),
        np.int64(-3),
        np.bool_(True),
        np.float32("nan"),
        np.complex64(1 + 2j),
        ml_dtypes.bfloat16(2.5),
        np.array(b"text", object),
    ],
)
def test_values_come_back(value: Any) -> None:
    shape = (1 << 17, 3)
    constant = _splat(value, shape)
    assert _is_splat(constant)
    assert isinstance(constant, TensorData)
    expected = np.broadcast_to(np.asarray(value), shape)
    assert np.array_equal(constant.array(), expected, equal_nan=expected.dtype.kind == "f")
    assert constant.array().strides == (0, 0)
    blocks = list(constant.blocks())
    assert all(block.flags.c_contiguous for block in blocks)
    joined = np.concatenate([block.reshape(-1) for block in blocks])
    assert np.array_equal(joined, expected.reshape(-1), equal_nan=expected.dtype.kind == "f")


def test_small_or_partly_repeated_values_are_kept() -> None:
    assert not _is_splat(_splat(np.float32(1), (64, 64)))
    rows = np.broadcast_to(np.arange(50, dtype=np.float32), SHAPE)
    constant = tensor_data.of_array(rows)
    assert not _is_splat(constant)
    assert np.array_equal(tensor_data.to_array(constant), rows)
    assert not _is_splat(tensor_data.of_array(np.empty((0, 1 << 20), np.float32)))


@pytest.mark.parametrize(
    ("function", "arguments", "parameter", "expected"),
    [
        ("add", (2.5, 1.5), None, 4.0),
        ("sub", (2.5, 1.5), None, 1.0),
        ("mul", (2.5, 1.5), None, 3.75),
        ("div", (1.0, 0.0), None, np.inf),
        ("reverse", (2.5,), None, 2.5),
        ("transpose", (2.5,), (1, 0), 2.5),
        ("reshape", (2.5,), (50, 1000), 2.5),
    ],
)
@pytest.mark.parametrize("scalar", [False, True])
def test_expressions_of_splats_are_splats(
    function: str, arguments: tuple[float, ...], parameter: Any, expected: float, scalar: bool
) -> None:
    given = [_splat(np.float32(value)) for value in arguments]
    if scalar and len(given) > 1:
        given[1] = tensor_data.of_array(np.array([arguments[1]], np.float32))
    shape = SHAPE if function in ("add", "sub", "mul", "div", "reverse") else (50, 1000)
    found = tensor_data.defer(function, tuple(given), shape, parameter)
    assert _is_splat(found)
    assert np.array_equal(tensor_data.to_array(found), np.full(shape, expected, np.float32))


def test_casts_of_splats_are_splats() -> None:
    found = tensor_data.defer("cast", (_splat(np.int32(7)),), SHAPE, np.dtype(np.float16), types.F16)
    assert _is_splat(found)
    assert np.array_equal(tensor_data.to_array(found), np.full(SHAPE, 7, np.float16))


def test_concatenations_of_splats() -> None:
    one, other = _splat(np.float32(1)), _splat(np.float32(2))
    same = tensor_data.defer("concat", (one, one), (2000, 50), 0)
    assert _is_splat(same)
    assert np.array_equal(tensor_data.to_array(same), np.ones((2000, 50)))
    mixed = tensor_data.defer("concat", (one, other), (2000, 50), 0)
    assert not _is_splat(mixed)
    assert np.array_equal(tensor_data.to_array(mixed)[[0, -1], 0], [1, 2])


def test_a_splat_with_a_whole_constant_is_computed_from_both() -> None:
    whole = np.arange(50_000, dtype=np.float32).reshape(SHAPE)
    found = tensor_data.defer("add", (_splat(np.float32(1)), tensor_data.of_array(whole)), SHAPE)
    assert np.array_equal(tensor_data.to_array(found), whole + 1)


def test_equal_splats_have_equal_fingerprints() -> None:
    one, same, other = (_splat(np.float32(value)) for value in (1, 1, 2))
    assert isinstance(one, TensorData)
    assert isinstance(same, TensorData)
    assert isinstance(other, TensorData)
    assert one.source.fingerprint() == same.source.fingerprint() != other.source.fingerprint()


def test_immediate_computation_counts_against_the_budget() -> None:
    value: Constant = tensor_data.of_array(np.arange(50_000, dtype=np.float32).reshape(SHAPE))
    with limited(Limits(constant_bytes=300_000)) as spent:
        for _ in range(10):
            value = tensor_data.defer("add", (value, value), SHAPE)
        assert spent.constant_bytes == 100_000
    assert tensor_data.to_array(value)[0, 1] == 1 << 10


def test_a_value_is_not_computed_twice_as_often_at_every_level(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    add = expressions.EXPRESSIONS["add"]

    def counted(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        return add.part(*arguments)

    monkeypatch.setitem(expressions.EXPRESSIONS, "add", add._replace(part=counted))
    value: Constant = tensor_data.of_array(np.ones(SHAPE, np.float32))
    for _ in range(40):
        value = tensor_data.defer("add", (value, value), SHAPE)
    assert np.array_equal(tensor_data.to_array(value), np.full(SHAPE, 2.0**40))
    assert count < 40 * 64


def test_many_different_parts_stay_an_expression() -> None:
    parts = [
        tensor_data.defer(
            "cast",
            (tensor_data.of_array(np.full((1000, 50), number, np.float16)),),
            SHAPE,
            np.dtype(np.float32),
            types.F32,
        )
        for number in range(100)
    ]
    joined = tensor_data.defer("concat", tuple(parts), (100_000, 50), 0)
    moved = tensor_data.defer("transpose", (joined,), (50, 100_000), (1, 0))
    assert isinstance(moved, TensorData)
    assert isinstance(moved.source, tensor_data.Deferred)
