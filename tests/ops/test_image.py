"""Crops of images against TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.cases import ShapeCase, by_op, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred

BOXES = [[0.0, 0.0, 1.0, 1.0], [0.2, -0.1, 0.7, 1.2], [0.9, 0.8, 0.1, 0.2], [0.25, 0.5, 0.75, 0.75]]


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [[3, 4], [1, 5], [8, 8]])
def test_crop_and_resize(agree: Agree, method: str, size: list[int]) -> None:
    attributes: dict[str, Any] = {"method": method, "extrapolation_value": 0.5}
    agree("CropAndResize", ("f32[2,5,6,3]", BOXES, [0, 1, 1, 0], size), attributes, tolerance=1e-5)


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", ["3,4", "1,5", "8,1"])
def test_gradients_of_crops(agree: Agree, method: str, size: str) -> None:
    gradient, owners = f"f32[4,{size},3]", [0, 1, 1, 0]
    for kind, tolerance in ((np.float32, 1e-5), (np.float16, 1e-2)):
        attributes: dict[str, Any] = {"method": method, "T": np.dtype(kind)}
        agree("CropAndResizeGradImage", (gradient, BOXES, owners, [2, 5, 6, 3]), attributes, tolerance=tolerance)
    for dtype in ("f32", "ui8"):
        agree("CropAndResizeGradBoxes", (gradient, f"{dtype}[2,5,6,3]", BOXES, owners), {}, tolerance=1e-5)


SHAPES: list[ShapeCase] = [
    ("CropAndResizeGradBoxes", ["f32[?,4,4,3]", "f32[2,8,9,3]", "f32[?,4]", "i32[5]"], {}),
    ("CropAndResizeGradImage", ["f32[?,4,4,3]", "f32[?,4]", "i32[5]", [2, 8, 9, 3]], {"T": np.dtype(np.float32)}),
    ("CropAndResize", ["f32[?,4,4,3]", "f32[?,4]", "i32[5]", [8, 9]], {}),
    (
        "ExtractImagePatches",
        ["f32[?,9,9,3]"],
        {"ksizes": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "rates": [1, 2, 2, 1], "padding": "VALID"},
    ),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize(("size", "strides", "rate"), [((3, 2), (1, 2), 1), ((2, 3), (3, 1), 2), ((4, 4), (4, 4), 1)])
def test_windows(agree: Agree, padding: str, size: tuple[int, int], strides: tuple[int, int], rate: int) -> None:
    lists = {"ksizes": size, "strides": strides, "rates": (rate, rate)}
    attributes = {name: (1, *each, 1) for name, each in lists.items()}
    agree("ExtractImagePatches", ("f32[2,9,8,3]",), {**attributes, "padding": padding})
