"""Sparse tensors against TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.cases import KernelCase, ShapeCase, by_op, check_refused, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred


def longs(*values: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(values, np.int64)


PLACES = longs([3, 1], [0, 2], [3, 0], [0, 1])

NONE = np.zeros((0, 2), np.int64)

MATRIX = (longs([3, 1], [0, 2], [3, 0]), [1.0, 2.0, 3.0], longs(4, 3))

SHAPES: list[ShapeCase] = [
    ("SparseFillEmptyRows", ["i64[?,2]", "f32[7]", np.array([4, 3]), 0.5], {}),
    ("SparseFillEmptyRows", ["i64[*]", "f32[?]", "i64[3]", 0.5], {}),
    ("SparseReorder", ["i64[?,2]", "f32[7]", "i64[2]"], {}),
    ("SparseTensorDenseMatMul", ["i64[?,2]", "f32[7]", np.array([4, 3]), "f32[4,?]"], {"adjoint_a": True}),
    ("SparseReshape", ["i64[?,2]", "i64[2]", np.array([4, -1, 2])], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


ROWS: list[KernelCase] = [
    ("SparseFillEmptyRows", (PLACES, [1, 2, 3, 4], longs(5, 4), 9), {}),
    ("SparseFillEmptyRows", (NONE, np.zeros(0, np.float32), longs(2, 4), 0.5), {}),
    ("SparseFillEmptyRows", (NONE, np.zeros(0, np.float32), longs(0, 4), 0.5), {}),
    ("SparseReshape", (PLACES, longs(4, 3), longs(2, -1, 3)), {}),
    ("SparseReshape", (PLACES, longs(4, 3), longs(12)), {}),
    ("SparseReshape", (NONE, longs(0, 3), longs(0, 7)), {}),
    ("SparseReorder", (PLACES, [1, 2, 3, 4], longs(4, 3)), {}),
    ("SparseTensorDenseMatMul", (*MATRIX, "f32[3,2]"), {}),
]


@by_op(ROWS)
def test_kernel(agree: Agree, case: KernelCase) -> None:
    agree(*case)


BAD: list[KernelCase] = [
    ("SparseFillEmptyRows", (PLACES, [1, 2, 3, 4], longs(3, 4), 9), {}),
    ("SparseReshape", (PLACES, longs(4, 3), longs(5, -1)), {}),
    ("SparseTensorDenseMatMul", (longs([4, 0]), [1.0], longs(4, 3), "f32[3,2]"), {}),
]


@by_op(BAD)
def test_operands_that_do_not_fit_are_an_error(case: KernelCase) -> None:
    check_refused(case)


@pytest.mark.parametrize(("first", "second"), [(True, False), (False, True)])
def test_matrices_are_transposed(agree: Agree, first: bool, second: bool) -> None:
    other = "f32[4,2]" if first else "f32[2,3]"
    agree("SparseTensorDenseMatMul", (*MATRIX, other), {"adjoint_a": first, "adjoint_b": second})
