"""Ranking and ops of earlier days against TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate
from tfconvert.schema.diagnostics import ConversionError

Agree = Callable[..., None]

_PREDICTIONS = np.array([[1, 2, np.inf], [1, np.nan, 2], [1, 2, 2], [3, 2, 1], [3, 2, 1]], np.float32)

ROWS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("ApproxTopK", ("f32[3,7]",), {"k": 3}),
    ("InTopKV2", (_PREDICTIONS, [0, 2, 1, -1, 3], 1), {}),
    ("InTopKV2", ("f32[4,5]", "i64[4]@0:4", np.array(2)), {}),
    ("InTopK", ("f32[4,5]", "i32[4]@0:4"), {"k": 3}),
    *(("NthElement", ("f32[3,7]", 2), {"reverse": reverse}) for reverse in (False, True)),
    ("UnravelIndex", ([0, 7, 23], [2, 3, 4]), {}),
    ("ScatterNdNonAliasingAdd", ("f32[4,2]", [[1], [3], [1]], "f32[3,2]"), {}),
    ("SparseMatMul", ("f32[2,3]", "f32[4,3]"), {"transpose_b": True}),
    ("SparseMatMul", ("bf16[3,2]", "f32[3,4]"), {"transpose_a": True}),
    ("Reverse", ("f32[2,3,4]", np.array([True, False, True])), {}),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_as_tensorflow(row: tuple[str, tuple[Any, ...], dict[str, Any]], agree: Agree) -> None:
    op, inputs, attributes = row
    agree(op, inputs, attributes)


def test_smallest_elements_along_another_axis() -> None:
    """TensorFlow has no kernel of these for processors."""
    x = np.array([[3, 1], [2, 5], [2, 0]], np.float32)
    call = Call("ApproxTopK", (x,), {"k": 2, "is_max_k": False, "reduction_dimension": 0})
    values, indices = evaluate(call)
    assert values.tolist() == [[2, 0], [2, 1]]
    assert indices.tolist() == [[1, 2], [2, 0]]


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("ApproxTopK", (np.ones(3, np.float32),), {"k": 4}),
        ("ApproxTopK", (np.ones(3, np.float32),), {"k": 1, "aggregate_to_topk": False}),
        ("NthElement", (np.ones(3, np.float32), np.array(3)), {}),
        ("UnravelIndex", (np.array([6]), np.array([2, 3])), {}),
    ],
)
def test_what_does_not_fit(op: str, inputs: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    with pytest.raises(ConversionError) as caught:
        evaluate(Call(op, inputs, attributes))
    assert caught.value.code == "bad-operand"


def test_matrices_that_were_batches() -> None:
    (got,) = evaluate(Call("BatchMatrixDiag", (np.array([[1, 2]], np.float32),), {}))
    assert got.tolist() == [[[1, 0], [0, 2]]]
