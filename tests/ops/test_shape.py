"""Shapes against TensorFlow."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.ops.cases import KernelCase, ShapeCase, by_op, check_contradiction, check_refused, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred

INT64 = np.dtype(np.int64)

EMPTY = np.zeros(0, np.int32)

SHAPES: list[ShapeCase] = [
    ("EnsureShape", ["f32[?,3]"], {"shape": [2, None]}),
    ("BroadcastGradientArgs", [[2, 3], [1]], {}),
    ("BroadcastGradientArgs", ["i32[2]", "i32[?]"], {}),
    ("Reshape", ["f32[2,6]", [3, -1]], {}),
    ("Reshape", ["f32[?,6]", [-1, 3]], {}),
    ("Reshape", ["f32[?,6]", [-1, 3, 2]], {}),
    ("Reshape", ["f32[*]", [-1, 3, 2]], {}),
    ("Reshape", ["f32[2,6]", "i32[3]"], {}),
    ("Reshape", ["f32[0,6]", [-1, 2]], {}),
    ("ExpandDims", ["f32[2,?]", -1], {}),
    ("ExpandDims", ["f32[2,?]", "i32[]"], {}),
    ("Squeeze", ["f32[1,2,1]"], {}),
    ("Squeeze", ["f32[1,?,1]"], {"axis": [1]}),
    ("Squeeze", ["f32[1,?,1]"], {"axis": [-1]}),
    ("Shape", ["f32[2,?]"], {}),
    ("Size", ["f32[2,?]"], {}),
    ("ExpandDims", ["f32[*]", 0], {}),
    ("Squeeze", ["f32[*]"], {"axis": [0]}),
    ("BroadcastArgs", ["i32[2]", "i32[3]"], {}),
    ("BroadcastArgs", ["i32[2]", "i32[?]"], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


CONTRADICTIONS: list[ShapeCase] = [
    ("Reshape", ["f32[2,6]", [-1, -1]], {}),
    ("Reshape", ["f32[2,6]", [5, -1]], {}),
    ("Reshape", ["f32[2,6]", [13]], {}),
    ("Reshape", ["f32[2,6]", [-2, 6]], {}),
    ("Squeeze", ["f32[1,2]"], {"axis": [1]}),
]


@by_op(CONTRADICTIONS)
def test_what_tensorflow_refuses_is_refused(tmp_path: Path, case: ShapeCase) -> None:
    check_contradiction(case, tmp_path)


ROWS: list[KernelCase] = [
    *[(op, ("f32[2,3,4]",), {}) for op in ("Shape", "Size", "Rank")],
    ("Shape", ("f32[2,3,4]",), {"out_type": INT64}),
    ("Shape", (1.0,), {}),
    ("Size", ("f32[0,3]",), {"out_type": INT64}),
    ("ShapeN", ("f32[2,3]", "f32[4]"), {}),
    ("EnsureShape", ("f32[2,3]",), {"shape": (2, -1)}),
    ("Reshape", ("f32[2,3,4]", [4, -1]), {}),
    ("Reshape", ("f32[1,1]", EMPTY), {}),
    *[("ExpandDims", ("f32[2,3]", axis), {}) for axis in (0, 1, 2, -1, -3)],
    ("Squeeze", ("f32[1,2,1,3]",), {}),
    ("Squeeze", ("f32[1,2,1,3]",), {"squeeze_dims": (0,)}),
    ("Squeeze", ("f32[1,2,1,3]",), {"squeeze_dims": (-2,)}),
    ("BroadcastArgs", ([2, 1, 3], [4, 1]), {}),
    *[
        ("BroadcastGradientArgs", row, {})
        for row in (([2, 1, 3], [4, 1]), ([2, 1], [2, 1]), ([1, 1], [1]), ([3], [1, 3]))
    ],
]


@by_op(ROWS)
def test_kernel(agree: Agree, case: KernelCase) -> None:
    agree(*case)


BAD: list[KernelCase] = [
    ("EnsureShape", (np.zeros((2, 3)),), {"shape": (2, 4)}),
    ("Reshape", (np.zeros((2, 3)), np.array([5])), {}),
    ("Squeeze", (np.zeros((2, 3)),), {"squeeze_dims": (0,)}),
    ("BroadcastArgs", (np.array([2]), np.array([3])), {}),
]


@by_op(BAD)
def test_operands_that_do_not_fit_are_an_error(case: KernelCase) -> None:
    check_refused(case)
