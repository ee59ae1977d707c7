"""Slices that have no elements whatever the sizes: XNNPACK takes an end of zero for the border."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import RunTFLite


def _row_cleared(tf: ModuleType, x: Any) -> Any:
    """Clears the first row, as tables of positions are that have none for padding."""
    return tf.concat([x[:0, :], tf.zeros([1, tf.shape(x)[1]]), x[1:, :]], 0)


def _cut(tf: ModuleType, x: Any) -> Any:
    return tf.concat([x[:0, 1:4], x[:, 1:4]], 0)


def _from_the_end(tf: ModuleType, x: Any) -> Any:
    return tf.concat([x[:, -1:0], x], 1)


@pytest.mark.parametrize("function", [_row_cleared, _cut, _from_the_end])
def test_nothing_is_nothing(tf: ModuleType, run_tflite: RunTFLite, function: Callable[[ModuleType, Any], Any]) -> None:
    concrete = tf.function(lambda x: function(tf, x)).get_concrete_function(tf.TensorSpec([None, None]))
    x = np.arange(12, dtype=np.float32).reshape(3, 4) + 1
    (got,) = run_tflite(bytes(tfconvert.convert(concrete)), [x])
    np.testing.assert_array_equal(got, concrete(tf.constant(x)).numpy())
