"""Resizing and cropping of images of dynamic sizes, or to sizes that are computed at run time."""

from __future__ import annotations

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.legalize.cases import Case, Check

_OPEN = "f32[?2,?9,?7,3]"
_SIZE = np.array([5, 8], np.int32)
_SCALE, _SHIFT = np.array([0.6, 1.2], np.float32), np.array([0.3, -0.7], np.float32)
_BOXES = np.array(
    [[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], [0.5, 0.5, 0.2, 0.1], [-0.2, -0.1, 1.2, 0.5], [0.3, 0.3, 0.3, 0.3]], np.float32
)
_IMAGES = np.array([0, 1, 1, 0, 1], np.int32)
_KERNELS = ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")

CASES = [
    Case("ResizeArea", [_OPEN, _SIZE], tolerance=1e-5),
    Case("ResizeArea", ["ui8[2,?9,7,?3]@0:255", "i32[2]@3:12"], tolerance=1e-5),
    Case("ResizeBicubic", [_OPEN, _SIZE], {"half_pixel_centers": True}, tolerance=1e-5),
    Case("ResizeBicubic", [_OPEN, _SIZE], tolerance=1e-5),
    Case("ResizeBicubic", ["f32[1,4,5,2]", "i32[2]@3:12"], {"half_pixel_centers": True}, tolerance=1e-5),
    Case("ResizeBicubic", ["f32[1,4,5,2]", "i32[2]@3:12"], tolerance=1e-5),
    *(
        Case(
            "ScaleAndTranslate",
            [_OPEN, _SIZE, _SCALE, _SHIFT],
            {"kernel_type": kernel, "antialias": kernel != "box"},
            tolerance=2e-5,
        )
        for kernel in _KERNELS
    ),
    Case(
        "ScaleAndTranslate",
        ["f32[1,6,5,2]", _SIZE, "f32[2]@0.5:2", "f32[2]@-1:1"],
        {"kernel_type": "triangle"},
        tolerance=2e-5,
    ),
    Case("CropAndResize", ["f32[2,8,9,3]", _BOXES, _IMAGES, _SIZE], tolerance=1e-5),
    Case("CropAndResize", ["f32[?2,?8,?9,?3]", "f32[?6,4]@-0.2:1.2", "i32[?6]@0:1", _SIZE], tolerance=1e-5),
    Case("CropAndResize", ["f32[2,8,9,3]", _BOXES, _IMAGES, _SIZE], {"method": "nearest"}),
    Case(
        "CropAndResize", ["ui8[2,8,9,3]@0:255", _BOXES, _IMAGES, [1, 1]], {"extrapolation_value": 3.0}, tolerance=1e-5
    ),
    Case("CropAndResize", ["f32[2,8,9,3]", _BOXES, _IMAGES, "i32[2]@1:4"], tolerance=1e-5),
    *(
        Case(
            "CropAndResizeGradImage",
            [gradient, _BOXES, _IMAGES, shape],
            {"T": np.float32, "method": method},
            tolerance=1e-5,
        )
        for gradient, shape in (("f32[5,3,1,2]", [2, 8, 9, 2]), ("f32[?5,?3,?4,?3]", "i32[4]@3:4"))
        for method in ("bilinear", "nearest")
    ),
    Case("CropAndResizeGradImage", ["f32[?5,3,4,2]", _BOXES, _IMAGES, [2, 8, 9, 2]], {"T": np.float16}, tolerance=1e-2),
    *(
        Case("CropAndResizeGradBoxes", [gradient, image, "f32[?5,4]@-0.2:1.2", "i32[?5]@0:2"], tolerance=1e-5)
        for gradient, image in (
            ("f32[5,3,1,2]", "f32[2,8,9,2]"),
            ("f32[?5,?3,?4,?2]", "f32[?2,?8,?9,?2]"),
            ("f32[5,?1,?3,2]", "ui8[2,8,9,2]@0:255"),
        )
    ),
    *(
        Case(
            "ScaleAndTranslateGrad",
            ["f32[?2,7,6,3]", "f32[?2,5,8,3]", *numbers],
            {"kernel_type": kernel},
            tolerance=2e-5,
        )
        for kernel, numbers in (("lanczos3", (_SCALE, _SHIFT)), ("keyscubic", ("f32[2]@0.5:2", "f32[2]@-1:1")))
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees(case: Case, check: Check) -> None:
    check(case)


def test_aligned_corners_of_open_sizes_are_declined(check: Check) -> None:
    with pytest.raises(tfconvert.ConversionError, match="corners are aligned"):
        check(Case("ResizeBicubic", [_OPEN, _SIZE], {"align_corners": True}))
