"""Crops of images against TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Agree = Callable[..., None]

BOXES = [[0.0, 0.0, 1.0, 1.0], [0.2, -0.1, 0.7, 1.2], [0.9, 0.8, 0.1, 0.2], [0.25, 0.5, 0.75, 0.75]]


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [[3, 4], [1, 5], [8, 8]])
def test_crop_and_resize(agree: Agree, method: str, size: list[int]) -> None:
    attributes: dict[str, Any] = {"method": method, "extrapolation_value": 0.5}
    agree("CropAndResize", ("f32[2,5,6,3]", BOXES, [0, 1, 1, 0], size), attributes, tolerance=1e-5)
