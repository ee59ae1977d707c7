"""Sparse and ragged tensors, and segments of picked rows, against TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.ops.comparison import operand
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate
from tfconvert.schema.diagnostics import ConversionError

Agree = Callable[..., None]


def longs(*values: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(values, np.int64)


PLACES = longs([3, 1], [0, 2], [3, 0], [0, 1])
NONE = np.zeros((0, 2), np.int64)

MATRIX = (longs([3, 1], [0, 2], [3, 0]), [1.0, 2.0, 3.0], longs(4, 3))

ROWS: list[tuple[str, tuple[Any, ...]]] = [
    *[
        (f"SparseSegment{name}{count}", ("f32[5,2]", [4, 0, 0, 1], [0, 0, 2, 2], *number))
        for name in ("Sum", "Mean", "SqrtN")
        for count, number in (("", ()), ("WithNumSegments", (4,)))
    ],
    ("SparseSegmentMean", ("f16[5]", [4, 0, 3], longs(0, 0, 0))),
    ("SparseSegmentSum", ("f32[5,2]", np.zeros(0, np.int32), np.zeros(0, np.int32))),
    ("SparseFillEmptyRows", (PLACES, [1, 2, 3, 4], longs(5, 4), 9)),
    ("SparseFillEmptyRows", (NONE, np.zeros(0, np.float32), longs(2, 4), 0.5)),
    ("SparseFillEmptyRows", (NONE, np.zeros(0, np.float32), longs(0, 4), 0.5)),
    ("SparseReshape", (PLACES, longs(4, 3), longs(2, -1, 3))),
    ("SparseReshape", (PLACES, longs(4, 3), longs(12))),
    ("SparseReshape", (NONE, longs(0, 3), longs(0, 7))),
    ("UniqueV2", ([3, 1, 3, 2], [0])),
    ("UniqueWithCountsV2", ([3.0, 1.0, 3.0], np.zeros(0, np.int64))),
    ("SparseReorder", (PLACES, [1, 2, 3, 4], longs(4, 3))),
    ("SparseTensorDenseMatMul", (*MATRIX, "f32[3,2]")),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_agrees(row: tuple[str, tuple[Any, ...]], agree: Agree) -> None:
    op, operands = row
    agree(op, operands)


@pytest.mark.parametrize(("first", "second"), [(True, False), (False, True)])
def test_matrices_are_transposed(agree: Agree, first: bool, second: bool) -> None:
    other = "f32[4,2]" if first else "f32[2,3]"
    agree("SparseTensorDenseMatMul", (*MATRIX, other), {"adjoint_a": first, "adjoint_b": second})


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


REFUSED: list[tuple[str, tuple[Any, ...]]] = [
    ("SparseSegmentSum", ("f32[2,2]", [2], [0])),
    ("SparseSegmentSum", ("f32[2,2]", [0, 1], [1, 0])),
    ("SparseSegmentSumWithNumSegments", ("f32[2,2]", [0, 1], [0, 1], 1)),
    ("SparseFillEmptyRows", (PLACES, [1, 2, 3, 4], longs(3, 4), 9)),
    ("SparseReshape", (PLACES, longs(4, 3), longs(5, -1))),
    ("UniqueV2", ("i32[2,2]", [0])),
    ("RaggedTensorToSparse", (longs(0, 3, 2), "f32[2]")),
    ("RaggedTensorToTensor", (longs(-1, -1), "f32[4]", 0.0, longs(0, 2, 4))),
    ("SparseTensorDenseMatMul", (longs([4, 0]), [1.0], longs(4, 3), "f32[3,2]")),
]


@pytest.mark.parametrize("row", REFUSED, ids=str)
def test_refuses(row: tuple[str, tuple[Any, ...]]) -> None:
    op, operands = row
    with pytest.raises(ConversionError) as caught:
        evaluate(Call(op, tuple(operand(spec, 1) for spec in operands), {}))
    assert caught.value.code == "bad-operand"
