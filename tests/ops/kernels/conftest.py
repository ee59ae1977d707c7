"""Compares kernels with TensorFlow itself, eagerly."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests.ops.kernels.comparison import Agree, compare, operand, tensorflow
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate


@pytest.fixture(scope="session")
def agree() -> Agree:
    """Returns a function that asserts that a kernel and TensorFlow agree on an op."""

    def check(op: str, specs: Sequence[Any], attributes: Mapping[str, Any] | None = None, **options: Any) -> None:
        seed = zlib.crc32(op.encode())
        inputs = tuple(operand(spec, seed + i) for i, spec in enumerate(specs))
        expected = tensorflow(op, inputs, attributes or {})
        before = [x.copy() for x in inputs]
        results = evaluate(Call(op, inputs, attributes or {}))
        for x, was in zip(inputs, before, strict=True):
            np.testing.assert_array_equal(x, was, "an operand was written to")
        count = options.pop("results", len(expected))
        assert len(results) >= count
        for got, wanted in zip(results[:count], expected[:count], strict=True):
            compare(got, wanted, **options)

    return check
