"""Ops that hand values on against TensorFlow."""

from __future__ import annotations

import numpy as np

from tests.ops.cases import KernelCase, ShapeCase, by_op, check_refused, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate

SHAPES: list[ShapeCase] = [
    ("IdentityN", [["f32[?,3]", "i32[2]"]], {}),
    ("PlaceholderWithDefault", ["f32[2,3]"], {"shape": [None, 3]}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


ROWS: list[KernelCase] = [
    *[(op, ("f32[2,3,4]",), {}) for op in ("Identity", "StopGradient")],
    *[(op, ("f32[2,3]",), {}) for op in ("Snapshot", "DeepCopy")],
    ("PreventGradient", ("f32[2]",), {"message": ""}),
    ("IdentityN", ("f32[2,3]", "i32[4]"), {}),
]


@by_op(ROWS)
def test_kernel(agree: Agree, case: KernelCase) -> None:
    agree(*case)


BAD: list[KernelCase] = [("Assert", (np.array(False),), {}), ("Const", (), {})]


@by_op(BAD)
def test_operands_that_do_not_fit_are_an_error(case: KernelCase) -> None:
    check_refused(case)


def test_nothing_is_computed_of_nothing() -> None:
    assert evaluate(Call("NoOp", (), {})) == ()
