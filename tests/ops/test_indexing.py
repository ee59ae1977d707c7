"""Slices, gathers and scatters against TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate
from tfconvert.schema.diagnostics import ConversionError

Agree = Callable[..., None]

INT64 = np.dtype(np.int64)
TEXT = np.array([b"b", b"a", b"b", b"c"], object)
SCATTERS = ("Add", "Sub", "Max", "Min", "Update")


def masks(begin: int = 0, end: int = 0, ellipsis: int = 0, new_axis: int = 0, shrink: int = 0) -> dict[str, Any]:
    return {
        "begin_mask": begin,
        "end_mask": end,
        "ellipsis_mask": ellipsis,
        "new_axis_mask": new_axis,
        "shrink_axis_mask": shrink,
    }


ROWS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Slice", ("f32[4,5]", [1, 2], [2, -1]), {}),
    ("Slice", (TEXT, [1], [2]), {}),
    ("StridedSlice", ("f32[4,5,6]", [1, 2], [3, 4], [1, 1]), masks()),
    ("StridedSlice", ("f32[4,5,6]", [-1, 0], [-4, 5], [-1, 2]), masks()),
    ("StridedSlice", ("f32[4,5,6]", [1, 2], [3, 4], [-1, 1]), masks(begin=3, end=1)),
    ("StridedSlice", ("f32[4,5,6]", [0, 1], [0, 2], [1, 1]), masks(ellipsis=1, shrink=2)),
    ("StridedSlice", ("f32[4,5,6]", [1, 0, 1], [2, 0, 2], [1, 1, 1]), masks(new_axis=2, shrink=1)),
    (
        "StridedSlice",
        ("f32[4,5,6]", [1, 0, 0, -1], [2, 0, 0, 0], [1, 1, 1, 1]),
        masks(ellipsis=2, new_axis=4, shrink=9),
    ),
    ("StridedSlice", ("f32[4]", [3], [1], [1]), masks()),
    ("StridedSlice", ("f32[4]", [-9], [9], [3]), masks()),
    ("StridedSlice", ("f32[4]", [9], [-9], [-3]), masks()),
    ("TensorStridedSliceUpdate", ("f32[4,5]", [1, 0], [3, 5], [1, 2], "f32[2,3]"), masks()),
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
    ("Unique", ([4, 4, 1, 9, 1],), {}),
    ("Unique", (TEXT,), {"out_idx": INT64}),
    ("UniqueWithCounts", ([4, 4, 1, 9, 1],), {}),
    ("TopKV2", ("f32[3,6]", 4), {}),
    ("TopKV2", ([1, 3, 3, 2, 3], 4), {}),
    ("TopKV2", ("ui8[3,6]", 6), {"sorted": True}),
    ("ReverseV2", ("f32[3,4,5]", [0, -1]), {}),
    ("ReverseSequence", ("f32[3,4,5]", [1, 4, 0]), {"seq_dim": 1, "batch_dim": 0}),
    ("ReverseSequence", ("f32[3,4,5]", np.array([1, 3, 0, 2])), {"seq_dim": 0, "batch_dim": 1}),
    ("InvertPermutation", ([2, 0, 1],), {}),
    ("DynamicPartition", ("f32[4,2]", [1, 0, 1, 2]), {"num_partitions": 4}),
    ("DynamicStitch", ([0, 2], [1, 3, 2], "f32[2,2]", "f32[3,2]"), {}),
    ("ListDiff", ([4, 1, 9, 1], [1, 3]), {}),
    *[(op, ([[1, 3, 3, 5], [0, 2, 4, 6]], [[3, 9], [-1, 2]]), {}) for op in ("LowerBound", "UpperBound")],
    ("SparseToDense", ([[0, 1], [2, 0]], [3, 2], [5.0, 6.0], -1.0), {}),
    ("SparseToDense", ([1, 3], [4], 5, 0), {}),
    # Blocks and diagonals.
    ("SpaceToBatchND", ("f32[2,4,6,3]", [2, 3], [[0, 0], [1, 2]]), {}),
    ("SpaceToBatchND", ("f32[2,3]", [2], [[1, 0]]), {}),
    ("BatchToSpaceND", ("f32[12,2,3,2]", [2, 3], [[0, 1], [2, 1]]), {}),
    ("BatchToSpaceND", ("f32[4,3]", [2], [[1, 0]]), {}),
    ("SpaceToBatch", ("f32[1,3,4,2]", [[1, 0], [0, 0]]), {"block_size": 2}),
    ("BatchToSpace", ("f32[4,2,2,2]", [[1, 0], [0, 0]]), {"block_size": 2}),
    ("SpaceToDepth", ("f32[2,4,6,3]",), {"block_size": 2}),
    ("DepthToSpace", ("f32[2,2,3,12]",), {"block_size": 2}),
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


@pytest.mark.parametrize(("op", "inputs", "attributes"), ROWS)
def test_indexing(agree: Agree, op: str, inputs: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    agree(op, inputs, attributes)


@given(
    dim=st.integers(1, 6),
    begin=st.integers(-8, 8),
    end=st.integers(-8, 8),
    stride=st.sampled_from([-3, -2, -1, 1, 2, 3]),
    begin_mask=st.integers(0, 1),
    end_mask=st.integers(0, 1),
)
@settings(max_examples=150)
def test_strided_slice(
    agree: Agree, dim: int, begin: int, end: int, stride: int, begin_mask: int, end_mask: int
) -> None:
    agree("StridedSlice", (f"f32[{dim}]", [begin], [end], [stride]), masks(begin_mask, end_mask))


@pytest.mark.parametrize("stride", [0, -1])
def test_a_single_index_has_a_positive_stride(tf: ModuleType, stride: int) -> None:
    """TensorFlow refuses others, and LiteRT reads what is not there."""
    x = np.arange(4, dtype=np.float32)
    bounds = [np.array([value], np.int32) for value in (1, 2, stride)]
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.raw_ops.StridedSlice(input=x, begin=bounds[0], end=bounds[1], strides=bounds[2], **masks(shrink=1))
    with pytest.raises(ConversionError) as caught:
        evaluate(Call("StridedSlice", (x, *bounds), masks(shrink=1)))
    assert caught.value.code == "bad-operand"


@pytest.mark.parametrize(("place", "row"), [((1, 0), 1), ((9, 5), 2), ((-1, 0), 0)])
def test_a_slice_of_xla_is_moved_to_where_it_fits(place: tuple[int, int], row: int) -> None:
    x, begin, size = np.arange(12.0).reshape(4, 3), np.array(place, np.int32), np.array([2, 3], np.int32)
    (result,) = evaluate(Call("XlaDynamicSlice", (x, begin, size), {}))
    np.testing.assert_array_equal(result, x[row : row + 2])
    with pytest.raises(ConversionError, match="larger than shape"):
        evaluate(Call("XlaDynamicSlice", (x, begin, size + 3), {}))


def test_a_depth_is_not_negative(tf: ModuleType) -> None:
    operands = [np.array(value, np.int32) for value in ([0, 1], -1, 1, 0)]
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.raw_ops.OneHot(indices=operands[0], depth=operands[1], on_value=operands[2], off_value=operands[3])
    with pytest.raises(ConversionError, match="is negative"):
        evaluate(Call("OneHot", tuple(operands), {}))
