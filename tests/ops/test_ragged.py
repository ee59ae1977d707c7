"""Ragged tensors against TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.cases import KernelCase, by_op, check_refused
from tests.ops.comparison import Agree


def longs(*values: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(values, np.int64)


BAD: list[KernelCase] = [
    ("RaggedTensorToSparse", (longs(0, 3, 2), "f32[2]"), {}),
    ("RaggedTensorToTensor", (longs(-1, -1), "f32[4]", 0.0, longs(0, 2, 4)), {}),
]


@by_op(BAD)
def test_operands_that_do_not_fit_are_an_error(case: KernelCase) -> None:
    check_refused(case)


@pytest.mark.parametrize("values", ["f32[4]", "f32[4,2]"])
@pytest.mark.parametrize("width", [-1, 3, 1])
def test_rows_are_padded(agree: Agree, values: str, width: int) -> None:
    shape = longs(-1, width) if values == "f32[4]" else longs(-1, width, -1)
    splits = {"row_partition_types": ("ROW_SPLITS",)}
    agree("RaggedTensorToTensor", (shape, values, 9.0, longs(0, 2, 2, 4)), splits)
    by_number = {"row_partition_types": ("FIRST_DIM_SIZE", "VALUE_ROWIDS")}
    agree("RaggedTensorToTensor", (shape, values, 9.0, np.array(5), longs(0, 0, 1, 3)), by_number)


def test_rows_become_sparse(agree: Agree) -> None:
    agree("RaggedTensorToSparse", (longs(0, 2, 2, 4), "f32[4]"))
