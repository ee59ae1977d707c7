"""Normalizations against TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.ops.cases import ShapeCase, by_op, check_contradiction, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate

STATISTICS = ("f32[3]", "f32[3]", "f32[3]", "f32[3]@0.1:2")
NONE = np.zeros(0, np.float32)

ROWS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[
        (f"FusedBatchNorm{version}", ("f32[2,4,5,3]", *STATISTICS), {"epsilon": 1e-3, "is_training": False})
        for version in ("", "V2", "V3")
    ],
    ("FusedBatchNormV3", ("f16[2,4,5,3]", *STATISTICS), {"epsilon": 1e-3, "is_training": False}),
    ("FusedBatchNormV3", ("bf16[2,4,5,3]", *STATISTICS), {"epsilon": 1e-3, "is_training": False}),
    ("FusedBatchNormV3", ("f32[2,3,4,5]", *STATISTICS), {"is_training": False, "data_format": "NCHW"}),
    ("FusedBatchNormV3", ("f32[2,4,5,3]", "f32[3]", "f32[3]", NONE, NONE), {"is_training": True}),
    ("FusedBatchNormV3", ("f32[2,4,5,3]", *STATISTICS), {"is_training": True, "exponential_avg_factor": 0.3}),
    ("LRN", ("f32[2,3,3,8]",), {}),
    ("LRN", ("f32[2,3,3,8]",), {"depth_radius": 2, "bias": 2.0, "alpha": 0.1, "beta": 0.75}),
    *[(op, (f"{dtype}[3,4]",), {}) for op in ("Softmax", "LogSoftmax") for dtype in ("f32", "f64", "f16", "bf16")],
    ("Softmax", ([[1e4, 0.0, -1e4]],), {}),
    *[("SoftmaxCrossEntropyWithLogits", (f"{dtype}[3,4]", f"{dtype}[3,4]"), {}) for dtype in ("f32", "f64", "f16")],
    ("SoftmaxCrossEntropyWithLogits", ("f32[3,4]", "f32[1,4]"), {}),
    ("SparseSoftmaxCrossEntropyWithLogits", ("f32[3,4]", [3, 0, 1]), {}),
    ("Softmax", ("f32[2,3,4,5]",), {}),
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), ROWS)
def test_normalization(agree: Agree, op: str, inputs: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    # The reserved results are what the gradient's kernel on this device likes.
    norm = {"results": 3} if op.startswith("FusedBatchNorm") else {}
    narrow = isinstance(inputs[0], str) and inputs[0].startswith(("f16", "bf16"))
    agree(op, inputs, attributes, tolerance=2e-2 if narrow else 1e-5, **norm)


@pytest.mark.parametrize("scaled", [False, True])
def test_global_normalization(scaled: bool) -> None:
    # TensorFlow has the op's definition, but no kernel any more.
    random = np.random.default_rng(0)
    x, mean, beta, gamma = (random.normal(size=shape).astype(np.float32) for shape in ((2, 3, 3, 4), 4, 4, 4))
    variance = np.abs(mean) + 1
    attributes = {"variance_epsilon": 1e-3, "scale_after_normalization": scaled}
    (y,) = evaluate(Call("BatchNormWithGlobalNormalization", (x, mean, variance, beta, gamma), attributes))
    factor = (variance.astype(np.float64) + 1e-3) ** -0.5 * (gamma if scaled else 1)
    np.testing.assert_allclose(y, (x - mean) * factor + beta, 1e-5, 1e-5)


def test_softmax_of_nothing_is_nothing() -> None:
    assert evaluate(Call("Softmax", (np.zeros((2, 0), np.float32),), {}))[0].shape == (2, 0)


SHAPES: list[ShapeCase] = [
    ("Softmax", ["f32[?,3]"], {}),
    ("SoftmaxCrossEntropyWithLogits", ["f32[?,3]", "f32[4,3]"], {}),
    ("SparseSoftmaxCrossEntropyWithLogits", ["f32[4,3]", "i32[?]"], {}),
    ("SoftmaxCrossEntropyWithLogits", ["f32[*]", "f32[4,3]"], {}),
    ("FusedBatchNormV3", ["f32[?,4,4,?]", "f32[3]", "f32[3]", "f32[3]", "f32[3]"], {"is_training": False}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


CONTRADICTIONS: list[ShapeCase] = [("SoftmaxCrossEntropyWithLogits", ["f32[3]", "f32[3]"], {})]


@by_op(CONTRADICTIONS)
def test_what_tensorflow_refuses_is_refused(tmp_path: Path, case: ShapeCase) -> None:
    check_contradiction(case, tmp_path)
