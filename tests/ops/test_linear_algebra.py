"""Decompositions of matrices and systems of equations against TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.cases import ShapeCase, by_op, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.call import Array

_DRAW = np.random.default_rng(0)


def _matrix(*shape: int, dtype: str = "f32", definite: bool = False) -> Array:
    value = _DRAW.normal(size=shape) + 3 * np.eye(shape[-1])
    value = value @ np.swapaxes(value, -1, -2) if definite else value
    return value.astype({"f32": np.float32, "f64": np.float64}[dtype])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 4, 4)])
def test_decompositions(agree: Agree, shape: tuple[int, ...], dtype: str) -> None:
    tolerance = 2e-4 if dtype == "f32" else 1e-10
    agree("Cholesky", (_matrix(*shape, dtype=dtype, definite=True),), {}, tolerance=tolerance)
    for op in ("MatrixDeterminant", "LogMatrixDeterminant", "MatrixInverse"):
        agree(op, (_matrix(*shape, dtype=dtype),), {}, tolerance=tolerance)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4)])
def test_matrices_with_pivots(agree: Agree, shape: tuple[int, ...]) -> None:
    agree("Lu", (_matrix(*shape),), {"output_idx_type": np.dtype(np.int32)}, tolerance=2e-5)


@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (2, 3, 4)])
@pytest.mark.parametrize("is_full", [False, True])
def test_orthogonal_matrices(agree: Agree, shape: tuple[int, ...], is_full: bool) -> None:
    value = _DRAW.normal(size=shape).astype(np.float32)
    agree("Qr", (value,), {"full_matrices": is_full}, tolerance=2e-5)


@pytest.mark.parametrize("is_adjoint", [False, True])
def test_systems(agree: Agree, is_adjoint: bool) -> None:
    right = _DRAW.normal(size=(2, 3, 2)).astype(np.float32)
    agree("MatrixSolve", (_matrix(2, 3, 3), right), {"adjoint": is_adjoint}, tolerance=2e-5)
    for is_lower in (False, True):
        attributes = {"lower": is_lower, "adjoint": is_adjoint}
        agree("MatrixTriangularSolve", (_matrix(2, 3, 3), right), attributes, tolerance=2e-5)


SHAPES: list[ShapeCase] = [
    ("Cholesky", ["f32[2,3,3]"], {}),
    ("MatrixInverse", ["f32[?,3,3]"], {}),
    ("MatrixSolve", ["f32[2,3,3]", "f32[2,3,5]"], {}),
    ("LogMatrixDeterminant", ["f32[2,3,3]"], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)
