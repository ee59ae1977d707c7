"""Blocks of space against TensorFlow."""

from __future__ import annotations

from pathlib import Path

from tests.ops.cases import KernelCase, ShapeCase, by_op, check_contradiction, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred

SHAPES: list[ShapeCase] = [
    ("DepthToSpace", ["f32[?,4,4,8]"], {"block_size": 2}),
    ("SpaceToDepth", ["f32[?,?,4,8]"], {"block_size": 2}),
    ("SpaceToBatchND", ["f32[?,5,6,3]", [2, 3], [[1, 0], [0, 0]]], {}),
    ("SpaceToBatchND", ["f32[2,5,6,3]", [2, 3], [[1, 0], [0, 0]]], {}),
    ("BatchToSpaceND", ["f32[12,5,6,3]", [2, 3], [[1, 0], [0, 2]]], {}),
    ("BatchToSpaceND", ["f32[12,?,6,3]", [2, 3], "i32[2,2]"], {}),
    ("DepthToSpace", ["f32[?,8,4,4]"], {"block_size": 2, "data_format": "NCHW"}),
    ("SpaceToDepth", ["f32[?,2,4,?]"], {"block_size": 2, "data_format": "NCHW"}),
    ("SpaceToBatch", ["f32[2,5,6,3]", [[1, 0], [0, 0]]], {"block_size": 2}),
    ("SpaceToBatchND", ["f32[2,5,6,3]", "i32[2]", [[1, 0], [0, 0]]], {}),
    ("BatchToSpace", ["f32[8,5,6,3]", [[1, 0], [0, 0]]], {"block_size": 2}),
    ("BatchToSpaceND", ["f32[*]", [2, 3], [[1, 0], [0, 2]]], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


CONTRADICTIONS: list[ShapeCase] = [
    ("BatchToSpace", ["f32[12,1,6,3]", [[1, 2], [0, 2]]], {"block_size": 2}),
    ("BatchToSpace", ["f32[12,5,6,3]", [[0, 0]]], {"block_size": 2}),
    ("SpaceToBatch", ["f32[2,5]", [[1, 0], [0, 0]]], {"block_size": 2}),
]


@by_op(CONTRADICTIONS)
def test_what_tensorflow_refuses_is_refused(tmp_path: Path, case: ShapeCase) -> None:
    check_contradiction(case, tmp_path)


ROWS: list[KernelCase] = [
    ("SpaceToBatchND", ("f32[2,4,6,3]", [2, 3], [[0, 0], [1, 2]]), {}),
    ("SpaceToBatchND", ("f32[2,3]", [2], [[1, 0]]), {}),
    ("BatchToSpaceND", ("f32[12,2,3,2]", [2, 3], [[0, 1], [2, 1]]), {}),
    ("BatchToSpaceND", ("f32[4,3]", [2], [[1, 0]]), {}),
    ("SpaceToBatch", ("f32[1,3,4,2]", [[1, 0], [0, 0]]), {"block_size": 2}),
    ("BatchToSpace", ("f32[4,2,2,2]", [[1, 0], [0, 0]]), {"block_size": 2}),
    ("SpaceToDepth", ("f32[2,4,6,3]",), {"block_size": 2}),
    ("DepthToSpace", ("f32[2,2,3,12]",), {"block_size": 2}),
]


@by_op(ROWS)
def test_kernel(agree: Agree, case: KernelCase) -> None:
    agree(*case)
