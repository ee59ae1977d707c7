"""Reductions against TensorFlow."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.ops.cases import KernelCase, ShapeCase, by_op, check_contradiction, check_refused, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred

FLOATS = ("f32", "f64", "f16", "bf16")
INTEGERS = ("i8", "i16", "i32", "i64", "ui8")
AXES: tuple[list[int], ...] = ([0], [1], [-1], [0, 2], [2, 0, 1], [])
INT32 = np.dtype(np.int32)

ROWS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[
        (op, (f"{dtype}[2,3,4]", np.array(axes, np.int32)), {"keep_dims": keep})
        for op, dtype, axes, keep in product(
            ("Sum", "Mean", "Max", "Min", "Prod"), FLOATS + INTEGERS, AXES, (False, True)
        )
    ],
    *[(op, ("i1[2,3,4]", axes), {}) for op, axes in product(("All", "Any"), ([0], [1, 2]))],
    ("EuclideanNorm", ("f32[2,3,4]", [1]), {}),
    ("EuclideanNorm", ("c64[2,3,4]", [1]), {}),
    ("Sum", ("c64[2,3,4]", [1]), {"keep_dims": True}),
    ("Mean", ("c64[2,3,4]", [1]), {}),
    *[(op, ("f32[0,3]", [0]), {}) for op in ("Sum", "Mean", "Max", "Min", "Prod")],
    *[(op, ("i32[0,3]", [0]), {}) for op in ("Sum", "Max", "Min", "Prod")],
    *[(op, ("i8[300]@100:127", [0]), {}) for op in ("Sum", "Prod")],
    *[
        (op, (f"{dtype}[3,4,5]", axis), {"output_type": output})
        for op, dtype, axis, output in product(
            ("ArgMax", "ArgMin"), ("f32", "bf16", "i32", "ui8"), (0, 1, -1), (INT32, np.dtype(np.int64))
        )
    ],
    *[
        (op, (f"{dtype}[3,4]", axis), {"exclusive": exclusive, "reverse": reverse})
        for op, dtype, axis, exclusive, reverse in product(
            ("Cumsum", "Cumprod"), ("f32", "f16", "i32", "i8"), (0, -1), (False, True), (False, True)
        )
    ],
    *[
        ("CumulativeLogsumexp", (f"{dtype}[3,4]", axis), {"exclusive": exclusive, "reverse": reverse})
        for dtype, axis, exclusive, reverse in product(("f32", "f64", "f16"), (0, -1), (False, True), (False, True))
    ],
    ("CumulativeLogsumexp", (np.array([-np.inf, -np.inf, 1, 700, -700]), 0), {}),
    *[("L2Loss", (f"{dtype}[3,4]",), {}) for dtype in FLOATS],
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), ROWS)
def test_reduction(agree: Agree, op: str, inputs: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    # TensorFlow rounds after each factor.
    loose = op == "Prod" and inputs[0].startswith("bf16")
    agree(op, inputs, attributes, tolerance=3e-2 if loose else None)


SHAPES: list[ShapeCase] = [
    ("Cumsum", ["f32[?,3]", 1], {}),
    ("Mean", ["f32[?,7,7,3]", [1, 2]], {}),
    ("Mean", ["f32[?,7,7,3]", [-3, -2]], {"keep_dims": True}),
    ("Sum", ["f32[2,3]", "i32[1]"], {"keep_dims": True}),
    ("Sum", ["f32[2,3]", "i32[]"], {}),
    ("Max", ["f32[*]", [0]], {}),
    ("All", ["i1[2,3]", 0], {}),
    ("ArgMax", ["f32[?,3,4]", 1], {}),
    ("ArgMax", ["f32[?,3,4]", "i32[]"], {}),
    ("L2Loss", ["f32[?,3]"], {}),
    ("ArgMax", ["f32[*]", 1], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


CONTRADICTIONS: list[ShapeCase] = [("Cumsum", ["f32[2,3]", 2], {})]


@by_op(CONTRADICTIONS)
def test_what_tensorflow_refuses_is_refused(tmp_path: Path, case: ShapeCase) -> None:
    check_contradiction(case, tmp_path)


BAD: list[KernelCase] = [("Sum", (np.zeros((2, 3)), np.array([2])), {})]


@by_op(BAD)
def test_operands_that_do_not_fit_are_an_error(case: KernelCase) -> None:
    check_refused(case)
