"""Resizing images against TensorFlow, and the matrices that do it."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.ops.cases import ShapeCase, by_op, check_contradiction, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.resampling import KERNELS, area, bicubic, scaled

SIZES = [(7, 5), (5, 9), (4, 4), (1, 3), (6, 1)]


@pytest.mark.parametrize(("inputs", "outputs"), SIZES)
def test_a_plain_image_stays_plain(inputs: int, outputs: int) -> None:
    matrices = [
        bicubic(inputs, outputs, half_pixel_centers=True),
        bicubic(inputs, outputs, align_corners=True),
        area(inputs, outputs),
        *(scaled(inputs, outputs, kernel, outputs / inputs, 0, antialias=True) for kernel in KERNELS),
    ]
    for matrix in matrices:
        assert matrix.shape == (outputs, inputs)
        np.testing.assert_allclose(matrix.sum(1), 1, atol=1e-5)


def test_nothing_is_done_where_nothing_changes() -> None:
    for matrix in (bicubic(4, 4), area(4, 4), scaled(4, 4, "triangle", 1, 0, antialias=True)):
        np.testing.assert_array_equal(matrix, np.eye(4))


def test_what_is_beyond_the_image_is_black() -> None:
    assert not scaled(4, 6, "lanczos3", 1, 10, antialias=False).any()


PIXELS: tuple[dict[str, bool], ...] = ({}, {"align_corners": True}, {"half_pixel_centers": True})
IMAGE_SIZES = ([7, 3], [4, 6], [1, 1], [13, 17], [2, 12])


@pytest.mark.parametrize("op", ["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"])
@pytest.mark.parametrize(("pixels", "size"), list(product(PIXELS, IMAGE_SIZES)))
@pytest.mark.parametrize("dtype", ["f32", "ui8"])
def test_resize(agree: Agree, op: str, pixels: dict[str, bool], size: list[int], dtype: str) -> None:
    agree(op, (f"{dtype}[2,4,6,3]", size), pixels, tolerance=1e-5 if op != "ResizeNearestNeighbor" else None)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("size", IMAGE_SIZES)
def test_resize_by_area(agree: Agree, align: bool, size: list[int]) -> None:
    agree("ResizeArea", ("ui8[2,4,6,3]", size), {"align_corners": align}, tolerance=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("antialias", [False, True])
def test_scale_and_translate(agree: Agree, kernel: str, antialias: bool) -> None:
    for size, scale, translation in (([7, 3], [7 / 4, 0.5], [0.0, 0.0]), ([13, 2], [1.0, 0.3], [5.0, -0.7])):
        operands = ("f32[2,4,6,3]", size, scale, translation)
        agree("ScaleAndTranslate", operands, {"kernel_type": kernel, "antialias": antialias}, tolerance=1e-5)


SHAPES: list[ShapeCase] = [
    ("ResizeBilinear", ["f32[?,4,4,3]", [8, 9]], {}),
    ("ResizeNearestNeighbor", ["f32[?,4,4,3]", "i32[2]"], {}),
    ("ResizeBilinear", ["f32[?,4,4,3]", "i32[?]"], {}),
    ("ResizeBilinearGrad", ["f32[?,8,9,3]", "f32[2,4,4,3]"], {}),
    ("ResizeNearestNeighborGrad", ["f32[?,8,9,3]", [4, 5]], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


CONTRADICTIONS: list[ShapeCase] = [("ResizeBilinear", ["f32[1,4,4,3]", [8]], {})]


@by_op(CONTRADICTIONS)
def test_what_tensorflow_refuses_is_refused(tmp_path: Path, case: ShapeCase) -> None:
    check_contradiction(case, tmp_path)
