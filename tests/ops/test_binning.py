"""Counting and sorting into bins against TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.cases import ShapeCase, by_op, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred

NONE = np.zeros(0, np.float32)
COUNTED = np.array([[1, 1, 3], [9, 0, 3]])
WEIGHTS = np.array([[0.5, 1.5, 2], [3, 4, 5]], np.float32)

ROWS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Bincount", ([1, 1, 3, 9], 5, NONE), {}),
    ("Bincount", ([1, 1, 3, 9], 5, [0.5, 1.5, 2.0, 3.0]), {}),
    ("DenseBincount", (COUNTED, np.array(5), NONE), {}),
    ("DenseBincount", (COUNTED, np.array(5), np.zeros(0, np.int64)), {"binary_output": True}),
    ("DenseBincount", (COUNTED, np.array(5), WEIGHTS), {}),
    ("DenseBincount", (COUNTED, np.array(5), WEIGHTS), {"binary_output": True}),
    ("DenseBincount", (COUNTED.reshape(-1), np.array(5), NONE), {}),
    ("DenseBincount", (COUNTED[:, :0], np.array(2), NONE), {}),
    *[
        ("Bucketize", (np.array([[-1, -2, 0], [2, 3, 2]], dtype),), {"boundaries": [-1.0, 0.0, 2.5]})
        for dtype in ("int32", "int64", "float32", "float64")
    ],
    ("Bucketize", ([-np.inf, np.nan, np.inf, 2.5],), {"boundaries": [-1.0, 0.0, 2.5]}),
    ("Bucketize", ("f32[3]",), {"boundaries": []}),
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), ROWS)
def test_binning(agree: Agree, op: str, inputs: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    agree(op, inputs, attributes)


SHAPES: list[ShapeCase] = [
    ("DenseBincount", ["i32[?,3]", 5, "f32[0]"], {}),
    ("DenseBincount", ["i32[7]", 5, "f32[0]"], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)
