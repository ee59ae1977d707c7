"""Resizing and cropping against TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from tfconvert.ops.resampling import KERNELS

Agree = Callable[..., None]

PIXELS: tuple[dict[str, bool], ...] = ({}, {"align_corners": True}, {"half_pixel_centers": True})
SIZES = ([7, 3], [4, 6], [1, 1], [13, 17], [2, 12])


@pytest.mark.parametrize("op", ["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"])
@pytest.mark.parametrize(("pixels", "size"), list(product(PIXELS, SIZES)))
@pytest.mark.parametrize("dtype", ["f32", "ui8"])
def test_resize(agree: Agree, op: str, pixels: dict[str, bool], size: list[int], dtype: str) -> None:
    agree(op, (f"{dtype}[2,4,6,3]", size), pixels, tolerance=1e-5 if op != "ResizeNearestNeighbor" else None)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_resize_by_area(agree: Agree, align: bool, size: list[int]) -> None:
    agree("ResizeArea", ("ui8[2,4,6,3]", size), {"align_corners": align}, tolerance=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("antialias", [False, True])
def test_scale_and_translate(agree: Agree, kernel: str, antialias: bool) -> None:
    for size, scale, translation in (([7, 3], [7 / 4, 0.5], [0.0, 0.0]), ([13, 2], [1.0, 0.3], [5.0, -0.7])):
        operands = ("f32[2,4,6,3]", size, scale, translation)
        agree("ScaleAndTranslate", operands, {"kernel_type": kernel, "antialias": antialias}, tolerance=1e-5)


BOXES = [[0.0, 0.0, 1.0, 1.0], [0.2, -0.1, 0.7, 1.2], [0.9, 0.8, 0.1, 0.2], [0.25, 0.5, 0.75, 0.75]]


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [[3, 4], [1, 5], [8, 8]])
def test_crop_and_resize(agree: Agree, method: str, size: list[int]) -> None:
    attributes: dict[str, Any] = {"method": method, "extrapolation_value": 0.5}
    agree("CropAndResize", ("f32[2,5,6,3]", BOXES, [0, 1, 1, 0], size), attributes, tolerance=1e-5)
