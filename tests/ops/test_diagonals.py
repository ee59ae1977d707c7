"""Diagonals of matrices against TensorFlow."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.ops.cases import KernelCase, ShapeCase, by_op, check_contradiction, check_shapes
from tests.ops.comparison import Agree, compare
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate

SHAPES: list[ShapeCase] = [
    ("Diag", ["f32[2,3]"], {}),
    ("DiagPart", ["f32[2,3,2,3]"], {}),
    ("MatrixDiag", ["f32[2,3]"], {}),
    ("MatrixDiagV3", ["f32[2,3]", 0, -1, -1, 0.0], {}),
    ("MatrixDiagPartV3", ["f32[2,3,5]", 0, 0.0], {}),
    ("Diag", ["f32[*]"], {}),
    ("DiagPart", ["f32[*]"], {}),
    ("MatrixDiag", ["f32[*]"], {}),
    ("MatrixDiagPart", ["f32[2,?,5]"], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


CONTRADICTIONS: list[ShapeCase] = [("DiagPart", ["f32[2,3,2]"], {})]


@by_op(CONTRADICTIONS)
def test_what_tensorflow_refuses_is_refused(tmp_path: Path, case: ShapeCase) -> None:
    check_contradiction(case, tmp_path)


ROWS: list[KernelCase] = [
    ("MatrixDiag", ("f32[2,3]",), {}),
    ("MatrixDiagPart", ("f32[2,3,4]",), {}),
    ("MatrixSetDiag", ("f32[2,3,4]", "f32[2,3]"), {}),
    *[
        ("MatrixBandPart", ("f32[2,4,5]", np.array(low, np.int64), np.array(high, np.int64)), {})
        for low, high in ((0, 0), (-1, 0), (0, -1), (1, 2), (-1, -1))
    ],
    ("MatrixDiagV3", ("f32[2,3]", 1, -1, -1, 0.0), {}),
    ("MatrixDiagV3", ("f32[2,3,4]", [-1, 1], 4, 4, 9.0), {}),
    ("MatrixDiagV2", ("f32[2,3,4]", [-1, 1], 4, 4, 9.0), {}),
    ("MatrixDiagPartV2", ("f32[2,4,5]", [-2, 1], 7.0), {}),
    *[
        ("MatrixDiagPartV3", (f"f32[2,{rows},{columns}]", k, 7.0), {"align": align})
        for (rows, columns), k, align in product(
            ((4, 5), (5, 3)), ([-2, 1], 1, [1, 2]), ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")
        )
    ],
    ("MatrixSetDiagV3", ("f32[2,4,4]", "f32[2,3,4]", [-1, 1]), {"align": "LEFT_RIGHT"}),
    ("MatrixSetDiagV2", ("f32[2,4,4]", "f32[2,3]", -1), {}),
    ("Diag", ("f32[2,3]",), {}),
    ("DiagPart", ("f32[2,3,2,3]",), {}),
]


@by_op(ROWS)
def test_kernel(agree: Agree, case: KernelCase) -> None:
    agree(*case)


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("MatrixBandPart", (np.arange(12.0).reshape(1, 3, 4), np.array(1), np.array(0))),
        ("MatrixDiag", (np.array([[1, 2]], np.float32),)),
        ("MatrixDiagPart", (np.arange(12.0).reshape(1, 3, 4),)),
        ("MatrixSetDiag", (np.arange(12.0).reshape(1, 3, 4), np.ones((1, 3)))),
    ],
)
def test_matrices_that_were_batches(op: str, inputs: tuple[np.ndarray, ...]) -> None:
    # TensorFlow has no kernels of the older names any more.
    (got,), (expected,) = evaluate(Call(f"Batch{op}", inputs, {})), evaluate(Call(op, inputs, {}))
    compare(got, expected)
