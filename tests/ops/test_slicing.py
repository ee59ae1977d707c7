"""Slices against TensorFlow."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.cases import KernelCase, ShapeCase, by_op, check_contradiction, check_refused, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate
from tfconvert.schema.diagnostics import ConversionError

_MASKS = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}

TEXT = np.array([b"b", b"a", b"b", b"c"], object)


def masks(begin: int = 0, end: int = 0, ellipsis: int = 0, new_axis: int = 0, shrink: int = 0) -> dict[str, Any]:
    return {
        "begin_mask": begin,
        "end_mask": end,
        "ellipsis_mask": ellipsis,
        "new_axis_mask": new_axis,
        "shrink_axis_mask": shrink,
    }


SHAPES: list[ShapeCase] = [
    ("StridedSlice", ["f32[5,6]", [1, 0], [4, 6], [1, 2]], _MASKS),
    ("StridedSlice", ["f32[5,?,7]", [1, 0], [0, 0], [1, 1]], {**_MASKS, "ellipsis_mask": 2, "end_mask": 1}),
    (
        "StridedSlice",
        ["f32[5,?,7]", [1, 0, 0], [2, 0, 3], [1, 1, 1]],
        {**_MASKS, "shrink_axis_mask": 1, "new_axis_mask": 2},
    ),
    ("StridedSlice", ["f32[?,7]", [0, -1], [0, -9], [1, -2]], {**_MASKS, "end_mask": 1, "begin_mask": 1}),
    ("StridedSlice", ["f32[?,7]", "i32[1]", "i32[1]", [1]], _MASKS),
    ("StridedSlice", ["f32[?,7]", [-3], [-1], [1]], _MASKS),
    ("Slice", ["f32[5,?]", [1, 0], [-1, 3]], {}),
    ("Slice", ["f32[5,?]", "i32[2]", [2, 3]], {}),
    ("StridedSlice", ["f32[?,7]", [3], [2], [1]], _MASKS),
    ("StridedSlice", ["f32[?,7]", [0], [0], [1]], {**_MASKS, "begin_mask": 1}),
    ("StridedSlice", ["f32[?,7]", "i32[?]", "i32[?]", "i32[?]"], _MASKS),
    ("StridedSlice", ["f32[*]", [0], [1], [1]], _MASKS),
    ("Slice", ["f32[*]", "i32[?]", "i32[?]"], {}),
    ("Slice", ["f32[*]", "i32[2]", "i32[2]"], {}),
    ("Slice", ["f32[5,?]", "i32[?]", [2, 3]], {}),
    ("Slice", ["f32[5,?]", [1, 2], [-1, -1]], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


CONTRADICTIONS: list[ShapeCase] = [
    ("Slice", ["f32[5,6]", [0], [1]], {}),
    ("Slice", ["f32[5,6]", [0, 0], [1]], {}),
    ("Slice", ["f32[5,6]", [3, 0], [3, 6]], {}),
    ("StridedSlice", ["f32[5]", [0, 0], [1, 1], [1, 1]], _MASKS),
    ("StridedSlice", ["f32[5]", [0], [1], [0]], _MASKS),
    ("StridedSlice", ["f32[5]", [0], [1, 1], [1]], _MASKS),
    ("StridedSlice", ["f32[5]", [5], [6], [1]], {**_MASKS, "shrink_axis_mask": 1}),
]


@by_op(CONTRADICTIONS)
def test_what_tensorflow_refuses_is_refused(tmp_path: Path, case: ShapeCase) -> None:
    check_contradiction(case, tmp_path)


ROWS: list[KernelCase] = [
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
]


@by_op(ROWS)
def test_kernel(agree: Agree, case: KernelCase) -> None:
    agree(*case)


BAD: list[KernelCase] = [
    ("Slice", (np.zeros(3), np.array([2]), np.array([2])), {}),
    ("StridedSlice", (np.zeros(3), np.array([3]), np.array([4]), np.array([1])), {"shrink_axis_mask": 1}),
    ("StridedSlice", (np.zeros(3), np.array([0, 0]), np.array([1, 1]), np.array([1, 1])), {}),
]


@by_op(BAD)
def test_operands_that_do_not_fit_are_an_error(case: KernelCase) -> None:
    check_refused(case)


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


@pytest.mark.parametrize(("place", "row"), [((1, 0), 1), ((9, 5), 2), ((-1, 0), 0)])
def test_an_update_of_xla_is_moved_to_where_it_fits(place: tuple[int, int], row: int) -> None:
    x, update = np.arange(12.0).reshape(4, 3), -np.ones((2, 3))
    (result,) = evaluate(Call("XlaDynamicUpdateSlice", (x, update, np.array(place, np.int32)), {}))
    expected = x.copy()
    expected[row : row + 2] = update
    np.testing.assert_array_equal(result, expected)
