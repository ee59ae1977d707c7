"""Derivatives against TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.cases import ShapeCase, by_op, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate
from tfconvert.schema.diagnostics import ConversionError

OF_RESULTS = ("InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad")


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "c64"])
@pytest.mark.parametrize("op", OF_RESULTS)
def test_gradients_of_results(agree: Agree, op: str, dtype: str) -> None:
    tolerance = {"c64": 2e-5, "f16": 1e-2}.get(dtype)
    agree(op, (f"{dtype}[3,5]@0.1:2", f"{dtype}[3,5]@-2:2"), tolerance=tolerance)


@pytest.mark.parametrize("op", ["InvGrad", "ReciprocalGrad", "RsqrtGrad", "SqrtGrad"])
def test_no_slope_is_too_steep_for_a_gradient_of_zero(agree: Agree, op: str) -> None:
    agree(op, (np.array([0, 0, np.inf, np.nan, 2], np.float32), np.array([0, 1, 0, 0, 0], np.float32)))


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "i32"])
@pytest.mark.parametrize("op", ["ReluGrad", "Relu6Grad"])
def test_gradients_of_rectifiers(agree: Agree, op: str, dtype: str) -> None:
    agree(op, (f"{dtype}[4,5]", f"{dtype}[4,5]@-9:9"))


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
@pytest.mark.parametrize("op", ["EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad", "LeakyReluGrad"])
def test_gradients_of_smooth_activations(agree: Agree, op: str, dtype: str) -> None:
    attributes = {"alpha": 0.3} if op == "LeakyReluGrad" else {}
    agree(op, (f"{dtype}[3,5]", f"{dtype}[3,5]@-3:3"), attributes, tolerance=1e-2 if dtype == "f16" else None)


def test_a_rectifier_hands_nothing_on_at_its_edges(agree: Agree) -> None:
    agree("Relu6Grad", (np.ones(5, np.float32), np.array([-1, 0, 3, 6, 7], np.float32)))


@pytest.mark.parametrize(("layout", "shape"), [("NHWC", "2,3,4,5"), ("NCHW", "2,5,3,4"), ("NHWC", "6,3")])
@pytest.mark.parametrize("dtype", ["f32", "i32", "f16"])
def test_gradient_of_a_bias(agree: Agree, dtype: str, layout: str, shape: str) -> None:
    agree("BiasAddGrad", (f"{dtype}[{shape}]",), {"data_format": layout}, tolerance=1e-2 if dtype == "f16" else 1e-5)


def test_nothing_is_broadcast() -> None:
    with pytest.raises(ConversionError, match="differ") as caught:
        evaluate(Call("TanhGrad", (np.ones(3, np.float32), np.ones((), np.float32)), {}))
    assert caught.value.code == "bad-operand"


SHAPES: list[ShapeCase] = [
    ("ReluGrad", ["f32[?,3]", "f32[2,?]"], {}),
    ("BiasAddGrad", ["f32[2,4,4,3]"], {}),
    ("BiasAddGrad", ["f32[*]"], {}),
    ("BiasAddGrad", ["f32[2,7,4,3]"], {"data_format": "NCHW"}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)
