"""Reductions, shapes, rearrangements and indexing."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.legalize.cases import Case, Check
from tests.support.litert import RunTFLite

_I64 = np.int64

REDUCTIONS = [
    *(
        Case(op, [operand, axes], {"keep_dims": keep}, tolerance=1e-5)
        for op in ("Mean", "Sum", "Prod", "Max", "Min")
        for operand, axes, keep in (
            ("f32[2,3,4]", [1], False),
            ("f32[?2,3,4]", [-1, 0], True),
            ("i32[2,3,4]", 1, False),
            ("f32[2,3]", np.zeros(0, np.int32), False),
            ("i64[2,3]", np.array([1]), False),
        )
    ),
    *(Case(op, ["i1[2,3,4]", [1]], {"keep_dims": keep}) for op in ("All", "Any") for keep in (False, True)),
    Case("EuclideanNorm", ["f32[2,3]", [1]]),
    *(
        Case(op, [operand, 1], {"output_type": output})
        for op in ("ArgMax", "ArgMin")
        for operand, output in (("f32[2,5]", np.int64), ("i32[2,5]@0:90", np.int32))
    ),
    *(
        Case("Cumsum", [operand, 1], {"exclusive": exclusive, "reverse": reverse})
        for operand, exclusive, reverse in (("f32[2,5]", False, True), ("i32[2,5]", True, False))
    ),
    *(
        Case(op, ["f32[2,5]", 1], {"exclusive": exclusive, "reverse": reverse}, tolerance=1e-5)
        for op in ("Cumprod", "CumulativeLogsumexp")
        for exclusive in (False, True)
        for reverse in (False, True)
    ),
    Case("CumulativeLogsumexp", ["f32[3,?40]@-300:90", 0]),
    Case("CumulativeLogsumexp", ["f16[2,9]@-3:3", -1]),
    Case("Max", ["ui16[2,3]", [1]]),
    Case("Mean", ["f16[2,3]", [1]]),
]

SHAPES = [
    Case("Reshape", ["f32[2,6]", [3, -1]]),
    Case("Reshape", ["f32[?2,6]", [-1, 3, 2]]),
    Case("Reshape", ["f32[?2,?6]", np.array([3, 4])]),
    Case("ExpandDims", ["f32[2,3]", 1]),
    Case("ExpandDims", ["f32[?2,?3]", -1]),
    Case("Squeeze", ["f32[1,2,1]"]),
    Case("Squeeze", ["f32[?2,?3,1]"], {"squeeze_dims": [-1]}),
    Case("Shape", ["f32[?2,3]"]),
    Case("Shape", ["f32[?2,3]"], {"out_type": _I64}),
    Case("ShapeN", ["f32[?2,3]", "f32[?4]"]),
    Case("Rank", ["f32[?2,3]"]),
    Case("Size", ["f32[?2,3]"]),
    Case("Size", ["f32[?2,3]"], {"out_type": _I64}),
    Case("Fill", [[2, 3], "f32[]"]),
    *(Case("Empty", ["i32[2]@3:4"], {"dtype": dtype, "init": True}) for dtype in (np.float32, np.int64, np.bool_)),
    Case("Fill", [np.array([2, 3]), "i1[]"]),
    Case("Range", [0, "i32[]@5:6", 2]),
    Case("Range", ["f32[]@0:1", "f32[]@5:6", 1.0]),
    *(Case(op, [operand]) for op in ("ZerosLike", "OnesLike") for operand in ("f32[?2,3]", "i1[?2,3]", "i8[2,3]")),
    Case("LinSpace", ["f32[]", "f32[]", 7], tolerance=1e-5),
    Case("BroadcastTo", ["f32[3]", [2, 3]]),
    Case("BroadcastTo", ["i16[2,1]", np.array([2, 3])]),
    Case("BroadcastArgs", ["i32[1]@3:4", "i32[2]@3:4"]),
    Case("ConcatOffset", [-1, "i32[3]@2:3", [2, 2, 7], "i32[3]@2:3"]),
    Case("ConcatOffset", [0, "i32[1]@1:9", "i32[1]@1:9"]),
    *(
        Case("BroadcastGradientArgs", [one, other])
        for one in ("i32[2]@1:2", "i32[2]@3:4", "i32[1]@1:2", "i32[0]")
        for other in ("i32[2]@3:4", "i32[2]@1:2")
    ),
    Case("BroadcastGradientArgs", [np.array([2, 1, 3]), "i64[3]@1:4"]),
    Case("BroadcastGradientArgs", ["i32[0]", "i32[0]"]),
]

REARRANGED = [
    Case("Transpose", ["f32[2,3,4]", [2, 0, 1]]),
    Case("Transpose", ["f32[?2,3,2,1,2,3]", [5, 3, 0, 1, 2, 4]]),
    Case("Transpose", ["f32[1,2,1,2,1,2,3]", [6, 5, 4, 3, 2, 1, 0]]),
    Case("Transpose", ["i32[2,3,2,2,3,2,2]", [4, 5, 6, 0, 1, 3, 2]]),
    Case("Transpose", ["f32[?2,3,1,2,1,2,3,2]", [3, 4, 5, 0, 2, 1, -1, 6]]),
    Case("Transpose", ["i1[2,1,1,3,1,1,1]", [3, 1, 2, 0, 4, 5, 6]]),
    Case("Transpose", ["i64[1,1,1,1,1,1,1]", [3, 1, 2, 0, 4, 5, 6]]),
    Case("ConcatV2", ["f32[2,3]", "f32[2,1]", -1]),
    Case("ConcatV2", ["i1[2,3]", "i1[1,3]", 0]),
    Case("Concat", [1, "f32[2,3]", "f32[2,1]"]),
    Case("Pack", ["f32[2,3]", "f32[2,3]"], {"axis": 1}),
    Case("Pack", ["i1[2,3]", "i1[2,3]"], {"axis": -1}),
    Case("Unpack", ["f32[2,3]"], {"axis": 1, "num": 3}),
    Case("Unpack", ["i64[2,3]"], {"axis": -1, "num": 3}),
    Case("Split", [1, "f32[2,6]"], {"num_split": 3}),
    Case("SplitV", ["f32[2,6]", [1, -1, 2], 1], {"num_split": 3}),
    Case("SplitV", ["f32[2,6]", np.array([1, 3, 2]), 1], {"num_split": 3}),
    Case("Tile", ["f32[2,3]", [2, 1]]),
    Case("Tile", ["i16[2,3]", np.array([1, 3])]),
    Case("Pad", ["f32[2,3]", [[1, 0], [0, 2]]]),
    Case("Pad", ["i1[2,3]", [[1, 0], [0, 2]]]),
    Case("PadV2", ["f32[?2,3]", [[1, 0], [0, 2]], 3.0]),
    Case("MirrorPad", ["f32[2,3]", [[1, 0], [0, 2]]], {"mode": "REFLECT"}),
    Case("MirrorPad", ["i32[2,3]", [[1, 0], [0, 2]]], {"mode": "SYMMETRIC"}),
    Case("ReverseV2", ["f32[2,3,4]", [0, -1]]),
    Case("Roll", ["f32[2,3,4]", [1, -1], [0, 2]]),
    Case("Roll", ["i32[5]", 7, 0]),
    Case("Roll", ["f32[?2,0]", "i32[2]@-9:9", [0, 1]]),
    Case("Roll", ["f32[?2,?3,4]", [1, -1], [0, -2]]),
    Case("Roll", ["f32[2,3,4]", "i64[]@-9:9", np.array(1)]),
    Case("Roll", ["i32[2,3]", "i32[3]@-9:9", [0, 1, -2]]),
    Case("Roll", ["i1[?2,3,4]", "i64[2]@-9:9", "i32[2]@-3:3"]),
    Case("SpaceToDepth", ["f32[1,4,6,3]"], {"block_size": 2}),
    Case("DepthToSpace", ["f32[1,2,3,8]"], {"block_size": 2}),
    Case("SpaceToBatchND", ["f32[1,4,6,3]", [2, 2], [[0, 0], [0, 0]]]),
    Case("SpaceToBatchND", ["f32[1,3,2]", [2], [[1, 0]]]),
    Case("SpaceToBatchND", ["f32[1,3,6]", [2, 2], [[1, 0], [0, 0]]]),
    Case("BatchToSpaceND", ["f32[4,2,3,3]", [2, 2], [[0, 1], [1, 0]]]),
    Case("BatchToSpaceND", ["f32[4,2,3]", [2, 2], [[0, 1], [1, 0]]]),
]

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _strided(operand: str, begin: Any, end: Any, strides: Any, *masks: int) -> Case:
    return Case("StridedSlice", [operand, begin, end, strides], dict(zip(_MASKS, masks, strict=False)))


_SPAN = np.array([0, 2, 2, 1], np.int32)

INDEXED = [
    Case("Slice", ["f32[2,3,4]", [0, 1, 2], [2, -1, 2]]),
    Case("Slice", ["f32[?2,3,4]", np.array([0, 1, 2]), np.array([-1, 2, 2])]),
    Case("Slice", ["f32[6]", "i32[1]@1:2", "i32[1]@3:4"]),
    Case("XlaDynamicSlice", ["f32[?4,5]", "i32[2]@-3:9", [2, 3]]),
    _strided("f32[4,5]", [1, 0], [3, 4], [1, 2]),
    _strided("f32[4,5]", [-1, 4], [0, 0], [-1, -2], 0, 3),
    _strided("f32[4,5]", [1, -2], [0, 0], [1, 1], 0, 0, 0, 0, 3),
    _strided("f32[?4,5]", [0, 1], [0, 3], [1, 1], 1, 1),
    _strided("f32[2,3,4,5]", [1, 0, 2], [2, 0, 4], [1, 1, 1], 0, 0, 0b010),
    _strided("f32[2,3,4]", [0, 0, 1], [0, 0, 2], [1, 1, 1], 0b010, 0b010, 0, 0b001, 0b100),
    _strided("f32[?2,3,4]", [0, 0, 1], [0, 0, 3], [1, 1, 1], 0, 0, 0b001, 0b010),
    _strided("f32[2,3]", [0, 0], [0, 0], [1, 1], 0, 0, 0b10, 0b01),
    _strided("f32[2,3]", np.array([1, 0]), np.array([2, 2**62]), np.array([1, 1])),
    _strided("f32[6]", "i32[1]@1:2", "i32[1]@4:5", [2]),
    _strided("i32[3,2]", "i32[1]@1:2", "i32[1]@2:3", [1], 0, 0, 0, 0, 1),
    # New axes where several dimensions are dynamic, or the bounds are computed.
    _strided("f32[?3,?2]", [0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1], 0b1001, 0b1001, 0, 0b0110),
    _strided("f32[?3,?4]", [1, 0, 0], [9, 1, 3], [1, 1, 2], 0, 0, 0, 0b010),
    _strided("f32[?3,?4]", "i32[3]@0:1", "i32[3]@2:4", [1, 1, 1], 0b100, 0b001, 0, 0b010),
    _strided("f32[?3,?4,2]", "i32[4]@0:1", "i32[4]@2:4", [1, 1, 1, 1], 0b1000, 0b1000, 0, 0b0010, 0b0100),
    _strided("f32[?2,?1,?3,2,?2]", [0, 0, 0, 1], [0, 0, 0, 2], [1, 1, 1, 1], 0b1001, 0b0001, 0, 0b0110),
    _strided("f32[?2,?1,?3,2,?2]", "i32[4]@0:1", "i32[4]@1:2", [1, 1, 1, 1], 0, 0, 0b0010, 0b0001, 0b1000),
    # More new axes than the kernel supports, beside dimensions that vanish.
    _strided("f32[2,1,?3,1,?2,2]", "i32[5]@0:1", "i32[5]@1:3", [1] * 5, 0, 0b10000, 0, 0b01101),
    _strided(
        "f32[1,2,?3,2,1,2]", "i64[7]@0:1", "i64[7]@1:2", np.array([1] * 7), 0, 0b1000000, 0b100, 0b1001001, 0b110010
    ),
    _strided("f32[1,1,1,?2,3,1,2,1]", "i32[4]@0:1", "i32[4]@1:3", "i32[4]@1:3", 0, 0, 0b0001, 0b0010, 0b1100),
    # An ellipsis that takes no dimension, one, and several: the kernel miscounts.
    _strided("f32[4]", "i32[2]@1:2", "i32[2]@3:4", [1, 1], 0, 0, 0b01),
    _strided("f32[?3,4]", "i32[2]@1:2", "i32[2]@3:4", [1, 1], 0b10, 0, 0b01),
    _strided("f32[?3,4,2]", "i64[3]@1:2", "i64[3]@2:3", np.array([1, 1, 1]), 0, 0b100, 0b010, 0, 0b001),
    _strided("f32[?3,?4,2,3]", "i32[3]@1:2", "i32[3]@2:3", "i32[3]@1:3", 0b100, 0b001, 0b010),
    _strided("f32[3,?4,2]", "i32[3]@0:1", "i32[3]@1:2", [1, 1, 1], 0, 0, 0b001, 0b110),
    # Masks that an index or a new axis overrules.
    _strided("f32[3,4]", "i32[2]@1:2", "i32[2]@3:4", [1, 1], 0b11, 0b01, 0, 0, 0b01),
    _strided("f32[3,4]", "i32[2]@1:2", "i32[2]@3:4", [1, 1], 0, 0, 0, 0b01, 0b01),
    Case("TensorStridedSliceUpdate", ["f32[4,5]", [1, 0], [3, 2], [1, 1], "f32[2,2]"]),
    Case("TensorStridedSliceUpdate", ["f32[4,5]", [-1], [0], [1], "f32[5]"], {"shrink_axis_mask": 1}),
    Case("TensorStridedSliceUpdate", ["f32[6,5]", [-1, 4], [0, 0], [-2, -3], "f32[3,2]"]),
    Case("TensorStridedSliceUpdate", ["i1[2,3,4]", [0, 1], [0, 3], [1, 2], "i1[2,3,1]"], {"ellipsis_mask": 1}),
    Case("TensorStridedSliceUpdate", ["i64[2,3]", [0, 1], [0, 2], [1, 1], "i64[1,1,3]"], {"new_axis_mask": 1}),
    Case("TensorStridedSliceUpdate", ["f32[4,5]", [1, 0], [4, 3], [1, 1], "f32[3]"]),
    Case("TensorStridedSliceUpdate", ["f32[4,5]", [3, 0], [3, 3], [1, 1], "f32[]"]),
    Case("TensorStridedSliceUpdate", ["f32[4,5]", "i32[1]@1:2", [0], [1], "f32[5]"], {"shrink_axis_mask": 1}),
    Case("TensorStridedSliceUpdate", ["f32[4,5]", "i32[2]@-3:0", [0, 0], [1, 1], "f32[]"], {"shrink_axis_mask": 3}),
    Case("TensorStridedSliceUpdate", ["f32[4,5]", "i64[1]@1:2", np.array([3]), np.array([1]), "f32[2,5]"]),
    Case("TensorStridedSliceUpdate", ["f32[4,5]", "i32[2]@-9:0", "i32[2]@-2:9", [1, 1], "f32[]"]),
    Case(
        "TensorStridedSliceUpdate",
        ["f32[4,5]", "i32[2]@1:3", "i32[2]@3:5", [1, 1], "f32[4,1]"],
        {"begin_mask": 1, "end_mask": 1},
    ),
    Case("Gather", ["f32[4,3]", "i32[2]@0:4"]),
    Case("GatherV2", ["f32[4,3]", "i32[2,2]@0:3", 1]),
    Case("GatherV2", ["f32[2,4,3]", "i64[2,2]@0:4", -2], {"batch_dims": -1}),
    Case("GatherNd", ["f32[4,3]", "i32[5,2]@0:3"]),
    Case("GatherNd", ["f32[?4,3]", "i32[?5,0]"]),
    Case("ScatterNd", ["i32[3,1]@0:5", "f32[3,2]", [5, 2]]),
    Case("ScatterNd", [np.array([[1], [3]]), "i32[2]", np.array([5])]),
    Case("TensorScatterAdd", ["f32[5,2]", "i32[3,1]@0:5", "f32[3,2]"]),
    Case("TensorScatterSub", ["f32[5,2]", "i32[3,1]@0:5", "f32[3,2]"]),
    Case("TensorScatterUpdate", ["f32[5,2]", np.array([[0], [4]], np.int32), "f32[2,2]"]),
    Case("TensorScatterUpdate", ["i1[5]", np.array([[0], [4]], np.int32), "i1[2]"]),
    *[
        Case(f"TensorScatter{kind}", [*operands])
        for kind in ("Max", "Min")
        for operands in (("f32[5,2]", "i32[7,1]@0:5", "f32[7,2]"), ("i32[4,3]", "i32[?3,2]@0:3", "i32[?3]"))
    ],
    Case("TensorScatterMax", [np.full((3, 2), -np.inf, np.float32), "i32[1,1]@0:3", "f32[1,2]"]),
    Case("TensorScatterMin", ["f32[3,2]", [[0], [0]], np.array([[np.inf] * 2, [-np.inf] * 2], np.float32)]),
    Case("DynamicStitch", [[0, 2], [1, 3, 2], "f32[2,2]", "f32[3,2]"]),
    Case("DynamicStitch", [1, [0], "i32[]", "i32[1]"]),
    Case("DynamicStitch", [[1, 0], "i1[2,3]"]),
    Case("OneHot", ["i32[3]@0:4", 4, 2.0, -1.0], {"axis": 0}),
    Case("OneHot", ["i64[3]@0:4", 4, True, False]),
    Case("OneHot", ["ui8[?5]@0:6", 4, 2.0, -1.0], {"axis": 0}),
    Case("OneHot", [np.array([3, 128, 255, 200], np.uint8), 256, 1, 0]),
    Case("OneHot", ["i8[2,3]@-2:4", 4, True, False], {"axis": 1}),
    Case("Where", ["i1[3,4]"]),
    Case("Where", ["f32[5]@0:9"]),
    Case("TopKV2", ["f32[2,5]", 3]),
    Case("TopKV2", ["i32[2,5]@0:99", 2], {"index_type": _I64}),
    Case("Select", ["i1[2,3]", "f32[2,3]", "f32[2,3]"]),
    Case("Select", ["i1[2]", "f32[2,3]", "f32[2,3]"]),
    Case("SelectV2", ["i1[2,1]", "f32[2,3]", "f32[3]"]),
    Case("SelectV2", ["i1[2,1,2,1,2]", "i64[1,2,2,1,1]", "i64[]"]),
    Case("ReverseSequence", ["f32[2,4,3]", "i32[2]@1:4"], {"seq_dim": 1, "batch_dim": 0}),
    Case("Unique", ["i32[6]@0:3"]),
    Case("Unique", ["f32[6]@0:3"], {"out_idx": _I64}),
    Case("MatrixBandPart", ["f32[2,4,5]", 1, 2]),
    Case("MatrixBandPart", ["f32[?4,?5]", "i64[]@-1:0", "i64[]@0:1"]),
    Case("MatrixDiag", ["f32[2,3]"]),
    Case("MatrixDiagV2", ["f32[2,3]", 0, -1, -1, 0.0]),
    Case("MatrixDiagV3", ["f32[2,3]", 0, -1, -1, 0.0]),
    Case("MatrixSetDiag", ["f32[2,3,4]", "f32[2,3]"]),
    Case("MatrixSetDiagV2", ["f32[2,3,4]", "f32[2,3]", 0]),
    Case("MatrixSetDiagV3", ["f32[2,3,4]", "f32[2,3]", 0]),
    Case("SegmentSum", ["f32[4,2]", [0, 0, 1, 2]]),
    *(Case(f"UnsortedSegment{name}", ["f32[4,2]", _SPAN, 3]) for name in ("Sum", "Prod", "Max", "Min")),
    Case("SparseToDense", [[1, 3], [5], "f32[2]", 0.5]),
]

CASES = [*REDUCTIONS, *SHAPES, *REARRANGED, *INDEXED]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees(case: Case, check: Check) -> None:
    check(case)


def test_bands_of_matrices_of_unknown_rank(tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path) -> None:
    module = tf.Module()
    module.run = tf.function(
        lambda x, low: {"y": tf.linalg.band_part(x, low, 1)},
        input_signature=[tf.TensorSpec(None, name="x"), tf.TensorSpec([], tf.int64, name="low")],
    )
    tf.saved_model.save(module, str(tmp_path), signatures=module.run)
    x = np.random.default_rng(0).normal(size=(2, 1, 4, 5)).astype(np.float32)
    content = bytes(tfconvert.convert(tmp_path))
    for low in (np.array(2), np.array(-1)):
        (got,) = run_tflite(content, {"x": x, "low": low}, signature="serving_default")
        np.testing.assert_array_equal(got, tf.linalg.band_part(x, low, 1))


def test_many_dimensions_take_one_transpose_between_reshapes(check: Check) -> None:
    assert check(Case("Transpose", ["f32[2,3,1,4,1,1,2]", [3, 2, 0, 1, 4, 6, 5]])) == ["RESHAPE", "TRANSPOSE"]
