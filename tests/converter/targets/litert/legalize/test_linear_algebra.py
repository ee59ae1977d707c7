"""Decompositions of matrices and systems of linear equations against TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.legalize.cases import Case, Check

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


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (_case("MatrixInverse", "f32[40,40]"), "only matrices of 1 to 32 rows"),
        (_case("Cholesky", "f32[?4,?4]"), "the sizes of its matrices are not known"),
    ],
    ids=str,
)
def test_declined(case: Case, reason: str, check: Check) -> None:
    with pytest.raises(tfconvert.ConversionError, match=reason):
        check(case)
