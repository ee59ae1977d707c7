"""Segments, partitions, sets, sparse tensors and diagonals."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.legalize.cases import Case, Check
from tests.support.litert import RunTFLite

_I64 = np.int64
_GAPS = "i32[?3]@2:3"
"""Sorted segment ids; the first two segments have no rows."""

SEGMENTS = [
    *(
        Case(f"Segment{how}", [data, ids])
        for how in ("Sum", "Prod", "Mean", "Max", "Min")
        for data, ids in (("f32[?3,2]", _GAPS), ("i32[3]", "i64[3]@1:2"), ("f32[3,1,2]", [0, 0, 3]))
    ),
    *(
        Case(f"Segment{how}", [np.array([[-np.inf, np.inf], [-np.inf, np.inf]], np.float32), "i32[2]@1:2"])
        for how in ("Max", "Min")
    ),
    *(Case(f"SparseSegment{how}", ["f32[5,2]", "i32[?3]@0:5", _GAPS]) for how in ("Sum", "Mean", "SqrtN")),
    *(
        Case(f"SparseSegment{how}WithNumSegments", ["f32[?5]", "i64[3]@0:5", "i64[3]@2:3", count])
        for how in ("Sum", "Mean", "SqrtN")
        for count in (4, "i32[]@5:6")
    ),
    *(
        Case(f"SparseSegment{how}GradV2", [rows, "i32[?6]@2:6", [0, 0, 1, 1, 1, 3], count])
        for how in ("Sum", "Mean", "SqrtN")
        for rows, count in (("f32[?4,2]", 9), ("f32[4,?2,3]", "i32[]@7:8"))
    ),
    Case("SparseSegmentSumGradV2", ["f16[4,2]", "i64[6]@2:6", "i64[6]@1:2", 9]),
    *(
        Case(f"UnsortedSegment{how}", ["f32[?3,?2]", "i32[?3]@-1:3", "i32[]@4:5"])
        for how in ("Sum", "Prod", "Max", "Min")
    ),
    Case("UnsortedSegmentSum", ["i64[?3,2]", "i32[?3]@-1:3", "i32[]@4:5"]),
    Case("UnsortedSegmentSum", ["i64[2,2]", "i64[2,2]@-1:3", 3]),
]

PARTS = [
    Case("DynamicPartition", ["f32[?9,2]", "i32[?9]@0:3"], {"num_partitions": 3}),
    Case("DynamicPartition", ["i64[2,6]", "i32[2,6]@0:2"], {"num_partitions": 2}),
    Case("DynamicPartition", ["f32[3]", "i32[]@0:1"], {"num_partitions": 1}),
    Case("DynamicPartition", ["f32[?4,2]", [1, 0, 1, 0]], {"num_partitions": 2}),
    *(
        Case(op, operands)
        for op in ("DynamicStitch", "ParallelDynamicStitch")
        for operands in (
            ["i32[?3]@2:3", "i32[]@0:1", "f32[?3,2]", "f32[2]"],
            ["i32[?2,?3]@0:4", "i1[?2,?3,2]"],
            [[0, 2], [4, 3], "f32[2,2]", "f32[2,2]"],
            [[[1, 0]], "i32[1,2,?3]"],
            [[0, 3], [4, 1], "f32[2,?3]", "f32[2,?3]"],
            [[[2, 0]], "f16[1,2,?3]"],
            ["i32[?2]@3:4", "i32[]@0:1", "f32[?2,?3,2]", "f32[?3,2]"],
        )
    ),
    Case("InvertPermutation", ["i32[?1]@0:1"]),
    Case("InvertPermutation", ["i64[1]@0:1"]),
]

SETS = [
    Case("UniqueV2", ["i32[?6]@0:3", [0]]),
    Case("UniqueV2", ["i64[6]@0:3", np.zeros(0, np.int32)], {"out_idx": _I64}),
    Case("UniqueWithCounts", ["f32[?6]@0:1"]),
    Case("UniqueWithCountsV2", ["i32[6]@0:3", [0]], {"out_idx": _I64}),
    Case("ListDiff", ["i32[?9]@0:4", [1, 3]]),
    Case("ListDiff", ["f32[2]", "f32[?3]"], {"out_idx": _I64}),
]

SPARSE = [
    Case("SparseFillEmptyRows", ["i64[?4,2]@0:5", "f32[?4]", np.array([7, 5]), 0.5]),
    Case("SparseFillEmptyRows", ["i64[4,3]@0:2", "i64[4]", "i64[3]@6:7", np.array(-3)]),
    Case("SparseToDense", ["i64[2,2]@0:3", np.array([4, 3]), "i1[]", False], {"validate_indices": False}),
    Case("SparseReorder", ["i64[?5,2]@0:3", "f32[?5]", np.array([3, 3])]),
    Case("SparseReorder", ["i64[9,3]@0:3", "i32[9]", "i64[3]@2000000:2000000.5"]),
    Case("SparseTensorDenseMatMul", ["i64[?4,2]@0:3", "f32[?4]", np.array([5, 3]), "f32[3,?2]"]),
    Case(
        "SparseTensorDenseMatMul",
        ["i32[4,2]@0:3", "i32[4]", "i64[2]@3:4", "i32[2,3]"],
        {"adjoint_a": True, "adjoint_b": True},
    ),
    Case("SparseReshape", ["i64[?4,2]@0:5", np.array([5, 6]), np.array([3, -1])]),
    Case("SparseReshape", ["i64[4,3]@0:6", "i64[3]@6:7", "i64[1]@-1:0"]),
    Case("SparseReshape", [np.array([[1 << 40]]), "i64[1]@70368744177664:70368744177664.5", np.array([1 << 20, -1])]),
]

DIAGONALS = [
    Case("MatrixDiagPart", ["f32[?2,3,4]"]),
    *(Case("MatrixDiagPartV2", ["i32[4,3]", offset, 0]) for offset in (0, 2, -2)),
    Case("MatrixDiagPartV3", ["f32[2,3,3]", [1, 1], 0.0]),
    Case("MatrixDiagPart", ["f32[?2,?3,?4]"]),
    *(Case("MatrixDiagPartV3", ["i32[?4,?3]", offset, 0]) for offset in (0, 2, -2)),
    Case("MatrixSetDiagV3", ["i1[?3,3]", "i1[?3]", 0]),
    Case("MatrixSetDiag", ["i1[2,3,3]", "i1[2,3]"]),
    Case("DiagPart", ["f32[2,3,2,3]"]),
    Case("Diag", ["f32[?3]"]),
    Case("Diag", ["i32[2,3]"]),
]

CASES = [*SEGMENTS, *PARTS, *SETS, *SPARSE, *DIAGONALS]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees(case: Case, check: Check) -> None:
    check(case)


def test_sorted_segments_without_gaps_take_one_operator(check: Check) -> None:
    assert check(Case("SegmentSum", ["f32[3,2]", [0, 0, 1]])) == ["SEGMENT_SUM"]
    assert check(Case("SegmentSum", ["f32[3,2]", [0, 0, 2]])) == ["UNSORTED_SEGMENT_SUM"]


@pytest.mark.parametrize("how", ["Min", "Mean"])
def test_segments_may_be_of_unknown_rank(tf: ModuleType, run_tflite: RunTFLite, how: str) -> None:
    module = tf.Module()
    specs = [tf.TensorSpec([3, 2, 2], tf.float32), tf.TensorSpec(None, tf.int32)]
    segment = getattr(tf.raw_ops, f"Segment{how}")
    module.call = tf.function(lambda x, i: segment(data=x, segment_ids=i), specs, autograph=False)
    operands = [np.arange(12, dtype=np.float32).reshape(3, 2, 2), np.array([0, 2, 2], np.int32)]
    (got,) = run_tflite(bytes(tfconvert.convert(module.call)), operands)
    np.testing.assert_array_equal(got, module.call(*operands))
