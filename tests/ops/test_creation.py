"""Ops that make tensors against TensorFlow."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import tensorflow as tf

from tests.ops.cases import KernelCase, ShapeCase, by_op, check_contradiction, check_refused, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred

EMPTY = np.zeros(0, np.int32)

SHAPES: list[ShapeCase] = [
    ("Fill", [[2, 3], 1.0], {}),
    ("Fill", ["i32[2]", 1.0], {}),
    ("Range", [0, 10, 3], {}),
    ("Range", [0.0, 1.0, 0.25], {}),
    ("Range", [0, "i32[]", 1], {}),
    ("LinSpace", [0.0, 1.0, 7], {}),
    ("RandomUniform", [[2, 3]], {"dtype": tf.float32}),
    ("Multinomial", ["f32[2,3]", 4], {}),
    ("Range", [0.0, 0.3, 0.1], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


CONTRADICTIONS: list[ShapeCase] = [("Fill", [[2, -3], 1.0], {}), ("Range", [0, 10, 0], {})]


@by_op(CONTRADICTIONS)
def test_what_tensorflow_refuses_is_refused(tmp_path: Path, case: ShapeCase) -> None:
    check_contradiction(case, tmp_path)


ROWS: list[KernelCase] = [
    ("Empty", ([2, 3],), {"dtype": np.dtype(np.float32), "init": True}),
    *[(op, ("f32[2,3,4]",), {}) for op in ("ZerosLike", "OnesLike")],
    ("ZerosLike", ("i1[4]",), {}),
    ("Fill", ([2, 3], 1.5), {}),
    ("Fill", ([2], np.array(b"x", object)), {}),
    ("Fill", (EMPTY, np.array(2, ml_dtypes.bfloat16)), {}),
    *[("Range", row, {}) for row in ((0, 10, 3), (10, 0, -3), (0, 0, 1), (0.0, 1.0, 0.3), (1.0, -1.0, -0.25))],
    ("Range", (0.0, 0.3, 0.1), {}),
    *[("LinSpace", (0.0, 3.0, count), {}) for count in (1, 2, 7)],
    ("LinSpace", (np.array(1.0), np.array(-1.0), 5), {}),
]


@by_op(ROWS)
def test_kernel(agree: Agree, case: KernelCase) -> None:
    agree(*case)


BAD: list[KernelCase] = [
    ("Range", (np.array(0), np.array(3), np.array(0)), {}),
    ("Range", (np.array(5), np.array(1), np.array(2)), {}),
    ("Fill", (np.array([1 << 50], np.int64), np.array(1.0)), {}),
]


@by_op(BAD)
def test_operands_that_do_not_fit_are_an_error(case: KernelCase) -> None:
    check_refused(case)
