"""Decompositions of matrices and systems of linear equations against TensorFlow."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.legalize.cases import Case, Check, operand
from tests.ops.test_singular_values import check_factors
from tests.support.litert import RunTFLite

_RANDOM = np.random.default_rng(0).normal(size=(2, 5, 5)).astype(np.float32)
_POSITIVE = np.matmul(_RANDOM, _RANDOM.swapaxes(1, 2)) + np.eye(5, dtype=np.float32)


def _case(op: str, *operands: Any, **attributes: Any) -> Case:
    return Case(op, operands, attributes, tolerance=2e-5)


CASES = (
    _case("Cholesky", _POSITIVE),
    _case("LogMatrixDeterminant", "f32[?2,4,4]"),
    _case("LogMatrixDeterminant", "f32[1,1]"),
    _case("Lu", "f32[?2,5,5]"),
    _case("Lu", "f32[3,3]", output_idx_type=np.int64),
    _case("MatrixDeterminant", "f32[?3,5,5]"),
    _case("MatrixDeterminant", "f32[4,4]"),
    _case("MatrixDeterminant", "f32[3,3]@0:0"),
    _case("LogMatrixDeterminant", "f32[3,3]@0:0"),
    _case("MatrixInverse", "f32[?2,4,4]"),
    _case("MatrixInverse", "f32[?2,?3,2,2]", adjoint=True),
    _case("MatrixInverse", "f32[1,1]@1:2"),
    _case("MatrixSolve", "f32[?2,4,4]", "f32[?2,4,3]"),
    _case("MatrixSolve", "f32[5,5]", "f32[5,1]", adjoint=True),
    *(
        _case("MatrixTriangularSolve", "f32[?2,4,4]@1:3", "f32[?2,4,3]", lower=lower, adjoint=adjoint)
        for lower in (True, False)
        for adjoint in (True, False)
    ),
    _case("MatrixTriangularSolve", "f32[4,4]@1:3", "f32[?2,4,?3]"),
    *(_case("Qr", f"f32[{shape}]", full_matrices=full) for shape in ("?2,5,3", "3,5", "4,4") for full in (True, False)),
    _case("Qr", "f32[1,1]"),
    _case("Qr", "f32[6,1]", full_matrices=True),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case, check: Check) -> None:
    check(case)


OF_VECTORS = frozenset({"SelfAdjointEigV2", "Svd", "XlaSelfAdjointEig", "XlaSvd"})
"""The ops whose vectors have any signs."""


def test_ops_of_xla(tf: ModuleType, run_tflite: RunTFLite) -> None:
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops

    matrix = operand("f32[2,4,4]", 3).value

    def factors(x: Any) -> dict[str, Any]:
        values, left, right = gen_xla_ops.xla_svd(x, max_iter=9, epsilon=1e-6, precision_config="")
        found, vectors = gen_xla_ops.xla_self_adjoint_eig(x, lower=True, max_iter=9, epsilon=1e-6)
        return {"a": left, "b": right, "c": values, "d": vectors, "e": found}

    signature = tf.TensorSpec((2, 4, 4), name="matrix")
    concrete = tf.function(factors, input_signature=[signature]).get_concrete_function()
    left, right, values, vectors, found = run_tflite(bytes(tfconvert.convert(concrete)), {"matrix": matrix})
    check_factors(matrix, left, values, right, 1e-5)
    lower = np.tril(matrix)
    check_factors(lower + np.tril(matrix, -1).swapaxes(-1, -2), vectors, found, vectors, 1e-5)


@pytest.mark.parametrize("shape", ["3,3", "?2,4,3", "?2,?1,3,5", "1,1", "6,1", "20,9"])
@pytest.mark.parametrize("full", [False, True])
def test_singular_values(tf: ModuleType, run_tflite: RunTFLite, shape: str, full: bool) -> None:
    """Vectors have any signs: they are compared by what they are factors of."""
    matrix = operand(f"f32[{shape}]", 3)

    def factors(x: Any) -> dict[str, Any]:
        values, left, right = tf.linalg.svd(x, full_matrices=full)
        return {"x": left, "y": right, "z": values}

    signature = tf.TensorSpec([None if dim < 0 else dim for dim in matrix.shape or ()], name="matrix")
    concrete = tf.function(factors, input_signature=[signature]).get_concrete_function()
    left, right, values = run_tflite(
        bytes(tfconvert.convert(concrete)), {"matrix": matrix.value}, signature="serving_default"
    )
    np.testing.assert_allclose(values, np.linalg.svd(matrix.value, compute_uv=False), 1e-5, 1e-5)
    check_factors(matrix.value, left, values, right, 1e-5)


@pytest.mark.parametrize("shape", ["3,3", "?2,4,4", "1,1", "40,40"])
def test_eigenvalues(tf: ModuleType, run_tflite: RunTFLite, shape: str) -> None:
    matrix = operand(f"f32[{shape}]", 3)
    symmetric = matrix.value + matrix.value.swapaxes(-1, -2)

    def factors(x: Any) -> dict[str, Any]:
        values, vectors = tf.linalg.eigh(x)
        return {"x": values, "y": vectors, "z": tf.linalg.eigvalsh(x)}

    signature = tf.TensorSpec([None if dim < 0 else dim for dim in matrix.shape or ()], name="matrix")
    concrete = tf.function(factors, input_signature=[signature]).get_concrete_function()
    values, vectors, alone = run_tflite(
        bytes(tfconvert.convert(concrete)), {"matrix": symmetric}, signature="serving_default"
    )
    expected = np.linalg.eigvalsh(symmetric)
    for each in (values, alone):
        np.testing.assert_allclose(each / abs(expected).max(), expected / abs(expected).max(), atol=1e-5)
    check_factors(symmetric, vectors, values, vectors, 1e-4)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (_case("Svd", "f32[40,40]"), "only matrices of 1 to 32 rows"),
        (_case("Svd", "f32[40,3]", full_matrices=True), "only matrices of 1 to 32 rows"),
        (_case("SelfAdjointEigV2", "f32[70,70]"), "only matrices of 1 to 64 rows"),
        (_case("SelfAdjointEigV2", "f32[?4,?4]"), "the sizes of its matrices are not known"),
        (_case("MatrixInverse", "f32[40,40]"), "only matrices of 1 to 32 rows"),
        (_case("Cholesky", "f32[?4,?4]"), "the sizes of its matrices are not known"),
    ],
    ids=str,
)
def test_declined(case: Case, reason: str, check: Check) -> None:
    with pytest.raises(tfconvert.ConversionError, match=reason):
        check(case)
