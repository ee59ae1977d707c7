"""Joining and splitting against TensorFlow."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.ops.cases import KernelCase, ShapeCase, by_op, check_contradiction, check_refused, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred

TEXT = np.array([b"a", b"bc", b""], object)

SHAPES: list[ShapeCase] = [
    ("ConcatV2", [["f32[2,?,4]", "f32[2,3,4]"], 2], {}),
    ("ConcatV2", [["f32[2,?,4]", "f32[?,3,4]"], -2], {}),
    ("ConcatV2", [["f32[2,?]", "f32[*]"], 0], {}),
    ("Pack", [["f32[2,?]", "f32[?,3]"]], {"axis": 1}),
    ("Unpack", ["f32[2,3]"], {"num": 3, "axis": 1}),
    ("Split", [1, "f32[?,6]"], {"num_split": 3}),
    ("SplitV", ["f32[?,6]", [1, -1, 2], 1], {"num_split": 3}),
    ("SplitV", ["f32[?,6]", "i32[2]", 1], {"num_split": 2}),
    ("Concat", [1, ["f32[2,?]", "f32[2,3]"]], {}),
    ("ConcatV2", [["f32[2,?]", "f32[2,3]"], "i32[]"], {}),
    ("ConcatV2", [["f32[*]", "f32[*]"], 0], {}),
    ("ConcatOffset", [1, [[2, 3], [2, 4]]], {}),
    ("Pack", [["f32[*]", "f32[*]"]], {"axis": 0}),
    ("Unpack", ["f32[*]"], {"num": 3, "axis": 1}),
    ("Split", [1, "f32[*]"], {"num_split": 3}),
    ("Split", ["i32[]", "f32[?,6]"], {"num_split": 3}),
    ("SplitV", ["f32[*]", [1, 5], 1], {"num_split": 2}),
    ("SplitV", ["f32[?,6]", "i32[2]", "i32[]"], {"num_split": 2}),
    ("SplitV", ["f32[?,6]", "i32[?]", 1], {"num_split": 2}),
    ("SplitV", ["f32[?,?]", [1, -1], 1], {"num_split": 2}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


CONTRADICTIONS: list[ShapeCase] = [
    ("ConcatV2", [["f32[2]", "f32[2,3]"], 0], {}),
    ("ConcatV2", [["f32[2,4]", "f32[3,3]"], 0], {}),
    ("Split", [1, "f32[2,7]"], {"num_split": 3}),
    ("SplitV", ["f32[6]", [1, 4], 0], {"num_split": 2}),
    ("Unpack", ["f32[2,3]"], {"num": 2, "axis": 1}),
]


@by_op(CONTRADICTIONS)
def test_what_tensorflow_refuses_is_refused(tmp_path: Path, case: ShapeCase) -> None:
    check_contradiction(case, tmp_path)


ROWS: list[KernelCase] = [
    ("Concat", (1, "f32[2,3]", "f32[2,4]"), {}),
    ("ConcatV2", ("f32[2,3]", "f32[2,4]", -1), {}),
    ("ConcatV2", (TEXT, TEXT, 0), {}),
    ("ConcatOffset", (1, [2, 3], [2, 4], [2, 1]), {}),
    ("Split", (1, "f32[2,6]"), {"num_split": 3}),
    ("SplitV", ("f32[2,6]", [1, -1, 2], 1), {"num_split": 3}),
    ("Pack", ("f32[2,3]", "f32[2,3]"), {"axis": 1}),
    ("Pack", (1, 2, 3), {}),
    ("Unpack", ("f32[2,3]",), {"num": 3, "axis": -1}),
]


@by_op(ROWS)
def test_kernel(agree: Agree, case: KernelCase) -> None:
    agree(*case)


BAD: list[KernelCase] = [
    ("ConcatV2", (np.zeros((2, 3)), np.zeros((3, 3)), np.array(1)), {}),
    ("Split", (np.array(0), np.zeros((5, 3))), {"num_split": 2}),
    ("SplitV", (np.zeros((5, 3)), np.array([2, 2]), np.array(0)), {}),
]


@by_op(BAD)
def test_operands_that_do_not_fit_are_an_error(case: KernelCase) -> None:
    check_refused(case)
