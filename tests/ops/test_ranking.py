"""Ranking and uniqueness against TensorFlow."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.ops.cases import KernelCase, ShapeCase, by_op, check_contradiction, check_refused, check_shapes
from tests.ops.comparison import Agree, compare
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate

INT64 = np.dtype(np.int64)

TEXT = np.array([b"b", b"a", b"b", b"c"], object)

_PREDICTIONS = np.array([[1, 2, np.inf], [1, np.nan, 2], [1, 2, 2], [3, 2, 1], [3, 2, 1]], np.float32)

SHAPES: list[ShapeCase] = [
    ("TopKV2", ["f32[?,9]", 3], {}),
    ("Unique", ["f32[4]"], {}),
    ("InTopK", ["f32[?,3]", "i32[4]"], {"k": 2}),
    ("TopKV2", ["f32[*]", 3], {}),
    ("ApproxTopK", ["f32[2,9]"], {"k": 3}),
    ("UniqueV2", ["f32[4,?]", [1]], {}),
    ("UniqueV2", ["f32[4,?]", "i32[1]"], {}),
    ("UniqueWithCountsV2", ["f32[4]", np.zeros([0], np.int32)], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


CONTRADICTIONS: list[ShapeCase] = [("TopKV2", ["f32[2]", 3], {})]


@by_op(CONTRADICTIONS)
def test_what_tensorflow_refuses_is_refused(tmp_path: Path, case: ShapeCase) -> None:
    check_contradiction(case, tmp_path)


ROWS: list[KernelCase] = [
    ("Unique", ([4, 4, 1, 9, 1],), {}),
    ("Unique", (TEXT,), {"out_idx": INT64}),
    ("UniqueWithCounts", ([4, 4, 1, 9, 1],), {}),
    ("TopKV2", ("f32[3,6]", 4), {}),
    ("TopKV2", ([1, 3, 3, 2, 3], 4), {}),
    ("TopKV2", ("ui8[3,6]", 6), {"sorted": True}),
    ("ListDiff", ([4, 1, 9, 1], [1, 3]), {}),
    ("ApproxTopK", ("f32[3,7]",), {"k": 3}),
    ("InTopKV2", (_PREDICTIONS, [0, 2, 1, -1, 3], 1), {}),
    ("InTopKV2", ("f32[4,5]", "i64[4]@0:4", np.array(2)), {}),
    ("InTopK", ("f32[4,5]", "i32[4]@0:4"), {"k": 3}),
    *(("NthElement", ("f32[3,7]", 2), {"reverse": reverse}) for reverse in (False, True)),
    ("UniqueV2", ([3, 1, 3, 2], [0]), {}),
    ("UniqueWithCountsV2", ([3.0, 1.0, 3.0], np.zeros(0, np.int64)), {}),
]


@by_op(ROWS)
def test_kernel(agree: Agree, case: KernelCase) -> None:
    agree(*case)


BAD: list[KernelCase] = [
    ("TopKV2", (np.zeros(3), np.array(4)), {}),
    ("UniqueV2", ("i32[2,2]", [0]), {}),
    ("ApproxTopK", (np.ones(3, np.float32),), {"k": 4}),
    ("ApproxTopK", (np.ones(3, np.float32),), {"k": 1, "aggregate_to_topk": False}),
    ("NthElement", (np.ones(3, np.float32), np.array(3)), {}),
]


@by_op(BAD)
def test_operands_that_do_not_fit_are_an_error(case: KernelCase) -> None:
    check_refused(case)


def test_smallest_elements_along_another_axis() -> None:
    """TensorFlow has no kernel of these for processors."""
    x = np.array([[3, 1], [2, 5], [2, 0]], np.float32)
    call = Call("ApproxTopK", (x,), {"k": 2, "is_max_k": False, "reduction_dimension": 0})
    values, indices = evaluate(call)
    assert values.tolist() == [[2, 0], [2, 1]]
    assert indices.tolist() == [[1, 2], [2, 0]]


def test_the_number_of_the_greatest_was_an_attribute() -> None:
    # TensorFlow's kernel of the older op wants an attribute that the op doesn't have.
    x = np.array([[3, 1, 4], [1, 5, 9]], np.float32)
    older, newer = evaluate(Call("TopK", (x,), {"k": 2})), evaluate(Call("TopKV2", (x, np.array(2)), {}))
    for got, expected in zip(older, newer, strict=True):
        compare(got, expected)
