"""Gathers and scatters against TensorFlow."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.ops.cases import KernelCase, ShapeCase, by_op, check_contradiction, check_refused, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate
from tfconvert.schema.diagnostics import ConversionError

TEXT = np.array([b"b", b"a", b"b", b"c"], object)

SCATTERS = ("Add", "Sub", "Max", "Min", "Update")

SHAPES: list[ShapeCase] = [
    ("InvertPermutation", ["i32[4]"], {}),
    ("Gather", ["f32[5,6,7]", "i32[2,?]"], {}),
    ("GatherV2", ["f32[5,6,7]", "i32[2,?]", 1], {}),
    ("GatherV2", ["f32[2,6,7]", "i32[?,3]", 1], {"batch_dims": 1}),
    ("GatherNd", ["f32[5,6,7]", "i32[?,2]"], {}),
    ("ScatterNd", ["i32[?,1]", "f32[?,3]", [4, 3]], {}),
    ("OneHot", ["i32[2,?]", 4, 1.0, 0.0], {"axis": 1}),
    ("Where", ["i1[2,3]"], {}),
    ("DynamicPartition", ["f32[4,3]", "i32[4]"], {"num_partitions": 2}),
    ("DynamicStitch", [[[0, 2], [1, 3]], ["f32[2,3]", "f32[2,?]"]], {}),
    ("LowerBound", ["f32[2,9]", "f32[2,3]"], {}),
    ("GatherV2", ["f32[5,6,7]", "i32[2,?]", "i32[]"], {}),
    ("GatherV2", ["f32[2,6,7]", "i32[?,3]", -1], {"batch_dims": -1}),
    ("GatherNd", ["f32[5,6,7]", "i32[2,?]"], {}),
    ("ScatterNd", ["i32[?,1]", "f32[?,3]", "i32[?]"], {}),
    ("ScatterNd", ["i32[?,1]", "f32[?,3]", "i32[2]"], {}),
    ("TensorScatterAdd", ["f32[4,3]", "i32[?,1]", "f32[?,3]"], {}),
    ("OneHot", ["i32[*]", 4, 1.0, 0.0], {}),
    ("OneHot", ["i32[2]", "i32[]", 1.0, 0.0], {}),
    ("DynamicPartition", ["f32[*]", "i32[4]"], {"num_partitions": 2}),
    ("DynamicStitch", [[[0, 2], [1, 3]], ["f32[*]", "f32[*]"]], {}),
    ("DynamicStitch", [["i32[2]", [1, 3]], ["f32[2,3]", "f32[2,?]"]], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


CONTRADICTIONS: list[ShapeCase] = [
    ("DynamicStitch", [["i32[2]"], ["f32[3,2]"]], {}),
    ("GatherNd", ["f32[5,6]", "i32[2,3]"], {}),
    ("GatherV2", ["f32[5,6]", "i32[2]", 1], {"batch_dims": 2}),
    ("GatherV2", ["f32[2,6]", "i32[2,3]", 0], {"batch_dims": 1}),
    ("InvertPermutation", ["i32[2,2]"], {}),
    ("OneHot", ["i32[2]", -1, 1.0, 0.0], {}),
    ("TensorScatterAdd", ["f32[4,3]", "i32[2,3]", "f32[2]"], {}),
]


@by_op(CONTRADICTIONS)
def test_what_tensorflow_refuses_is_refused(tmp_path: Path, case: ShapeCase) -> None:
    check_contradiction(case, tmp_path)


ROWS: list[KernelCase] = [
    ("Gather", ("f32[4,5]", [[3, 0], [1, 1]]), {}),
    *[("GatherV2", ("f32[4,5,6]", [[3, 0], [1, 1]], axis), {}) for axis in (0, 1, 2, -1)],
    ("GatherV2", (TEXT, 2, 0), {}),
    ("GatherV2", ("f32[4,5]", np.zeros(0, np.int32), 1), {}),
    *[
        ("GatherV2", ("f32[2,3,4,5]", f"i32[2,3,7]{'@0:4' if axis != 3 else '@0:5'}", axis), {"batch_dims": batch})
        for axis, batch in ((2, 2), (3, 2), (2, 1), (3, 1), (-1, -1))
    ],
    ("GatherNd", ("f32[4,5,6]", [[3, 0], [1, 1]]), {}),
    ("GatherNd", ("f32[4,5]", [[[3, 0], [1, 1]]]), {}),
    ("GatherNd", ("f32[4,5]", np.zeros((2, 0), np.int32)), {}),
    ("ScatterNd", ([[1], [3], [1]], "f32[3,2]", [5, 2]), {}),
    ("ScatterNd", ([[1, 0], [3, 1]], "i32[2]", [5, 2]), {}),
    *[(f"TensorScatter{kind}", ("f32[5,2]", [[1], [3]], "f32[2,2]"), {}) for kind in SCATTERS],
    *[(f"TensorScatter{kind}", ("i32[5]", [[1], [3], [1]], "i32[3]"), {}) for kind in SCATTERS[:4]],
    *[("OneHot", ([[0, 2], [-1, 5]], 3, 2.0, -1.0), {"axis": axis}) for axis in (-1, 0, 1, 2)],
    ("OneHot", (1, 3, True, False), {}),
    ("Where", ("i1[3,4]",), {}),
    ("Where", ("i32[3,4]",), {}),
    ("Where", ([0.0, float("nan"), 1.0],), {}),
    ("InvertPermutation", ([2, 0, 1],), {}),
    ("DynamicPartition", ("f32[4,2]", [1, 0, 1, 2]), {"num_partitions": 4}),
    ("DynamicStitch", ([0, 2], [1, 3, 2], "f32[2,2]", "f32[3,2]"), {}),
    ("ParallelDynamicStitch", ([0, 2], [1, 3], "f32[2,2]", "f32[2,2]"), {}),
    *[(op, ([[1, 3, 3, 5], [0, 2, 4, 6]], [[3, 9], [-1, 2]]), {}) for op in ("LowerBound", "UpperBound")],
    ("SparseToDense", ([[0, 1], [2, 0]], [3, 2], [5.0, 6.0], -1.0), {}),
    ("SparseToDense", ([1, 3], [4], 5, 0), {}),
    ("UnravelIndex", ([0, 7, 23], [2, 3, 4]), {}),
    ("ScatterNdNonAliasingAdd", ("f32[4,2]", [[1], [3], [1]], "f32[3,2]"), {}),
]


@by_op(ROWS)
def test_kernel(agree: Agree, case: KernelCase) -> None:
    agree(*case)


BAD: list[KernelCase] = [
    ("Gather", (np.zeros(3), np.array([3])), {}),
    ("GatherV2", (np.zeros(3), np.array([-1]), np.array(0)), {}),
    ("GatherNd", (np.zeros((3, 2)), np.array([[0, 2]])), {}),
    ("InvertPermutation", (np.array([0, 0]),), {}),
    ("UnravelIndex", (np.array([6]), np.array([2, 3])), {}),
]


@by_op(BAD)
def test_operands_that_do_not_fit_are_an_error(case: KernelCase) -> None:
    check_refused(case)


def test_a_depth_is_not_negative(tf: ModuleType) -> None:
    operands = [np.array(value, np.int32) for value in ([0, 1], -1, 1, 0)]
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.raw_ops.OneHot(indices=operands[0], depth=operands[1], on_value=operands[2], off_value=operands[3])
    with pytest.raises(ConversionError, match="is negative"):
        evaluate(Call("OneHot", tuple(operands), {}))
