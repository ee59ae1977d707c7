"""Reductions of segments against TensorFlow."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from tests.ops.cases import KernelCase, ShapeCase, by_op, check_refused, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred


def longs(*values: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(values, np.int64)


SHAPES: list[ShapeCase] = [
    ("SegmentSum", ["f32[5,3]", "i32[5]"], {}),
    ("UnsortedSegmentSum", ["f32[5,3]", "i32[5]", 4], {}),
    ("SparseSegmentMean", ["f32[5,3]", "i32[?]", "i32[7]"], {}),
    ("SparseSegmentSum", ["f32[5,?]", "i32[3]", [0, 0, 2]], {}),
    ("SparseSegmentSqrtNWithNumSegments", ["f32[5,3]", "i32[?]", "i32[?]", 4], {}),
    ("SparseSegmentMeanGradV2", ["f32[5,?]", "i32[3]", "i32[3]", 4], {}),
    ("UnsortedSegmentSum", ["f32[*]", "i32[5]", 4], {}),
    ("SegmentSum", ["f32[*]", "i32[5]"], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


ROWS: list[KernelCase] = [
    *[
        (f"SparseSegment{name}{count}", ("f32[5,2]", [4, 0, 0, 1], [0, 0, 2, 2], *number), {})
        for name in ("Sum", "Mean", "SqrtN")
        for count, number in (("", ()), ("WithNumSegments", (4,)))
    ],
    *[
        (f"SparseSegment{name}GradV2", (f"{dtype}[3,2]", [4, 0, 0, 7], [0, 0, 2, 2], 9), {})
        for name, dtype in product(("Sum", "Mean", "SqrtN"), ("f32", "f64"))
    ],
    ("SparseSegmentSumGradV2", ("f32[1,2]", np.zeros(0, np.int32), np.zeros(0, np.int32), 3), {}),
    ("SparseSegmentMeanGradV2", ("f32[2,2,3]", longs(4, 4, 1), longs(1, 1, 1), 5), {}),
    ("SparseSegmentMean", ("f16[5]", [4, 0, 3], longs(0, 0, 0)), {}),
    ("SparseSegmentSum", ("f32[5,2]", np.zeros(0, np.int32), np.zeros(0, np.int32)), {}),
    *[
        (f"Segment{kind}", (f"{dtype}[5,3]", [0, 0, 2, 2, 3]), {})
        for kind, dtype in product(("Sum", "Prod", "Max", "Min", "Mean"), ("f32", "i32"))
    ],
    *[
        (f"UnsortedSegment{kind}", (f"{dtype}[5,3]", [2, 0, -1, 2, 3], 5), {})
        for kind, dtype in product(("Sum", "Prod", "Max", "Min"), ("f32", "i32", "bf16"))
    ],
    ("UnsortedSegmentSum", ("f32[2,3,4]", [[0, 1, 0], [2, 2, 1]], 3), {}),
]


@by_op(ROWS)
def test_kernel(agree: Agree, case: KernelCase) -> None:
    agree(*case)


BAD: list[KernelCase] = [
    ("SparseSegmentSum", ("f32[2,2]", [2], [0]), {}),
    ("SparseSegmentSum", ("f32[2,2]", [0, 1], [1, 0]), {}),
    ("SparseSegmentSumWithNumSegments", ("f32[2,2]", [0, 1], [0, 1], 1), {}),
]


@by_op(BAD)
def test_operands_that_do_not_fit_are_an_error(case: KernelCase) -> None:
    check_refused(case)
