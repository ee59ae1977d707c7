"""Singular values and eigenvalues against TensorFlow's; vectors by what they must satisfy, as their signs are free."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.cases import ShapeCase, by_op, check_shapes
from tests.ops.comparison import tensorflow
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.call import Array, Call
from tfconvert.ops.registry import evaluate

KINDS = ("usual", "singular", "zeros", "equal", "graded", "large")


def matrices(kind: str, *shape: int) -> Array:
    """Returns matrices that are usual, or have columns or values that decompositions stumble over."""
    found = np.random.default_rng(sum(shape)).normal(size=shape)
    if kind == "singular":
        found[..., -1] = found[..., 0]
    if kind == "equal":
        found = np.broadcast_to(np.eye(shape[-2], shape[-1]), shape).copy()
    if kind == "graded":
        found = found * 10.0 ** -np.arange(shape[-1])
    return np.asarray(found * {"zeros": 0.0, "large": 1e25}.get(kind, 1.0))


def check_factors(matrix: Array, left: Array, values: Array, right: Array, tolerance: float) -> None:
    """Asserts that factors are a matrix', and that their columns are orthogonal and of length one."""
    size = max(float(abs(matrix).max()), 1e-30)
    count = values.shape[-1]
    product = left[..., :count] * values[..., None, :] @ right[..., :count].swapaxes(-1, -2)
    np.testing.assert_allclose(product / size, matrix / size, atol=tolerance)
    for each in (left, right):
        np.testing.assert_allclose(
            each.swapaxes(-1, -2) @ each, np.eye(each.shape[-1]) + 0 * each[..., :1, :1], atol=tolerance
        )


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 5, 3), (2, 1, 3, 4), (4, 1), (1, 6), (12, 7), (9, 32)])
def test_singular_values(shape: tuple[int, ...], kind: str, dtype: str) -> None:
    matrix = matrices(kind, *shape).astype({"f32": np.float32, "f64": np.float64}[dtype])
    tolerance = 2e-5 if dtype == "f32" else 1e-12
    for full in (False, True):
        attributes = {"full_matrices": full}
        expected, *vectors = map(np.asarray, tensorflow("Svd", (matrix,), attributes))
        values, left, right = evaluate(Call("Svd", (matrix,), attributes))
        assert [left.shape, right.shape] == [each.shape for each in vectors]
        np.testing.assert_allclose(values, expected, atol=tolerance * max(np.max(expected), 1e-30))
        check_factors(matrix, left, values, right, tolerance)
    (values, *none) = evaluate(Call("Svd", (matrix,), {"compute_uv": False}))
    np.testing.assert_allclose(values, expected, atol=tolerance * max(np.max(expected), 1e-30))
    assert [each.shape for each in none] == [(0,), (0,)]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3, 3), (2, 1, 8, 8), (40, 40)])
def test_eigenvalues(shape: tuple[int, ...], kind: str, dtype: str) -> None:
    """Of the lower triangle, whatever is above."""
    matrix = matrices(kind, *shape).astype({"f32": np.float32, "f64": np.float64}[dtype])
    tolerance = 3e-5 if dtype == "f32" else 1e-10
    expected, _ = (np.asarray(each) for each in tensorflow("SelfAdjointEigV2", (matrix,), {}))
    values, vectors = evaluate(Call("SelfAdjointEigV2", (matrix,), {}))
    size = max(float(abs(expected).max()), 1e-30)
    np.testing.assert_allclose(values / size, expected / size, atol=tolerance)
    lower = np.tril(matrix)
    symmetric = lower + np.tril(matrix, -1).swapaxes(-1, -2)
    check_factors(symmetric, vectors, values, vectors, tolerance * shape[-1])
    (alone, none) = evaluate(Call("SelfAdjointEigV2", (matrix,), {"compute_v": False}))
    np.testing.assert_allclose(alone / size, expected / size, atol=tolerance)
    assert none.shape == (0,)


def test_ops_of_xla() -> None:
    matrix = matrices("usual", 2, 4, 4).astype(np.float32)
    more = {"max_iter": 9, "epsilon": 1e-6}
    values, left, right = evaluate(Call("XlaSvd", (matrix,), more))
    check_factors(matrix, left, values, right, 1e-5)
    upper = matrix.swapaxes(-1, -2)
    for one, other in zip(
        evaluate(Call("XlaSelfAdjointEig", (upper,), {**more, "lower": False})),
        evaluate(Call("SelfAdjointEigV2", (matrix,), {})),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


SHAPES: list[ShapeCase] = [
    ("Svd", ["f32[?,3,4]"], {}),
    ("Svd", ["f32[?,3,4]"], {"full_matrices": True}),
    ("Svd", ["f32[3,?]"], {"compute_uv": False}),
    ("SelfAdjointEigV2", ["f32[?,3,3]"], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)
