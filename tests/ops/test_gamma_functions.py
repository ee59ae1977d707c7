"""The gamma function's logarithm, its derivatives and zeta against TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.cases import KernelCase, ShapeCase, by_op, check_shapes
from tests.ops.comparison import EDGES, Agree
from tests.ops.tiny_graphs import Inferred

_DTYPES = ("f32", "f64", "f16")

SHAPES: list[ShapeCase] = [
    ("IgammaGradA", ["f32[?,3]", "f32[3]"], {}),
    ("Polygamma", ["f32[]", "f32[3,?]"], {}),
    ("RandomGammaGrad", ["f32[2,3]", "f32[?]"], {}),
    ("Zeta", ["f32[?,1]", "f32[3]"], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


ROWS: list[KernelCase] = [
    *[
        (op, (f"{dtype}[5,40]{bounds}",), {})
        for op in ("Digamma", "Lgamma")
        for dtype in _DTYPES
        for bounds in ("@0.1:9",)
    ],
    *[("Zeta", (f"{dtype}[40]@1.1:9", f"{dtype}[5,1]@0.5:9"), {}) for dtype in ("f32", "f64")],
    *[
        ("Polygamma", (np.arange(5, dtype=dtype)[:, None], np.linspace(0.5, 9, 40).astype(dtype)), {})
        for dtype in ("float32", "float64")
    ],
    ("Polygamma", (np.array([-1, 1.5]), np.array([2.0, 2.0])), {}),
    ("Zeta", (np.array([1, 0.5, 2, 3, 2.5, 3, 1]), np.array([2, 2, -1, -1, -1.5, -1.5, -1])), {}),
]


@by_op(ROWS)
def test_kernel(agree: Agree, case: KernelCase) -> None:
    agree(*case)


@pytest.mark.parametrize("op", ["Digamma", "Lgamma"])
def test_below_zero_and_at_the_edges(agree: Agree, op: str) -> None:
    agree(op, (EDGES.astype(np.float64),))
    agree(op, (np.linspace(-9, 0, 37),))


@pytest.mark.parametrize("op", ["Igamma", "IgammaGradA", "Igammac", "RandomGammaGrad"])
def test_incomplete_functions(agree: Agree, op: str) -> None:
    agree(op, ("f32[5,40]@0.5:9", "f32[40]@0.5:9"), tolerance=1e-5)


def test_incomplete_beta_function(agree: Agree) -> None:
    agree("Betainc", ("f32[5,40]@0.5:9", "f32[5,40]@0.5:9", "f32[5,40]@0:1"), tolerance=1e-5)
